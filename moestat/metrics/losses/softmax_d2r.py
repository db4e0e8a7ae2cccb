"""Voronoi loss of order r of the multinomial mixture of experts with a softmax gate, Regime 2.

Source: Nguyen et al. (2024), Regime 2 (some true expert with all slopes zero).
"""

from __future__ import annotations

from dataclasses import replace

from moestat.metrics.losses import mlmoe_d2r, softmax_d1
from moestat.metrics.losses._reference import weighted_sum


def reference(estimate, truth, cells, r=2.0):
    """Exponent r in all cells."""

    def cost(gap, size):
        return mlmoe_d2r.cost(gap, r, blocks=("beta1",))

    return weighted_sum(estimate, truth, cells, cost)


LOSS = replace(
    softmax_d1.LOSS,
    name="softmax-D2r",
    exact_exponent=2.0,
    source="Nguyen et al. (2024), Regime 2",
    free_order=True,
    reference=reference,
)
