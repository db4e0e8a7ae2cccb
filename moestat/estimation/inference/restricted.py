"""Maximum likelihood under linear constraints, from the maximum without them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from moestat.base.door import door
from moestat.base.types import FloatArray, IntArray
from moestat.estimation.data.naming import present_names
from moestat.estimation.inference.constraints import linear_constraints
from moestat.estimation.inference.hypotheses import (
    TestResult,
    check_errors,
    check_independent,
    check_not_higher,
    likelihood_ratio,
)
from moestat.estimation.inference.inner_fit import (
    InnerFit,
    check_likelihood,
    inner_fit,
    inverse_of_free,
)
from moestat.estimation.tables import labelled
from moestat.model.constraints import averaged
from moestat.solvers.problem import Objective, Problem, Request
from moestat.solvers.rules import (
    GAIN_LIMIT,
    NEWTON_STEPS,
    NEWTON_TOLERANCE,
    TINY,
    TRUST,
    ZERO_CURVATURE,
)

if TYPE_CHECKING:
    import pandas as pd

    from moestat.estimation.fit.fitted import Fitted

__all__ = [
    "Curve",
    "RestrictedFit",
    "differences",
    "fit_constrained",
    "minimise",
    "negative_log_likelihood",
]

_STAGES = 4
"""Number of steps on the way to the constraints, each of which ends at a maximum."""

Curve = Callable[[FloatArray], tuple[float, FloatArray, FloatArray]]
"""``f(phi)``: a value to be minimised, its gradient and Hessian."""


@dataclass(frozen=True, repr=False)
class RestrictedFit:
    """A local maximum of the likelihood under linear constraints.

    Parameters
    ----------
    constraints : str
        The equations.
    params, bse : ndarray or pandas.Series of shape (P,)
        Parameters and standard errors, as those of the result; a combination that the constraints
        fix has the error 0.
    llf : float
        Log-likelihood.
    lr_test : TestResult
        Likelihood ratio test of the constraints.
    aic, bic : float
        Information criteria; each constraint reduces the number of parameters by one.
    covariance : ndarray of shape (P, P)
        Covariance of the packed parameters, singular along the constraints.
    theta : ndarray of shape (P,)
        Packed parameters of the full family.

    Examples
    --------
    >>> import numpy as np, moestat
    >>> X = np.linspace(-1, 1, 50)
    >>> result = moestat.fit("gaussian", X, X + np.sin(7 * X), n_experts=1, rng=0)
    >>> restricted = result.fit_constrained("a[1,0] = 1, b[1] = 0")
    >>> restricted.lr_test.df, bool(restricted.llf < result.llf)
    (2, True)
    """

    constraints: str
    params: FloatArray | pd.Series
    bse: FloatArray | pd.Series
    llf: float
    lr_test: TestResult
    aic: float
    bic: float
    covariance: FloatArray = field(repr=False)
    theta: FloatArray = field(repr=False)

    def __repr__(self) -> str:
        return f"<RestrictedFit: {self.constraints}; llf {self.llf:.3f}, {self.lr_test}>"

    def cov_params(self) -> FloatArray:
        """Covariance (P, P), singular along the constraints."""
        return self.covariance


@door()
def fit_constrained(result: Fitted, constraints: str) -> RestrictedFit:
    """Maximise the likelihood under linear constraints, such as equal slopes of two experts.

    Newton's method starts at the estimate, moved onto the constraints by the metric of the
    information, and steps along them.  With several experts, more than one maximum may obey the
    constraints: the method also starts at the nearest point that obeys them, and follows the
    maximum on the way from the estimate to the constraints; it returns the highest of these three.
    There may be a higher one.

    Parameters
    ----------
    result : MoEResults
        A certified fit without the constraints.
    constraints : str
        Equations in `param_names`, as `MoEResults.wald_test` takes them.

    Returns
    -------
    RestrictedFit
        Parameters, standard errors and the likelihood ratio test.

    Raises
    ------
    ValueError
        If the constraints cannot be read or concern a parameter without a standard error, the fit
        is not certified, no maximum is found inside the bounds, or it is higher than the fit.

    Examples
    --------
    >>> import numpy as np, moestat
    >>> X = np.linspace(-1, 1, 50)
    >>> result = moestat.fit("gaussian", X, X + np.sin(7 * X), n_experts=1, rng=0)
    >>> restricted = fit_constrained(result, "a[1,0] = 1")
    >>> round(float(restricted.params[result.param_names.index("a[1,0]")]), 6)
    1.0
    """
    check_likelihood("fit_constrained", result.family)
    if not result.certificate.certified:
        raise ValueError("fit_constrained needs a certified fit: this one is not a maximum")
    constraints = present_names(constraints, result.family, result.data)
    matrix, value = linear_constraints(constraints, result.param_names, terms=result._terms)
    check_independent(check_errors(matrix, result.param_names, result._spread))
    inner = inner_fit(result)
    free = inner.movable
    rows = np.zeros_like(matrix)
    rows[:, free] = (matrix @ np.array([inner.row(j) for j in range(inner.theta.size)]))[:, free]
    rows, tied = averaged(rows.T, inner.family.ties).T, differences(inner.family.ties, free)
    gap = matrix @ result.theta - value
    objective = negative_log_likelihood(inner.problem)
    lower, upper = inner.family.box_at(inner.theta)
    spread = inner.covariance @ rows.T
    to_constraints = [
        -spread @ np.linalg.solve(rows @ spread, gap),
        -rows.T @ np.linalg.solve(rows @ rows.T, gap),
    ]
    fixed = np.any(rows != 0.0, axis=0)
    limits = {"lower": lower, "upper": upper, "tied": tied, "may_rest": inner.own_bounds}
    search = partial(minimise, objective, free=free, rows=rows, **limits)

    def climb(start: FloatArray) -> tuple[FloatArray, float, bool]:
        """The end of a search; where it came near a limit, that on the limit."""
        end = search(start)
        if not end[2] and np.any((on_limit := inner.at_limits(end[0], fixed)) != end[0]):
            end = min(end, search(on_limit), key=lambda one: (not one[2], one[1]))
        return end

    begins = [
        np.clip(inner.theta + move, lower, upper)
        for move in to_constraints[: inner.family.n_experts]
    ]
    inside = [inner.off_limits(at, fixed) for at in begins]
    begins += [one for one, at in zip(inside, begins, strict=True) if np.any(one != at)]
    ends = [climb(at) for at in begins]
    if inner.family.n_experts > 1:
        end = (inner.theta, np.inf, False)
        for _ in range(_STAGES):
            end = climb(end[0] + to_constraints[0] / _STAGES)
        ends += [end, climb(inner.off_limits(end[0], fixed))]
    theta, lowest, converged = min(ends, key=lambda end: (not end[2], end[1]))
    llf = result.llf + objective(inner.theta)[0] - lowest
    if not converged:
        raise ValueError(
            f"constraints: no maximum with {constraints!r} was found from the estimate on; it"
            " would lie outside the bounds, or far away"
        )
    check_not_higher(llf - result.llf, "constraints: a point that obeys them")
    resting = (theta <= lower) | (theta >= upper)
    held = np.eye(free.size)[resting[free]]
    basis, (_, _, hessian) = _along(rows[:, free], tied, held), objective(theta)
    reduced = basis.T @ hessian[np.ix_(free, free)] @ basis
    covariance = np.zeros_like(hessian)
    covariance[np.ix_(free, free)] = (
        basis @ inverse_of_free(reduced, np.arange(len(reduced))) @ basis.T
    )
    covariance = inner.outward_matrix(covariance)
    variance = np.diag(covariance)
    # A parameter that has left its bound has an error now, and one that has reached it has none.
    full = result.theta_bse
    errors = np.sqrt(np.where(variance > ZERO_CURVATURE * np.nan_to_num(full) ** 2, variance, 0.0))
    released = np.isin(np.arange(theta.size), np.setdiff1d(free, inner.free)) & ~resting
    lost = np.isnan(full) & ~_moved(inner, released)
    errors = np.where(lost | _moved(inner, resting & (lower < upper)), np.nan, errors)
    n_free = result.identified.rank - len(value)
    return RestrictedFit(
        constraints,
        labelled(inner.outward(theta), result._reported, result.param_names),
        labelled(errors, result._reported, result.param_names),
        llf,
        likelihood_ratio(llf, result.llf, len(value)),
        2.0 * n_free - 2.0 * llf,
        float(np.log(result.n_independent)) * n_free - 2.0 * llf,
        covariance,
        inner.outward(theta),
    )


def _moved(inner: InnerFit, marked: np.ndarray) -> np.ndarray:
    """The user's parameters (P,) that depend on marked coordinates (P,)."""
    return np.array([bool(inner.row(j)[marked].any()) for j in range(marked.size)])


def negative_log_likelihood(problem: Problem) -> Curve:
    """The objective of a fit as a function of its parameters (P,)."""

    def evaluate(phi: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        evaluation = problem.evaluate(Request(Objective.OBSERVED, phi))
        return evaluation.value, evaluation.gradient, evaluation.hessian

    return evaluate


def differences(ties: Sequence[IntArray], free: IntArray) -> FloatArray:
    """Rows (q, F) over the free coordinates that are 0 where all tied coefficients are equal."""
    rows = [
        np.isin(free, tie[:1]) * 1.0 - np.isin(free, other) for tie in ties for other in tie[1:]
    ]
    rows = [row for row in rows if row.any()]
    return np.array(rows, dtype=np.float64).reshape(-1, free.size)


def _along(*constraints: FloatArray) -> FloatArray:
    """An orthonormal basis (F, r) of the directions that keep all constraints (q, F).

    Constraints may be linearly dependent: tied coordinates reach their bounds together.
    """
    from scipy.linalg import null_space

    rows = np.concatenate(constraints, dtype=np.float64)
    return null_space(rows / np.linalg.norm(rows, axis=1)[:, None])


def _find_released(
    gradient: FloatArray, rows: FloatArray, tied: FloatArray, side: FloatArray
) -> IntArray:
    """The coordinate on a bound with the steepest descent into the box; none if all press on it.

    `side` (F,) is -1 on a lower bound, 1 on an upper one and 0 inside.
    """
    places = np.flatnonzero(side)
    matrix = np.concatenate([rows, tied, np.eye(side.size)[places]])
    forces = np.linalg.lstsq(matrix.T, gradient, rcond=None)[0][len(matrix) - places.size :]
    inward = forces * side[places]
    return places[[np.argmax(inward)]] if inward.max(initial=0.0) > 0.0 else places[:0]


def _is_finite(gradient: FloatArray, hessian: FloatArray) -> bool:
    """Whether a point has derivatives."""
    return bool(np.isfinite(gradient).all() and np.isfinite(hessian).all())


@np.errstate(over="ignore", invalid="ignore")  # steps where the likelihood is flat have no end
def minimise(
    objective: Curve,
    start: FloatArray,
    free: IntArray,
    rows: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    tied: FloatArray | None = None,
    may_rest: np.ndarray | None = None,
) -> tuple[FloatArray, float, bool]:
    """Newton's method on the free coordinates with ``rows @ phi`` held at its value at the start.

    Steps keep tied coefficients equal: `tied` (q, F) are their `differences`, and the entries of
    `rows` are equal for them.
    They end at the bounds: a coordinate stays on its bound until it descends on the way back.  A
    descent that gains less than `GAIN_LIMIT` in `TRUST.patience` steps has stalled, as in a fit.
    Returns the end (P,), its value, and whether the quadratic model is at its minimum there, inside
    the bounds but for coordinates that `may_rest` (P,) on theirs.  A start without finite
    derivatives is its own end, of infinite value.
    """
    tied = np.empty((0, free.size)) if tied is None else tied
    rows, low, high = rows[:, free], lower[free], upper[free]
    phi = np.clip(start, lower, upper)
    side = np.zeros(free.size)  # of the bound that a coordinate is held on
    if may_rest is not None:
        side = np.where(may_rest, 1.0 * (phi >= upper) - (phi <= lower), 0.0)[free]
    value, gradient, hessian = objective(phi)
    if not _is_finite(gradient, hessian):
        return phi, np.inf, False
    milestone = value
    for count in range(1, NEWTON_STEPS + 1):
        if count % TRUST.patience == 0:
            if milestone - value < GAIN_LIMIT:
                break
            milestone = value
        basis = _along(rows, tied, np.eye(free.size)[side != 0.0])
        g = basis.T @ gradient[free]
        curvature, vectors = np.linalg.eigh(basis.T @ hessian[np.ix_(free, free)] @ basis)
        largest = float(np.abs(curvature).max(initial=0.0))
        # Where the likelihood is flat to the last digit, a part of its curvature would be 0.
        size = np.maximum(np.abs(curvature), max(ZERO_CURVATURE * largest, TINY))
        slope = vectors.T @ g
        step = -basis @ (vectors @ (slope / size))
        if 0.5 * float(slope**2 @ (1.0 / size)) < NEWTON_TOLERANCE:
            released = _find_released(gradient[free], rows, tied, side)
            if released.size:
                side[released] = 0.0
                continue
            # A last step, too short for its gain to be seen, makes the end exact; where nothing is
            # bent it may lead anywhere.
            last = phi.copy()
            last[free] += step
            last = np.clip(last, lower, upper)
            last_value = objective(last)[0]
            if last_value <= value + NEWTON_TOLERANCE:
                phi, value = last, last_value
            stuck = side != 0.0 if may_rest is None else (side != 0.0) & ~may_rest[free]
            return phi, value, bool(np.all(curvature > 0.0) and not stuck.any())
        ahead = np.where(step > 0.0, high - phi[free], phi[free] - low)
        lengths = np.where(step == 0.0, np.inf, ahead / np.maximum(np.abs(step), TINY))
        longest = float(lengths.min(initial=1.0))
        stopped = lengths <= longest if longest < 1.0 else np.zeros(free.size, dtype=bool)
        if longest <= TRUST.smallest:
            side[stopped] = np.sign(step[stopped])
            continue
        length = longest
        while length > TRUST.smallest:
            trial = phi.copy()
            trial[free] += length * step
            trial = np.clip(trial, lower, upper)
            proposed = objective(trial)
            expected = TRUST.accept * length * float(gradient[free] @ step)
            if proposed[0] <= value + expected and _is_finite(*proposed[1:]):
                break
            length *= 0.5
        else:
            break
        if length == longest:
            side[stopped] = np.sign(step[stopped])
        phi = trial
        value, gradient, hessian = proposed
    return phi, value, False
