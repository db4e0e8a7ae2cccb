"""Convergence rates: slopes of log loss on log n, with intervals that say what they cover."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from moestat._types import FloatArray, IntArray
from moestat._validate import as_floats, as_generator, positive_int, real_in

__all__ = ["RateCurve", "RateResult", "fit_rate"]

_SEED = 0
_PRIOR_DF = 10.0  # weight of the pooled variance, in degrees of freedom
_CHUNK = 2_000_000  # entries of a block of bootstrap indices


@dataclass(frozen=True)
class RateResult:
    """The fitted rate of a loss, ``loss ~ exp(intercept) n^slope``, and how far to trust it.

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
        at least two replicates.
    intercept : float
        Fitted log loss at n = 1.
    r_squared : float
        Weighted share of the variance of log loss explained by the line.
    log_log_slope : float
        Slope of log loss on ``log(log n / n)``, the theorems' own scale, where a parametric rate
        is +1/2; NaN if some n < 3.
    curvature : float
        Coefficient of ``(log n - mean)^2`` when it is added to the line; NaN below three sizes.
    curvature_p_value : float
        p-value of curvature = 0; small for a curve that is not straight (pre-asymptotic).
    n_observations, n_sizes : int
        Number of losses, and of distinct n.
    theory : float or None
        Predicted exponent.
    """

    slope: float
    interval: tuple[float, float]
    standard_error: float
    bootstrap_interval: tuple[float, float]
    intercept: float
    r_squared: float
    log_log_slope: float
    curvature: float
    curvature_p_value: float
    n_observations: int
    n_sizes: int
    theory: float | None = None

    @property
    def consistent_with_theory(self) -> bool | None:
        """Whether the interval holds the predicted exponent; None without either of them."""
        if self.theory is None or any(math.isnan(end) for end in self.interval):
            return None
        slack = 1e-9  # of rounding, for losses without noise
        return self.interval[0] - slack <= self.theory <= self.interval[1] + slack

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready fields, NaN as None, with ``consistent_with_theory``.

        Examples
        --------
        >>> fit_rate([10, 100, 1000], [1.0, 0.5, 0.25]).as_dict()["n_sizes"]
        3
        """
        out: dict[str, Any] = {}
        for name, value in asdict(self).items():
            if isinstance(value, tuple):
                out[name] = [None if math.isnan(end) else end for end in value]
            else:
                missing = isinstance(value, float) and math.isnan(value)
                out[name] = None if missing else value
        out["consistent_with_theory"] = self.consistent_with_theory
        return out

    def summary(self) -> str:
        """A text table of the fit.

        Examples
        --------
        >>> print(fit_rate([10, 10, 1000, 1000], [1, 1.1, 0.1, 0.11]).summary().splitlines()[0])
        Rate of 4 losses at 2 sample sizes
        """

        def pair(ends: tuple[float, float]) -> str:
            return f"[{ends[0]:.3f}, {ends[1]:.3f}]"

        rows = [
            ("slope of log loss on log n", f"{self.slope:.4f}"),
            ("95% interval (HC3, t)", pair(self.interval)),
            ("95% interval (bootstrap)", pair(self.bootstrap_interval)),
            ("standard error", f"{self.standard_error:.4f}"),
            ("intercept", f"{self.intercept:.4f}"),
            ("slope on log(log n / n)", f"{self.log_log_slope:.4f}"),
            ("curvature", f"{self.curvature:.4f}"),
            ("p-value of curvature = 0", f"{self.curvature_p_value:.3g}"),
            ("R squared", f"{self.r_squared:.4f}"),
        ]
        if self.theory is not None:
            verdict = {True: "inside", False: "outside", None: "undecided"}
            rows.append(("theory", f"{self.theory:g} ({verdict[self.consistent_with_theory]})"))
        width = max(len(label) for label, _ in rows)
        title = f"Rate of {self.n_observations} losses at {self.n_sizes} sample sizes"
        lines = [title, "-" * max(len(title), width + 20)]
        return "\n".join(lines + [f"{label:<{width}}  {value}" for label, value in rows])


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
    """

    label: str
    n: Any
    loss: Any
    rate: RateResult | None = None
    n_failed: int = 0


def _positive(name: str, value: Any, length: int | None = None) -> FloatArray:
    array = as_floats(name, value, (None,))
    if length is not None and array.size != length:
        raise ValueError(f"n and loss must have the same length, got {length} and {array.size}")
    if np.any(array <= 0):
        count = int(np.sum(array <= 0))
        raise ValueError(f"{name} must be positive, but {count} values are <= 0")
    return array


def _weights(log_loss: FloatArray, group: IntArray) -> FloatArray:
    """One over the variance of log loss within each n, shrunk to the pooled variance."""
    count = np.bincount(group)
    df = count - 1.0
    mean = np.bincount(group, weights=log_loss) / count
    squares = np.bincount(group, weights=(log_loss - mean[group]) ** 2)
    pooled = squares.sum() / df.sum() if df.sum() > 0 else 0.0
    if not pooled > 1e-24 * (1.0 + np.max(np.abs(log_loss))) ** 2:
        return np.ones(log_loss.size)
    variance = (squares + _PRIOR_DF * pooled) / (df + _PRIOR_DF)
    return pooled / variance[group]


def _wls(design: FloatArray, y: FloatArray, weights: Any) -> tuple[FloatArray, FloatArray]:
    """Coefficients and HC3 standard errors, NaN where a point determines its own fit."""
    from statsmodels.regression.linear_model import WLS

    model = WLS(y, design, weights=weights)
    leverage = np.sum(np.linalg.qr(model.wexog)[0] ** 2, axis=1)
    if np.max(leverage) > 1.0 - 1e-9:
        return np.asarray(model.fit().params), np.full(design.shape[1], np.nan)
    fit = model.fit(cov_type="HC3", use_t=True)
    return np.asarray(fit.params), np.asarray(fit.bse)


def _bootstrap(
    influence: FloatArray,
    log_loss: FloatArray,
    group: IntArray,
    n_bootstrap: int,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Percentile interval of ``influence @ log_loss`` over replicates resampled within groups.

    Deviations from a group's mean are stretched by ``sqrt(R / (R - 1))``: R replicates resampled
    from themselves would vary too little by that factor.
    """
    count = np.bincount(group)
    if n_bootstrap == 0 or np.min(count) < 2:
        return (math.nan, math.nan)
    mean = (np.bincount(group, weights=log_loss) / count)[group]
    log_loss = mean + (log_loss - mean) * np.sqrt(count / (count - 1.0))[group]
    order = np.argsort(group, kind="stable")
    group, influence, log_loss = group[order], influence[order], log_loss[order]
    first = np.concatenate([[0], np.cumsum(count)[:-1]])[group]
    size = count[group]
    slopes = np.empty(n_bootstrap)
    rows = max(1, _CHUNK // log_loss.size)
    for start in range(0, n_bootstrap, rows):
        stop = min(start + rows, n_bootstrap)
        drawn = first + (rng.random((stop - start, log_loss.size)) * size).astype(np.int64)
        slopes[start:stop] = log_loss[drawn] @ influence
    low, high = np.quantile(slopes, [0.025, 0.975])
    return (float(low), float(high))


def fit_rate(
    n: Any,
    loss: Any,
    *,
    theory: float | None = None,
    n_bootstrap: int = 1000,
    rng: Any = None,
) -> RateResult:
    """Fit the convergence rate of a loss, ``log loss = intercept + slope log n``.

    Parameters
    ----------
    n : array_like of shape (N,)
        Sample size of each replicate.
    loss : array_like of shape (N,)
        Loss of each replicate, positive.
    theory : float, optional
        Predicted exponent of n, such as -0.5, to compare with the interval.
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
    Weighted least squares.  Each replicate weighs one over the variance of log loss among the
    replicates with its n; with few replicates these variances are shrunk to the pooled one (10
    prior degrees of freedom).  Replicates all alone at their n weigh the same.  Intervals use the
    HC3 covariance and t quantiles with N - 2 degrees of freedom.  The bootstrap resamples
    replicates within each n, with their spread corrected for resampling, and keeps the weights;
    below about ten replicates per n it is somewhat short.  Both intervals speak about the slope
    over the given sizes: a small `curvature_p_value` says that this slope is still changing, and
    is no rate yet.

    Sources: mlmoe (003), Fig. 1, fits such slopes by least squares; HC3 is J. G. MacKinnon and
    H. White, Journal of Econometrics 29 (1985).

    Examples
    --------
    >>> import numpy as np
    >>> n = np.repeat([100, 1000, 10000], 20)
    >>> loss = n**-0.5 * np.exp(0.1 * np.random.default_rng(0).standard_normal(n.size))
    >>> rate = fit_rate(n, loss, theory=-0.5)
    >>> round(rate.slope, 1), rate.consistent_with_theory
    (-0.5, True)
    """
    from scipy.stats import t as student

    sizes = _positive("n", n)
    log_loss = np.log(_positive("loss", loss, sizes.size))
    if theory is not None:
        theory = real_in("theory", theory)
    if n_bootstrap != 0:
        n_bootstrap = positive_int("n_bootstrap", n_bootstrap)
    generator = as_generator(_SEED if rng is None else rng)
    distinct, group = np.unique(sizes, return_inverse=True)
    if distinct.size < 2:
        raise ValueError(f"n must hold at least 2 distinct sample sizes, got {distinct.size}")

    # Centred log n keeps the slope, the quadratic term and the intercept well conditioned.
    weights = _weights(log_loss, group)
    log_n = np.log(sizes)
    centre = float(np.average(log_n, weights=weights))
    x = log_n - centre
    constant = np.ones(x.size)
    params, errors = _wls(np.column_stack([constant, x]), log_loss, weights)
    level, slope, error = float(params[0]), float(params[1]), float(errors[1])
    reach = float(student.ppf(0.975, x.size - 2)) * error if x.size > 2 else math.nan

    residual = weights @ (log_loss - level - slope * x) ** 2
    total = weights @ (log_loss - np.average(log_loss, weights=weights)) ** 2
    influence = weights * x / (weights @ x**2)

    log_log_slope = math.nan
    if distinct[0] >= 3:
        scale = np.log(log_n) - log_n
        pair = np.column_stack([constant, scale - np.average(scale, weights=weights)])
        log_log_slope = float(_wls(pair, log_loss, weights)[0][1])

    curvature = p_value = math.nan
    if distinct.size >= 3:
        square = x**2 - np.average(x**2, weights=weights)
        coefficients, quadratic = _wls(np.column_stack([constant, x, square]), log_loss, weights)
        curvature = float(coefficients[2])
        if x.size > 3 and quadratic[2] > 0:
            p_value = float(2.0 * student.sf(abs(curvature) / quadratic[2], x.size - 3))

    return RateResult(
        slope=slope,
        interval=(slope - reach, slope + reach),
        standard_error=error,
        bootstrap_interval=_bootstrap(influence, log_loss, group, n_bootstrap, generator),
        intercept=level - slope * centre,
        r_squared=float(1.0 - residual / total) if total > 0 else math.nan,
        log_log_slope=log_log_slope,
        curvature=curvature,
        curvature_p_value=p_value,
        n_observations=int(x.size),
        n_sizes=int(distinct.size),
        theory=theory,
    )
