"""Tests of hypotheses on parameters of one model: Wald, likelihood ratio, score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from moestat.base.types import FloatArray, IntArray
from moestat.estimation.inference.constraints import linear_constraints

__all__ = ["TestResult", "check_errors", "likelihood_ratio", "score_statistic", "wald"]


@dataclass(frozen=True, repr=False)
class TestResult:
    """A statistic with its chi-square law under the hypothesis.

    Parameters
    ----------
    name : str
        Which test.
    statistic : float
        Its value.
    df : int
        Degrees of freedom.
    pvalue : float
        Probability of a larger value under the hypothesis.
    """

    __test__ = False  # not a test of pytest's

    name: str
    statistic: float
    df: int
    pvalue: float

    def __repr__(self) -> str:
        return f"<TestResult: {self}>"

    def __str__(self) -> str:
        return f"{self.name}: chi2({self.df}) = {self.statistic:.4f}, p = {self.pvalue:.4g}"


def _chi_square(name: str, statistic: float, df: int) -> TestResult:
    from scipy.stats import chi2

    return TestResult(name, float(statistic), df, float(chi2.sf(statistic, df)))


def check_errors(matrix: FloatArray, names: list[str], covariance: FloatArray) -> IntArray:
    """Positions of the parameters in constraints (q, P), all of which have standard errors."""
    used = np.flatnonzero(np.any(matrix != 0.0, axis=0))
    free = np.isfinite(np.diag(covariance)) & (np.diag(covariance) > 0.0)
    if not np.all(free[used]):
        culprit = names[int(used[~free[used]][0])]
        raise ValueError(
            f"constraints: {culprit!r} has no standard error (it is a reference, on a bound, or"
            " not identified)"
        )
    return used


def wald(text: str, names: list[str], theta: FloatArray, covariance: FloatArray) -> TestResult:
    """Wald's test of linear constraints, ``(R theta - r)' (R V R')^-1 (R theta - r)``.

    Parameters
    ----------
    text : str
        The constraints, see `moestat.estimation.inference.constraints.linear_constraints`.
    names : list of str
        Names of the parameters (P).
    theta : ndarray of shape (P,)
        The estimate.
    covariance : ndarray of shape (P, P)
        Its covariance V.

    Returns
    -------
    TestResult
        With as many degrees of freedom as constraints.

    Raises
    ------
    ValueError
        If the constraints cannot be read or concern a parameter without a standard error.

    Examples
    --------
    >>> print(wald("a = b", ["a", "b"], np.array([1.0, 0.0]), np.diag([0.1, 0.1])))
    Wald: chi2(1) = 5.0000, p = 0.02535
    """
    matrix, value = linear_constraints(text, names)
    used = check_errors(matrix, names, covariance)
    gap = matrix @ theta - value
    spread = matrix[:, used] @ covariance[np.ix_(used, used)] @ matrix[:, used].T
    return _chi_square("Wald", float(gap @ np.linalg.solve(spread, gap)), len(value))


def likelihood_ratio(restricted: float, full: float, df: int) -> TestResult:
    """Twice the difference of two log-likelihoods; df counts the constraints.

    Examples
    --------
    >>> print(likelihood_ratio(-102.0, -100.0, 1))
    likelihood ratio: chi2(1) = 4.0000, p = 0.0455
    """
    return _chi_square("likelihood ratio", max(2.0 * (full - restricted), 0.0), df)


def score_statistic(score: FloatArray, information: FloatArray, df: int) -> TestResult:
    """Rao's score test, ``s' I^-1 s`` at the restricted estimate.

    Parameters
    ----------
    score : ndarray of shape (p,)
        Score of the free coordinates of the full model.
    information : ndarray of shape (p, p)
        Their information.
    df : int
        Number of constraints.

    Examples
    --------
    >>> print(score_statistic(np.array([2.0]), np.array([[1.0]]), 1))
    score: chi2(1) = 4.0000, p = 0.0455
    """
    return _chi_square("score", float(score @ np.linalg.solve(information, score)), df)
