"""Multinomial logistic experts: K classes, the last one the reference.

``f(y = s | eta) = exp(eta_s) / sum_l exp(eta_l)`` with ``eta_K = 0``.

Source: Pham et al. (2026), Sec. 3 (display after eq. (1)) with assumption (A.3).
"""

from __future__ import annotations

import numpy as np

from moestat.base.types import FloatArray, IntArray
from moestat.compiler.jit import device
from moestat.compiler.math import decay, log, logistic
from moestat.model.reference import log_sum_exp
from moestat.model.responses import likelihood_of_classes


@device
def block(eta, y, m, order, value, d1, d2):
    """Log-probability of class y and its derivatives in the predictors.

    ``d1_l = 1[y = l] - p_l`` and ``d2_lm = p_l p_m - 1[l = m] p_l``.
    """
    if eta.shape[0] == 1:
        two_classes(eta[0], y, m, value, d1[0])
    else:
        many_classes(eta, y, m, value, d1, d2[0])
    if order > 1:
        q = 0
        for c in range(eta.shape[0]):
            for e in range(c + 1):
                # From d1 = 1[y = l] - p_l.
                for b in range(m):
                    one = (1.0 if y[b] == c else 0.0) - d1[c, b]
                    other = (1.0 if y[b] == e else 0.0) - d1[e, b]
                    d2[q, b] = one * (other - (1.0 if c == e else 0.0))
                q += 1


@device
def two_classes(eta, y, m, value, d1):
    """Log-probability of one of two classes, whose predictor is the log-odds of the first."""
    for b in range(m):
        sign = 1.0 if y[b] == 0 else -1.0
        value[b], slope = logistic(sign * eta[b])
        d1[b] = sign * slope


@device
def many_classes(eta, y, m, value, d1, total):
    """``value`` first holds the largest predictor and ``d1`` the exponentials."""
    n_predictors = eta.shape[0]
    for b in range(m):
        value[b] = 0.0
    for c in range(n_predictors):
        for b in range(m):
            value[b] = eta[c, b] if eta[c, b] > value[b] else value[b]
    for b in range(m):
        total[b] = decay(-value[b])
    for c in range(n_predictors):
        for b in range(m):
            d1[c, b] = decay(eta[c, b] - value[b])
            total[b] += d1[c, b]
    for b in range(m):
        value[b] = -value[b] - log(total[b])
        total[b] = 1.0 / total[b]
    for c in range(n_predictors):
        for b in range(m):
            chosen = y[b] == c
            value[b] += eta[c, b] if chosen else 0.0
            d1[c, b] = (1.0 if chosen else 0.0) - d1[c, b] * total[b]


def draw(eta: FloatArray, rng: np.random.Generator) -> IntArray:
    """Class indices drawn with the probabilities of the predictors `eta`, shape (K - 1, n)."""
    logits = np.vstack([eta, np.zeros((1, eta.shape[1]))])
    logits -= logits.max(axis=0)
    cumulative = np.cumsum(np.exp(logits), axis=0)
    threshold = rng.random(eta.shape[1]) * cumulative[-1]
    return np.asarray((threshold >= cumulative[:-1]).sum(axis=0), dtype=np.int64)


def reference(predictors, blocks, y):
    """Log-probabilities (k, n) of the labels y in 1..K, from predictors (k, K - 1, n)."""
    logits = np.concatenate([predictors, 0 * predictors[:, :1]], axis=1)
    return logits[:, y - 1, np.arange(len(y))] - log_sum_exp(logits, axis=1)


LIKELIHOOD = likelihood_of_classes(
    name="multinomial",
    n_responses=lambda n_classes: n_classes - 1,
    block=block,
    reference=reference,
    draw=draw,
    source="Pham et al. (2026), Sec. 3",
)
