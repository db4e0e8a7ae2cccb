"""Comparisons: whether two losses fall at different rates."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from moestat.base.door import door
from moestat.base.types import FloatArray, IntArray, Seed
from moestat.base.validate import as_floats, as_generator, check_kind
from moestat.rates.rate import fit_rate
from moestat.rates.regression import (
    Groups,
    bootstrap,
    plain,
    precision_weights,
    t_interval,
    t_p_value,
)

_SEED = 0


@dataclass(frozen=True)
class RateDifference:
    """The difference of two slopes of log loss on log n.  Build one with `compare_rates`."""

    slopes: tuple[float, float]
    """The two slopes, over the losses that were compared."""
    standard_errors: tuple[float, float]
    """Their HC3 standard errors."""
    difference: float
    """First slope minus second: negative if the first loss falls faster."""
    standard_error: float
    """HC3 standard error of the difference."""
    interval: tuple[float, float]
    """95% interval of the difference, t quantiles."""
    p_value: float
    """p-value of difference = 0."""
    bootstrap_interval: tuple[float, float]
    """95% percentile interval over resampled replicates, or pairs of them."""
    bootstrap_error: tuple[float, float]
    """Monte Carlo standard errors of its ends."""
    paired: bool
    """Whether replicates were compared in pairs."""
    n_observations: tuple[int, int]
    """Number of losses of each."""

    def as_dict(self) -> dict[str, object]:
        """Plain data, ready for JSON, NaN as None.

        Examples
        --------
        >>> compare_rates([10, 100], [1, 0.5], [10, 100], [1, 0.1]).as_dict()["interval"]
        [None, None]
        """
        return plain(self)

    def summary(self) -> str:
        """A text table of the comparison.

        Examples
        --------
        >>> print(compare_rates([10, 100], [1, 0.1], [10, 100], [1, 1]).summary().splitlines()[2])
        difference                -1.0000 ± nan
        """
        first, second = (
            f"{slope:.4f} \N{PLUS-MINUS SIGN} {error:.4f}  ({count} losses)"
            for slope, error, count in zip(
                self.slopes, self.standard_errors, self.n_observations, strict=True
            )
        )
        low, high = self.interval
        below, above = self.bootstrap_interval
        rows = [
            ("first slope", first),
            ("second slope", second),
            ("difference", f"{self.difference:.4f} \N{PLUS-MINUS SIGN} {self.standard_error:.4f}"),
            ("95% interval (HC3, t)", f"[{low:.4f}, {high:.4f}]"),
            (
                "95% interval (bootstrap)",
                f"[{below:.4f}, {above:.4f}] \N{PLUS-MINUS SIGN} {max(self.bootstrap_error):.4f}",
            ),
            ("p-value of difference = 0", f"{self.p_value:.3g}"),
            ("compared", "in pairs" if self.paired else "as independent samples"),
        ]
        return "\n".join(f"{label:<25} {value}" for label, value in rows)


@door()
def compare_rates(
    n: ArrayLike,
    loss: ArrayLike,
    other_n: ArrayLike,
    other_loss: ArrayLike,
    *,
    paired: bool = False,
    n_bootstrap: int = 1000,
    rng: Seed = None,
) -> RateDifference:
    """Compare the rates of two losses: the difference of their slopes of log loss on log n.

    Parameters
    ----------
    n, other_n : array_like of shape (N,) and (M,)
        Sample size of each replicate.
    loss, other_loss : array_like of shape (N,) and (M,)
        Loss of each replicate, positive.
    paired : bool
        Whether the i-th losses of both come from the same data set.  The common part of their
        variation then cancels, and the interval is usually much shorter.
    n_bootstrap : int
        Number of bootstrap resamples; 0 for none.
    rng : numpy.random.Generator, int or None
        Source of the bootstrap's randomness; a fixed seed by default.

    Returns
    -------
    RateDifference
        The difference with its intervals.

    Raises
    ------
    ValueError
        As `moestat.rates.rate.fit_rate`, or if pairs do not have the same n.

    Notes
    -----
    For paired losses, the difference is the slope of the log ratio of the losses, by `fit_rate`.
    For independent losses, it is the difference of the two slopes; their HC3 variances are added,
    the degrees of freedom are Welch's, and the bootstrap resamples each curve separately.

    Examples
    --------
    >>> import numpy as np
    >>> n, rng = np.repeat([100, 1000, 10000], 20), np.random.default_rng(0)
    >>> luck = np.exp(0.3 * rng.standard_normal(60))
    >>> fast, slow = luck * n**-0.5, luck * n**-0.25 * np.exp(0.01 * rng.standard_normal(60))
    >>> result = compare_rates(n, fast, n, slow, paired=True)
    >>> round(result.difference, 2), result.p_value < 1e-3
    (-0.25, True)
    """
    check_kind("paired", paired, bool, "True or False")
    generator = as_generator(_SEED if rng is None else rng)
    one = fit_rate(n, loss, n_bootstrap=0)
    try:
        two = fit_rate(other_n, other_loss, n_bootstrap=0)
    except ValueError as error:
        raise ValueError(f"other_n, other_loss: {error}") from None
    first, second = (np.asarray(values, dtype=np.float64) for values in (loss, other_loss))
    if paired:
        if not np.array_equal(as_floats("n", n, (None,)), as_floats("other_n", other_n, (None,))):
            raise ValueError("pairs must have the same n: n and other_n differ")
        with np.errstate(over="ignore"):
            ratio = first / second
        if not np.all(np.isfinite(ratio)):
            raise ValueError("loss, other_loss: their ratios are beyond the range of float64")
        fit = fit_rate(n, ratio, theory=0.0, n_bootstrap=n_bootstrap, rng=generator)
        difference, error, df = fit.slope, fit.standard_error, fit.n_observations - 2
        resampled = fit.bootstrap_interval, fit.bootstrap_error
    else:
        difference = one.slope - two.slope
        error = math.hypot(one.standard_error, two.standard_error)
        # Welch-Satterthwaite
        parts = [(fit.standard_error**2, fit.n_observations - 2) for fit in (one, two)]
        scale = sum(square**2 / df if df > 0 else math.inf for square, df in parts)
        df = error**4 / scale if scale > 0 else float(sum(df for _, df in parts))
        resampled = _resample(n, first, other_n, second, n_bootstrap, generator)
    return RateDifference(
        slopes=(one.slope, two.slope),
        standard_errors=(one.standard_error, two.standard_error),
        difference=difference,
        standard_error=error,
        interval=t_interval(difference, error, df),
        p_value=t_p_value(difference, error, df),
        bootstrap_interval=resampled[0],
        bootstrap_error=resampled[1],
        paired=paired,
        n_observations=(one.n_observations, two.n_observations),
    )


def _resample(
    n: ArrayLike,
    loss: FloatArray,
    other_n: ArrayLike,
    other_loss: FloatArray,
    n_bootstrap: int,
    rng: np.random.Generator,
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Bootstrap of the difference of two slopes, each curve resampled by itself."""
    influence, group = _influence(n, loss)
    other_influence, other_group = _influence(other_n, other_loss)
    return bootstrap(
        np.concatenate([influence, -other_influence]),
        Groups.of(
            np.log(np.concatenate([loss, other_loss])),
            np.concatenate([group, group.max() + 1 + other_group]),
        ),
        n_bootstrap,
        rng,
    )


def _influence(n: ArrayLike, loss: FloatArray) -> tuple[FloatArray, IntArray]:
    """Coefficients of the slope as a linear form of log loss, and the group of each loss."""
    log_n = np.log(np.asarray(n, dtype=np.float64))
    group = np.unique(log_n, return_inverse=True)[1]
    weights = precision_weights(Groups.of(np.log(loss), group), log_n)
    x = log_n - np.average(log_n, weights=weights)
    return weights * x / (weights @ x**2), group
