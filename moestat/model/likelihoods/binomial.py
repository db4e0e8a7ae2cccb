"""Binomial experts: successes in a given number of trials, with probability ``1 / (1 + e^-eta)``.

The number of trials is an option of the likelihood, ``{"name": "binomial", "trials": 8}``.  The
loops read it as a parameter that is pinned, so that every number of trials has the same ones.

Source: McCullagh and Nelder (1989), Ch. 4; mixtures of binomial regressions: Gruen and Leisch
(2008), Sec. 2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from moestat.base.types import Channel, FloatArray, Likelihood, Units
from moestat.base.validate import positive_int
from moestat.compiler.jit import device
from moestat.compiler.math import log_gamma, logistic
from moestat.model.counts import decode
from moestat.model.counts import encode as encode_counts
from moestat.model.reference import log1p_exp, log_sigmoid
from moestat.model.reference import log_gamma as reference_log_gamma


@device
def block(eta, y, m, order, value, d1, d2):
    """Log-probability of y successes; predictors are (eta, N), the number N the same for all.

    ``d_eta = y - N p`` and ``d_eta_eta = -N p (1 - p)``; N is known and has no derivatives.
    """
    trials = eta[1, 0]
    top = log_gamma(trials + 1.0)
    for b in range(m):
        level, less = logistic(eta[0, b])
        choices = top - log_gamma(y[b] + 1.0) - log_gamma(trials - y[b] + 1.0)
        value[b] = choices + trials * level - (trials - y[b]) * eta[0, b]
        d1[0, b] = y[b] - trials * (1.0 - less)
        d1[1, b] = 0.0
        if order > 1:
            d2[0, b] = -trials * less * (1.0 - less)
            d2[1, b] = 0.0
            d2[2, b] = 0.0


def reference(predictors, blocks, y):
    """Log-probabilities (k, n) of successes y, from predictors (k, n); -inf above the trials."""
    trials = np.real(blocks["trials"])
    inside = np.minimum(y, trials)
    choices = reference_log_gamma(trials + 1.0) - reference_log_gamma(inside + 1.0)
    choices = choices - reference_log_gamma(trials - inside + 1.0)
    value = choices + inside * predictors - trials * log1p_exp(predictors)
    return np.where(y <= trials, value, -np.inf)


def make(trials: int = 1) -> Likelihood:
    """The likelihood of successes in so many trials."""
    n = positive_int("binomial: trials", trials)

    def encode(y: Any, n_classes: int) -> FloatArray:
        """Numbers of successes (n,), checked."""
        successes = encode_counts(y, n_classes)
        if successes.size and successes.max() > n:
            raise ValueError(
                f"y must be at most the number of trials, {n}; got {successes.max():g}"
            )
        return successes

    def law(eta: FloatArray) -> Any:
        """The distribution at predictors (..., 2, n)."""
        from scipy.stats import binom

        return binom(n, _probability(eta[..., 0, :]))

    def spread(eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of the response, from predictors (..., 2, n)."""
        p = _probability(eta[..., 0, :])
        return n * p, np.sqrt(n * p * (1.0 - p))

    def draw(eta: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Numbers of successes with the predictors `eta`, shape (2, n)."""
        return rng.binomial(n, _probability(eta[0])).astype(np.float64)

    return Likelihood(
        name="binomial",
        n_responses=lambda n_classes: None,
        channels=(Channel("trials", shared=True),),
        block=block,
        reference=reference,
        typical=lambda rng, n_experts: {"trials": float(n)},
        encode=encode,
        decode=decode,
        draw=draw,
        dtype=np.float64,
        spread=spread,
        link=lambda mean: np.log(mean) - np.log(n - mean),
        law=law,
        counts=True,
        bounds={"trials": (float(n), float(n))},
        source="McCullagh and Nelder (1989), Ch. 4",
        units=Units(shift_response=False, scale_response=False),
        options={"trials": n},
        configure=make,
    )


def _probability(eta: FloatArray) -> FloatArray:
    return np.exp(log_sigmoid(eta))


LIKELIHOOD = make()
