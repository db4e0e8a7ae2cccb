"""Voronoi loss D1 of the multinomial mixture of experts with a modified sigmoid gate.

Source: mlmoe (003), eq. (4).
"""

from __future__ import annotations

from moestat.metrics.losses._engine import BlockTerm, VoronoiLoss

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
    source="mlmoe (003), eq. (4)",
)
