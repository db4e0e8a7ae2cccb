"""Beta-binomial experts: successes in trials whose probability differs from row to row.

The probability of a success is a beta variable with mean ``p = 1 / (1 + e^-eta)`` and parameters
``p / phi`` and ``(1 - p) / phi``; the overdispersion phi is a parameter of each expert, its
logarithm the coefficient that solvers see.  Successes in N trials have mean ``N p`` and variance
``N p (1 - p) (1 + (N - 1) rho)`` with the intraclass correlation ``rho = phi / (1 + phi)``.  As phi
falls to 0 they become binomial.

The number of trials is an option, ``{"name": "beta-binomial", "trials": 8}``, 2 by default: with
fewer there is no overdispersion.  With ``"trials": "rows"`` each row has its own, as for binomial
experts; means are then probabilities.

Source: Skellam (1948), eq. (1); regression: Williams (1982), Sec. 3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from moestat.base.types import Encoded, FloatArray
from moestat.base.validate import positive_int
from moestat.compiler.jit import device
from moestat.compiler.math import exp, gamma_excess, log1p_positive, log_gamma, logistic
from moestat.model.members import Channel, Likelihood
from moestat.model.reference import log1p_exp
from moestat.model.reference import log_gamma as reference_log_gamma
from moestat.model.responses import likelihood_of_counts, varied
from moestat.model.trials import decode_rows, encode_rows, successes_of

_STEEPEST = 100.0
"""Predictors beyond this size count as this: their means are out of reach, products finite."""


@device
def _rise(a, count):
    """``log Gamma(a + count) - log Gamma(a) - count log a``, without terms that cancel.

    Its slope in log a, plus count, and the slope of that in log a less it itself: ``a (psi(a +
    count) - psi(a))`` and ``a^2 (psi'(a + count) - psi'(a))``.
    """
    excess, slope, curve = gamma_excess(a)
    more, steeper, sharper = gamma_excess(a + count)
    ratio = count / a
    step = log1p_positive(ratio)
    value = (a + count - 0.5) * step - count + (more - excess)
    return value, a * (step + (steeper - slope)), a * a * (sharper - curve) - count / (1.0 + ratio)


@device
def _row(eta, r, successes, trials, of_all_trials):
    """Log-probability and its derivatives in (eta, t), of which `whole` is what r alone decides.

    With ``A = a (psi(a + y) - psi(a))`` at ``a = p r``, B for ``b = (1 - p) r`` and the failures, R
    for r and all trials, and ``A2 = a^2 (psi'(a + y) - psi'(a))``, B2 and R2:
    ``d_eta = (1 - p) A - p B``, ``d_t = R - A - B``,
    ``d_eta_eta = (1 - 2 p) d_eta + (1 - p)^2 A2 + p^2 B2``,
    ``d_eta_t = p (B + B2) - (1 - p) (A + A2)`` and ``d_t_t = A + A2 + B + B2 - R - R2``.
    """
    at = eta if eta < _STEEPEST else _STEEPEST
    at = at if at > -_STEEPEST else -_STEEPEST
    level, less = logistic(at)
    below, p = logistic(-at)
    failures = trials - successes
    rise, A, A2 = _rise(p * r, successes)
    other, B, B2 = _rise(less * r, failures)
    rest, R, R2 = of_all_trials
    value = log_gamma(trials + 1.0) - log_gamma(successes + 1.0) - log_gamma(failures + 1.0)
    value += successes * level + failures * below + (rise + other - rest)
    first = less * A - p * B
    bend = (less - p) * first + less * less * A2 + p * p * B2
    mixed = p * (B + B2) - less * (A + A2)
    return value, first, R - A - B, bend, mixed, (A + A2) + (B + B2) - (R + R2)


@device
def block(eta, y, m, order, value, d1, d2):
    """Log-probability of y successes; predictors are (eta, t, N) with ``t = log phi``, N known."""
    r, trials = exp(-eta[1, 0]), eta[2, 0]
    of_all_trials = _rise(r, trials)
    for b in range(m):
        terms = _row(eta[0, b], r, y[b], trials, of_all_trials)
        value[b], d1[0, b], d1[1, b] = terms[0], terms[1], terms[2]
        d1[2, b] = 0.0
        if order > 1:
            d2[0, b], d2[1, b], d2[2, b] = terms[3], terms[4], terms[5]
            d2[3, b] = 0.0
            d2[4, b] = 0.0
            d2[5, b] = 0.0


@device
def block_of_rows(eta, y, m, order, value, d1, d2):
    """Log-probability where each row has its own number of trials; predictors are (eta, t)."""
    r = exp(-eta[1, 0])
    for b in range(m):
        trials = y[b].imag
        terms = _row(eta[0, b], r, y[b].real, trials, _rise(r, trials))
        value[b], d1[0, b], d1[1, b] = terms[0], terms[1], terms[2]
        if order > 1:
            d2[0, b], d2[1, b], d2[2, b] = terms[3], terms[4], terms[5]


@dataclass(frozen=True)
class BetaBinomial:
    """The distribution of successes, from products over trials, which do not cancel.

    ``P(y) = C(N, y) prod_(j < y) (p + j phi) prod_(j < N - y) (1 - p + j phi) / prod_(j < N) (1 + j
    phi)``.  Sums over counts take one step for each trial.
    """

    # numbers of trials, probabilities of success and of failure, overdispersions
    trials: int | FloatArray
    p: FloatArray
    other: FloatArray
    phi: FloatArray

    def _steps(self) -> Iterator[tuple[int, FloatArray]]:
        """Counts from 0 on, with their probabilities."""
        most = int(np.max(self.trials))
        total = np.zeros(np.broadcast_shapes(np.shape(self.trials), self.p.shape, self.phi.shape))
        for j in range(most):
            more = np.log(self.other + j * self.phi) - np.log1p(j * self.phi)
            total = total + np.where(j < self.trials, more, 0.0)
        for s in range(most + 1):
            left = self.trials - s
            yield s, np.where(left >= 0, np.exp(total), 0.0)
            last = np.maximum(left - 1, 0)
            odds = np.log(self.p + s * self.phi) - np.log(self.other + last * self.phi)
            total = total + odds + np.log(np.maximum(left, 1) / (s + 1.0))

    def pmf(self, y: float | FloatArray) -> FloatArray:
        """Probabilities of counts."""
        return self._sum(np.equal, y)

    def cdf(self, y: float | FloatArray) -> FloatArray:
        """Probabilities of counts up to y."""
        known = np.minimum(self._sum(np.less_equal, y), 1.0)
        return np.where(np.greater_equal(y, self.trials), 1.0, known)

    def _sum(self, counted: np.ufunc, y: float | FloatArray) -> FloatArray:
        """The probabilities of the counts that are counted beside y."""
        total: Any = 0.0
        for s, chance in self._steps():
            total = total + np.where(counted(s, y), chance, 0.0)
        return total

    def sf(self, y: float | FloatArray) -> FloatArray:
        """Probabilities of counts above y: of few failures."""
        failures = replace(self, p=self.other, other=self.p)
        above = failures.cdf(np.ceil(self.trials - np.floor(y)) - 1.0)
        return np.where(np.less(y, 0.0), 1.0, above)

    def ppf(self, q: float | FloatArray) -> FloatArray:
        """The least counts that are not exceeded with probability q."""
        below, count = 0.0, 0.0
        for _, chance in self._steps():
            below = below + chance
            count = count + (below < q)
        return np.minimum(count, self.trials) * 1.0

    def mean(self) -> FloatArray:
        """Means."""
        return self.trials * self.p

    def std(self) -> FloatArray:
        """Standard deviations."""
        more = 1.0 + (self.trials - 1.0) * self.phi / (1.0 + self.phi)
        return np.sqrt(self.trials * self.p * self.other * more)

    def support(self) -> tuple[float | FloatArray, float | FloatArray]:
        """The least and the largest count."""
        return 0, self.trials

    def rvs(
        self,
        size: int | tuple[int, ...] | None = None,
        random_state: np.random.Generator | None = None,
    ) -> FloatArray:
        """Counts drawn from it: binomial with beta probabilities."""
        rng = np.random.default_rng(random_state)
        chance = rng.beta(self.p / self.phi, self.other / self.phi, size=size)
        return rng.binomial(np.asarray(self.trials, dtype=np.int64), chance).astype(np.float64)


def _laws(n: int | FloatArray) -> dict[str, Any]:
    """What is known of successes in n trials, one number or (n,)."""

    def law(eta: FloatArray) -> BetaBinomial:
        """The distribution at predictors (..., q, n)."""
        from scipy.special import expit

        at = np.clip(eta[..., 0, :], -_STEEPEST, _STEEPEST)
        return BetaBinomial(n, expit(at), expit(-at), np.exp(eta[..., 1, :]))

    def spread(eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of the response, from predictors (..., q, n)."""
        distribution = law(eta)
        return distribution.mean(), distribution.std()

    def link(mean: FloatArray) -> FloatArray:
        """The predictor of a mean."""
        return np.log(mean / n) - np.log1p(-mean / n)

    return {"law": law, "spread": spread, "link": link}


def _reference(
    predictors: np.ndarray, phi: np.ndarray, successes: np.ndarray, trials: np.ndarray
) -> np.ndarray:
    """Log-probabilities (k, n); -inf above the trials.

    The products over trials that `BetaBinomial` states: differences of log-gamma functions at
    1 / phi would lose the digits of a phi near 0.
    """
    phi, y = phi[:, None], np.minimum(successes, trials)
    p, other = np.exp(-log1p_exp(-predictors)), np.exp(-log1p_exp(predictors))
    total = reference_log_gamma(trials + 1.0) - reference_log_gamma(y + 1.0)
    total = total - reference_log_gamma(trials - y + 1.0)
    for j in range(int(np.max(trials))):
        total = total + np.where(j < y, np.log(p + j * phi), 0.0)
        total = total + np.where(j < trials - y, np.log(other + j * phi), 0.0)
        total = total - np.where(j < trials, np.log1p(j * phi), 0.0)
    return np.where(successes <= trials, total, -np.inf)


def reference(predictors: np.ndarray, blocks: Mapping[str, np.ndarray], y: Encoded) -> np.ndarray:
    """Log-probabilities (k, n) of successes y, from logits (k, n), dispersions and trials."""
    return _reference(predictors, blocks["phi"], y, np.real(blocks["trials"]))


def reference_of_rows(
    predictors: np.ndarray, blocks: Mapping[str, np.ndarray], y: Encoded
) -> np.ndarray:
    """Log-probabilities (k, n) of successes and failures y (n, 2), from logits (k, n)."""
    return _reference(predictors, blocks["phi"], y[:, 0], y.sum(axis=1))


_PHI = Channel("phi", log=True)
_BOUNDS = {"phi": (1e-9, 1e3)}
"""The variance of a thousand trials differs by a millionth from the binomial one at the least phi;
at the largest one almost all rows have the same outcome in all trials."""

_typical = varied(phi=(0.1, 0.5))


def _of_rows(trials: int | FloatArray) -> Likelihood:
    """The likelihood of rows with numbers of trials (n,), or 1, of their own."""
    known = _laws(trials)

    def draw(eta: FloatArray, rng: np.random.Generator) -> Encoded:
        """Encoded responses with the predictors `eta`, shape (2, n)."""
        return known["law"](eta).rvs(eta.shape[1], rng) + 1j * np.broadcast_to(
            trials, eta.shape[1:]
        )

    return replace(
        LIKELIHOOD,
        channels=(_PHI,),
        block=block_of_rows,
        reference=reference_of_rows,
        typical=_typical,
        encode=encode_rows,
        decode=decode_rows,
        draw=draw,
        dtype=np.complex128,
        **known,
        with_trials=lambda y: _of_rows(y.imag),
        bounds=_BOUNDS,
        options={"trials": "rows"},
    )


def make(trials: int | str = 2) -> Likelihood:
    """The likelihood of successes in so many trials, or in as many as each row says."""
    if isinstance(trials, str) and trials == "rows":
        return _of_rows(1)
    n = positive_int("beta-binomial: trials", trials, 2)
    return likelihood_of_counts(
        name="beta-binomial",
        channels=(_PHI, Channel("trials", shared=True)),
        block=block,
        reference=reference,
        typical=lambda rng, n_experts: {**_typical(rng, n_experts), "trials": float(n)},
        encode=successes_of(n),
        **_laws(n),
        shapes=("phi",),
        bounds={**_BOUNDS, "trials": (float(n), float(n))},
        limits={"phi": ("binomial", "")},
        source="Williams (1982), Sec. 3",
        options={"trials": n},
        configure=make,
    )


LIKELIHOOD = make()
