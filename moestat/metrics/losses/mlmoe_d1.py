"""Voronoi loss D1 of the multinomial mixture of experts with a modified sigmoid gate.

Source: Pham et al. (2026), eq. (4).
"""

from __future__ import annotations

from moestat.metrics.losses._loss import BlockTerm, VoronoiLoss
from moestat.metrics.losses._reference import norm, weighted_sum


def reference(estimate, truth, cells):
    """Equation (4)."""

    def cost(gap, size):
        kappa = 1 if size == 1 else 2
        classes = zip(gap["a"], gap["b"], strict=True)
        return (
            norm(gap["alpha"]) ** kappa
            + norm(gap["beta"]) ** kappa
            + sum(norm(a) ** kappa + norm(b) ** kappa for a, b in classes)
        )

    return weighted_sum(estimate, truth, cells, cost)


LOSS = VoronoiLoss(
    name="D1",
    terms=(
        BlockTerm("alpha", vector_axes=1),
        BlockTerm("beta", vector_axes=0),
        BlockTerm("a", vector_axes=1, summed_axes=1),
        BlockTerm("b", vector_axes=0, summed_axes=1),
    ),
    exact_exponent=1.0,
    over_exponent=2.0,
    translated=(),
    source="Pham et al. (2026), eq. (4)",
    reference=reference,
)
