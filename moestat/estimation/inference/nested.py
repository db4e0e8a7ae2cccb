"""Tests that compare two fits of one number of experts: one is the other with constraints."""

from __future__ import annotations

from typing import Any

import numpy as np

from moestat.base.types import FloatArray
from moestat.base.validate import as_floats
from moestat.estimation.inference.covariance import information_at
from moestat.estimation.inference.found import check_likelihood, check_maximum, found
from moestat.estimation.inference.hypotheses import TestResult, likelihood_ratio, score_statistic
from moestat.solvers.problem import Objective, Request

__all__ = ["lr_test", "score_test"]


def lr_test(restricted: Any, full: Any) -> TestResult:
    """Likelihood ratio test of a restricted fit inside a full one.

    Parameters
    ----------
    restricted, full : MoEResults
        Fits to the same data with the same number of experts; the first has fewer free
        parameters, by bounds, by a smaller gate, or without some inputs.

    Returns
    -------
    TestResult
        With the difference of free parameters as degrees of freedom.

    Raises
    ------
    ValueError
        If the numbers of experts differ (the law is not chi-square then, see
        `moestat.bootstrap_lrt`), the data do, the first has no fewer parameters, a fit is not
        certified, or the restricted one is higher: the full fit is not the maximum then.

    Examples
    --------
    >>> import numpy as np, moestat
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> y = X[:, 0] + np.sin(np.arange(100))
    >>> full = moestat.fit("gaussian", X, y, n_experts=1, rng=0)
    >>> small = moestat.fit("gaussian", X[:, :1], y, n_experts=1, rng=0)
    >>> lr_test(small, full).df
    1
    """
    for result in (restricted, full):
        check_maximum(result)
    if restricted.family.n_experts != full.family.n_experts:
        raise ValueError(
            f"restricted has {restricted.family.n_experts} experts and full"
            f" {full.family.n_experts}: the likelihood ratio has no chi-square law then; use"
            " moestat.bootstrap_lrt"
        )
    if not np.array_equal(restricted.rows.y, full.rows.y):
        raise ValueError("restricted and full must be fits to the same responses")
    df = full.family.n_free_params - restricted.family.n_free_params
    # A gate of one expert has no parameters that matter.
    if full.family.n_experts == 1:
        df = _expert_params(full) - _expert_params(restricted)
    if df < 1:
        raise ValueError(f"restricted must have fewer free parameters than full, got {-df} more")
    for name, result in (("restricted", restricted), ("full", full)):
        if not result.certificate.certified:
            raise ValueError(f"{name} is not certified: its log-likelihood is not a maximum")
    if restricted.log_likelihood > full.log_likelihood + 1e-3:
        raise ValueError(
            f"restricted is higher by {restricted.log_likelihood - full.log_likelihood:.3g}: full"
            " is not the maximum; fit it again with more starts"
        )
    return likelihood_ratio(restricted.log_likelihood, full.log_likelihood, df)


def _expert_params(result: Any) -> int:
    return int(np.sum(np.asarray(result.bse) > 0.0))


def score_test(full: Any, theta: Any, df: int) -> TestResult:
    """Rao's score test of parameters that satisfy constraints.

    Parameters
    ----------
    full : MoEResults
        A fit of the full model; only its data and family are used.
    theta : array_like of shape (P,)
        Packed parameters of the full family that maximise the likelihood under the constraints.
    df : int
        Number of constraints.

    Returns
    -------
    TestResult
        ``s' I^-1 s`` with score and expected information of the free coordinates at theta; the
        observed one need not be positive definite there.

    Raises
    ------
    ValueError
        If theta has another length, or its information is singular.

    Examples
    --------
    >>> import numpy as np, moestat
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> y = X[:, 0] + np.sin(np.arange(100))
    >>> full = moestat.fit("gaussian", X, y, n_experts=1, rng=0)
    >>> small = moestat.fit("gaussian", X[:, :1], y, n_experts=1, rng=0).blocks
    >>> small["a"] = np.column_stack([small["a"], [0.0]])
    >>> small["beta1"] = np.zeros((1, 2))
    >>> score_test(full, full.family.pack(small), df=1).df
    1
    """
    check_likelihood("score_test", full.family)
    inner = found(full)
    values = as_floats("theta", theta, (full.family.n_params,))
    if inner.coordinates is not None:
        values = inner.coordinates.inward(values)
    evaluation = inner.problem.evaluate(Request(Objective.OBSERVED, values))
    free = inner.free
    information = information_at(inner.family, inner.data, values)[np.ix_(free, free)]
    scale = np.sqrt(np.maximum(np.diag(information), np.finfo(float).tiny))
    if np.linalg.eigvalsh(information / np.outer(scale, scale))[0] <= 1e-12:
        raise ValueError("theta: the expected information there is singular")
    gradient: FloatArray = -evaluation.gradient[free]
    return score_statistic(gradient / scale, information / np.outer(scale, scale), df)
