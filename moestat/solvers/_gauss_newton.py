"""The certificate of a least-squares fit: gain, gradient and the Gauss-Newton spectrum."""

from __future__ import annotations

import math

import numpy as np
import scipy

from moestat._types import FloatArray
from moestat.solvers._certificate import GAIN_LIMIT, Certificate
from moestat.solvers._driver import Evaluation, Problem
from moestat.solvers._solution import Solution
from moestat.solvers._squares import profile_log_likelihood, rounding_level, variance_of
from moestat.solvers._trust_region import free_coordinates

__all__ = ["feature_metric", "least_squares_solution"]

_METRIC_ROWS = 20_000
_RIDGE = 1e-8
_ZERO_CURVATURE = 1e-12


def feature_metric(problem: Problem) -> FloatArray:
    """Metric (P, P) in which a step's length is the root mean square change of the predictors.

    At most 20000 rows are looked at.
    """
    family, data = problem.family, problem.data
    stride = -(-data.size // _METRIC_ROWS)
    X, weight = data.X[:, ::stride], data.weight[::stride]
    rows, columns = np.triu_indices(X.shape[0])
    scale = np.where(rows == columns, 1.0, math.sqrt(2.0))
    phi = np.vstack([np.ones(X.shape[1]), X, scale[:, None] * X[rows] * X[columns]])
    gram = (phi * weight) @ phi.T / weight.sum()
    gram += _RIDGE * np.diag(np.diag(gram) + _RIDGE)
    metric = np.zeros((family.n_params, family.n_params))
    for (_, c), first in np.ndenumerate(family.index):
        width, offset = int(family.width[c]), int(family.offset[c])
        feature = np.concatenate([[0], offset + np.arange(width - 1)])
        at = first + np.arange(width)
        metric[np.ix_(at, at)] = gram[np.ix_(feature, feature)]
    return metric


def _region_gain(values: FloatArray, slope: FloatArray, radius: float) -> float:
    """Largest decrease of ``slope'p + p' diag(values) p / 2`` over ``|p| <= radius``."""
    values = np.maximum(values, 0.0)
    floor = 1e-16 * max(float(values.max()), 1e-300)

    def step(shift: float) -> FloatArray:
        return slope / np.maximum(values + shift, floor)

    low, high = 0.0, float(np.linalg.norm(slope)) / radius
    p = step(0.0)
    if np.linalg.norm(p) > radius:
        for _ in range(200):
            middle = 0.5 * (low + high)
            if np.linalg.norm(step(middle)) > radius:
                low = middle
            else:
                high = middle
            if high - low <= 1e-6 * high:
                break
        p = step(high)
    return float(slope @ p - 0.5 * (values * p) @ p)


def least_squares_solution(
    problem: Problem, theta: FloatArray, here: Evaluation, status: str, iterations: int
) -> Solution:
    """The end of a least-squares fit, with a certificate from the Gauss-Newton model there.

    Everything is in units of the residual variance, which makes a decrease of half the sum of
    squares a gain in log-likelihood.  Residuals as small as rounding errors are an exact fit.
    """
    family, data = problem.family, problem.data
    size, nothing = float(data.weight.sum()), rounding_level(data.y, data.weight)
    variance = variance_of(max(here.value, nothing), size)
    lower, upper = family.box_at(theta)
    at = np.flatnonzero(free_coordinates(theta, here.gradient, lower, upper))
    gradient, gain, inertia, condition = 0.0, 0.0, (0, 0, 0), 1.0
    if at.size and np.isfinite(here.value):
        metric = feature_metric(problem)[np.ix_(at, at)]
        values, vectors = scipy.linalg.eigh(here.hessian[np.ix_(at, at)] / variance, metric)
        slope = vectors.T @ here.gradient[at] / variance
        gradient = float(np.linalg.norm(slope)) / size
        gain = 0.0 if here.value <= nothing else _region_gain(values, slope, 1.0)
        zero = values <= _ZERO_CURVATURE * values.max()
        inertia = (int(np.sum(~zero)), int(np.sum(zero)), 0)
        condition = float(values.max() / values.min()) if not zero.any() else math.inf
    on_bound = (lower < upper) & ((theta <= lower) | (theta >= upper))
    certificate = Certificate(
        status=status,
        certified=bool(gain <= GAIN_LIMIT and np.isfinite(here.value)),
        gradient=gradient,
        gain=gain,
        inertia=inertia,
        condition=condition,
        active=tuple(family.param_names[j] for j in np.flatnonzero(on_bound)),
        iterations=iterations,
        passes=problem.passes,
    )
    height = profile_log_likelihood(here.value, size)
    return Solution(theta, height, here.hessian / variance, certificate)
