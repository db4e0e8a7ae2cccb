"""The EM test of the number of components, for responses whose components have one parameter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from moestat.base.door import door
from moestat.base.types import FloatArray
from moestat.base.validate import as_floats, positive_int, real_in, short
from moestat.estimation.progress import reported
from moestat.estimation.rules import EM_TEST
from moestat.solvers.rules import EPSILON, TINY

__all__ = ["KERNELS", "EMTest", "Kernel", "em_test", "make_kernel"]


@dataclass(frozen=True)
class Kernel:
    """A one-parameter exponential family by its mean."""

    name: str
    log_density: Callable[
        [FloatArray, FloatArray], FloatArray
    ]  # ``log_density(y, mean)``, broadcast
    # ``variance(mean)``: variance and its derivative
    variance: Callable[[FloatArray], tuple[FloatArray, FloatArray]]
    # ``nodes(lowest, highest)``: responses and weights that integrate over the response for means
    # between these
    nodes: Callable[[float, float], tuple[FloatArray, FloatArray]]
    allowed: tuple[float, float]  # smallest and largest possible response


_DEPTH = -2.0 * float(np.log(EPSILON))
"""Integrals extend to where a density has fallen by this power of e, the square of float64's
rounding, so that products of the density with powers of a score are below rounding, too."""

_NODES = 12
"""Number of Gauss nodes in an interval; they are exact for polynomials up to degree 23."""

_PLACES = ((0.25, 0.75), (0.75, 0.25), (0.02, 0.5), (0.98, 0.5))
"""Starting places of the two halves of a component, as parts of the interval between its edges: in
either order, and one of them near an edge (without the last two, the statistics of 160 tests of
one component are the same to 1e-3, but of 20 tests of two components three are lower, by .007 to
.09)."""

_HOMOGENEITY = 0.54
"""Penalty for one component: Li and Chen (2010), p. 1087, as in their R package MixtureInf
(`emtest.pois` and its like), which names Chen and Li (2011) for its formulas."""

_ORDER_TWO = (5.0, -10.6, -123.0)
"""Coefficients of the penalty for two components, of 1, of the correlation and of one over the
number of rows, from the same place."""


def _counts(low: float, high: float) -> tuple[FloatArray, FloatArray]:
    """All counts up to where Bernstein's inequality bounds the tail by ``exp(-_DEPTH)``."""
    third = _DEPTH / 3.0
    y = np.arange(np.ceil(high + third + np.sqrt(third**2 + 2.0 * _DEPTH * high)) + 1.0)
    return y, np.ones_like(y)


def _poisson(_: float) -> Kernel:
    from scipy.special import gammaln, xlogy

    return Kernel(
        "poisson",
        lambda y, mean: xlogy(y, mean) - mean - gammaln(y + 1.0),
        lambda mean: (mean, np.ones_like(mean)),
        _counts,
        (0.0, np.inf),
    )


def _exponential(_: float) -> Kernel:
    def nodes(low: float, high: float) -> tuple[FloatArray, FloatArray]:
        least = EPSILON * low
        doublings = np.arange(np.ceil(np.log2(_DEPTH * high / least)) + 1.0)
        return _gauss(np.append(0.0, least * 2.0**doublings))

    return Kernel(
        "exponential",
        lambda y, mean: -np.log(mean) - y / mean,
        lambda mean: (mean**2, 2.0 * mean),
        nodes,
        (0.0, np.inf),
    )


def _normal(deviation: float) -> Kernel:
    def nodes(low: float, high: float) -> tuple[FloatArray, FloatArray]:
        reach = np.sqrt(2.0 * _DEPTH) * deviation
        count = int(np.ceil((high - low + 2.0 * reach) / deviation))
        return _gauss(np.linspace(low - reach, high + reach, count + 1))

    constant = np.log(deviation) + 0.5 * np.log(2.0 * np.pi)
    return Kernel(
        "normal",
        lambda y, mean: -0.5 * ((y - mean) / deviation) ** 2 - constant,
        lambda mean: (np.full_like(mean, deviation**2), np.zeros_like(mean)),
        nodes,
        (-np.inf, np.inf),
    )


def _binomial(trials: float) -> Kernel:
    from scipy.special import gammaln, xlogy

    m = float(positive_int("size", int(trials) if float(trials).is_integer() else trials))
    log_factorial = gammaln(m + 1.0)

    def log_density(y: FloatArray, mean: FloatArray) -> FloatArray:
        chance = mean / m
        ways = log_factorial - gammaln(y + 1.0) - gammaln(m - y + 1.0)
        return ways + xlogy(y, chance) + xlogy(m - y, 1.0 - chance)

    y = np.arange(m + 1.0)
    return Kernel(
        "binomial",
        log_density,
        lambda mean: (mean * (1.0 - mean / m), 1.0 - 2.0 * mean / m),
        lambda low, high: (y, np.ones_like(y)),
        (0.0, m),
    )


def _gauss(edges: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Gauss-Legendre nodes of each interval."""
    unit, mass = np.polynomial.legendre.leggauss(_NODES)
    half = 0.5 * np.diff(edges)[:, None]
    return (edges[:-1, None] + half * (1.0 + unit)).ravel(), (half * mass).ravel()


KERNELS: dict[str, Callable[[float], Kernel]] = {
    "poisson": _poisson,
    "exponential": _exponential,
    "normal": _normal,
    "binomial": _binomial,
}
"""Kernels by name; the number is the standard deviation or the trials, where there is one."""


@door()
def make_kernel(name: str, size: float = 1.0) -> Kernel:
    """The kernel called `name`."""
    if name not in KERNELS:
        raise ValueError(f"kernel must be one of {', '.join(KERNELS)}, got {short(name)}")
    return KERNELS[name](real_in("size", size, 0.0, open_low=True))


@dataclass(frozen=True)
class EMTest:
    """Result of an EM test of m components against more.

    Parameters
    ----------
    statistic : float
        ``EM_n``, with three EM steps.
    weights : tuple of float
        Weights of chi-square with 0, 1, ..., m degrees of freedom under the hypothesis.
    means, masses : ndarray of shape (m,)
        The fit with m components.
    """

    statistic: float
    weights: tuple[float, ...]
    means: FloatArray = field(repr=False)
    masses: FloatArray = field(repr=False)

    @property
    def pvalue(self) -> float:
        """Asymptotic probability of a larger statistic under the hypothesis."""
        from scipy.stats import chi2

        if self.statistic <= 0.0:
            return 1.0
        tails = [w * chi2.sf(self.statistic, h) for h, w in enumerate(self.weights) if h]
        return float(sum(tails))

    def __str__(self) -> str:
        return f"EM test: {self.statistic:.4f}, p = {self.pvalue:.4g}"


@door()
def em_test(
    y: ArrayLike,
    n_components: int = 1,
    *,
    kernel: str = "poisson",
    size: float = 1.0,
    verbose: bool = False,
) -> EMTest:
    """Test one or two components against more.

    The test is for components with one parameter, without inputs.  Its statistic is a likelihood
    ratio after a few EM steps, with a penalty on small shares of components; its limit
    distribution is known.

    Parameters
    ----------
    y : array_like of shape (n,)
        Responses.
    n_components : {1, 2}
        Components under the hypothesis.
    kernel : {"poisson", "exponential", "normal", "binomial"}
        Distribution of a component, given its mean.
    size : float
        For "normal", the known standard deviation of all components; for "binomial", the number of
        trials.
    verbose : bool
        Whether to show the progress on standard error.

    Returns
    -------
    EMTest
        The statistic, its limit distribution and the p-value.

    Raises
    ------
    ValueError
        If the kernel is unknown, `n_components` is not 1 or 2, or a response is not a possible
        value of the kernel.

    Notes
    -----
    The test is that of Li and Chen (2010), Sections 2 and 3.  Its theory does not cover gates with
    inputs, or experts with unknown variances; use `moestat.bootstrap_lrt` for these.  The authors
    chose the penalty by simulation: 0.54 for one component, and for two components a formula that
    depends on the correlation in the limit distribution.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> em_test(rng.poisson(3.0, 200)).pvalue > 0.05
    True
    >>> em_test(rng.poisson(np.repeat([2.0, 8.0], 100))).pvalue < 1e-6
    True
    """
    return _test(y, n_components, make_kernel(kernel, size), verbose)


def _test(y: ArrayLike, n_components: int, law: Kernel, verbose: bool) -> EMTest:
    response = as_floats("y", y, (None,))
    if n_components not in (1, 2):
        raise ValueError(
            f"n_components must be 1 or 2, got {short(n_components)}: for more use"
            " moestat.bootstrap_lrt"
        )
    low, high = law.allowed
    if response.size < 2 or np.ptp(response) == 0.0:
        raise ValueError("y must hold two different values at least")
    if response.min() < low or response.max() > high:
        raise ValueError(f"y must lie in [{low:g}, {high:g}] for the kernel {law.name!r}")
    masses, means, top = _null_fit(law, response, n_components)
    weights, correlation = _limit(law, masses, means)
    penalty = _penalty(n_components, correlation, response.size)
    edges = [response.min(), *(0.5 * (means[1:] + means[:-1])), response.max()]
    splits, heights = list(product(EM_TEST.shares, repeat=n_components)), []
    with reported("em_test", verbose, len(splits), "shares") as report:
        for shares in map(np.array, splits):
            heights.append(_height(law, response, masses, np.array(edges), shares, penalty))
            report.count(len(heights))
    return EMTest(max(2.0 * (max(heights) - top), 0.0), weights, means, masses)


def _penalty(n_components: int, correlation: float, size: int) -> float:
    """Factor of the penalty on unequal shares, which the authors chose by simulation.

    For one component it is a constant.  For two it is half a logistic function of the correlation
    of the limit's coordinates and of the number of rows.
    """
    if n_components == 1:
        return _HOMOGENEITY
    return 0.5 * float(expit(np.dot(_ORDER_TWO, (1.0, correlation, 1.0 / size))))


def _posterior(
    law: Kernel, y: FloatArray, masses: FloatArray, means: FloatArray
) -> tuple[FloatArray, float]:
    """Posterior probabilities (c, n) of the components, and the log-likelihood."""
    with np.errstate(divide="ignore"):
        joint = np.log(masses)[:, None] + law.log_density(y[None, :], means[:, None])
    top = joint.max(axis=0)
    total = top + np.log(np.sum(np.exp(joint - top), axis=0))
    return np.exp(joint - total), float(total.sum())


def _climb(
    law: Kernel,
    y: FloatArray,
    masses: FloatArray,
    means: FloatArray,
    split: Callable[[FloatArray], FloatArray],
    ends: tuple[FloatArray, FloatArray] | tuple[float, float] = (-np.inf, np.inf),
) -> tuple[float, FloatArray, FloatArray]:
    """Log-likelihood, masses and means (within `ends`) where EM converges.

    `split` turns the masses into those of the components.
    """
    before = height = -np.inf
    for _ in range(EM_TEST.most):
        tau, height = _posterior(law, y, split(masses), means)
        if height - before < EM_TEST.tolerance:
            break
        before, masses = height, tau.mean(axis=1).reshape(-1, masses.size).sum(axis=0)
        means = np.clip(_averages(tau, y, means), *ends)
    return height, masses, means


def _averages(tau: FloatArray, y: FloatArray, before: FloatArray) -> FloatArray:
    """Means of the components; a component without mass keeps its mean."""
    mass = tau.sum(axis=1)
    return np.where(mass > TINY, tau @ y / np.maximum(mass, TINY), before)


def _null_fit(law: Kernel, y: FloatArray, count: int) -> tuple[FloatArray, FloatArray, float]:
    """Masses, ascending means and log-likelihood of the fit with `count` components."""
    if count == 1:
        masses, means = np.ones(1), np.array([y.mean()])
        return masses, means, _posterior(law, y, masses, means)[1]
    climbs: list[tuple[float, FloatArray, FloatArray]] = []
    for share in sorted({*EM_TEST.shares, *(1.0 - share for share in EM_TEST.shares)}):
        cut = np.sort(y)
        at = min(max(int(share * y.size), 1), y.size - 1)
        means = np.array([cut[:at].mean(), cut[at:].mean()])
        if law.allowed[0] == 0.0:
            means = np.maximum(means, y.mean() / y.size)  # EM never leaves a mean of 0
        climbs.append(_climb(law, y, np.array([share, 1.0 - share]), means, lambda masses: masses))
    height, masses, means = max(climbs, key=lambda end: end[0])
    order = np.argsort(means)
    return masses[order], means[order], height


def _height(
    law: Kernel,
    y: FloatArray,
    masses: FloatArray,
    edges: FloatArray,
    shares: FloatArray,
    penalty: float,
) -> float:
    """Penalised log-likelihood from given shares: constrained maximum, then a few EM steps."""
    lower, upper = edges[:-1], edges[1:]
    ends = np.tile(lower, 2), np.tile(upper, 2)

    def split(totals: FloatArray) -> FloatArray:
        return np.concatenate([totals * shares, totals * (1.0 - shares)])

    climbs: list[tuple[float, FloatArray, FloatArray]] = []
    for low, high in _PLACES:
        width = upper - lower
        means = np.concatenate([lower + low * width, lower + high * width])
        climbs.append(_climb(law, y, masses, means, split, ends))
    _, totals, means = max(climbs, key=lambda end: end[0])
    for _ in range(EM_TEST.steps):
        tau, _ = _posterior(law, y, split(totals), means)
        first, second = tau.sum(axis=1).reshape(2, -1)
        totals = (first + second) / y.size
        shares = _shares(first, second, penalty)
        means = _averages(tau, y, means)
    _, height = _posterior(law, y, split(totals), means)
    return height + penalty * float(np.sum(np.log1p(-np.abs(1.0 - 2.0 * shares))))


def _shares(first: FloatArray, second: FloatArray, penalty: float) -> FloatArray:
    """Shares b that maximise ``first log b + second log(1 - b) + penalty log(1 - |1 - 2 b|)``."""
    total = first + second + penalty
    small = np.minimum((first + penalty) / total, 0.5)
    return np.where(first <= second, small, np.maximum(first / total, 0.5))


def _limit(law: Kernel, masses: FloatArray, means: FloatArray) -> tuple[tuple[float, ...], float]:
    """Weights of the chi-square distributions, and correlation of the limit's coordinates."""
    if masses.size == 1:
        return (0.5, 0.5), 0.0
    y, weight = law.nodes(float(means.min()), float(means.max()))
    density = np.exp(law.log_density(y[None, :], means[:, None]))
    mixture = masses @ density
    variance, slope = law.variance(means)
    apart = y[None, :] - means[:, None]
    score = apart / variance[:, None]
    second = score**2 - 1.0 / variance[:, None] - apart * (slope / variance**2)[:, None]
    rows = np.vstack([density[:1] - density[1:], score * density, 0.5 * second * density])
    B = (rows * (weight / np.maximum(mixture, TINY))) @ rows.T
    known = 2 * masses.size - 1
    schur = B[known:, known:] - B[known:, :known] @ np.linalg.solve(
        B[:known, :known], B[:known, known:]
    )
    correlation = float(schur[0, 1] / np.sqrt(schur[0, 0] * schur[1, 1]))
    both = float(np.arccos(np.clip(correlation, -1.0, 1.0))) / (2.0 * np.pi)
    return (0.5 - both, 0.5, both), correlation
