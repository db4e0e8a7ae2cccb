"""Gates with quadratic scores, as self-attention has them, and the raw sigmoid of a linear one.

The full score is ``s = x'Ax + b'x + c``, the partial one ``s = x'Ax + c``, and `sigmoid-raw` has
``s = b'x + c``.  The sigmoid gates are raw: ``w_i(x) = sigma(s_i(x))``, each atom by itself, so
that the weights have no fixed sum.  The softmax gates are normalised, and a common (A, b, c) may
be added to all atoms.  A is symmetric and packed as in `moestat.base.symmetric`: the norm of its
block is the Frobenius norm.

Source: Yan et al. (2025), Sec. 3, the two types of affinity scores; App. C, eq. (49) for the
partial one; Nguyen, Ho and Rinaldo (2024) for the linear one.
"""

from __future__ import annotations

import numpy as np

from moestat.base.types import Channel, Gate, Units
from moestat.compiler.jit import device
from moestat.compiler.math import exp, log1p_unit
from moestat.model.reference import apart, log_sigmoid

_BOUND = (-30.0, 30.0)


@device
def sigmoid_block(eta, phi, m, order, a, da, d2a):
    """Log-score ``a = log sigma(s)`` with ``sigma(-s)`` and ``-sigma(s) sigma(-s)``."""
    for b in range(m):
        s = eta[0, b]
        a[b] = (s if s < 0.0 else 0.0) - log1p_unit(exp(-abs(s)))
    if order > 0:
        for b in range(m):
            e = exp(-abs(eta[0, b]))
            da[0, b] = (e if eta[0, b] >= 0.0 else 1.0) / (1.0 + e)
    if order > 1:
        for b in range(m):
            d2a[0, b] = -da[0, b] * (1.0 - da[0, b])


@device
def softmax_block(eta, phi, m, order, a, da, d2a):
    """Log-score ``a = s``, with derivative 1 and no curvature."""
    for b in range(m):
        a[b] = eta[0, b]
    if order > 0:
        for b in range(m):
            da[0, b] = 1.0
    if order > 1:
        for b in range(m):
            d2a[0, b] = 0.0


def softmax_reference(blocks, X, means):
    """Scores (k, n) at X (n, d) from packed matrices: sqrt(2) times what is off the diagonal."""
    first, second = np.triu_indices(X.shape[1])
    products = X[:, first] * X[:, second] * np.where(first == second, 1.0, np.sqrt(2.0))
    s = blocks["c"][:, None]
    for name, features in (("A", products), ("b", X)):
        s = s + blocks[name] @ features.T if name in blocks else s
    return s


def sigmoid_reference(blocks, X, means):
    """Log-weights (k, n) at X (n, d)."""
    return log_sigmoid(softmax_reference(blocks, X, means))


def _typical(names):
    def typical(rng, n_experts, n_features):
        """Scores that differ in every coefficient."""
        pairs = n_features * (n_features + 1) // 2
        shapes = {"A": (pairs,), "b": (n_features,), "c": ()}
        return {name: apart(rng, n_experts, shapes[name], -2.0, 2.0) for name in names}

    return typical


def _full(n_features: int) -> tuple[Channel, ...]:
    return (Channel("c", "b", products="A"),)


def _partial(n_features: int) -> tuple[Channel, ...]:
    return (Channel("c", products="A"),)


SIGMOID = Gate(
    name="sigmoid-quadratic",
    channels=_full,
    block=sigmoid_block,
    reference=sigmoid_reference,
    typical=_typical(("A", "b", "c")),
    mass="c",
    translations=(),
    bounds={"A": _BOUND, "b": _BOUND, "c": _BOUND},
    source="Yan et al. (2025), Sec. 3, eq. (5) with score (i)",
    units=Units(shift_response=False),
    normalised=False,
)

SIGMOID_PARTIAL = Gate(
    name="sigmoid-partial",
    channels=_partial,
    block=sigmoid_block,
    reference=sigmoid_reference,
    typical=_typical(("A", "c")),
    mass="c",
    translations=(),
    bounds={"A": _BOUND, "c": _BOUND},
    source="Yan et al. (2025), App. C, eq. (49)",
    units=Units(shift_inputs=False, shift_response=False),
    normalised=False,
)

RAW = Gate(
    name="sigmoid-raw",
    channels=lambda n_features: (Channel("c", "b"),),
    block=sigmoid_block,
    reference=sigmoid_reference,
    typical=_typical(("b", "c")),
    mass="c",
    translations=(),
    bounds={"b": _BOUND, "c": _BOUND},
    source="Nguyen, Ho and Rinaldo (2024)",
    units=Units(shift_response=False),
    normalised=False,
)

SOFTMAX = Gate(
    name="softmax-quadratic",
    channels=_full,
    block=softmax_block,
    reference=softmax_reference,
    typical=_typical(("A", "b", "c")),
    mass="c",
    translations=("A", "b", "c"),
    bounds={"A": _BOUND, "b": _BOUND, "c": _BOUND},
    source="Yan et al. (2025), Sec. 5.1 and App. E.1",
    units=Units(),
)

SOFTMAX_PARTIAL = Gate(
    name="softmax-partial",
    channels=_partial,
    block=softmax_block,
    reference=softmax_reference,
    typical=_typical(("A", "c")),
    mass="c",
    translations=("A", "c"),
    bounds={"A": _BOUND, "c": _BOUND},
    source="Yan et al. (2025), App. C.1.2, the comparison after Theorem 4",
    units=Units(shift_inputs=False),
)
