"""Voronoi loss D3 of the multinomial mixture of experts, Euclidean score with a temperature.

``D3 = sum_j |sum_(i in A_j) exp(gamma_i) - exp(gamma*_j)| + sum_j sum_(i in A_j) exp(gamma_i)
(|dalpha|^kappa + |dbeta|^kappa + |dtau|^kappa + sum_l |da_l|^kappa + |db_l|^kappa)`` with kappa = 1
in cells of one atom and 2 in larger ones.

Source: Pham et al. (2026), eq. (12).
"""

from __future__ import annotations

from moestat.metrics.losses import mlmoe_d2r
from moestat.metrics.losses._loss import VoronoiLoss
from moestat.metrics.losses._reference import weighted_sum


def reference(estimate, truth, cells):
    """Equation (12)."""

    def cost(gap, size):
        return mlmoe_d2r.cost(gap, 1 if size == 1 else 2)

    return weighted_sum(estimate, truth, cells, cost)


LOSS = VoronoiLoss(
    name="D3",
    terms=mlmoe_d2r.LOSS.terms,
    exact_exponent=1.0,
    over_exponent=2.0,
    translated=(),
    source="Pham et al. (2026), eq. (12)",
    reference=reference,
)
