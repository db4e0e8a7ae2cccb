"""The certificate of a least-squares fit: gain, gradient and the Gauss-Newton spectrum."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import scipy

from moestat.base.types import FloatArray, IntArray
from moestat.solvers.certificate import certificate_of
from moestat.solvers.metric import with_ridge, without_relations
from moestat.solvers.problem import Evaluation, Objective, Problem, Request, Rows
from moestat.solvers.rules import GAIN_LIMIT, SQUARES, TINY, WORK, ZERO_CURVATURE
from moestat.solvers.solution import Solution
from moestat.solvers.squares import profile_log_likelihood, rounding_level, variance_of
from moestat.solvers.trust_region.region import box_step, free_coordinates

Gradients = Sequence[tuple[FloatArray, FloatArray]]
"""Places (P,) and the gradients (P,) there."""


def feature_metric(problem: Problem) -> FloatArray:
    """Metric (P, P) in which a step's length is the root mean square change of the predictors."""
    family, data = problem.family, problem.data
    if "features" not in data.memory:
        data.memory["features"] = _feature_moments(data)
    gram = data.memory["features"]
    metric = np.zeros((family.n_params, family.n_params))
    for c, (width, offset) in enumerate(zip(family.width, family.offset, strict=True)):
        feature = np.concatenate([[0], offset + np.arange(width - 1)])
        moments = gram[np.ix_(feature, feature)]
        for first in family.index[:, c]:
            metric[first : first + width, first : first + width] = moments
    return metric


def _feature_moments(data: Rows) -> FloatArray:
    """Second moments (q, q) of ``1, x`` and the products of inputs, from at most 20,000 rows."""
    stride = -(-data.size // WORK.metric_rows)
    X, weight = data.X[:, ::stride], data.weight[::stride]
    rows, columns = np.triu_indices(X.shape[0])
    scale = np.where(rows == columns, 1.0, math.sqrt(2.0))
    phi = np.vstack([np.ones(X.shape[1]), X, scale[:, None] * X[rows] * X[columns]])
    return with_ridge((phi * weight) @ phi.T / weight.sum())


def fitted_levels(problem: Problem) -> Iterator[tuple[int, Rows]]:
    """Levels of the data, with their numbers, that have enough samples to determine theta."""
    for level, data in problem.detail():
        if not data.preview or data.size >= SQUARES.preview_rows * problem.family.n_params:
            yield level, data


def last_look(problem: Problem, theta: FloatArray) -> Request:
    """The request that a certificate needs: the exact Hessian at theta, where there is one."""
    kinked = problem.family.has_kinked_mean
    return Request(Objective.GAUSS_NEWTON if kinked else Objective.NEWTON, theta)


class Balance(NamedTuple):
    """A convex combination of gradients within `reach` of a fit, and the number of its terms."""

    gradient: FloatArray
    terms: int
    reach: float


def balance(
    theta: FloatArray,
    gradient: FloatArray,
    gradients: Gradients,
    at: IntArray,
    root: FloatArray,
    metric: FloatArray,
    reach: float,
) -> Balance:
    """The convex combination g of gradients at most `reach` away with the least ``|root' g|``.

    Gradients (P,) are those at theta and at other places; g and `root` (F, F) are in the free
    coordinates `at`, `reach` is a length in the metric (P, P).  The combination is an element of
    Goldstein's subdifferential.
    """
    steps = np.array([point - theta for point, _ in gradients]).reshape(-1, theta.size)
    length = np.sqrt(np.maximum(np.einsum("mi,ij,mj->m", steps, metric, steps, optimize=True), 0.0))
    near = np.flatnonzero(length <= reach)
    bundle = np.array([gradient, *(gradients[int(j)][1] for j in near)])[:, at]
    length = np.concatenate([[0.0], length[near]])
    columns = root.T @ bundle.T
    size = float(np.abs(columns).max()) or 1.0
    target = np.concatenate([np.zeros(len(columns)), [1.0]])
    share = scipy.optimize.nnls(
        np.vstack([columns / size, np.ones(len(bundle))]), target, maxiter=5 * SQUARES.bundle
    )[0]
    share /= share.sum()
    used = share > 0.0
    return Balance(share @ bundle, int(used.sum()), float(length[used].max()))


def least_squares_solution(
    problem: Problem,
    theta: FloatArray,
    evaluation: Evaluation,
    status: str,
    iterations: int,
    gradients: Gradients = (),
) -> Solution:
    """The solution of a least-squares fit, with a certificate from the evaluation at its end.

    Everything is in units of the residual variance, which makes a decrease of half the sum of
    squares a gain in log-likelihood.  Residuals as small as rounding errors are an exact fit.
    For experts with kinks, `gradients` are those that the solver has computed, with their places.
    """
    family, data = problem.family, problem.data
    size, nothing = float(data.weight.sum()), rounding_level(data.y, data.weight)
    variance = variance_of(max(evaluation.value, nothing), size)
    lower, upper = family.box_at(theta)
    at = np.flatnonzero(free_coordinates(theta, evaluation.gradient, lower, upper))
    slope = np.zeros(0)
    values = np.zeros(0)
    gain = 0.0
    kinks = 0
    reach = 1.0
    if at.size and np.isfinite(evaluation.value):
        metric = feature_metric(problem)
        curvature, judged = without_relations(evaluation.hessian / variance, metric, at)
        free = np.ix_(at, at)
        values, vectors = scipy.linalg.eigh(curvature[free], metric[free])
        slope = vectors.T @ evaluation.gradient[at] / variance
        largest = float(np.abs(values).max())

        def predicted(free_gradient: FloatArray) -> float:
            """Gain of the best step of length one in the box, with another free gradient (F,)."""
            slopes = evaluation.gradient.copy()
            slopes[at] = free_gradient
            return box_step(
                theta, slopes / variance, curvature, metric, lower, upper, radius=1.0
            ).decrease

        if family.has_kinked_mean:
            root = vectors / np.sqrt(np.maximum(values, max(ZERO_CURVATURE * largest, TINY)))
            for reach in SQUARES.reach * 10.0 ** np.arange(-4.0, 1.0):
                balanced = balance(theta, evaluation.gradient, gradients, at, root, metric, reach)
                slope = vectors.T @ balanced.gradient / variance
                gain = predicted(balanced.gradient)
                kinks = balanced.terms - 1
                reach = balanced.reach
                if gain <= GAIN_LIMIT:
                    break
        else:
            gain = predicted(evaluation.gradient[at])
        values = judged(values)
        gain = 0.0 if evaluation.value <= nothing else gain
    size_of_slope, doubt = float(np.linalg.norm(slope)), not np.isfinite(evaluation.value)
    known = problem, theta, values, size_of_slope, gain, status, iterations, doubt
    certificate = certificate_of(*known, kinks=kinks, reach=reach)
    height = profile_log_likelihood(evaluation.value, size)
    return Solution(theta, height, evaluation.hessian / variance, certificate)
