"""Voronoi losses L1 and L4 of regression mixtures with quadratic gates, any expert.

``L1 = sum_(j over) |sum_(i in A_j) sigma(c_i) - sigma(c*_j)| + sum_(j over) sum_(i in A_j)
(|dA|^2 + |db|^2 + |deta|^2) + sum_(j exact) sum_(i in A_j) (|dA| + |db| + |dc| + |deta|)``, where
the over-specified cells have several atoms, the exact ones one, and eta are all parameters of the
expert in one norm.  L4 is the same without b.  The cells are of (A, b, eta), without c.

An empty cell costs nothing, so L1 is 0 when all fitted atoms sit on one true atom and their masses
add up: look at ``empty_cells`` and ``coverage`` of the result.

The softmax gate is invariant to a common (A, b, c).  Its losses, which the paper leaves to its
reference [1], are read here in the same way: masses exp(c) scaled to the truth's total, c the
logarithm of such a mass, and the infimum over a common translation of (A, b).

Source: Yan et al. (2025), eq. (9) and the display after it for L1; eqs. (52) and (53) for L4.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from moestat.metrics.losses._loss import BlockTerm, VoronoiLoss
from moestat.metrics.losses._reference import cell_sums, norm

_A = BlockTerm("A", vector_axes=1)
_B = BlockTerm("b", vector_axes=1)
_C = BlockTerm("c", vector_axes=0, in_cells=False, exact_only=True)
_LOG_MASS = replace(_C, log_mass=True)
_ETA = BlockTerm("eta", vector_axes=1, joint=True)


def shared_masses(estimate, truth, cells):
    """Differences of masses, over cells of several atoms."""
    owners, sizes = np.unique(cells, return_counts=True)
    return sum(
        abs(estimate.masses[cells == j].sum() - truth.masses[j])
        for j, size in zip(owners, sizes, strict=True)
        if size > 1
    )


def printed(estimate, truth, cells, blocks, mass):
    """Equation (9) with the blocks of a gate; `mass` is its term of cells of one atom."""

    def cost(gap, size):
        norms = [norm(gap[name]) for name in (*blocks, "W")]
        return sum(norms) + norm(gap[mass]) if size == 1 else sum(x**2 for x in norms)

    sums = cell_sums(estimate, truth, cells, cost)
    return shared_masses(estimate, truth, cells) + sums.sum()


LOSS = VoronoiLoss(
    name="L1",
    terms=(_A, _B, _C, _ETA),
    exact_exponent=1.0,
    over_exponent=2.0,
    translated=(),
    source="Yan et al. (2025), Sec. 4.1.1",
    masses="given",
    weighted=False,
    mass_cells="shared",
    gates=("sigmoid-quadratic",),
    reference=partial(printed, blocks=("A", "b"), mass="c"),
)

PARTIAL = replace(
    LOSS,
    name="L4",
    terms=(_A, _C, _ETA),
    source="Yan et al. (2025), eq. (53)",
    gates=("sigmoid-partial",),
    reference=partial(printed, blocks=("A",), mass="c"),
)

SOFTMAX = replace(
    LOSS,
    name="softmax-L1",
    terms=(_A, _B, _LOG_MASS, _ETA),
    translated=("A", "b"),
    source="Yan et al. (2025), Sec. 4.1.1, up to translations",
    masses="normalised",
    gates=("softmax-quadratic",),
    reference=partial(printed, blocks=("A", "b"), mass="log mass"),
)

SOFTMAX_PARTIAL = replace(
    SOFTMAX,
    name="softmax-L4",
    terms=(_A, _LOG_MASS, _ETA),
    translated=("A",),
    source="Yan et al. (2025), eq. (53), up to translations",
    gates=("softmax-partial",),
    reference=partial(printed, blocks=("A",), mass="log mass"),
)
