"""Laws of counts with another probability of 0: inflated, hurdles, and counts without zeros."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from moestat.base.types import FloatArray, Law
from moestat.model.members import Channel, Likelihood
from moestat.model.reference import apart
from moestat.model.responses import draw_by_quantiles, likelihood_of_counts

__all__ = ["Altered", "altered_limits", "with_zero"]


_BELOW_ONE = float(np.nextafter(1.0, 0.0))


@dataclass(frozen=True)
class Altered:
    """A law of counts that has 0 by itself and a multiple of another law."""

    law: Any  # the other law
    # what the probability of 0 exceeds a multiple of that of the law by, and the multiple
    alone: FloatArray
    share: FloatArray
    least: int = 0

    def pmf(self, y: float | FloatArray) -> FloatArray:
        """Probabilities of counts."""
        return self.alone * (np.asarray(y) == 0) + self.share * self.law.pmf(y)

    def cdf(self, y: float | FloatArray) -> FloatArray:
        """Probabilities of counts up to y."""
        return 1.0 - self.sf(y)  # shares of a law that is seldom positive are large, and cancel

    def sf(self, y: float | FloatArray) -> FloatArray:
        """Probabilities of counts above y."""
        return np.where(np.asarray(y) < 0, 1.0, self.share * self.law.sf(y))

    def ppf(self, q: float | FloatArray) -> FloatArray:
        """The least counts that are not exceeded with probability q."""
        inner = (q - self.alone) / self.share
        quantile = self.law.ppf(np.clip(inner, 0.0, np.where(np.asarray(q) < 1.0, _BELOW_ONE, 1.0)))
        return np.where(inner <= 0.0, self.least, np.maximum(quantile, self.least))

    def mean(self) -> FloatArray:
        """Means."""
        return self.share * self.law.mean()

    def std(self) -> FloatArray:
        """Standard deviations."""
        square = self.share * (self.law.var() + self.law.mean() ** 2)
        return np.sqrt(np.maximum(square - self.mean() ** 2, 0.0))

    def support(self) -> tuple[float | FloatArray, float | FloatArray]:
        """The least and the largest count."""
        return self.least, self.law.support()[1]

    def rvs(
        self,
        size: int | tuple[int, ...] | None = None,
        random_state: np.random.Generator | None = None,
    ) -> FloatArray:
        """Counts drawn from it, by their quantiles."""
        return draw_by_quantiles(self.ppf, np.shape(self.share), size, random_state)


def altered_limits(base: Likelihood, prefix: str) -> dict[str, tuple[str, str]]:
    """What an altered law becomes where the law behind it becomes a simpler one."""
    return {
        block: (low and prefix + low, high and prefix + high)
        for block, (low, high) in base.limits.items()
    }


def with_zero(
    base: Likelihood,
    name: str,
    block: Callable[..., None],
    reference: Callable[..., np.ndarray],
    parts: Callable[..., tuple[FloatArray, FloatArray]],
    source: str,
    ends: tuple[str, str],
) -> Likelihood:
    """Counts with a parameter for 0; ``parts(pi, law)`` are the shares that `Altered` takes.

    `ends` are what it becomes where the parameter goes to its ends.
    """
    n_base = 1 + len(base.channels)
    assert base.law is not None
    law_of = base.law

    def law(eta: FloatArray) -> Law:
        """The distribution at predictors (..., q, n)."""
        from scipy.special import expit

        base_law = law_of(eta[..., :n_base, :])
        return Altered(base_law, *parts(expit(eta[..., n_base, :]), base_law))

    def spread(eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of the response, from predictors (..., q, n)."""
        distribution = law(eta)
        return distribution.mean(), distribution.std()

    def typical(rng, n_experts):
        """Probabilities of 0 that differ."""
        return {**base.typical(rng, n_experts), "zero": apart(rng, n_experts, (), -1.5, 0.5)}

    return likelihood_of_counts(
        name=name,
        channels=(*base.channels, Channel("zero")),
        block=block,
        reference=reference,
        typical=typical,
        spread=spread,
        law=law,
        shapes=("zero",),
        bounds={**base.bounds, "zero": (-30.0, 30.0)},
        limits={**altered_limits(base, name.removesuffix(base.name)), "zero": ends},
        source=source,
    )
