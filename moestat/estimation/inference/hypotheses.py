"""Tests of hypotheses on parameters of one model: Wald, likelihood ratio, score."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from moestat.base.types import FloatArray
from moestat.estimation.inference.constraints import linear_constraints
from moestat.solvers.rules import GAIN_LIMIT

__all__ = [
    "TestResult",
    "check_errors",
    "check_not_higher",
    "chi_square",
    "likelihood_ratio",
    "wald",
]

_HIGHER = 10.0 * GAIN_LIMIT
"""Log-likelihood above an estimate that shows that it was not the maximum: ten times the gain that
a certified fit may still have left."""

Spread = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, repr=False)
class TestResult:
    """A statistic with its chi-square distribution under the hypothesis.

    Parameters
    ----------
    name : str
        Name of the test.
    statistic : float
        Value of the test statistic.
    df : int
        Degrees of freedom.
    pvalue : float
        Probability of a larger statistic under the hypothesis.
    other_df : int, optional
        Degrees of freedom of the other half of a mixture of two chi-square distributions, which a
        likelihood ratio of a variance has; 0 for the value 0.
    """

    __test__ = False  # not a test of pytest's

    name: str
    statistic: float
    df: int
    pvalue: float
    other_df: int | None = None

    def __repr__(self) -> str:
        return f"<TestResult: {self}>"

    def __str__(self) -> str:
        distribution = f"chi2({self.df})"
        if self.other_df is not None:
            distribution = f"half chi2({self.other_df}), half {distribution}"
        return f"{self.name}: {distribution} = {self.statistic:.4f}, p = {self.pvalue:.4g}"


def chi_square(name: str, statistic: float, df: int) -> TestResult:
    """A statistic that is chi-square under the hypothesis."""
    from scipy.stats import chi2

    return TestResult(name, float(statistic), df, float(chi2.sf(statistic, df)))


def check_not_higher(gain: float, what: str, estimate: str = "the fit") -> None:
    """Raise if `what` has a log-likelihood that is higher than that of an estimate by `gain`."""
    if gain > _HIGHER:
        raise ValueError(
            f"{what} has a log-likelihood higher by {gain:.3g}: {estimate} was not the maximum; fit"
            " again with more starts"
        )


def check_errors(matrix: FloatArray, names: list[str], spread: Spread) -> FloatArray:
    """Covariance (q, q) of combinations (q, P); raise if one of them has no standard error."""
    covariance = spread(matrix)
    for row, variance in zip(matrix, np.diag(covariance), strict=True):
        if not variance > 0.0:
            used = np.flatnonzero(row)
            alone = [bool(spread(np.eye(len(names))[j : j + 1])[0, 0] > 0.0) for j in used]
            if used.size > 1 and all(alone):
                listing = ", ".join(names[j] for j in used[:3])
                raise ValueError(
                    f"constraints: the combination of {listing} is known exactly: equal= or fixed="
                    " of the model makes these coefficients equal, or known"
                )
            without_error = [j for j, has_error in zip(used, alone, strict=True) if not has_error]
            raise ValueError(
                f"constraints: {names[(without_error or used)[0]]!r} has no standard error (it is a"
                " reference, known by fixed=, on a bound, or not identified)"
            )
    return covariance


def check_independent(covariance: FloatArray) -> None:
    """Raise if the covariance (q, q) of combinations with standard errors is singular."""
    error = np.sqrt(np.diag(covariance))
    if np.linalg.matrix_rank(covariance / np.outer(error, error), hermitian=True) < len(error):
        raise ValueError(
            f"constraints: the covariance of {len(error)} combinations is singular: equal= of the"
            " model makes some of them the same, or there are fewer groups, or resamples, than"
            " combinations; test fewer combinations at a time"
        )


def wald(
    text: str,
    names: list[str],
    theta: FloatArray,
    spread: Spread,
    terms: Mapping[str, Sequence[str]] | None = None,
) -> TestResult:
    """Wald's test of linear constraints, ``(R theta - r)' (R V R')^-1 (R theta - r)``.

    ``spread(R)`` is ``R V R'``, with NaN for combinations that are not identified.  `terms` has the
    names of the parameters of each term; a term with one parameter may be used in place of its
    name.
    """
    matrix, value = linear_constraints(text, names, terms=terms)
    covariance = check_errors(matrix, names, spread)
    check_independent(covariance)
    gap = matrix @ theta - value
    return chi_square("Wald", float(gap @ np.linalg.solve(covariance, gap)), len(value))


def likelihood_ratio(restricted: float, full: float, df: int) -> TestResult:
    """Twice the difference of two log-likelihoods; df counts the constraints."""
    return chi_square("likelihood ratio", max(2.0 * (full - restricted), 0.0), df)
