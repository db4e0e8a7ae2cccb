"""Ordinal experts: classes in an order, with proportional odds.

``P(y <= s) = 1 / (1 + exp(eta - c_s))`` with thresholds ``c_1 = 0 < c_2 < ... < c_(K-1)`` of each
expert; the logarithms of the gaps between them are what solvers see.  The number of classes is
that of the family.

Source: McCullagh (1980), Sec. 2; Agresti (2010), Sec. 3.2.
"""

from __future__ import annotations

import numpy as np

from moestat.base.types import FloatArray, IntArray
from moestat.base.validate import positive_int
from moestat.compiler.jit import device
from moestat.compiler.math import decay_less_one, exp, log, logistic
from moestat.model.members import Channel, Likelihood
from moestat.model.reference import apart, log_sigmoid
from moestat.model.responses import likelihood_of_classes

_FARTHEST = 300.0
"""Logarithms of gaps beyond this count as this: products stay finite."""


@device
def block(eta, y, m, order, value, d1, d2):
    """Log-probability of class y; predictors are eta and the logarithms of the gaps.

    With ``u = c_y - eta`` and ``v = u - g``, g the gap below c_y, it is ``log sigma(u) +
    log sigma(-v) + log(1 - exp(-g))``, without the terms that the first and the last class do not
    have.  A gap g_j at or below class y moves u by itself and, below, v.
    """
    n_gaps = eta.shape[0] - 1
    # Gaps below class y, or 0, are kept where their derivatives will be.
    for j in range(n_gaps):
        for b in range(m):
            at = eta[1 + j, b] if eta[1 + j, b] < _FARTHEST else _FARTHEST
            g = exp(at)
            d1[1 + j, b] = g if j < y[b] else 0.0
    for b in range(m):
        place = int(y[b])
        upper, gap = -eta[0, b], 0.0
        for j in range(n_gaps):
            upper += d1[1 + j, b]
            gap = d1[1 + j, b] if j == place - 1 else gap
        has_upper = place <= n_gaps
        lower = upper - gap
        one, less_one = logistic(upper)
        two, less_two = logistic(-lower)
        between = -decay_less_one(-gap) if gap > 0.0 else 1.0
        a = less_one if has_upper else 0.0
        c = less_two if place > 0 else 0.0
        rate = (1.0 - between) / between if gap > 0.0 else 0.0
        value[b] = (one if has_upper else 0.0) + (two if place > 0 else 0.0)
        value[b] += log(between)
        # d log sigma(u) = a du, d log sigma(-v) = -c dv.
        bend_a = -a * (1.0 - a) if has_upper else 0.0
        bend_c = -c * (1.0 - c) if place > 0 else 0.0
        d1[0, b] = c - a
        if order > 1:
            d2[0, b] = bend_a + bend_c
            q = 1
            for j in range(n_gaps):
                g = d1[1 + j, b]
                below = 0.0 if j == place - 1 else g
                difference = g - below
                d2[q, b] = -bend_a * g - bend_c * below
                q += 1
                for e in range(j):
                    h = d1[1 + e, b]
                    under = 0.0 if e == place - 1 else h
                    d2[q, b] = bend_a * g * h + bend_c * below * under
                    q += 1
                d2[q, b] = bend_a * g * g + bend_c * below * below
                d2[q, b] += (
                    a * g - c * below + rate * difference * (1.0 - (1.0 + rate) * difference)
                )
                q += 1
        for j in range(n_gaps):
            g = d1[1 + j, b]
            below = 0.0 if j == place - 1 else g
            d1[1 + j, b] = a * g - c * below + rate * (g - below)


def log_probabilities(eta: np.ndarray) -> np.ndarray:
    """Log-probabilities (..., K, n) of all classes at predictors (..., K - 1, n)."""
    gaps = np.exp(eta[..., 1:, :])
    thresholds = np.concatenate([0 * eta[..., :1, :], np.cumsum(gaps, axis=-2)], axis=-2)
    upper = thresholds - eta[..., :1, :]
    up, down = log_sigmoid(upper), log_sigmoid(-upper)
    inner = up[..., 1:, :] + down[..., :-1, :] + np.log(-np.expm1(-gaps))
    return np.concatenate([up[..., :1, :], inner, down[..., -1:, :]], axis=-2)


def draw(eta: FloatArray, rng: np.random.Generator) -> IntArray:
    """Class indices with the predictors `eta`, shape (K - 1, n)."""
    cumulative = np.cumsum(np.exp(log_probabilities(eta)), axis=0)
    return np.asarray((rng.random(eta.shape[1]) >= cumulative[:-1]).sum(axis=0), dtype=np.int64)


def reference(predictors, blocks, y):
    """Log-probabilities (k, n) of labels y in 1..K, from predictors (k, n) and gaps (k, K - 2)."""
    k, n = predictors.shape
    logs = np.log(blocks["gap"]) if "gap" in blocks else np.zeros((k, 0))
    eta = np.concatenate([predictors[:, None], np.repeat(logs[..., None], n, axis=2)], axis=1)
    return log_probabilities(eta)[:, y - 1, np.arange(n)]


def make(levels: int = 3) -> Likelihood:
    """The likelihood of so many classes in an order."""
    K = positive_int("ordinal: levels", levels, 2)
    gaps = tuple(Channel("gap", component=j, log=True) for j in range(K - 2))
    return likelihood_of_classes(
        name="ordinal",
        channels=gaps,
        block=block,
        reference=reference,
        typical=lambda rng, n_experts: (
            {"gap": apart(rng, n_experts, (K - 2,), 0.5, 2.0)} if gaps else {}
        ),
        draw=draw,
        chances=lambda eta: np.exp(log_probabilities(eta)),
        shapes=("gap",) if gaps else (),
        bounds={"gap": (1e-6, 1e6)} if gaps else {},
        source="McCullagh (1980), Sec. 2",
        options={"levels": K},
        configure=make,
    )


LIKELIHOOD = make()
