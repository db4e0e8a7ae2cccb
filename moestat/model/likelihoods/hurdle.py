"""Hurdle and truncated counts: Poisson or NB2 given that they are positive.

Behind a hurdle a count is 0 with probability pi, whose logit is a parameter of each expert, and
follows the truncated distribution else; truncated counts are never 0.

Source: Mullahy (1986), Sec. 2; Cameron and Trivedi (2013), Sec. 4.3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from moestat.base.types import FloatArray, Law
from moestat.compiler.jit import device
from moestat.compiler.math import decay, decay_less_one, log, logistic
from moestat.model.altered import Altered, altered_limits, with_zero
from moestat.model.members import Likelihood
from moestat.model.reference import log1p_exp
from moestat.model.responses import counts as encode_counts
from moestat.model.responses import draws

_RAREST = -300.0
"""Log mean below which a count is positive with a probability that is its mean, in float64."""

_ONES = -30.0
"""Log mean below which positive counts are 1, but for a share of 5e-14."""


def positive(
    count: Callable[..., None], zero: Callable[..., Any], n_predictors: int, hurdle: bool
) -> Callable[..., None]:
    """The block of positive counts from that of counts with `n_predictors` predictors.

    With l0 the log-probability of 0 it is ``l - log(1 - exp l0)``; with
    ``s = exp(l0) / (1 - exp(l0))`` its derivatives are ``dl + s dl0`` and
    ``d2l + s d2l0 + s (1 + s) dl0 dl0'``.  A hurdle adds ``log(1 - pi)``, ``pi = sigma(zeta)``
    with the last predictor zeta, and is ``log pi`` at 0.
    """
    last = n_predictors * (n_predictors + 1) // 2

    @device
    def block(eta, y, m, order, value, d1, d2):
        count(eta, y, m, order, value, d1, d2)
        for b in range(m):
            l0, e, t, ee, et, tt = zero(eta, b)
            rare = eta[0, b] < _RAREST
            chance = 1.0 if rare else -decay_less_one(l0)
            s = 0.0 if rare else decay(l0) / chance
            v = s * (1.0 + s)
            behind = 1.0 if y[b] > 0.0 or not hurdle else 0.0
            value[b] = behind * (value[b] - (eta[0, b] if rare else log(chance)))
            d1[0, b] = behind * (d1[0, b] + (-1.0 if rare else s * e))
            if n_predictors > 1:
                d1[1, b] = behind * (d1[1, b] + s * t)
            if order > 1:
                d2[0, b] = behind * (d2[0, b] + s * ee + v * e * e)
                if n_predictors > 1:
                    d2[1, b] = behind * (d2[1, b] + s * et + v * e * t)
                    d2[2, b] = behind * (d2[2, b] + s * tt + v * t * t)
            if hurdle:
                level, less = logistic(eta[n_predictors, b])
                value[b] += level - behind * eta[n_predictors, b]
                d1[n_predictors, b] = less - behind
                if order > 1:
                    for c in range(n_predictors):
                        d2[last + c, b] = 0.0
                    d2[last + n_predictors, b] = -less * (1.0 - less)

    return block


def encode(y: ArrayLike, n_classes: int) -> FloatArray:
    """Positive counts (n,), checked."""
    counts = encode_counts(y, n_classes)
    if np.any(counts == 0.0):
        raise ValueError("y must hold counts from 1: truncated counts are never 0; got 0")
    return counts


def _given_positive(law: Any) -> tuple[FloatArray, FloatArray]:
    """What `Altered` reads of a distribution of counts given that they are positive."""
    none = law.pmf(0)
    return -none / law.sf(0), 1.0 / law.sf(0)


def members(base: Likelihood, zero: Callable[..., Any]) -> tuple[Likelihood, Likelihood]:
    """Counts behind a hurdle and truncated ones; `zero` is the log-probability of 0 of the base.

    It takes the predictors and a place, and has derivatives as ``(l0, d_eta, d_t, d_eta_eta,
    d_eta_t, d_t_t)``, the last four 0 for counts with one predictor but that by eta twice.
    """
    n_predictors, source = 1 + len(base.channels), "Mullahy (1986), Sec. 2"
    of_counts = base.block
    counts = base.reference
    law_of_counts = base.law
    assert of_counts is not None
    assert counts is not None
    assert law_of_counts is not None
    least = np.array([_ONES] + [-np.inf] * (n_predictors - 1))[:, None]

    def law_of(eta: FloatArray) -> Law:
        """The distribution of counts, with means large enough for float64 given y > 0."""
        return law_of_counts(np.maximum(eta, least))

    def reference(predictors, blocks, y):
        """Log-probabilities (k, n) of positive counts y, from predictors (k, n)."""
        none = counts(predictors, blocks, np.zeros_like(y, dtype=float))
        return counts(predictors, blocks, y) - np.log(-np.expm1(none))

    def hurdle_reference(predictors, blocks, y):
        """Log-probabilities (k, n) of counts y, from predictors (k, n) and logits (k,)."""
        zeta = blocks["zero"][:, None]
        log_p = reference(predictors, blocks, y) - log1p_exp(zeta)
        return np.where(y == 0, -log1p_exp(-zeta) + 0 * log_p, log_p)

    def parts(pi: FloatArray, law: Any) -> tuple[FloatArray, FloatArray]:
        alone, share = _given_positive(law)
        return pi + (1.0 - pi) * alone, (1.0 - pi) * share

    def law(eta: FloatArray) -> Law:
        """The distribution of positive counts at predictors (..., q, n)."""
        counts_law = law_of(eta)
        return Altered(counts_law, *_given_positive(counts_law), least=1)

    def spread(eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of positive counts, from predictors (..., q, n)."""
        positive_law = law(eta)
        return positive_law.mean(), positive_law.std()

    behind = positive(of_counts, zero, n_predictors, True)
    ends = f"truncated-{base.name}", "a distribution of zeros only"
    name, rare = f"hurdle-{base.name}", replace(base, law=law_of)
    hurdle = with_zero(rare, name, behind, hurdle_reference, parts, source, ends)
    truncated = replace(
        base,
        name=f"truncated-{base.name}",
        block=positive(of_counts, zero, n_predictors, False),
        reference=reference,
        encode=encode,
        spread=spread,
        law=law,
        draw=draws(law),
        ends=(0.0, np.inf),
        limits=altered_limits(base, "truncated-"),
        source=source,
    )
    return hurdle, truncated
