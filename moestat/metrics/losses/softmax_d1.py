"""Voronoi loss of the multinomial mixture of experts with a softmax gate, Regime 1.

Source: Nguyen et al. (2024), Regime 1 (no true expert with all slopes zero).
"""

from __future__ import annotations

from moestat.metrics.losses import mlmoe_d2r
from moestat.metrics.losses._loss import BlockTerm, VoronoiLoss
from moestat.metrics.losses._reference import weighted_sum


def reference(estimate, truth, cells):
    """Exponent 1 in cells of one atom and 2 in larger ones."""

    def cost(gap, size):
        return mlmoe_d2r.cost(gap, 1 if size == 1 else 2, blocks=("beta1",))

    return weighted_sum(estimate, truth, cells, cost)


LOSS = VoronoiLoss(
    name="softmax-D1",
    terms=(
        BlockTerm("beta1", vector_axes=1),
        BlockTerm("a", vector_axes=1, summed_axes=1),
        BlockTerm("b", vector_axes=0, summed_axes=1),
    ),
    exact_exponent=1.0,
    over_exponent=2.0,
    translated=("beta1",),
    source="Nguyen et al. (2024), Regime 1",
    reference=reference,
)
