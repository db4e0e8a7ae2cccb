"""The log-likelihood of any family at any parameters, with its derivatives and shares of atoms."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from moestat.base.door import door
from moestat.base.types import FloatArray
from moestat.base.validate import as_design, as_floats, as_weights
from moestat.model.family import Family, check_family
from moestat.solvers.problem import Objective, Problem, Request, Rows
from moestat.solvers.squares import profile_log_likelihood

__all__ = ["gate_probabilities", "hessian", "log_likelihood", "responsibilities", "score"]


T = TypeVar("T", float, FloatArray)


@door()
def log_likelihood(
    family: Family,
    params: ArrayLike,
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Total log-likelihood of data, ``sum_t w_t log p(y_t | x_t)``.

    Of a family that is fitted by least squares it is the Gaussian one at its best variance,
    ``-W/2 (log(2 pi s) + 1)`` with the weights' sum W and the mean squared residual s.

    Parameters
    ----------
    family : Family
        The model.
    params : array_like of shape (P,)
        Packed parameters; they need not lie within the bounds of the family.
    X : array_like of shape (n, d)
        Inputs; (n,) when d = 1.
    y : array_like of shape (n,)
        Responses; class labels 1..K for classes.
    sample_weight : array_like of shape (n,), optional
        Non-negative weights, 1 by default.

    Returns
    -------
    float
        The log-likelihood, natural log.

    Raises
    ------
    ValueError
        If an argument has another shape or holds anything but finite numbers.

    Notes
    -----
    Pham et al. (2026), eq. (2); Yan et al. (2025), eq. (6) for least squares.

    Examples
    --------
    >>> from moestat import family, log_likelihood
    >>> F = family("multinomial", gate="softmax", n_experts=1, n_classes=2)
    >>> round(log_likelihood(F, [0, 0, 0, 0], [0.5, 2.0], [1, 2]), 4)
    -1.3863
    """
    if _checked(family).is_regression:
        total, half = _half_squares(family, params, X, y, sample_weight, Objective.RESIDUALS)
        return _known(profile_log_likelihood(half.value, total))
    evaluation = _evaluate(_problem(family, X, y, sample_weight), params, Objective.VALUE)
    return _known(-evaluation.value)


@door()
def score(
    family: Family,
    params: ArrayLike,
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
) -> FloatArray:
    """Gradient (P,) of `log_likelihood` in all packed parameters, pinned ones included.

    Parameters
    ----------
    family, params, X, y, sample_weight
        As of `log_likelihood`, with its errors.

    Returns
    -------
    ndarray of shape (P,)
        The gradient.  Where the log-likelihood jumps it is that of the smooth piece; at a kink it
        is one of the subgradients.

    Examples
    --------
    >>> from moestat import family, score
    >>> F = family("multinomial", gate="softmax", n_experts=1, n_classes=2)
    >>> score(F, [0, 0, 0, 0], [0.5, 2.0], [1, 2]).tolist()
    [0.0, 0.0, 0.0, -0.75]
    """
    if _checked(family).is_regression:
        total, half = _half_squares(family, params, X, y, sample_weight, Objective.GRADIENT)
        return _known(-0.5 * total / half.value * half.gradient)
    problem = _problem(family, X, y, sample_weight)
    evaluation = _evaluate(problem, params, Objective.OBSERVED)
    return _known(-evaluation.gradient)


@door()
def hessian(
    family: Family,
    params: ArrayLike,
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
) -> FloatArray:
    """Second derivatives (P, P) of `log_likelihood` in all packed parameters.

    Parameters
    ----------
    family, params, X, y, sample_weight
        As of `log_likelihood`, with its errors.

    Returns
    -------
    ndarray of shape (P, P)
        The Hessian, with jumps and kinks as in `score`.  Minus the Hessian is the observed
        information; of a regression function, whose variance is profiled out, it has a term of
        rank one beside it, which is 0 at the estimate.

    Examples
    --------
    >>> from moestat import family, hessian
    >>> F = family("multinomial", gate="softmax", n_experts=1, n_classes=2)
    >>> hessian(F, [0, 0, 0, 0], [0.5, 2.0], [1, 2])[2:, 2:].tolist()
    [[-0.5, -0.625], [-0.625, -1.0625]]
    """
    if _checked(family).is_regression:
        total, half = _half_squares(family, params, X, y, sample_weight, Objective.NEWTON)
        slope = half.gradient / half.value
        return _known(-0.5 * total * (half.hessian / half.value - np.outer(slope, slope)))
    problem = _problem(family, X, y, sample_weight)
    evaluation = _evaluate(problem, params, Objective.OBSERVED)
    return _known(-evaluation.hessian)


@door()
def gate_probabilities(family: Family, params: ArrayLike, X: ArrayLike) -> FloatArray:
    """Weight of every atom at each input, shape (n, k).

    Rows sum to 1, but for gates that are not normalised, whose weights are in (0, 1) each.

    Parameters
    ----------
    family, params, X
        As of `log_likelihood`, with its errors.

    Returns
    -------
    ndarray of shape (n, k)
        ``pi_i(x_t)``.

    Examples
    --------
    >>> from moestat import family, gate_probabilities
    >>> F = family("gaussian", gate="competition", n_experts=2)
    >>> theta = F.pack({"a": [1, -1], "b": [0, 0], "nu": [1, 1]})
    >>> gate_probabilities(F, theta, [0.0, 2.0]).round(3).tolist()
    [[0.5, 0.5], [0.881, 0.119]]
    """
    vector = _vector(_checked(family), params)
    return _known(family.gate_probabilities(vector, X))


@door()
def responsibilities(family: Family, params: ArrayLike, X: ArrayLike, y: ArrayLike) -> FloatArray:
    """Posterior probability of every atom given each sample, shape (n, k); rows sum to 1.

    Parameters
    ----------
    family, params, X, y
        As of `log_likelihood`, with its errors; a regression function has no latent expert, and is
        refused.

    Returns
    -------
    ndarray of shape (n, k)
        ``pi_i(x_t) f(y_t | x_t; theta_i) / p(y_t | x_t)``.

    Examples
    --------
    >>> from moestat import family, responsibilities
    >>> F = family("gaussian", gate="competition", n_experts=2)
    >>> theta = F.pack({"a": [1, -1], "b": [0, 0], "nu": [1, 1]})
    >>> responsibilities(F, theta, [0.0, 2.0], [0.0, 2.0]).round(4).tolist()
    [[0.5, 0.5], [1.0, 0.0]]
    """
    if _checked(family).is_regression:
        raise ValueError(
            "a family that is fitted by least squares is a regression function: it does not"
            " determine which expert a response comes from. gate_probabilities returns the"
            " weights of its experts"
        )
    data = _problem(family, X, y, None).data
    return _known(family.rowwise(_vector(family, params), data.X, data.y)[1].T)


def _known(values: T) -> T:
    """Numbers, unless intermediate ones were too large for float64 and left NaN."""
    if np.isnan(values).any():
        raise ValueError("params, X, y: a density there is beyond the range of float64")
    return values


def _checked(family: Family) -> Family:
    check_family("family", family)
    return family


def _vector(family: Family, params: ArrayLike) -> FloatArray:
    return as_floats("params", params, (family.n_params,))


def _problem(
    family: Family, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None
) -> Problem:
    design = as_design(X, family.n_features)
    response = family.likelihood.encode(y, family.n_classes)
    n = design.shape[1]
    if len(response) != n:
        raise ValueError(f"X has {n} samples but y has {len(response)}")
    return Problem(family, Rows(design, response, as_weights(sample_weight, n), whole=True))


def _evaluate(problem: Problem, params: ArrayLike, objective: Objective) -> Any:
    return problem.evaluate(Request(objective, _vector(problem.family, params)))


def _half_squares(
    family: Family,
    params: ArrayLike,
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    objective: Objective,
) -> tuple[float, Any]:
    """The sum of the weights, and half the sum of squared residuals in all coordinates."""
    free = replace(family, gate=replace(family.gate, translations=()), held=())
    problem = _problem(free, X, y, sample_weight)
    return float(problem.data.weight.sum()), _evaluate(problem, params, objective)
