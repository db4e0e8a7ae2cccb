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

from collections.abc import Callable

import numpy as np

from moestat.compiler.jit import device
from moestat.compiler.math import exp, log1p_unit
from moestat.model.members import Channel, Gate, Units
from moestat.model.reference import apart, log_sigmoid


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


def _gate(name: str, names: str, place: str, block: Callable[..., None]) -> Gate:
    """A gate whose scores have the blocks called `names`."""
    normalised = name.startswith("softmax")
    slope, products = "b" if "b" in names else None, "A" if "A" in names else None

    def typical(rng, n_experts, n_features):
        """Scores that differ in every coefficient."""
        pairs = n_features * (n_features + 1) // 2
        shapes = {"A": (pairs,), "b": (n_features,), "c": ()}
        return {name: apart(rng, n_experts, shapes[name], -2.0, 2.0) for name in names}

    return Gate(
        name=name,
        channels=lambda n_features: (Channel("c", slope, products=products),),
        block=block,
        reference=softmax_reference if normalised else sigmoid_reference,
        typical=typical,
        mass="c",
        translations=tuple(names) if normalised else (),
        bounds=dict.fromkeys(names, (-30.0, 30.0)),
        source=f"Yan et al. (2025), {place}" if place else "Nguyen, Ho and Rinaldo (2024)",
        # Without b a shift of the inputs has nowhere to go.
        units=Units(shift_inputs="b" in names, shift_response=normalised),
        normalised=normalised,
    )


def members(linear: Callable[..., None]) -> list[Gate]:
    """The gates; those of softmax have the block of scores that are `linear` in their channel."""
    return [
        _gate("sigmoid-quadratic", "Abc", "Sec. 3, eq. (5) with score (i)", sigmoid_block),
        _gate("sigmoid-partial", "Ac", "App. C, eq. (49)", sigmoid_block),
        _gate("sigmoid-raw", "bc", "", sigmoid_block),
        _gate("softmax-quadratic", "Abc", "Sec. 5.1 and App. E.1", linear),
        _gate("softmax-partial", "Ac", "App. C.1.2, the comparison after Theorem 4", linear),
    ]
