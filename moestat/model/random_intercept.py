"""Counts and binary responses with normal effects of each group.

Given the effects ``u ~ N(0, D_i)`` of its group the rows have, within expert i, the distribution of
the likelihood at the predictors ``x' b_i + z' u``; the density of a group is the integral over u,
see `moestat.kernels.quadrature`.  A row by itself has that of a group of one row.

Source: Breslow and Clayton (1993), Sec. 2; mixtures: Proust-Lima, Philipps and Liquet (2017),
Sec. 2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from moestat.base.types import Encoded, FloatArray, IntArray, Law
from moestat.kernels.quadrature import marginal_block
from moestat.model.members import Likelihood
from moestat.model.quantiles import bisected
from moestat.model.random_effects import channels_of, has_shifts, options_of, read_effects

__all__ = ["Averaged", "drawn_in_groups", "with_integrated_effects"]

_MOST = 2
"""Effects: an integral over three takes a second for a hundred groups."""

_REACH = 8.6
"""Standardised effects beyond this have a probability of 1e-17."""

_STEP = 0.2
"""Distance of the first nodes, at most; the next ones are in the middle between them."""

_AGREEMENT = 1e-6
"""Change by nodes in the middle after which there are no more: of an analytic function the error is
then about the square of the change."""

_HALVINGS = 16
"""Halvings of the distance at most: a tenth of them suffices for scales up to 1000."""

_CELLS = 2**18
"""Most numbers of predictors at once, 2 MiB: a distribution of scipy takes milliseconds to make."""


@dataclass(frozen=True)
class Averaged:
    """A distribution of counts averaged over a normal intercept."""

    law: Callable[[FloatArray], Law]
    eta: FloatArray  # (..., q, n), the last one lambda
    # mean and standard deviation at such predictors, where there is a formula
    closed: Callable[[FloatArray], tuple[FloatArray, FloatArray]] | None = None

    def _mean(
        self, function: Callable[[Any], np.ndarray], dimensions: int = 0, width: float = 1.0
    ) -> FloatArray:
        """The mean over effects of ``function(distribution)``, an array of `dimensions` or more.

        A trapezoidal sum gets nodes in the middle until they change nothing.  The function is known
        to vary over no less than `width` units of the predictor.
        """
        widest = float(np.max(np.abs(self.eta[..., -1, :]), initial=0.0))
        step = min(_STEP, width / widest) if widest > 0.0 else _STEP
        count = int(np.ceil(_REACH / step))
        nodes: FloatArray = step * np.arange(-float(count), count + 1.0)
        mean = self._sum(function, dimensions, nodes, step)
        for _ in range(_HALVINGS):
            middle = 0.5 * (nodes[1:] + nodes[:-1])
            better = 0.5 * (mean + self._sum(function, dimensions, middle, step))
            with np.errstate(invalid="ignore"):
                change = np.abs(better - mean) / np.maximum(np.abs(better), 1.0)
            mean, step = better, 0.5 * step
            if not np.any(change > _AGREEMENT):
                break
            nodes = np.sort(np.concatenate([nodes, middle]))
        return mean

    def _sum(
        self, function: Callable[[Any], np.ndarray], dimensions: int, nodes: FloatArray, step: float
    ) -> FloatArray:
        """The sum over nodes of ``function(distribution)`` with normal weights."""
        batch = self.eta.shape[:-2]
        ahead = max(dimensions - len(batch) - 1, 0)
        shape = (*(1,) * ahead, *batch, *self.eta.shape[-2:])
        eta = self.eta.reshape(shape)
        weight = step * np.exp(-0.5 * nodes**2) / np.sqrt(2.0 * np.pi)
        at_once = max(_CELLS // max(eta.size, 1), 1)
        total: Any = 0.0
        for begin in range(0, nodes.size, at_once):
            some = slice(begin, begin + at_once)
            shifted = np.tile(eta[..., :-1, :], (nodes[some].size, *(1,) * eta.ndim))
            shifted[..., 0, :] += np.multiply.outer(nodes[some], eta[..., -1, :])
            total = total + np.tensordot(weight[some], function(self.law(shifted)), 1)
        return np.asarray(total, dtype=np.float64)

    def pmf(self, y: float | FloatArray) -> FloatArray:
        """Probabilities of counts."""
        # The probability of a count y as a function of the predictor is a peak of width y^-1/2.
        width = 1.0 / np.sqrt(1.0 + np.max(y, initial=0.0))
        return self._mean(lambda law: law.pmf(y), np.ndim(y), float(width))

    def cdf(self, y: float | FloatArray) -> FloatArray:
        """Probabilities of counts up to y."""
        return self._mean(lambda law: law.cdf(y), np.ndim(y))

    def sf(self, y: float | FloatArray) -> FloatArray:
        """Probabilities of counts above y."""
        return self._mean(lambda law: law.sf(y), np.ndim(y))

    def mean(self) -> FloatArray:
        """Means."""
        return self.moments()[0]

    def std(self) -> FloatArray:
        """Standard deviations."""
        return self.moments()[1]

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Means and standard deviations."""
        if self.closed is not None:
            return self.closed(self.eta)

        def first_two(law: Law) -> FloatArray:
            mean = law.mean()
            return np.stack([mean, law.std() ** 2 + mean**2], axis=1)

        mean, square = self._mean(first_two)
        return mean, np.sqrt(np.maximum(square - mean**2, 0.0))

    def support(self) -> tuple[float | FloatArray, float | FloatArray]:
        """The least and the largest count."""
        return self.law(self.eta[..., :-1, :]).support()

    def ppf(self, q: float | FloatArray) -> FloatArray:
        """The least counts that are not exceeded with probability q, by bisection."""
        return bisected(q, *self.moments(), self.cdf, self.support(), True)


def with_integrated_effects(
    base: Likelihood,
    random: object,
    covariance: object = "free",
    within: object = None,
    closed: Callable[[FloatArray], tuple[FloatArray, FloatArray]] | None = None,
) -> Likelihood:
    """The likelihood of counts, or of successes, with one or two normal effects of each group.

    `closed` are mean and standard deviation of a row by itself, where they have formulas.
    """
    effects = replace(read_effects(base.name, random, covariance, within, _MOST), base=base)
    n, q, base_block = 1 + len(base.channels), len(effects.features), base.block
    assert base_block is not None
    law = base.law
    assert law is not None

    def averaged(eta: FloatArray) -> Averaged:
        """The distribution at predictors (..., n + q, N): the effects of a row have one sum."""
        loading = np.sqrt(np.sum(eta[..., n:, :] ** 2, axis=-2, keepdims=True))
        return Averaged(law, np.concatenate([eta[..., :n, :], loading], axis=-2), closed)

    def spread(eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of a row by itself, from predictors (..., n + q, N)."""
        return averaged(eta).moments()

    def draw(eta: FloatArray, rng: np.random.Generator) -> Encoded:
        """Responses of rows by themselves with the predictors `eta`, shape (n + q, N)."""
        return drawn_in_groups(base, eta, [np.arange(eta.shape[1])] * q, rng)

    with_trials = base.with_trials
    return replace(
        base,
        channels=(*base.channels, *channels_of(effects, False)),
        block=marginal_block(base_block, n, q),
        reference=None,
        law=averaged,
        spread=spread,
        draw=draw,
        with_trials=None
        if with_trials is None
        else lambda y: with_integrated_effects(with_trials(y), random, covariance, within, closed),
        bounds={**base.bounds, "l": (-30.0, 30.0), "L": (-30.0, 30.0)},
        units=replace(base.units, shift_inputs=base.units.shift_inputs and has_shifts(effects)),
        options={**base.options, **options_of(effects, covariance)},
        effects=effects,
        limits={},
        source="Breslow and Clayton (1993), Sec. 2",
    )


def drawn_in_groups(
    base: Likelihood, eta: FloatArray, owners: Sequence[IntArray], rng: np.random.Generator
) -> np.ndarray:
    """Responses (N,) of rows with predictors (n + q, N).

    Each effect is drawn once for those rows that have the same number among its owners (N,).
    """
    n = len(eta) - len(owners)
    shifted = eta[:n].copy()
    for loading, owner in zip(eta[n:], owners, strict=True):
        shifted[0] += loading * rng.standard_normal(int(owner.max()) + 1)[owner]
    return base.draw(shifted, rng)
