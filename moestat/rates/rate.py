"""Convergence rates: slopes of log loss on log n, with intervals that say what they cover."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from moestat.base.door import door, doors
from moestat.base.threads import ONE_THREAD
from moestat.base.types import FloatArray, IntArray, Seed
from moestat.base.validate import as_floats, as_generator, positive_int, real_in, short
from moestat.rates.bounds import (
    EXACT,
    EXPONENTS,
    TOO_WIDE,
    UNDECIDED,
    BoundVerdict,
    judge_bound,
    logarithmic_slope,
    margin_of,
)
from moestat.rates.regression import (
    Groups,
    bootstrap,
    least_squares,
    plain,
    precision_weights,
    t_interval,
    t_p_value,
)

_SEED = 0
_MOST_RESAMPLES = 10_000_000


WIDE = 0.1
"""Half-width of an interval of a slope above which more replicates are advised: exponents of the
theorems, such as 1/2 and 1/4, or 1/4 and 1/8, differ by 1/8 or more."""

BENT = 0.05
"""p-value of the curvature below which the slope is said to change with n."""


@doors
@dataclass(frozen=True)
class RateResult:
    """The fitted rate of a loss, ``loss ~ exp(intercept) n^slope``, with its uncertainty.

    Build one with `fit_rate`.  A quantity that the data do not determine is NaN.

    Parameters
    ----------
    slope : float
        Exponent of n.
    interval : (float, float)
        95% interval of the slope: HC3 covariance, t quantiles.
    standard_error : float
        HC3 standard error of the slope.
    bootstrap_interval : (float, float)
        95% percentile interval of the slope over resampled replicates; NaN unless every n has
        at least two replicates.  With ten replicates and normal logarithms of losses it holds the
        slope in .955 of simulations for six sizes and .94 for three; with those of chi-square
        losses in .93, as `interval` does.
    bootstrap_error : (float, float)
        Monte Carlo standard errors of its ends, from the finite number of resamples.
    intercept : float
        Fitted log loss at n = 1.
    r_squared : float
        Weighted share of the variance of log loss explained by the line.
    log_log_slope : float
        Slope of log loss on ``log(log n / n)``, the theorems' own scale, where a parametric rate
        is +1/2; NaN if some n < 3.
    log_log_error : float
        HC3 standard error of `log_log_slope`.
    curvature : float
        Coefficient of ``(log n - mean)^2`` when it is added to the line; NaN below three sizes.
    curvature_error : float
        HC3 standard error of `curvature`.
    curvature_p_value : float
        p-value of curvature = 0; small for a curve whose local slope changes with n
        (pre-asymptotic).
    last_slope : float
        Slope over the largest third of the sizes, two of them at least; NaN below three sizes.
    last_interval : (float, float)
        Its 95% interval: HC3 covariance, t quantiles.  It covers the slope over these sizes, also
        where the rate has changed before them.
    n_observations, n_sizes : int
        Number of losses, and of distinct n.
    theory : float or None
        Predicted exponent.
    theory_slopes : (float, float)
        Slopes of ``n^theory`` without and with the theorem's power of log n, by this regression:
        the same sizes and weights.
    theory_p_value : float
        p-value of a slope between these two, for this curve alone; see `holm` for several curves.
    theory_margin : float
        Half-width of an interval up to which it tells the predicted exponent from the next one;
        NaN without a prediction.
    """

    slope: float
    interval: tuple[float, float]
    standard_error: float
    bootstrap_interval: tuple[float, float]
    bootstrap_error: tuple[float, float]
    intercept: float
    r_squared: float
    log_log_slope: float
    log_log_error: float
    curvature: float
    curvature_error: float
    curvature_p_value: float
    last_slope: float
    last_interval: tuple[float, float]
    n_observations: int
    n_sizes: int
    theory: float | None = None
    theory_slopes: tuple[float, float] = (math.nan, math.nan)
    theory_p_value: float = math.nan
    theory_margin: float = math.nan

    @property
    def consistent_with_theory(self) -> bool | None:
        """Whether the interval contains the predicted exponent, with or without its logarithm.

        None if there is no prediction or no interval; `bound` compares the slope with the
        prediction.
        """
        word = self.bound.word
        return None if word == UNDECIDED else word in (EXACT, TOO_WIDE)

    @property
    def bound(self) -> BoundVerdict:
        """How the slope compares with the predicted rate, in words such as "this exponent"."""
        ends = (math.nan, math.nan) if self.theory is None else self.interval
        return judge_bound(ends, self.theory_slopes, self.theory_margin)

    def as_dict(self) -> dict[str, object]:
        """JSON-ready fields, NaN as None, with ``consistent_with_theory``.

        Examples
        --------
        >>> fit_rate([10, 100, 1000], [1.0, 0.5, 0.25]).as_dict()["n_sizes"]
        3
        """
        return {**plain(self), "consistent_with_theory": self.consistent_with_theory}

    @property
    def advice(self) -> tuple[str, ...]:
        """What to do next if the slope is not clear; empty if it is clear.

        Examples
        --------
        >>> fit_rate([10, 10, 1000, 1000], [1, 1.1, 0.1, 0.11]).advice
        ('two sample sizes cannot show a bend: add a third',)
        """
        sentences = []
        half = 0.5 * (self.interval[1] - self.interval[0])
        each = self.n_observations / self.n_sizes
        if self.n_sizes < 3:
            sentences.append("two sample sizes cannot show a bend: add a third")
        if half > WIDE:
            n_replicates = math.ceil(each * (half / WIDE) ** 2)
            sentences.append(
                f"the interval is wide: use about {n_replicates} replicates per sample size instead"
                f" of {each:.3g} to narrow it to \N{PLUS-MINUS SIGN} {WIDE:g}"
            )
        if self.curvature_p_value < BENT:
            sentences.append(
                "the slope still changes with n: use larger n, or local slopes on a lattice, and"
                " compare n with information_spectrum(...).sample_size(0.1)"
            )
        return tuple(sentences)

    def summary(self) -> str:
        """A text table of the fit.

        Examples
        --------
        >>> print(fit_rate([10, 10, 1000, 1000], [1, 1.1, 0.1, 0.11]).summary().splitlines()[0])
        Rate of 4 losses at 2 sample sizes
        """

        def pair(ends: tuple[float, float]) -> str:
            return f"[{ends[0]:.3f}, {ends[1]:.3f}]"

        def measured(value: float, error: float) -> str:
            return f"{value:.4f} \N{PLUS-MINUS SIGN} {error:.4f}"

        resampled = f"{pair(self.bootstrap_interval)} \N{PLUS-MINUS SIGN} "
        resampled += f"{max(self.bootstrap_error):.4f}"
        rows = [
            ("slope of log loss on log n", measured(self.slope, self.standard_error)),
            ("95% interval (HC3, t)", pair(self.interval)),
            ("95% interval (bootstrap)", resampled),
            ("intercept", f"{self.intercept:.4f}"),
            ("slope on log(log n / n)", measured(self.log_log_slope, self.log_log_error)),
            ("curvature", measured(self.curvature, self.curvature_error)),
            ("p-value of curvature = 0", f"{self.curvature_p_value:.3g}"),
            ("slope over the last sizes", f"{self.last_slope:.4f} {pair(self.last_interval)}"),
            ("R squared", f"{self.r_squared:.4f}"),
        ]
        if self.theory is not None:
            judged = f"{self.bound.word}, p = {self.theory_p_value:.3g}"
            rows.append(("theory", f"{self.theory:g} ({judged})"))
        width = max(len(label) for label, _ in rows)
        title = f"Rate of {self.n_observations} losses at {self.n_sizes} sample sizes"
        lines = [title, "-" * max(len(title), width + 20)]
        lines += [f"{label:<{width}}  {value}" for label, value in rows]
        return "\n".join([*lines, *(f"Next: {each}." for each in self.advice)])


@doors
@dataclass(frozen=True)
class RateCurve:
    """One curve of a rate figure.

    Parameters
    ----------
    label : str
        Name in the legend.
    n : array_like of shape (N,)
        Sample size of each replicate.
    loss : array_like of shape (N,)
        Positive loss of each replicate.
    rate : RateResult or None
        Fitted rate, drawn as a line.
    n_failed : int
        Replicates that gave no loss; the legend says so.
    published : float or None
        Slope that a paper reports, drawn as a dotted line.
    uncertified : (array_like of shape (M,), array_like of shape (M,)) or None
        Sizes and losses of fits without a certificate, drawn as crosses.
    replay : bool
        Whether they enter the rate, as in the replay of a published procedure: open markers.
    """

    label: str
    n: ArrayLike
    loss: ArrayLike
    rate: RateResult | None = None
    n_failed: int = 0
    published: float | None = None
    uncertified: tuple[ArrayLike, ArrayLike] | None = None
    replay: bool = False


def positive(name: str, value: ArrayLike, length: int | None = None) -> FloatArray:
    """Positive numbers (N,), as many as `length` says."""
    array = as_floats(name, value, (None,))
    if length is not None and array.size != length:
        raise ValueError(f"n and loss must have the same length, got {length} and {array.size}")
    if np.any(array <= 0):
        count = int(np.sum(array <= 0))
        raise ValueError(f"{name} must be positive, but {count} values are <= 0")
    return array


def _log_log_line(
    log_n: FloatArray, weights: FloatArray, first: IntArray, log_losses: Groups
) -> dict[str, float]:
    """Slope on ``log(log n / n)``, the scale of the theorems, where log log n is defined."""
    if log_n.min() < math.log(3.0):
        return {"log_log_slope": math.nan, "log_log_error": math.nan}
    scale = np.log(log_n) - log_n
    line = (scale - np.average(scale, weights=weights))[first]
    design = np.column_stack([np.ones(first.size), line])
    params, covariance = least_squares(design, log_losses, weights[first])
    return {"log_log_slope": float(params[1]), "log_log_error": math.sqrt(covariance[1, 1])}


def _parabola(
    x: FloatArray, weights: FloatArray, first: IntArray, log_losses: Groups
) -> dict[str, Any]:
    """Curvature in centred log n; NaN below three sizes."""
    names = ("curvature", "curvature_error", "curvature_p_value")
    if first.size < 3:
        return dict.fromkeys(names, math.nan)
    square = x**2 - np.average(x**2, weights=weights)
    bent = np.column_stack([np.ones(first.size), x[first], square[first]])
    params, covariance = least_squares(bent, log_losses, weights[first])
    curvature, error = float(params[2]), math.sqrt(covariance[2, 2])
    statistics = (curvature, error, t_p_value(curvature, error, x.size - 3))
    return dict(zip(names, statistics, strict=True))


def _last_line(
    x: FloatArray, weights: FloatArray, first: IntArray, log_losses: Groups
) -> dict[str, Any]:
    """Slope over the largest third of the sizes; NaN below three sizes.

    A parabola over all sizes has a wrong slope at its end where the rate changes at some n: its
    interval holds the slope of the second of two regimes in 68% of simulations, that of the last
    sizes in 95%.
    """
    nothing = {"last_slope": math.nan, "last_interval": (math.nan, math.nan)}
    if first.size < 3:
        return nothing
    begin = first.size - max(2, first.size // 3)
    late = log_losses.group >= begin
    last = Groups.of(log_losses.values[late], log_losses.group[late] - begin)
    at = x[first[begin:]]
    at = at - at.mean()
    design = np.column_stack([np.ones(at.size), at])
    params, covariance = least_squares(design, last, weights[first[begin:]])
    slope, error = float(params[1]), math.sqrt(covariance[1, 1])
    interval = t_interval(slope, error, int(late.sum()) - 2)
    return {"last_slope": slope, "last_interval": interval}


@door()
def fit_rate(
    n: ArrayLike,
    loss: ArrayLike,
    *,
    theory: float | None = None,
    alternatives: Sequence[float] = EXPONENTS,
    n_bootstrap: int = 1000,
    rng: Seed = None,
) -> RateResult:
    """Fit the convergence rate of a loss, ``log loss = intercept + slope log n``.

    Parameters
    ----------
    n : array_like of shape (N,)
        Sample size of each replicate.
    loss : array_like of shape (N,)
        Loss of each replicate, positive.
    theory : float, optional
        Predicted exponent of n, such as -0.5, to compare with the interval; a theorem's rate is
        that of ``(log n / n)^0.5``, and slopes between those with and without the logarithm count
        as predicted.
    alternatives : sequence of float
        Exponents that the predicted one is to be told from: an interval that is wider than half the
        gap to the nearest of them, to either side, is "too wide"; those of the theorems, 0, -1/12,
        -1/8, -1/6, -1/4 and -1/2, by default.
    n_bootstrap : int
        Number of bootstrap resamples; 0 for none.
    rng : numpy.random.Generator, int or None
        Source of the bootstrap's randomness; a fixed seed by default.

    Returns
    -------
    RateResult
        Slope, intervals, curvature test and verdict.

    Raises
    ------
    ValueError
        If the lengths differ, a value is not finite and positive, or there are fewer than two
        distinct n.

    Notes
    -----
    The method is weighted least squares.  The weight of a replicate is one over the variance of log
    loss at its n.  This variance is assumed to be a power of n, and is estimated from the
    replicates; without replicates all weights are equal.  If the assumption is wrong, the slope is
    less precise, but the intervals remain valid, because they use the HC3 covariance and t
    quantiles with N - 2 degrees of freedom.  The bootstrap resamples replicates within each n, with
    their spread corrected for resampling and for t quantiles, and keeps the weights.  In
    simulations with a known slope the first interval covers 95% up to Monte Carlo error with ten or
    more replicates per n, that of the bootstrap 93% to 94% with ten, and both at least 92% with two
    to five.  The intervals are for the slope over the
    given sample sizes: a small `curvature_p_value` means that the slope still changes with n and is
    not yet the asymptotic rate; `last_slope` is the slope over the largest third of the sizes.

    Sources: Pham et al. (2026), Fig. 1, fits such slopes by least squares; HC3 is of
    MacKinnon and White (1985).

    Examples
    --------
    >>> import numpy as np
    >>> n = np.repeat([100, 1000, 10000], 20)
    >>> loss = n**-0.5 * np.exp(0.1 * np.random.default_rng(0).standard_normal(n.size))
    >>> rate = fit_rate(n, loss, theory=-0.5)
    >>> round(rate.slope, 1), rate.consistent_with_theory
    (-0.5, True)
    """
    return rate_at(
        Sizes.of(n),
        loss,
        theory=theory,
        alternatives=alternatives,
        n_bootstrap=n_bootstrap,
        rng=rng,
    )


@dataclass(frozen=True)
class Sizes:
    """Sample sizes (N,) that several losses have been measured at."""

    log_n: FloatArray  # (N,)
    distinct: FloatArray  # (G,): the different sizes, sorted
    first: IntArray  # (G,): position of the first replicate of each size
    group: IntArray  # (N,): position in `distinct` of each replicate's size

    @classmethod
    def of(cls, n: ArrayLike) -> Sizes:
        """The sizes as positive numbers (N,)."""
        sizes = positive("n", n)
        return cls(np.log(sizes), *np.unique(sizes, return_index=True, return_inverse=True))


def rate_at(
    sizes: Sizes,
    loss: ArrayLike,
    *,
    theory: float | None = None,
    alternatives: Sequence[float] = EXPONENTS,
    n_bootstrap: int,
    rng: Seed = None,
) -> RateResult:
    """The rate as `fit_rate` gives it, for sizes that many losses share.

    Sums are computed on one thread, so that results do not depend on the number of processors.
    """
    with ONE_THREAD:
        return _rate_at(sizes, loss, theory, alternatives, n_bootstrap, rng)


def _rate_at(
    sizes: Sizes,
    loss: ArrayLike,
    theory: float | None,
    alternatives: Sequence[float],
    n_bootstrap: int,
    rng: Seed,
) -> RateResult:
    log_n, distinct, first, group = sizes.log_n, sizes.distinct, sizes.first, sizes.group
    log_loss = np.log(positive("loss", loss, log_n.size))
    if theory is not None:
        theory = real_in("theory", theory)
    others = as_floats("alternatives", alternatives, (None,)).tolist()
    n_bootstrap = positive_int("n_bootstrap", n_bootstrap, 0, _MOST_RESAMPLES)
    generator = as_generator(_SEED if rng is None else rng)
    if distinct.size < 2:
        raise ValueError(f"n must hold at least 2 distinct sample sizes, got {distinct.size}")

    log_losses = Groups.of(log_loss, group)
    # Centred log n keeps the slope, the quadratic term and the intercept well conditioned.
    weights = precision_weights(log_losses, log_n)
    centre = float(np.average(log_n, weights=weights))
    x = log_n - centre
    at, weights_at = x[first], weights[first]  # one entry for each sample size
    constant = np.ones(at.size)
    params, covariance = least_squares(np.column_stack([constant, at]), log_losses, weights_at)
    level = float(params[0])
    slope = float(params[1])
    error = math.sqrt(covariance[1, 1])

    residual = weights @ (log_loss - level - slope * x) ** 2
    total = weights @ (log_loss - np.average(log_loss, weights=weights)) ** 2
    interval, resampling_error = bootstrap(
        weights * x / (weights @ x**2), log_losses, n_bootstrap, generator
    )

    df = x.size - 2
    slopes, p_value, margin = (math.nan, math.nan), math.nan, math.nan
    if theory is not None:
        margin = margin_of(theory, others)
        slopes = theory, logarithmic_slope(theory, log_n[first], weights_at * log_losses.count)
        p_value = t_p_value(slope - min(max(slope, slopes[0]), slopes[1]), error, df)
    return RateResult(
        slope=slope,
        interval=t_interval(slope, error, df),
        standard_error=error,
        bootstrap_interval=interval,
        bootstrap_error=resampling_error,
        intercept=level - slope * centre,
        r_squared=float(1.0 - residual / total) if total > 0 else math.nan,
        **_log_log_line(log_n, weights, first, log_losses),
        **_parabola(x, weights, first, log_losses),
        **_last_line(x, weights, first, log_losses),
        n_observations=int(x.size),
        n_sizes=int(distinct.size),
        theory=theory,
        theory_slopes=slopes,
        theory_p_value=p_value,
        theory_margin=margin,
    )


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values for the number of tests by Holm's step-down rule.

    If you reject hypotheses with an adjusted p-value below 5%, the probability of rejecting any
    true hypothesis is at most 5%, also if the tests are dependent.

    NaN where there was no test.  Source: Holm (1979).
    """
    given = np.array(p_values, dtype=float)
    tested = ~np.isnan(given)
    if np.any((given[tested] < 0) | (given[tested] > 1)):
        raise ValueError(f"p_values must lie in [0, 1], got {short(list(p_values))}")
    order = np.argsort(given[tested])
    stepped = np.sort(given[tested]) * np.arange(order.size, 0, -1)
    adjusted = np.empty(order.size)
    adjusted[order] = np.minimum(np.maximum.accumulate(stepped), 1.0)
    given[tested] = adjusted
    return given.tolist()
