"""Tests that compare two fits of one number of experts: one is the other with constraints."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from moestat.base.door import door
from moestat.base.types import FloatArray
from moestat.base.validate import as_floats, is_mapping, positive_int
from moestat.estimation.inference.covariance import information_of
from moestat.estimation.inference.hypotheses import (
    TestResult,
    check_not_higher,
    chi_square,
    likelihood_ratio,
)
from moestat.estimation.inference.inner_fit import (
    check_likelihood,
    check_maximum,
    inner_fit,
    llf_at,
)
from moestat.estimation.inference.nested_effects import (
    additional_variances,
    are_nested_effects,
    embedded_effects,
    mixture_ratio,
)
from moestat.model.constraints import tied_basis
from moestat.model.family import Family
from moestat.model.joint import likelihood_table
from moestat.solvers.problem import Objective, Problem, Request, Rows
from moestat.solvers.rules import GAIN_LIMIT, HALF_OF_DIGITS, ZERO_CURVATURE

if TYPE_CHECKING:
    from moestat.estimation.fit.fitted import Fitted


__all__ = ["check_same_data", "lr_test", "score_test"]


@door()
def lr_test(restricted: Fitted, full: Fitted) -> TestResult:
    """Likelihood ratio test of a restricted fit against a full one.

    Parameters
    ----------
    restricted, full : MoEResults
        Fits to the same data with the same number of experts; the first has fewer free
        parameters, by bounds, by a smaller gate, or without some inputs.

    Returns
    -------
    TestResult
        The test; its degrees of freedom are the difference of the numbers of free parameters.  If
        `full` has one random effect more, ``(1 + x | id)`` against ``(1 | id)`` or ``(1 | id)``
        against none, its variance is 0 under the hypothesis, on the boundary of its range: the
        distribution is a mixture, half and half, of two chi-square distributions, with these
        degrees of freedom and one less (Self and Liang 1987; Stram and Lee 1994).

    Raises
    ------
    ValueError
        If the numbers of experts differ (the distribution is then not chi-square, see
        `moestat.bootstrap_lrt`); if the data differ; if the restricted model is not a special case
        of the full one, does not have fewer parameters, or has parameters on bounds that you set;
        if the fits differ by several variances of random effects, or by one in several experts;
        if a fit is not certified; or if the restricted fit has the larger log-likelihood, so that
        the full fit is not the maximum.

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
            f" {full.family.n_experts}: the likelihood ratio then has no chi-square distribution;"
            " use moestat.bootstrap_lrt"
        )
    check_same_data(restricted, full, ("restricted", "full"))
    check_inside(restricted, full)
    df = full.identified.rank - restricted.identified.rank
    if df < 1:
        raise ValueError(
            "restricted must have fewer free parameters than full, got"
            f" {f'{-df} more' if df else 'as many'}"
        )
    for name, result in (("restricted", restricted), ("full", full)):
        if not result.certificate.certified:
            raise ValueError(f"{name} is not certified: its log-likelihood is not a maximum")
    check_not_higher(restricted.llf - full.llf, "restricted", "full")
    if are_nested_effects(restricted, full) and additional_variances(restricted, full):
        return mixture_ratio(restricted.llf, full.llf, df)
    return likelihood_ratio(restricted.llf, full.llf, df)


def check_same_data(small: Fitted, large: Fitted, names: tuple[str, str]) -> None:
    """Refuse fits to different data, or with distributions that are not nested."""

    def refuse(what: str) -> None:
        raise ValueError(f"{names[0]} and {names[1]} must be fits to the same {what}")

    one, two = small.rows, large.rows
    kept = one.kept, two.kept
    if kept[0] is not None and kept[1] is not None and not np.array_equal(kept[0], kept[1]):
        refuse(
            "rows: missing values leave out others; fit both to the rows that are complete for both"
        )
    if not np.array_equal(one.y, two.y):
        refuse("responses")
    if not np.array_equal(one.weight, two.weight):
        refuse("sample weights")
    effects = are_nested_effects(small, large)
    if one.groups is None and effects and large.family.n_experts == 1:
        same_groups = True  # rows of one expert are independent, in groups or not
    elif one.groups is None or two.groups is None:
        same_groups = one.groups is two.groups
    else:
        same_groups = np.array_equal(one.groups, two.groups)
    if not same_groups:
        refuse("groups")
    laws = [likelihood_table(result.family.likelihood) for result in (small, large)]
    if laws[0] != laws[1] and not (effects or _are_nested(*laws)):
        refuse("likelihood")
    offsets = [_offset(result) for result in (small, large)]
    if not np.allclose(*offsets, rtol=HALF_OF_DIGITS, atol=0.0):
        refuse("offset")
    # Every input of the smaller model is a linear function of those of the larger one.
    inputs = [rows.X - rows.X.mean(axis=0) for rows in (one, two)]
    size = [np.maximum(np.abs(X).max(axis=0), np.finfo(float).tiny) for X in inputs]
    restricted_inputs, full_inputs = (X / unit for X, unit in zip(inputs, size, strict=True))
    residual = restricted_inputs - full_inputs @ np.linalg.lstsq(full_inputs, restricted_inputs)[0]
    if np.abs(residual).max(initial=0.0) > HALF_OF_DIGITS:
        refuse(f"inputs, or {names[0]} to some of them")


def check_inside(small: Fitted, large: Fitted) -> None:
    """Refuse a restricted fit whose density is not one of the full model.

    The restricted estimate is written in the parameters of the full model, blocks by their names
    and slopes by the inputs that they belong to.  It is inside if the full model has the same
    log-likelihood there, within its bounds and constraints.
    """
    on_bounds = np.flatnonzero(small.identified.held)
    if on_bounds.size:
        names = ", ".join(small.family.param_names[j] for j in on_bounds[:3])
        raise ValueError(
            f"restricted has parameters on bounds that you set, {names}: the likelihood ratio has"
            " no chi-square distribution there; fix them by fixed="
        )
    effects = are_nested_effects(small, large)
    laws = [likelihood_table(result.family.likelihood) for result in (small, large)]
    if laws[0] != laws[1] and not effects:
        return
    family = large.family
    theta = _embed(small, large)
    if effects:
        theta = embedded_effects(small, large, theta)
    lower, upper = family.box_at(theta)
    given = np.zeros(theta.size, dtype=bool)
    for name in family.given:
        given[family.blocks[name]] = True
    given |= lower == upper
    room = HALF_OF_DIGITS * np.maximum(1.0, np.abs(theta))
    outside = given & ((theta < lower - room) | (theta > upper + room))
    apart = np.abs(family.pin(theta) - theta) > room
    for tie in family.ties:
        apart[tie] |= np.abs(theta[tie] - theta[tie].mean()) > room[tie].max()
    violated = np.flatnonzero(outside | apart)
    if violated.size:
        names = ", ".join(family.param_names[j] for j in violated[:3])
        raise ValueError(
            "restricted is not a special case of full: bounds or constraints of the full model"
            f" exclude its estimate, by {names}"
        )
    embedded_llf, restricted_llf = llf_at(large, theta), small.llf
    rounding = 1e-9 * abs(restricted_llf)  # of sums over as many rows as float64 can add
    if not abs(embedded_llf - restricted_llf) <= GAIN_LIMIT + rounding:
        raise ValueError(
            "restricted is not a special case of full: no parameters of the full model give the"
            f" restricted density ({small.family.gate.name} gate against {family.gate.name}, or"
            " inputs of the gate or the experts that this part of the full model does not have)"
        )


def _embed(small: Fitted, large: Fitted) -> FloatArray:
    """The restricted estimate in the parameters of the full model (P,), 0 where it has none."""
    family, given = large.family, small.blocks
    X, Z = large.rows.X, small.rows.X
    # Inputs of the smaller model are linear functions of those of the larger one.
    design = np.column_stack([np.ones(len(X)), X])
    size = np.maximum(np.abs(design).max(axis=0), np.finfo(float).tiny)
    slopes = np.linalg.lstsq(design / size, Z)[0] / size[:, None]
    constant, matrix = slopes[0], slopes[1:]
    blocks = {name: np.zeros(at.shape) for name, at in family.blocks.items()}
    for name in family.logged:
        blocks[name] = np.ones(family.blocks[name].shape)
    channels = [channel for channel in family.channels if channel.reads is None]
    for channel in channels:
        intercept = channel.intercept
        if intercept in given and channel.axis is None:
            blocks[intercept] = np.broadcast_to(given[intercept], blocks[intercept].shape).copy()
    for name in {c.slope for c in channels if c.slope is not None} & given.keys():
        coefficients = np.asarray(given[name])
        blocks[name] = coefficients @ matrix.T
        owner = next(c.intercept for c in family.channels if c.slope == name)
        if owner in blocks:
            blocks[owner] = blocks[owner] + coefficients @ constant
    for name in {c.products for c in family.channels if c.products is not None} & given.keys():
        blocks[name] = np.asarray(given[name])
    for name in {c.intercept for c in family.channels if c.axis is not None} & given.keys():
        blocks[name] = np.asarray(given[name])
    return family.pack(blocks)


def _are_nested(small: object, large: object) -> bool:
    """Whether the covariance matrices of one likelihood are a special case of those of another.

    The likelihoods name their covariance matrices by mclust's letters.  Each letter says
    whether volume, shape or orientation is the identity, equal or variable.
    """
    if not (is_mapping(small) and "covariance" in small and is_mapping(large)):
        return False
    letters = zip(small["covariance"], large.get("covariance", ""), strict=False)
    nested = all(one == two or one == "I" or two == "V" for one, two in letters)
    return nested and {**small, "covariance": ""} == {**large, "covariance": ""}


def _offset(result: Fitted) -> FloatArray:
    """What is added to the predictors of all experts (n,)."""
    offset = result.family.offset_input
    X = result.rows.X
    return np.zeros(len(X)) if offset is None else offset[1] * X[:, offset[0]]


@door()
def score_test(full: Fitted, theta: ArrayLike, df: int) -> TestResult:
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
        ``s' I^-1 s`` with the score s and the expected information I of the free parameters at
        theta.  (The observed information need not be positive definite there.)  If the fit has
        groups, several responses or censored ones, I is the sum of the outer products of the
        scores.

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
    df = positive_int("df", df)
    check_likelihood("score_test", full.family)
    inner = inner_fit(full, passes=True)
    grouped = full.data is not None and full.data.groups is not None
    if not full.reads_source:
        units = inner.data.size if inner.data.begin is None else inner.data.begin.size
        if df > units:
            what = "groups" if grouped else "rows"
            raise ValueError(f"df must be at most the number of {what}, {units}, got {df}")
    values = as_floats("theta", theta, (full.family.n_params,))
    if inner.coordinates is not None:
        values = inner.coordinates.inward(values)
    work = partial(_score_and_information, inner.family, values)
    gradient, information = inner.data.sum_parts(work)
    # Equal coefficients are one parameter.
    basis = tied_basis(values.size, inner.family.ties)[inner.free]
    basis = basis[:, np.any(basis, axis=0)]
    information = basis.T @ information[np.ix_(inner.free, inner.free)] @ basis
    scale = np.sqrt(np.maximum(np.diag(information), np.finfo(float).tiny))
    if np.linalg.eigvalsh(information / np.outer(scale, scale))[0] <= ZERO_CURVATURE:
        raise ValueError("theta: the expected information there is singular")
    score: FloatArray = -(gradient[inner.free] @ basis) / scale
    solved = np.linalg.solve(information / np.outer(scale, scale), score)
    return chi_square("score", float(score @ solved), df)


def _score_and_information(
    family: Family, theta: FloatArray, part: Rows
) -> tuple[FloatArray, FloatArray]:
    """Gradient (P,) of minus the log-likelihood of a part, and its information (P, P)."""
    evaluation = Problem(family, part).evaluate(Request(Objective.SCORE, theta))
    return evaluation.gradient, information_of(family, part, theta)
