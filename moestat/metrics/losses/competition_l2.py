"""Voronoi loss L2 of the Gaussian mixture of linear experts with competition.

As L1 (eq. (6)), but with the norms of slope and intercept apart: ``|a_i - a*_j|^kappa +
|b_i - b*_j|^kappa + |nu_i - nu*_j|^kappa``.  What `competition_l1` says about the masses holds
here, too.

Source: Nguyen et al. (2025), eq. (14).
"""

from __future__ import annotations

from dataclasses import replace

from moestat.metrics.losses import competition_l1
from moestat.metrics.losses._loss import BlockTerm, VoronoiLoss
from moestat.metrics.losses._reference import norm, weighted_sum


def configure(masses: str = "normalised") -> VoronoiLoss:
    """The loss with masses scaled to the truth's total, or as given."""
    return replace(LOSS, masses=masses, options={"masses": masses})


def reference(estimate, truth, cells, masses="normalised"):
    """Equation (14)."""

    def cost(gap, size):
        kappa = 1 if size == 1 else 2
        return sum(norm(gap[name]) ** kappa for name in ("a", "b", "nu"))

    return weighted_sum(estimate, truth, cells, cost)


LOSS = replace(
    competition_l1.LOSS,
    name="competition-L2",
    terms=(
        BlockTerm("a", vector_axes=1),
        BlockTerm("b", vector_axes=0),
        BlockTerm("nu", vector_axes=0),
    ),
    source="Nguyen et al. (2025), eq. (14)",
    options={"masses": "normalised"},
    configure=configure,
    reference=reference,
)
