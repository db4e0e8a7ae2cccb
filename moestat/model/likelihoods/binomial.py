"""Binomial experts: successes in a given number of trials, with probability ``1 / (1 + e^-eta)``.

The number of trials is an option of the likelihood, ``{"name": "binomial", "trials": 8}``.  The
loops read it as a parameter that is pinned, so that every number of trials has the same ones.  With
``"trials": "rows"`` each row has its own: a response is a number of successes and one of failures,
stored as the complex number of successes and trials, and means are probabilities, those of one
trial.  ``"link": "probit"``, or "cloglog", has the probability Phi(eta), or ``1 - exp(-e^eta)``.

Source: McCullagh and Nelder (1989), Ch. 4; mixtures of binomial regressions: Gruen and Leisch
(2008), Sec. 2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from moestat.base.types import Encoded, FloatArray, Law
from moestat.base.validate import positive_int, short
from moestat.compiler.jit import device
from moestat.compiler.math import log_gamma, logistic
from moestat.kernels.atom import VARYING
from moestat.model.censoring import decay_up, extreme, extreme_below, normal, normal_below
from moestat.model.members import Channel, Likelihood
from moestat.model.random_intercept import with_integrated_effects
from moestat.model.reference import log_gamma as reference_log_gamma
from moestat.model.reference import log_sigmoid
from moestat.model.responses import LEAST_PROBABILITY, likelihood_of_counts
from moestat.model.trials import decode_rows, encode_rows, successes_of


@cache
def _blocks(law: Callable[..., Any]) -> tuple[Callable[..., None], Callable[..., None]]:
    """The blocks of a probability ``F(eta)``, for one number of trials and for one of each row.

    ``law(eta, y, N)`` is ``y log F + (N - y) log(1 - F)`` with its first two derivatives.  The
    predictors are (eta, N) where the number N is the same for all, and known.
    """

    def block_of(rows: bool) -> Callable[..., None]:
        @device
        def varying(eta, y, m, order, value, d1, d2):
            for b in range(m):
                trials = y[b].imag if rows else eta[1, 0]
                value[b], d1[0, b], second = law(eta[0, b], y[b].real, trials)
                if order > 1:
                    d2[0, b] = second
                if not rows:
                    d1[1, b] = 0.0
                    if order > 1:
                        d2[1, b] = 0.0
                        d2[2, b] = 0.0

        @device
        def block(eta, y, m, order, value, d1, d2):
            varying(eta, y, m, order, value, d1, d2)
            top = 0.0 if rows else log_gamma(eta[1, 0] + 1.0)  # the same for all experts
            for b in range(m):
                trials = y[b].imag if rows else eta[1, 0]
                if rows:
                    top = log_gamma(trials + 1.0)
                choices = top - log_gamma(y[b].real + 1.0)
                value[b] += choices - log_gamma(trials - y[b].real + 1.0)

        VARYING[block] = varying
        return block

    return block_of(False), block_of(True)


@device
def _logit(eta, successes, trials):
    """``d_eta = y - N p`` and ``d_eta_eta = -N p (1 - p)``."""
    level, less = logistic(eta)
    value = trials * level - (trials - successes) * eta
    return value, successes - trials * (1.0 - less), -trials * less * (1.0 - less)


def _linked(law: Callable[..., Any], below: Callable[..., Any]) -> Callable[..., Any]:
    """The law of a probability F, by a law with its survival, and the logarithm of F.

    With the hazards ``r = f / F`` and ``h = f / (1 - F)`` and the slope psi of log f,
    ``d_eta = y r - (N - y) h`` and ``d_eta_eta = y r (psi - r) - (N - y) h (psi + h)``.
    """

    @device
    def linked(eta, successes, trials):
        failures = trials - successes
        log_f, psi, _, log_sf = law(eta)
        log_cdf = below(eta)
        r, h = decay_up(log_f - log_cdf), decay_up(log_f - log_sf)
        second = successes * r * (psi - r) - failures * h * (psi + h)
        return successes * log_cdf + failures * log_sf, successes * r - failures * h, second

    return linked


@dataclass(frozen=True)
class _Link:
    """Logarithms of ``F(eta)`` and ``1 - F(eta)``, the inverse of F, blocks by trials and rows."""

    logs: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    inverse: Callable[[np.ndarray], np.ndarray]
    blocks: tuple[Callable[..., None], Callable[..., None]]

    def chance(self, eta: FloatArray) -> FloatArray:
        """Probability of a success."""
        return np.exp(self.logs(eta)[0])

    def reference(
        self, predictors: np.ndarray, blocks: Mapping[str, np.ndarray], y: Encoded
    ) -> np.ndarray:
        """Log-probabilities (k, n) of successes y from predictors (k, n); -inf above the trials."""
        trials = np.real(blocks["trials"])
        inside = np.minimum(y, trials)
        choices = reference_log_gamma(trials + 1.0) - reference_log_gamma(inside + 1.0)
        choices = choices - reference_log_gamma(trials - inside + 1.0)
        one, other = self.logs(predictors)
        return np.where(y <= trials, choices + inside * one + (trials - inside) * other, -np.inf)

    def reference_of_rows(
        self, predictors: np.ndarray, blocks: Mapping[str, np.ndarray], y: Encoded
    ) -> np.ndarray:
        """Log-probabilities (k, n) of successes and failures y (n, 2), from predictors (k, n)."""
        return self.reference(predictors, {"trials": y.sum(axis=1)}, y[:, 0])


def _logs_of_probit(eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    from scipy.special import log_ndtr

    return log_ndtr(eta), log_ndtr(-eta)


def _quantile_of_probit(p: np.ndarray) -> np.ndarray:
    from scipy.special import ndtri

    return ndtri(p)


LINKS = {
    "logit": _Link(
        lambda eta: (log_sigmoid(eta), log_sigmoid(-eta)),
        lambda p: np.log(p) - np.log1p(-p),
        _blocks(_logit),
    ),
    "probit": _Link(
        _logs_of_probit,
        _quantile_of_probit,
        _blocks(_linked(normal, normal_below)),
    ),
    "cloglog": _Link(
        lambda eta: (np.log(-np.expm1(-np.exp(eta))), -np.exp(eta)),
        lambda p: np.log(-np.log1p(-p)),
        _blocks(_linked(extreme, extreme_below)),
    ),
}


def _of_rows(trials: int | FloatArray, link: str) -> Likelihood:
    """The likelihood of rows with numbers of trials (n,), or 1, of their own."""
    link_function = LINKS[link]

    def draw(eta: FloatArray, rng: np.random.Generator) -> Encoded:
        """Encoded responses with the predictors `eta`, shape (1, n)."""
        p = link_function.chance(eta[0])
        return rng.binomial(np.asarray(trials, dtype=np.int64), p) + 1j * np.broadcast_to(
            trials, p.shape
        )

    return replace(
        LIKELIHOOD,
        channels=(),
        block=link_function.blocks[1],
        reference=link_function.reference_of_rows,
        typical=lambda rng, n_experts: {},
        encode=encode_rows,
        decode=decode_rows,
        draw=draw,
        dtype=np.complex128,
        **_laws(trials, link_function),
        with_trials=lambda y: _of_rows(y.imag, link),
        bounds={},
        options=_options("rows", link),
    )


def _options(trials: int | str, link: str) -> dict[str, object]:
    """The options of a variant; the default link is none."""
    return {"trials": trials, **({} if link == "logit" else {"link": link})}


def _laws(n: int | FloatArray, link: _Link) -> dict[str, Any]:
    """What is known of successes in n trials, one number or (n,)."""

    def law(eta: FloatArray) -> Law:
        """The distribution at predictors (..., q, n)."""
        from scipy.stats import binom

        return binom(n, np.maximum(link.chance(eta[..., 0, :]), LEAST_PROBABILITY))

    def spread(eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of the response, from predictors (..., q, n)."""
        p = link.chance(eta[..., 0, :])
        return n * p, np.sqrt(n * p * (1.0 - p))

    return {"law": law, "spread": spread, "link": lambda mean: link.inverse(mean / n)}


def make(
    trials: int | str = 1,
    link: str = "logit",
    random: object = None,
    covariance: str = "free",
    within: object = None,
) -> Likelihood:
    """The likelihood of successes in so many trials, or in as many as each row says.

    `random` are one or two normal effects of groups of rows, "1" and inputs, or an intercept also
    of the parts of groups that an input `within` has.
    """
    if random is not None:
        return with_integrated_effects(make(trials, link), random, covariance, within)
    if link not in LINKS:
        raise ValueError(f"binomial: link must be one of {', '.join(LINKS)}, got {short(link)}")
    link_function = LINKS[link]
    if isinstance(trials, str) and trials == "rows":
        return _of_rows(1, link)
    n = positive_int("binomial: trials", trials)

    def draw(eta: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Numbers of successes with the predictors `eta`, shape (2, n)."""
        return rng.binomial(n, link_function.chance(eta[0])).astype(np.float64)

    return likelihood_of_counts(
        name="binomial",
        channels=(Channel("trials", shared=True),),
        block=link_function.blocks[0],
        reference=link_function.reference,
        typical=lambda rng, n_experts: {"trials": float(n)},
        encode=successes_of(n),
        draw=draw,
        **_laws(n, link_function),
        bounds={"trials": (float(n), float(n))},
        source="McCullagh and Nelder (1989), Ch. 4",
        options=_options(n, link),
        configure=make,
    )


LIKELIHOOD = make()
