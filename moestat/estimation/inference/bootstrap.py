"""Bootstrap distributions of an estimate, with labels aligned, and the intervals they give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from moestat.base.door import door, doors
from moestat.base.types import FloatArray, IntArray, Seed, TableLike
from moestat.base.validate import as_generator, draw_seed, positive_int, real_in, short
from moestat.base.warnings import FewRowsWarning, warn_caller
from moestat.estimation.data.groups import grouped_labels
from moestat.estimation.data.naming import reported_positions
from moestat.estimation.inference.alignment import align
from moestat.estimation.inference.covariance import rows_of_scores
from moestat.estimation.inference.inner_fit import InnerFit, inner_fit
from moestat.estimation.inference.resampling import (
    parametric_samples,
    refit,
    reweighted_samples,
)
from moestat.estimation.progress import reported
from moestat.estimation.rows.block_rows import BlockRows
from moestat.estimation.rows.passes import Passes
from moestat.estimation.rules import MOST_FITS
from moestat.estimation.tables import labelled, significant

if TYPE_CHECKING:
    import pandas as pd

    from moestat.estimation.fit.fitted import Fitted

__all__ = ["BOOTSTRAPS", "BootstrapResult", "bootstrap"]

BOOTSTRAPS = ("pairs", "parametric", "cluster", "bayesian")
"""Rows with replacement, new responses from the fit, whole groups, Dirichlet weights."""

_MOST_UNTOLD = 0.05
"""Largest share of resamples that may leave a parameter undetermined: half of this share is as much
as lies beyond either end of a 95% interval."""

_UNCLEAR = 0.1
"""Margin below which labels are called unclear, see `align`."""


@doors
@dataclass(frozen=True)
class BootstrapResult:
    """Estimates from resampled data.

    Parameters
    ----------
    estimate : ndarray of shape (P,)
        The estimate from the original data.
    names : list of str
        Names of the parameters.
    replicates : ndarray of shape (B, P)
        Estimates from the resamples, with experts in the order of the estimate; resamples without
        a certified fit are left out.  NaN for parameters that the data, or this resample, do not
        determine.
    margin : ndarray of shape (B,)
        How clear the order of the experts in each replicate is, from 0 (arbitrary) to 1; see
        `moestat.estimation.inference.alignment.align`.
    n_resamples, n_failed, n_uncertified : int
        Number of resamples that were requested, of fits that raised an exception, and of fits
        without a certificate.  After an interrupt, not all requested resamples were fitted.
    kind : str
        How the data were resampled.
    jackknife : callable
        ``jackknife()``: approximate estimates (n, P) without each row, for BCa intervals.
    reported : ndarray of int, optional
        Positions of the parameters in `bse`, `cov_params` and `conf_int`, if these have names as in
        the result; None if they are arrays of all P parameters.
    """

    estimate: FloatArray
    names: list[str] = field(repr=False)
    replicates: FloatArray = field(repr=False)
    margin: FloatArray = field(repr=False)
    n_resamples: int
    n_failed: int
    n_uncertified: int
    kind: str
    jackknife: Callable[[], FloatArray] = field(repr=False)
    reported: IntArray | None = field(default=None, repr=False)
    # positions of the parameters that tables show: without those that only say what an expert is
    shown: IntArray | None = field(default=None, repr=False)

    @property
    def interrupted(self) -> bool:
        """Whether the user interrupted it before all resamples were fitted."""
        return len(self.replicates) + self.n_failed + self.n_uncertified < self.n_resamples

    @property
    def unclear(self) -> float:
        """Share of resamples in which the order of the experts is nearly arbitrary."""
        return float(np.mean(self.margin < _UNCLEAR)) if self.margin.size else float("nan")

    @property
    def untold(self) -> IntArray:
        """Number of replicates that do not determine each parameter (P,).

        For instance, a resample without rows of a rare level does not determine its coefficient.
        """
        return np.isnan(self.replicates).sum(axis=0)

    @property
    def _sound(self) -> FloatArray:
        """Replicates; NaN for parameters that more than `_MOST_UNTOLD` of them do not determine."""
        lost = self.untold > _MOST_UNTOLD * len(self.replicates)
        return np.where(lost, np.nan, self.replicates)

    @property
    def bse(self) -> FloatArray | pd.Series:
        """Standard errors: standard deviations of the replicates, labelled as in the result.

        They are NaN for parameters that more than 5% of the replicates do not determine, because
        the other replicates do not have the sampling distribution of the estimate.
        """
        return labelled(self.theta_bse, self.reported, self.names)

    @property
    def theta_bse(self) -> FloatArray:
        """Standard errors (P,) of all parameters, in the order of `theta`; see `bse`."""
        return np.sqrt(np.diag(self.covariance))

    def cov_params(self) -> FloatArray | pd.DataFrame:
        """Covariance matrix of the replicates, labelled as in the result; NaN as in `bse`."""
        return labelled(self.covariance, self.reported, self.names)

    @property
    def covariance(self) -> FloatArray:
        """Covariance matrix (P, P) of all parameters, in the order of `theta`."""
        values = self._sound
        complete = ~np.isnan(values[:, ~np.isnan(values).all(axis=0)]).any(axis=1)
        if complete.sum() < 2:
            return np.full((values.shape[1],) * 2, np.nan)
        return np.cov(values[complete], rowvar=False)

    def conf_int(
        self, alpha: float = 0.05, method: str = "percentile"
    ) -> FloatArray | pd.DataFrame:
        """Intervals of level ``1 - alpha``, one row for each parameter, labelled as in the result.

        Parameters
        ----------
        alpha : float
            One minus the level.
        method : {"percentile", "basic", "bca"}
            "percentile" intervals are between quantiles of the replicates; "basic" intervals are
            these, reflected at the estimate; "bca" intervals are corrected for bias and
            acceleration (Efron 1987).  The acceleration comes from one Newton step without each
            row.  Intervals are NaN as in `bse`.

        Raises
        ------
        ValueError
            If the method or level is not valid, or there are fewer than two replicates.
        """
        intervals = self._intervals(alpha, method)
        return labelled(intervals, self.reported, self.names, ["conf_low", "conf_high"])

    def _intervals(self, alpha: float, method: str) -> FloatArray:
        """Intervals (P, 2) of all packed parameters."""
        level = real_in("alpha", alpha, 0.0, 1.0, open_low=True)
        if len(self.replicates) < 2:
            raise ValueError(
                "intervals need at least two resamples with a certified fit, got"
                f" {len(self.replicates)}"
            )
        sides = np.array([level / 2, 1.0 - level / 2])
        if method == "percentile":
            return _quantiles(self._sound, sides)
        if method == "basic":
            return 2.0 * self.estimate[:, None] - _quantiles(self._sound, sides[::-1])
        if method == "bca":
            return self._bca(sides)
        raise ValueError(f"method must be 'percentile', 'basic' or 'bca', got {short(method)}")

    def _bca(self, sides: FloatArray) -> FloatArray:
        from scipy.special import ndtr, ndtri

        values = self._sound
        count = len(values)
        n_known = np.maximum(np.sum(~np.isnan(values), axis=0), 1)
        below = np.sum(values < self.estimate, axis=0) / n_known
        bias = ndtri(np.clip(below, 0.5 / count, 1.0 - 0.5 / count))
        without_row = self.jackknife()
        changes = without_row.mean(axis=0) - without_row
        spread = np.sum(changes**2, axis=0) ** 1.5
        third = np.sum(changes**3, axis=0)
        acceleration = np.divide(third, 6 * spread, out=np.zeros_like(third), where=spread > 0)
        out = np.empty((self.estimate.size, 2))
        for side, q in enumerate(ndtri(sides)):
            shifted = bias + (bias + q) / (1.0 - acceleration * (bias + q))
            for j, level in enumerate(ndtr(shifted)):
                known_values = values[:, j][~np.isnan(values[:, j])]
                out[j, side] = np.quantile(known_values, level) if known_values.size else np.nan
        return out

    def summary_frame(self, alpha: float = 0.05, method: str = "percentile") -> pd.DataFrame:
        """A pandas table of estimates, standard errors and intervals.

        Parameters of the reference expert, which are 0 in every resample, are left out.

        Parameters
        ----------
        alpha, method
            The same as in `conf_int`.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> x = np.linspace(-1, 1, 50)
        >>> result = moestat.fit("gaussian", x, x + np.sin(7 * x), n_experts=1, rng=0)
        >>> list(result.bootstrap(20, rng=0).summary_frame().columns)
        ['estimate', 'std_error', 'conf_low', 'conf_high']
        """
        from moestat.estimation.columns import EstimateTable

        ends = self._intervals(alpha, method)
        table = EstimateTable(
            np.column_stack([self.estimate, self.theta_bse, ends]),
            index=self.names,
            columns=["estimate", "std_error", "conf_low", "conf_high"],
        )
        return table.loc[self._moves]

    @property
    def _moves(self) -> np.ndarray:
        """Which parameters (P,) are not 0 in the estimate and in all resamples."""
        moves = (np.nan_to_num(self.replicates, nan=1.0) != 0.0).any(axis=0)
        told = True if self.shown is None else np.isin(np.arange(moves.size), self.shown)
        return ((self.estimate != 0.0) | moves) & told

    def __str__(self) -> str:
        names = [name for name, moves in zip(self.names, self._moves, strict=True) if moves]
        width = max(map(len, names), default=0)
        lines = [
            f"Bootstrap ({self.kind}): {len(self.replicates)} of {self.n_resamples} resamples"
            f" entered; {self.n_failed} failed, {self.n_uncertified} not certified;"
            f" labels unclear in {self.unclear:.0%}{'; interrupted' * self.interrupted}",
            f"{'':<{width}}{'estimate':>12s}{'std err':>12s}{'[0.025':>12s}{'0.975]':>12s}",
        ]
        rows = zip(self.estimate, self.theta_bse, self._intervals(0.05, "percentile"), strict=True)
        shown_rows = [row for row, moves in zip(rows, self._moves, strict=True) if moves]
        for name, (value, error, ends) in zip(names, shown_rows, strict=True):
            cells = [significant(float(each), 4) for each in (value, error, *ends)]
            lines.append(f"{name:<{width}}" + "".join(f"{each:>12s}" for each in cells))
        return "\n".join([*lines, *self._describe_untold()])

    def _describe_untold(self) -> list[str]:
        """Sentences about the parameters that some resamples do not determine."""
        lost = np.flatnonzero((self.untold > 0) & (self.untold < len(self.replicates)))
        return [
            f"{self.names[j]}: {self.untold[j]} of {len(self.replicates)} resamples do not tell it"
            for j in lost
        ]


@door()
def bootstrap(
    result: Fitted,
    n_resamples: int = 500,
    kind: str = "pairs",
    *,
    groups: ArrayLike | TableLike | None = None,
    rng: Seed = None,
    threads: int | None = None,
    verbose: bool = False,
) -> BootstrapResult:
    """Refit the model to resampled data, starting at the estimate.

    Parameters
    ----------
    result : MoEResults
        A fit to data.  If it is a posterior mode, each refit is a mode under the same prior.
    n_resamples : int
        Number B of resamples.
    kind : {"pairs", "parametric", "cluster", "bayesian"}
        "pairs" draws rows with replacement (Efron 1979); "parametric" draws new responses from the
        fitted density; "cluster" draws whole groups with replacement; "bayesian" draws Dirichlet
        weights (Rubin 1981).  If the fit has groups, each of which
        has one expert, the bootstrap resamples groups instead of rows.
    groups : array_like of shape (n,), optional
        Label of each row's group, for "cluster".
    rng : numpy.random.Generator, int or None
        Source of the resamples.
    threads : int, optional
        Threads; all cores by default.  The result does not depend on it.
    verbose : bool
        Whether to show the progress on standard error.

    Returns
    -------
    BootstrapResult
        The estimates from the resamples, standard errors and intervals.

    Raises
    ------
    ValueError
        If an argument is not valid.

    Notes
    -----
    Each refit starts at the estimate and finds the maximum near it.  The bootstrap therefore
    measures the variability of this maximum, not which of several maxima is the highest.

    If the fit is to blocks or a source, "pairs" gives rows, or groups, independent Poisson weights.
    For many rows this is the limit of drawing with replacement (Hanley and MacGibbon 2006), and
    all resamples can use the same pass over the rows.  "bayesian" then uses independent exponential
    weights.

    After an interrupt (Ctrl-C), the function issues an `InterruptedWarning` and returns the
    replicates so far.

    Examples
    --------
    >>> from moestat import Uniform, family, fit, sample
    >>> F = family("gaussian", gate="softmax", n_experts=1)
    >>> theta = F.pack({"beta0": [0], "beta1": [0], "a": [2], "b": [1], "nu": [1]})
    >>> X, y = sample(F, theta, n=200, rng=0)
    >>> result = fit(F, X, y, rng=0)
    >>> again = bootstrap(result, 100, rng=0)
    >>> bool(np.all(np.abs(again.bse[2:] / result.bse[2:] - 1) < 0.35))
    True
    """
    count = positive_int("n_resamples", n_resamples, maximum=MOST_FITS)
    if kind not in BOOTSTRAPS:
        raise ValueError(f"kind must be one of {', '.join(BOOTSTRAPS)}, got {short(kind)}")
    inner = inner_fit(result, mode=True, passes=True)
    data, generator = inner.data, as_generator(rng)
    model, theta, target = inner.family, inner.theta, None
    groups_of_fit = None if result.data is None else result.data.groups
    if isinstance(data, BlockRows):
        _check_on_source(kind, groups, groups_of_fit is not None)
        how = "pairs" if kind == "cluster" else kind
        samples = data.resamples(how, count, draw_seed(generator))
        target = Passes(data.threads if threads is None else positive_int("threads", threads))
    else:
        labels = result._of_rows("groups", groups)
        if kind == "cluster" and groups_of_fit is not None:
            labels = grouped_labels(groups_of_fit, groups_of_fit if labels is None else labels)
        elif kind == "cluster" and labels is None:
            raise ValueError("groups: kind 'cluster' needs one label per row")
        if kind == "parametric":
            samples = parametric_samples(model, data, theta, count, generator)
        else:
            samples = reweighted_samples(data, kind, count, generator, labels)
    with reported("bootstrap", verbose, count, "resamples") as report:
        derivatives = np.vstack([np.eye(theta.size), result._matrix])
        refits = refit(inner.problem, samples, theta, threads, report, derivatives, target)
    entered = np.all(np.isfinite(refits.params), axis=1)
    known, scale = result.identified, np.sqrt(np.diag(inner.covariance))
    # Parameters that the data do not determine differ arbitrarily between resamples: they have no
    # standard error, and cannot be used to match the experts of two fits.
    scale[known.untold(np.eye(scale.size))] = np.nan
    determined, determined_outside = np.split(refits.determined[entered], 2, axis=1)
    aligned = [
        align(model, params, theta, np.where(one, scale, np.nan))
        for params, one in zip(refits.params[entered], determined, strict=True)
    ]
    replicates = np.array([inner.outward(params) for params, _ in aligned])
    replicates = replicates.reshape(-1, model.n_params)
    replicates[~determined_outside] = np.nan
    replicates[:, known.untold(result._matrix)] = np.nan
    outcome = BootstrapResult(
        estimate=result.theta,
        names=result.param_names,
        replicates=replicates,
        margin=np.array([margin for _, margin in aligned]),
        n_resamples=count,
        n_failed=refits.n_failed,
        n_uncertified=refits.n_uncertified,
        kind=kind,
        jackknife=lambda: _without_each_row(inner),
        reported=result._reported,
        shown=reported_positions(result.family),
    )
    n_untold = outcome.untold[~known.untold(result._matrix)]
    if np.any(n_untold > _MOST_UNTOLD * len(replicates)):
        words = "; ".join(outcome._describe_untold()[:4])
        warn_caller(
            f"{words}. Their standard errors and intervals are NaN: too few rows or groups"
            " determine them, for example those of a rare level",
            FewRowsWarning,
        )
    return outcome


def _check_on_source(kind: str, groups: object, has_groups: bool) -> None:
    """Refuse resamples that one pass over blocks or a source cannot draw."""
    if groups is not None or (kind == "cluster" and not has_groups):
        raise ValueError(
            "groups: a bootstrap on a source resamples rows, or the groups of the fit; other"
            " clusters need the table in memory, and get_robustcov_results('cluster',"
            " groups='column') reads them from the source"
        )
    if kind == "parametric":
        raise ValueError(
            "kind 'parametric': needs the table in memory; for a source use 'pairs' or 'bayesian'"
        )


def _quantiles(values: FloatArray, sides: FloatArray) -> FloatArray:
    """Quantiles (P, 2) of columns (B, P) without their NaN; NaN of columns of nothing else."""
    lost = np.isnan(values).all(axis=0)
    quantiles = np.full((values.shape[1], sides.size), np.nan)
    quantiles[~lost] = np.nanquantile(values[:, ~lost], sides, axis=0).T
    return quantiles


def _without_each_row(inner: InnerFit) -> FloatArray:
    """One-step estimates (n, P) without each row, in the user's coordinates."""
    if isinstance(inner.data, BlockRows):
        raise ValueError(
            "method 'bca' is not available for a source, because it needs an estimate without"
            " each row; use 'percentile' or 'basic'"
        )
    scores = rows_of_scores(inner.family, inner.data, inner.theta)
    estimates = inner.theta - scores @ inner.covariance
    return np.array([inner.outward(theta) for theta in estimates])
