"""Voronoi loss D of the Gaussian mixture of experts with top-K competition, any expert.

``D = max_(tau_1 .. tau_K) sum_(j <= K) sum_(i in A_(tau_j)) (|W_i - W*_(tau_j)| +
|sigma_i - sigma*_(tau_j)|)``: the K cells with the largest sums, without masses.  sigma is the
variance, the block nu here.

The theorem is for as many fitted as true atoms, when every cell ends up with one.  The formula
itself allows empty cells, which cost nothing, so that a fit that leaves a true atom alone can have
a small loss: look at ``empty_cells`` and ``coverage`` of the result.

K is the number of active experts of the gate; with K above the number of cells all of them count.

Source: Pham et al. (2024), eqs. (8) and (9).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from moestat.metrics.losses import competition_l1
from moestat.metrics.losses._loss import VoronoiLoss
from moestat.metrics.losses._reference import cell_sums, norm


def configure(active: int = 1) -> VoronoiLoss:
    """The loss of K = `active` cells."""
    return replace(LOSS, active=active, options={"active": active})


def reference(estimate, truth, cells, active=1):
    """Equation (9): the largest sum over a choice of cells is that of the largest cells."""
    sums = cell_sums(estimate, truth, cells, lambda gap, _: norm(gap["W"]) + norm(gap["nu"]))
    return np.sort(sums)[::-1][:active].sum()


LOSS = replace(
    competition_l1.LOSS,
    name="competition-top-D",
    over_exponent=1.0,
    source="Pham et al. (2024), eq. (9)",
    masses=None,
    active=1,
    gates=("competition-top",),
    options={"active": 1},
    configure=configure,
    reference=reference,
)
