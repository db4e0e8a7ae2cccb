"""Zero-inflated experts: a count is 0 by itself with probability pi, else Poisson or of NB2.

The logit of pi is a parameter of each expert.

Source: Lambert (1992), Sec. 2.1; Cameron and Trivedi (2013), Sec. 4.4.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from moestat.compiler.jit import device
from moestat.compiler.math import logistic
from moestat.model.altered import with_zero
from moestat.model.members import Likelihood
from moestat.model.reference import log1p_exp, log_sum_exp


def inflated(count: Callable[..., None], n_predictors: int) -> Callable[..., None]:
    """The block of inflated counts from that of counts with `n_predictors` predictors.

    With the last predictor zeta, ``pi = sigma(zeta)``, it is ``log(1 - pi) + l`` for y > 0 and
    ``log(pi + (1 - pi) exp l)`` at 0.  With w the probability that a count at hand is one of the
    distribution, 1 for y > 0, derivatives are ``w dl``, ``d_zeta = 1 - w - pi``,
    ``w d2l + w (1 - w) dl dl'``, ``d_zeta dl = -w (1 - w) dl`` and
    ``d_zeta_zeta = w (1 - w) - pi (1 - pi)``.
    """
    last = n_predictors * (n_predictors + 1) // 2

    @device
    def block(eta, y, m, order, value, d1, d2):
        count(eta, y, m, order, value, d1, d2)
        for b in range(m):
            level, less = logistic(eta[n_predictors, b])
            rest = level - eta[n_predictors, b]
            below, inside = logistic(level - rest - value[b])
            w = inside if y[b] == 0.0 else 1.0
            value[b] = level - below if y[b] == 0.0 else rest + value[b]
            d1[n_predictors, b] = less - w
            if order > 1:
                v = w * (1.0 - w)
                q = 0
                for c in range(n_predictors):
                    for e in range(c + 1):
                        d2[q, b] = w * d2[q, b] + v * d1[c, b] * d1[e, b]
                        q += 1
                for c in range(n_predictors):
                    d2[last + c, b] = -v * d1[c, b]
                d2[last + n_predictors, b] = v - less * (1.0 - less)
            for c in range(n_predictors):
                d1[c, b] *= w

    return block


def member(base: Likelihood) -> Likelihood:
    """Zero-inflated counts of a likelihood of counts."""
    of_counts, counts = base.block, base.reference
    assert of_counts is not None
    assert counts is not None

    def reference(predictors, blocks, y):
        """Log-probabilities (k, n) of counts y, from predictors (k, n) and logits (k,)."""
        zeta, log_p = blocks["zero"][:, None], counts(predictors, blocks, y)
        rest = log_p - log1p_exp(zeta)
        both = log_sum_exp(np.array([rest, -log1p_exp(-zeta) + 0 * log_p]))
        return np.where(y == 0, both, rest)

    block = inflated(of_counts, 1 + len(base.channels))
    name, source = f"zero-inflated-{base.name}", "Lambert (1992), Sec. 2.1"
    ends = base.name, "a distribution of zeros only"
    return with_zero(base, name, block, reference, lambda pi, law: (pi, 1.0 - pi), source, ends)
