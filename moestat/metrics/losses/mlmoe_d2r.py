"""Voronoi loss D2r of the multinomial mixture of experts, inner-product score with a temperature.

``D2r = sum_j |sum_(i in A_j) exp(gamma_i) - exp(gamma*_j)| + sum_j sum_(i in A_j) exp(gamma_i)
(|dalpha|^r + |dbeta|^r + |dtau|^r + sum_l |da_l|^r + |db_l|^r)``, r >= 1 in all cells.

As published it takes the estimate's own (alpha, beta, tau), although the density of the
inner-product gate is the same for all (c alpha, c beta, c tau), c > 0: the value then depends on
which of them a solver happens to return.

Source: Pham et al. (2026), eq. (9).
"""

from __future__ import annotations

from moestat.metrics.losses._loss import BlockTerm, VoronoiLoss
from moestat.metrics.losses._reference import norm, weighted_sum


def cost(gap, power, blocks=("alpha", "beta", "tau")):
    """Norms of the gate's blocks and of each class of the expert, to a power."""
    gate = sum(norm(gap[name]) ** power for name in blocks)
    classes = zip(gap["a"], gap["b"], strict=True)
    return gate + sum(norm(a) ** power + norm(b) ** power for a, b in classes)


def reference(estimate, truth, cells, r=2.0):
    """Equation (9)."""
    return weighted_sum(estimate, truth, cells, lambda gap, size: cost(gap, r))


LOSS = VoronoiLoss(
    name="D2r",
    terms=(
        BlockTerm("alpha", vector_axes=1),
        BlockTerm("beta", vector_axes=0),
        BlockTerm("tau", vector_axes=0),
        BlockTerm("a", vector_axes=1, summed_axes=1),
        BlockTerm("b", vector_axes=0, summed_axes=1),
    ),
    exact_exponent=2.0,
    over_exponent=2.0,
    translated=(),
    source="Pham et al. (2026), eq. (9)",
    free_order=True,
    reference=reference,
)
