"""Feed-forward experts: ``mean = W2' softplus(W1' x + b1)`` with H hidden units.

Source: Nguyen et al. (2025), Sec. 2.2 and Sec. 3.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from moestat.base.validate import positive_int
from moestat.compiler.jit import device
from moestat.compiler.math import logistic
from moestat.model.members import Channel, Expert, Symmetry, Units
from moestat.model.reference import apart, log1p_exp


@device
def block(eta, m, order, mean, d1, d2):
    """Mean and derivatives; channels are (s_1 .. s_H, w_1 .. w_H) with ``s = W1' x + b1``.

    ``d_s = w sigma(s)``, ``d_w = softplus(s)``, ``d_s_s = w sigma(s) sigma(-s)``,
    ``d_s_w = sigma(s)``; pairs of different units have no curvature.
    """
    n_hidden = eta.shape[0] // 2
    for b in range(m):
        mean[b] = 0.0
    if order > 1:
        for q in range(n_hidden * (2 * n_hidden + 1)):
            for b in range(m):
                d2[q, b] = 0.0
    for h in range(n_hidden):
        w = n_hidden + h
        for b in range(m):
            value, p = logistic(-eta[h, b])
            d1[w, b] = -value
            d1[h, b] = p
            mean[b] -= eta[w, b] * value
        if order > 1:
            for b in range(m):
                p = d1[h, b]
                d2[h * (h + 1) // 2 + h, b] = eta[w, b] * p * (1.0 - p)
                d2[w * (w + 1) // 2 + h, b] = p
        if order > 0:
            for b in range(m):
                d1[h, b] *= eta[w, b]


def reference(blocks, X):
    """Means (k, n) at X (n, d)."""
    s = np.einsum("khd,nd->khn", blocks["W1"], X) + blocks["b1"][..., None]
    return np.einsum("kh,khn->kn", blocks["W2"], log1p_exp(s))


@cache
def ffn(hidden: int = 2) -> Expert:
    """The expert with `hidden` units."""
    n_hidden = positive_int("hidden", hidden)

    def channels(n_features: int, n_responses: int | None) -> tuple[Channel, ...]:
        units = range(n_hidden)
        return (
            *(Channel("b1", "W1", component=h) for h in units),
            *(Channel("W2", component=h, response=True) for h in units),
        )

    def typical(rng, n_experts, n_features, n_responses):
        """Units that differ between atoms."""
        return {
            "b1": apart(rng, n_experts, (n_hidden,), -1.0, 1.0),
            "W1": apart(rng, n_experts, (n_hidden, n_features), -2.0, 2.0),
            "W2": apart(rng, n_experts, (n_hidden,), -2.0, 2.0),
        }

    return Expert(
        name="ffn",
        channels=channels,
        block=block,
        reference=reference,
        typical=typical,
        bounds={"b1": (-30.0, 30.0), "W1": (-30.0, 30.0), "W2": (-30.0, 30.0)},
        source="Nguyen et al. (2025), Sec. 3",
        units=Units(shift_response=False, powers={"W2": 1.0}),
        symmetry=Symmetry(units=("W1", "b1", "W2")),
        options={"hidden": n_hidden},
        configure=ffn,
    )


EXPERT = ffn()
