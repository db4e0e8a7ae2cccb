"""Voronoi loss L2r of regression mixtures with quadratic gates and polynomial experts.

As L1 with the order r >= 1 in all cells and the norms of slope and intercept apart:
``|dA|^r + |db|^r + |dalpha|^r + |dbeta|^r``, and ``|dc|^r`` in cells of one atom.

Source: Yan et al. (2025), eq. (11).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from moestat.metrics.losses import attention_l1
from moestat.metrics.losses._loss import BlockTerm
from moestat.metrics.losses._reference import cell_sums, norm

_EXPERT = (BlockTerm("alpha", vector_axes=1), BlockTerm("beta", vector_axes=0))


def printed(estimate, truth, cells, mass, r=2.0):
    """Equation (11); `mass` is its term of cells of one atom."""

    def cost(gap, size):
        blocks = ("A", "b", "alpha", "beta", *((mass,) if size == 1 else ()))
        return sum(norm(gap[name]) ** r for name in blocks)

    sums = cell_sums(estimate, truth, cells, cost)
    return attention_l1.shared_masses(estimate, truth, cells) + sums.sum()


LOSS = replace(
    attention_l1.LOSS,
    name="L2r",
    terms=(*attention_l1.LOSS.terms[:-1], *_EXPERT),
    exact_exponent=2.0,
    over_exponent=2.0,
    source="Yan et al. (2025), eq. (11)",
    free_order=True,
    reference=partial(printed, mass="c"),
)

SOFTMAX = replace(
    attention_l1.SOFTMAX,
    name="softmax-L2r",
    terms=(*attention_l1.SOFTMAX.terms[:-1], *_EXPERT),
    exact_exponent=2.0,
    over_exponent=2.0,
    source="Yan et al. (2025), eq. (11), up to translations",
    free_order=True,
    reference=partial(printed, mass="log mass"),
)
