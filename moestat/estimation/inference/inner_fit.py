"""A fit in the coordinates of the solver: data, parameters and information."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from moestat.base.types import FloatArray, IntArray
from moestat.estimation.data.groups import encoded_rows
from moestat.estimation.data.priors import prior_units
from moestat.estimation.fit.components import factor_index
from moestat.estimation.fit.identified import Identified, channel_metric, gap_places
from moestat.model.family import Family
from moestat.model.units import Coordinates
from moestat.solvers.penalised import PenalisedProblem
from moestat.solvers.problem import Objective, Problem, Request, Rows
from moestat.solvers.rules import GAIN_LIMIT, ZERO_CURVATURE
from moestat.solvers.squares import profile_log_likelihood

if TYPE_CHECKING:
    from moestat.estimation.fit.fitted import Fitted

__all__ = [
    "InnerFit",
    "check_likelihood",
    "check_maximum",
    "inner_fit",
    "inverse_of_free",
    "llf_at",
]


_LOOKS = 41
"""Values of a shape between its bounds at which a likelihood is looked up: ranges of logarithms are
at most 60 wide, and a likelihood turns from one limit to the other within three or four."""

_DEVIATIONS = np.geomspace(0.03, 3.0, 5)
"""Deviations of effects, in units of the predictor or of the response, at which a likelihood is
looked up."""


@dataclass(frozen=True)
class InnerFit:
    """The problem that was solved, its solution, and the map to the user's coordinates."""

    problem: Problem = field(repr=False)  # family and data, standardised if the fit was
    theta: FloatArray = field(repr=False)  # (P,): the estimate in these coordinates
    information: FloatArray = field(repr=False)  # (P, P): observed information
    # ``theta_user = matrix @ theta + shift``; None for the identity
    coordinates: Coordinates | None = field(repr=False)
    identified: Identified = field(repr=False)  # what the data say about the parameters

    @property
    def family(self) -> Family:
        """The family with the box of the fit."""
        return self.problem.family

    @property
    def data(self) -> Rows:
        """The data."""
        return self.problem.data

    @property
    def free(self) -> IntArray:
        """Positions of the coordinates neither pinned nor on a bound."""
        lower, upper = self.family.box_at(self.theta)
        return np.flatnonzero((self.theta > lower) & (self.theta < upper))

    @property
    def own_bounds(self) -> np.ndarray:
        """Coordinates (P,) whose bounds are of the model: limits of distributions, and the user's.

        A maximum under further restrictions may lie on such a bound, or leave it.
        """
        family = self.family
        names = {*family.likelihood.limits, *family.given}
        places = [np.ravel(family.blocks[name]) for name in names if name in family.blocks]
        lower, upper = family.box_at(self.theta)
        return (lower < upper) & np.isin(np.arange(lower.size), np.concatenate([[], *places]))

    @property
    def movable(self) -> IntArray:
        """Positions of the free coordinates, and of those on a bound of the model."""
        return np.union1d(self.free, np.flatnonzero(self.own_bounds))

    @property
    def _shapes(self) -> IntArray:
        """Free or resting coordinates that have a limit, where the distribution is simpler."""
        blocks = [np.ravel(self.family.blocks[name]) for name in self.family.likelihood.limits]
        places = np.concatenate([np.empty(0, dtype=np.int64), *blocks])
        return np.intersect1d(places, self.movable)

    @property
    def _deviations(self) -> IntArray:
        """Free entries on the diagonals of the factors of random effects."""
        effects = self.family.likelihood.effects
        if effects is None:
            return np.empty(0, dtype=np.int64)
        return np.intersect1d(factor_index(self.family) + effects.positions, self.free)

    def _height(self, theta: FloatArray) -> float:
        """Minus the log-likelihood."""
        return self.problem.evaluate(Request(Objective.VALUE, theta)).value

    def off_limits(self, start: FloatArray, fixed: np.ndarray) -> FloatArray:
        """A start (P,) with shapes elsewhere in their ranges, where the likelihood is higher.

        The likelihood is flat near a limit, where derivatives do not lead back: each shape is
        looked up along its range, the others as they are; not those that a restriction has
        `fixed` (P,).  So are deviations of random effects that are 0, where every likelihood is
        symmetric.
        """
        lower, upper = self.family.box_at(start)
        at, best = start.copy(), self._height(start)
        for j in self._shapes[~fixed[self._shapes]]:
            for value in np.linspace(lower[j], upper[j], _LOOKS):
                trial = at.copy()
                trial[j] = value
                if (height := self._height(trial)) < best - GAIN_LIMIT:
                    at, best = trial, height
        for j in self._deviations[~fixed[self._deviations]]:
            for value in _DEVIATIONS if abs(at[j]) < _DEVIATIONS[0] else ():
                trial = at.copy()
                trial[j] = value
                if (height := self._height(trial)) < best - GAIN_LIMIT:
                    at, best = trial, height
        return at

    def at_limits(self, start: FloatArray, fixed: np.ndarray) -> FloatArray:
        """The point (P,) with each shape that is not fixed on its limit, if it costs nothing."""
        lower, upper = self.family.box_at(start)
        at, best = start.copy(), self._height(start)
        for j in self._shapes[~fixed[self._shapes]]:
            for value in (lower[j], upper[j]):
                trial = at.copy()
                trial[j] = value
                if self._height(trial) <= best + GAIN_LIMIT:
                    at = trial
        return at

    @property
    def open_box(self) -> tuple[FloatArray, FloatArray]:
        """Lower and upper bounds (P,), without default bounds of what grows with the predictors."""
        family = self.family
        lower, upper = family.box_at(self.theta)
        names = [n for n in family.blocks if n not in family.given and n not in family.logged]
        grow = [np.ravel(family.blocks[name]) for name in names] + [gap_places(family)]
        at = np.concatenate(grow)
        at = at[lower[at] < upper[at]]
        lower[at], upper[at] = -np.inf, np.inf
        return lower, upper

    @property
    def far_out(self) -> FloatArray:
        """Component of the estimate (P,) along flat directions; 0 for coordinates on a bound."""
        flat, far = self.identified.flat, np.zeros(self.theta.size)
        metric, free = channel_metric(self.problem, self.theta), self.free
        far[free] = flat[free] @ (flat.T @ (metric @ self.theta))
        return far

    @property
    def covariance(self) -> FloatArray:
        """Inverse information (P, P) along the directions that are identified."""
        return self.identified.covariance

    def row(self, j: int) -> FloatArray:
        """Derivative (P,) of the user's parameter j."""
        if self.coordinates is None:
            return np.eye(self.theta.size)[j]
        return self.coordinates.matrix[j]

    def outward(self, theta: FloatArray) -> FloatArray:
        """Parameters (P,) in the user's coordinates."""
        return theta if self.coordinates is None else self.coordinates.outward(theta)

    def outward_matrix(self, matrix: FloatArray) -> FloatArray:
        """A covariance (P, P) in the user's coordinates."""
        if self.coordinates is None:
            return matrix
        return self.coordinates.matrix @ matrix @ self.coordinates.matrix.T


def inverse_of_free(information: FloatArray, free: IntArray) -> FloatArray:
    """Inverse of the information of the free coordinates, 0 elsewhere and along null directions."""
    block = information[np.ix_(free, free)]
    scale = np.sqrt(np.maximum(np.abs(np.diag(block)), np.finfo(float).tiny))
    values, vectors = np.linalg.eigh(block / np.outer(scale, scale))
    good = values > ZERO_CURVATURE * values.max(initial=0.0)
    inverse = (vectors[:, good] / values[good]) @ vectors[:, good].T / np.outer(scale, scale)
    full = np.zeros_like(information)
    full[np.ix_(free, free)] = inverse
    return full


def check_likelihood(name: str, family: Family) -> None:
    """Refuse a family without a density; `name` is the function that needs one."""
    if family.is_regression:
        raise ValueError(f"{name} needs a likelihood; a fit by least squares has none")


def check_maximum(result: Fitted) -> None:
    """Refuse a posterior mode, for methods that are derived for maxima of the likelihood."""
    if result.prior is not None:
        raise ValueError(
            "this is derived for maximum-likelihood fits, and the result is the posterior mode"
            f" under {result.prior}; fit without prior=. Modes have result.wald_test,"
            " result.bootstrap, and moestat.bootstrap_lrt for numbers of experts"
        )


def _check_all_rows(result: Fitted) -> None:
    """Refuse a fit that holds only a sample of its rows: covariances and tests need all rows."""
    if result.data is not None and result.data.drawn:
        raise ValueError(
            "at_sample() has a sample of the rows of the fit, for residuals, assignments and"
            " plots; ask the fit itself for covariances, tests and refits"
        )


def llf_at(result: Fitted, theta: FloatArray) -> float:
    """The log-likelihood of the data of a fit at other parameters (P,), in the user's units."""
    family, data = result.family, encoded_rows(result.family, result.rows)
    if family.is_regression:
        residual = data.y - family.regression(theta, data.X)[0]
        half = 0.5 * float(data.weight @ residual**2)
        return profile_log_likelihood(half, float(data.weight.sum()))
    return -Problem(family, data).evaluate(Request(Objective.VALUE, theta)).value


def inner_fit(result: Fitted, *, mode: bool = False, passes: bool = False) -> InnerFit:
    """The problem behind a `MoEResults`; `mode` says whether it may be a posterior mode.

    With `passes` the data of a fit to blocks, or to a source, are read again in passes over them.
    """
    if not mode:
        check_maximum(result)
    _check_all_rows(result)
    standard = result.standard
    inner = result if standard is None else standard
    coordinates = None if standard is None else standard.coordinates
    if passes and result.reads_source:
        data = result.rows_elsewhere
        data = data if coordinates is None else data.convert(coordinates.units)
    else:
        data = encoded_rows(result.family, result.rows)
    if coordinates is not None and not (passes and result.reads_source):
        Z, w = coordinates.units.apply(data.X, data.y)
        data = replace(data, X=Z, y=w)
    resolved = frozenset(() if standard is None else standard.resolved)
    problem = Problem(inner.family, data, resolved=resolved)
    if result.prior is not None:
        penalty = result.prior.penalty(inner.family, prior_units(data, inner.family))
        problem = PenalisedProblem(inner.family, data, resolved=resolved, penalty=penalty)
    solution = inner.solution
    return InnerFit(problem, solution.theta, solution.information, coordinates, result.identified)
