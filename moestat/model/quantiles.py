"""Quantiles by bisection, and distributions that have them from a density or a cdf alone.

`OfCounts` and `OfNumbers` are for likelihoods whose distribution SciPy does not have: an author
writes the probabilities, or the distribution function, and two moments.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from moestat.base.types import FloatArray
from moestat.model.responses import draw_by_quantiles

__all__ = ["OfCounts", "OfNumbers", "bisected", "mixture_quantile"]

_LARGE = 1e250
"""Means and standard deviations are cut off at this value."""

_FLOAT = np.finfo(np.float64)

_HALVINGS = int(_FLOAT.maxexp - _FLOAT.minexp + _FLOAT.nmant)
"""Number of halvings that bisection needs from one end of float64 to the other."""

_CELLS = 2**18
"""Number of probabilities that are computed at once, 2 MiB."""

_MOST = 10**7
"""Number of counts whose probabilities are summed, at most."""

_REST = 1e-18
"""A count beyond ten standard deviations whose probability is below this ends a sum."""


def mixture_quantile(
    q: float | FloatArray,
    weight: FloatArray,
    mean: FloatArray,
    deviation: FloatArray,
    cumulative: Callable[[FloatArray], FloatArray],
    counts: bool = False,
) -> FloatArray:
    """The least response (n,) that is not exceeded with probability q, by bisection.

    The bisection begins with Cantelli's bounds of the components, and ends at the count, or within
    rounding of the value or of the deviations there.

    Parameters
    ----------
    q : float or ndarray of shape (n,)
        Probability, in (0, 1).
    weight, mean, deviation : ndarray of shape (k, n)
        Weights of the components with their means and standard deviations.
    cumulative : callable
        Their distribution functions, (k, n) at responses (n,).
    counts : bool
        Whether responses are whole numbers from 0.
    """
    reach = np.minimum(deviation, _LARGE)
    middle = np.minimum(mean, _LARGE)
    low = np.min(middle - reach * np.sqrt((1.0 - q) / q), axis=0)
    high = np.max(middle + reach * np.sqrt(q / (1.0 - q)), axis=0)
    least = np.min(reach, axis=0)
    if counts:
        low, high = np.maximum(np.floor(low) - 1.0, -1.0), np.ceil(high)
    for _ in range(_HALVINGS):
        size = np.maximum(np.maximum(np.abs(low), np.abs(high)), least)
        if np.all(high - low <= (1.0 if counts else 4.0 * _FLOAT.eps * size)):
            break
        # Ends that are far apart are halved in their logarithms.
        far = (low >= -1.0) & (high > 4.0 * (low + 2.0))
        at = np.where(far, np.sqrt(np.maximum((low + 2.0) * high, 0.0)), 0.5 * (low + high))
        at = np.floor(at) if counts else at
        below = np.sum(weight * cumulative(at), axis=0) < q
        low, high = np.where(below, at, low), np.where(below, high, at)
    return high


@np.errstate(all="ignore")
def bisected(
    q: float | FloatArray,
    mean: FloatArray,
    deviation: FloatArray,
    cdf: Callable[[FloatArray], FloatArray],
    ends: tuple[float | FloatArray, float | FloatArray],
    counts: bool = False,
) -> FloatArray:
    """Quantiles of one distribution for each mean; the ends for probabilities 0 and 1."""
    q, mean, deviation = np.broadcast_arrays(np.asarray(q, dtype=np.float64), mean, deviation)
    inside = (q > 0.0) & (q < 1.0)
    found = mixture_quantile(
        np.where(inside, q, 0.5),
        np.ones((1, *q.shape)),
        mean[None],
        deviation[None],
        lambda y: cdf(y)[None],
        counts,
    )
    found = np.clip(found, *ends)
    return np.where(inside, found, np.where(q <= 0.0, *ends))


class _ByQuantiles:
    """What distributions with known moments and quantiles answer."""

    means: FloatArray
    deviations: FloatArray

    def ppf(self, q: float | FloatArray) -> FloatArray:
        """Quantiles."""
        raise NotImplementedError

    def mean(self) -> FloatArray:
        """Means."""
        return self.means

    def std(self) -> FloatArray:
        """Standard deviations."""
        return self.deviations

    def rvs(
        self,
        size: int | tuple[int, ...] | None = None,
        random_state: np.random.Generator | None = None,
    ) -> FloatArray:
        """Responses drawn from it, by their quantiles."""
        return draw_by_quantiles(self.ppf, np.shape(self.means), size, random_state)


@dataclass(frozen=True)
class OfCounts(_ByQuantiles):
    """Distributions of counts from their log-probabilities, for likelihoods that SciPy lacks.

    The distribution function and the quantiles are sums of probabilities, so that a count of a
    million costs a million terms.

    Parameters
    ----------
    log_probability : callable
        Log-probabilities (..., n) of counts (..., n), one distribution for each mean.
    means, deviations : ndarray of shape (..., n)
        Means and standard deviations.
    least : int
        The least count.

    Examples
    --------
    >>> from scipy.special import gammaln
    >>> mean = np.array([1.0, 4.0])
    >>> law = OfCounts(
    ...     lambda y: y * np.log(mean) - mean - gammaln(y + 1.0), mean, np.sqrt(mean)
    ... )
    >>> law.ppf(0.9)
    array([2., 7.])
    >>> law.cdf(2).round(6)
    array([0.919699, 0.238103])
    """

    log_probability: Callable[[FloatArray], FloatArray]
    means: FloatArray
    deviations: FloatArray
    least: int = 0

    def pmf(self, y: float | FloatArray) -> FloatArray:
        """Probabilities of counts."""
        y = np.asarray(y, dtype=np.float64)
        valid = (y >= self.least) & (y == np.floor(y))
        with np.errstate(all="ignore"):
            p = np.exp(self.log_probability(np.where(valid, y, float(self.least))))
        return np.where(valid, p, 0.0)

    def cdf(self, y: float | FloatArray) -> FloatArray:
        """Probabilities of counts up to y."""
        y = np.asarray(y, dtype=np.float64)
        total = np.zeros(np.broadcast_shapes(y.shape, np.shape(self.means)))
        for counts, p, _ in self._parts(total.shape, np.max(y, initial=-1.0)):
            total += np.sum(np.where(counts <= y, p, 0.0), axis=0)
        return np.where(y == np.inf, 1.0, np.minimum(total, 1.0))

    def _parts(
        self, shape: tuple[int, ...], last: float = np.inf
    ) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
        """Counts up to the last one, on an axis of their own, with p(y) and P(Y <= y)."""
        enough = np.max(self.means + 10.0 * self.deviations, initial=0.0)
        step = max(_CELLS // max(math.prod(shape), 1), 16)
        reached: FloatArray | float = 0.0
        for first in range(self.least, self.least + _MOST, step):
            if first > last:
                break
            counts = np.arange(first, first + step, dtype=np.float64)
            counts = counts.reshape(-1, *(1,) * len(shape))
            p = self.pmf(counts)
            below = reached + np.cumsum(p, axis=0)
            yield counts, p, below
            reached = below[-1]
            if first > enough and np.max(p[-1]) < _REST:
                break

    def sf(self, y: float | FloatArray) -> FloatArray:
        """Probabilities of counts above y, as sums of them: of 1 less the others rounding stays."""
        y = np.asarray(y, dtype=np.float64)
        total = np.zeros(np.broadcast_shapes(y.shape, np.shape(self.means)))
        for counts, p, _ in self._parts(total.shape):
            total += np.sum(np.where(counts > y, p, 0.0), axis=0)
        return np.where(y < self.least, 1.0, np.minimum(total, 1.0))

    def ppf(self, q: float | FloatArray) -> FloatArray:
        """The least counts that are not exceeded with probability q."""
        q = np.asarray(q, dtype=np.float64)
        found = np.full(np.broadcast_shapes(q.shape, np.shape(self.means)), float(self.least))
        for _, _, below in self._parts(found.shape):
            found += np.sum(below < q, axis=0)
            if np.all(below[-1] >= q):
                break
        return np.where(q >= 1.0, np.inf, found)

    def support(self) -> tuple[float, float]:
        """The least and the largest count."""
        return float(self.least), np.inf


@dataclass(frozen=True)
class OfNumbers(_ByQuantiles):
    """Distributions of numbers from their distribution functions, where SciPy has none.

    Parameters
    ----------
    distribution : callable
        Distribution functions (..., n) at responses (..., n), one for each mean.
    means, deviations : ndarray of shape (..., n)
        Means and standard deviations.
    ends : tuple of float
        The open interval of the responses.
    above : callable, optional
        Probabilities of more than y; by default ``1 - distribution(y)``, which loses the digits of
        an upper tail.

    Examples
    --------
    >>> scale = np.array([1.0, 2.0])
    >>> law = OfNumbers(lambda y: 1.0 - np.exp(-y / scale), scale, scale, (0.0, np.inf))
    >>> law.ppf(0.5).round(6)
    array([0.693147, 1.386294])
    """

    distribution: Callable[[FloatArray], FloatArray]
    means: FloatArray
    deviations: FloatArray
    ends: tuple[float, float] = (-np.inf, np.inf)
    above: Callable[[FloatArray], FloatArray] | None = None

    @np.errstate(all="ignore")
    def cdf(self, y: float | FloatArray) -> FloatArray:
        """Probabilities up to y."""
        y = np.asarray(y, dtype=np.float64)
        inside = np.clip(self.distribution(np.clip(y, *self.ends)), 0.0, 1.0)
        return np.where(y <= self.ends[0], 0.0, np.where(y >= self.ends[1], 1.0, inside))

    @np.errstate(all="ignore")
    def sf(self, y: float | FloatArray) -> FloatArray:
        """Probabilities above y."""
        if self.above is None:
            return 1.0 - self.cdf(y)
        y = np.asarray(y, dtype=np.float64)
        inside = np.clip(self.above(np.clip(y, *self.ends)), 0.0, 1.0)
        return np.where(y <= self.ends[0], 1.0, np.where(y >= self.ends[1], 0.0, inside))

    def ppf(self, q: float | FloatArray) -> FloatArray:
        """Quantiles."""
        return bisected(q, self.means, self.deviations, self.cdf, self.ends)

    def support(self) -> tuple[float, float]:
        """The ends of the interval of responses."""
        return self.ends
