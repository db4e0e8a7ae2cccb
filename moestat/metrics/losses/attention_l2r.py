"""Voronoi loss L2r of regression mixtures with quadratic gates and polynomial experts.

As L1 with the order r >= 1 in all cells and the norms of slope and intercept apart:
``|dA|^r + |db|^r + |dalpha|^r + |dbeta|^r``, and ``|dc|^r`` in cells of one atom.

Source: attention (004), eq. (11).
"""

from __future__ import annotations

from dataclasses import replace

from moestat.metrics.losses import attention_l1
from moestat.metrics.losses._engine import BlockTerm

_EXPERT = (BlockTerm("alpha", vector_axes=1), BlockTerm("beta", vector_axes=0))

LOSS = replace(
    attention_l1.LOSS,
    name="L2r",
    terms=(*attention_l1.LOSS.terms[:-1], *_EXPERT),
    exact_exponent=2.0,
    over_exponent=2.0,
    source="attention (004), eq. (11)",
    free_order=True,
)

SOFTMAX = replace(
    attention_l1.SOFTMAX,
    name="softmax-L2r",
    terms=(*attention_l1.SOFTMAX.terms[:-1], *_EXPERT),
    exact_exponent=2.0,
    over_exponent=2.0,
    source="attention (004), eq. (11), up to translations",
    free_order=True,
)
