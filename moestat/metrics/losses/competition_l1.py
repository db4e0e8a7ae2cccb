"""Voronoi loss L1 of the Gaussian mixture of experts with competition, any expert.

``L1 = sum_j |sum_(i in C_j) m_i - m*_j| + sum_j sum_(i in C_j) m_i (|W_i - W*_j|^kappa +
|nu_i - nu*_j|^kappa)`` with kappa = 1 in cells of one atom and 2 in larger ones; W are all
parameters of the expert in one Euclidean norm, nu is its variance.

The printed masses are exp(c_i), which the printed gate (eq. (3)) does not have.  With all masses 1
(``masses = "given"`` for a gate with unit masses) the loss is not a lower bound of the density's
distance: a measure with every atom of the truth twice has the same density, but every cell has
mass 2 instead of 1.  By default the masses are therefore scaled to the truth's total: 1 / N
against 1 / N* for fixed masses; for a free c this is the translation of c, which the density does
not see.

The printed norm depends on the order of an expert's hidden units, and on signs that cancel in an
expert's mean.  Neither changes the density.  Cells and norms are infima over both, here as in all
losses.

Source: Nguyen et al. (2025), eqs. (5) and (6).
"""

from __future__ import annotations

from dataclasses import replace

from moestat.metrics.losses._loss import BlockTerm, VoronoiLoss
from moestat.metrics.losses._reference import norm, weighted_sum


def configure(masses: str = "normalised") -> VoronoiLoss:
    """The loss with masses scaled to the truth's total, or as given."""
    return replace(LOSS, masses=masses, options={"masses": masses})


def reference(estimate, truth, cells, masses="normalised"):
    """Equation (6)."""

    def cost(gap, size):
        kappa = 1 if size == 1 else 2
        return norm(gap["W"]) ** kappa + norm(gap["nu"]) ** kappa

    return weighted_sum(estimate, truth, cells, cost)


LOSS = VoronoiLoss(
    name="competition-L1",
    terms=(
        BlockTerm("W", vector_axes=1, joint=True),
        BlockTerm("nu", vector_axes=0),
    ),
    exact_exponent=1.0,
    over_exponent=2.0,
    translated=(),
    source="Nguyen et al. (2025), eq. (6)",
    gates=("competition", "competition-normalised", "competition-free"),
    options={"masses": "normalised"},
    configure=configure,
    reference=reference,
)
