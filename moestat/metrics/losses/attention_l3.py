"""Voronoi losses L3 and L5 of regression mixtures with quadratic gates, for the dense regime.

``L3 = sum_j sum_(i in A_j) (|dA| + |db| + |dc| + |deta|)`` in cells of any size, without masses; L5
is the same without b.  The paper takes them to a best approximation with as many atoms as the fit;
such measures form a set, see `attention_dense`.

Source: Yan et al. (2025), eq. (12) for L3, eq. (54) for L5.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from moestat.metrics.losses import attention_l1
from moestat.metrics.losses._loss import VoronoiLoss
from moestat.metrics.losses._reference import cell_sums, norm


def printed(estimate, truth, cells, blocks):
    """Equation (12) with the blocks of a gate."""

    def cost(gap, size):
        return sum(norm(gap[name]) for name in (*blocks, "W"))

    return cell_sums(estimate, truth, cells, cost).sum()


def _dense(loss: VoronoiLoss, name: str, source: str, *blocks: str) -> VoronoiLoss:
    terms = tuple(replace(term, exact_only=False) for term in loss.terms)
    return replace(
        loss,
        name=name,
        terms=terms,
        over_exponent=1.0,
        mass_cells="none",
        source=source,
        reference=partial(printed, blocks=blocks),
    )


LOSS = _dense(attention_l1.LOSS, "L3", "Yan et al. (2025), eq. (12)", "A", "b", "c")
PARTIAL = _dense(attention_l1.PARTIAL, "L5", "Yan et al. (2025), eq. (54)", "A", "c")
SOFTMAX = _dense(
    attention_l1.SOFTMAX,
    "softmax-L3",
    "Yan et al. (2025), eq. (12), up to translations",
    "A",
    "b",
    "log mass",
)
SOFTMAX_PARTIAL = _dense(
    attention_l1.SOFTMAX_PARTIAL,
    "softmax-L5",
    "Yan et al. (2025), eq. (54), up to translations",
    "A",
    "log mass",
)
