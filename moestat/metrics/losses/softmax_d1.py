"""Voronoi loss of the multinomial mixture of experts with a softmax gate, Regime 1.

Source: arXiv 2310.14188, Regime 1 (no true expert with all slopes zero).
"""

from __future__ import annotations

from moestat.metrics.losses._engine import BlockTerm, VoronoiLoss

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
    source="arXiv 2310.14188, Regime 1",
)
