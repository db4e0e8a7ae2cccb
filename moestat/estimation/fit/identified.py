"""Which directions of parameter space the data determine, leave open, or do not affect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from moestat.base.types import FloatArray, IntArray
from moestat.estimation.fit.delta import features
from moestat.estimation.rules import DOUBT
from moestat.model.family import Family
from moestat.solvers.penalised import PenalisedProblem
from moestat.solvers.problem import Problem, Rows
from moestat.solvers.rules import BFGS, ZERO_CURVATURE
from moestat.solvers.solution import Solution

__all__ = [
    "Identified",
    "channel_metric",
    "gap_places",
    "identified",
    "rank_at",
    "related_columns",
    "shortest",
    "without_spare_columns",
]

_SEEN = 1e-3
"""Smallest part of a unit vector along flat directions that does not come from rounding."""


@dataclass(frozen=True)
class Identified:
    """A fit's parameters by what the data say about them, in the coordinates of the fit."""

    # (P,): whether each coordinate is estimated.  Coordinates of a reference expert are not, and
    # neither are those whose bounds are closer to each other than the smallest standard error that
    # data of this size can have
    estimated: np.ndarray
    held: np.ndarray  # (P,): coordinates that a bound holds
    # (P,): moves of each estimated coordinate that move its predictor by 1, root mean square
    unit: FloatArray = field(repr=False)
    # (P, a): directions that move no predictor of any row: linear relations among inputs
    aliased: FloatArray
    # (P, m): directions that move predictors by 1, root mean square, at hardly any cost: the
    # maximum lies at infinity along them, or hardly any row speaks of them
    flat: FloatArray
    # (P, t): the directions that the data determine, orthonormal in the information
    determined: FloatArray = field(repr=False)
    # (P, r): determined and flat directions together, orthonormal in the metric
    whitened: FloatArray = field(repr=False)
    definite: bool  # whether the information is nowhere negative, as at a maximum
    pinned: int = 0  # number of free coordinates between bounds that are as good as one value
    tied: int = 0  # number of coordinates that are equal to others
    idle: int = 0  # number of aliased coordinates of the gate of a single expert

    @property
    def covariance(self) -> FloatArray:
        """Inverse information (P, P) along the directions that are determined, 0 along others."""
        return self.determined @ self.determined.T

    @property
    def rank(self) -> int:
        """Degrees of freedom of the model: number of parameters that such data can determine.

        Flat directions count: at other values of the parameters the data determine them.
        """
        return int(self.estimated.sum()) - self.tied - self.aliased.shape[1]

    def related(self, rows: FloatArray) -> np.ndarray:
        """Whether derivatives (q, P) have a part along a linear relation among inputs, (q,)."""
        return (_norm(rows @ self.aliased) > DOUBT.part * _norm(rows * self.unit))[:, 0]

    def seen(self, rows: FloatArray) -> np.ndarray:
        """Whether the data determine functions with derivatives (q, P), shape (q,)."""
        on_bound = np.any(np.abs(rows[:, self.held]) > DOUBT.part * _norm(rows), axis=1)
        return self.definite & ~(on_bound | self.untold(rows))

    def open(self, rows: FloatArray) -> np.ndarray:
        """Whether derivatives (q, P) have a part along flat directions, shape (q,)."""
        return (_norm(rows @ self.flat) > _SEEN * _norm(rows @ self.whitened))[:, 0]

    def untold(self, rows: FloatArray) -> np.ndarray:
        """Whether functions with derivatives (q, P) have no finite or no unique value, (q,)."""
        return self.related(rows) | self.open(rows)

    def errors(self, rows: FloatArray, variance: FloatArray | None = None) -> FloatArray:
        """Standard errors (q,) of functions with derivatives (q, P), by the delta method.

        Coordinates on a bound are constants.  A flat direction enters with the change of the
        function for one unit of the predictors along it: none where the function has reached its
        limit, and a large one in between.  Errors are infinite for inputs that violate a linear
        relation among the inputs of the data, and for a fit that is not a maximum.
        """
        determined = np.sum((rows @ self.determined) ** 2, axis=1) if variance is None else variance
        # Not below 0 where a covariance is not positive to the last digit.
        total = np.maximum(determined, 0.0) + np.sum((rows @ self.flat) ** 2, axis=1)
        return np.sqrt(np.where(self.related(rows) | (not self.definite), np.inf, total))

    @property
    def why(self) -> str:
        """Why the rank is less than the number of parameters with names; "" where it is not."""
        lost = self.aliased.shape[1]
        related = lost - self.idle
        parts = [f"the gate of a single expert takes {self.idle}"] * bool(self.idle)
        parts += [f"linear relations among the inputs take {related}"] * bool(related)
        parts += [f"bounds that leave no room take {self.pinned}"] * bool(self.pinned)
        if not parts:
            return ""
        count = self.rank + lost + self.pinned
        return f"{self.rank} of {count} free parameters are degrees of freedom: " + ", ".join(parts)

    def spread(self, rows: FloatArray) -> FloatArray:
        """Covariance (q, q) of functions with derivatives (q, P); NaN where one is undetermined."""
        scaled = rows @ self.determined
        spread = scaled @ scaled.T
        lost = ~self.seen(rows)
        spread[lost] = np.nan
        spread[:, lost] = np.nan
        return spread


def _norm(rows: FloatArray) -> FloatArray:
    return np.linalg.norm(rows, axis=1, keepdims=True)


def channel_metric(problem: Problem, theta: FloatArray) -> FloatArray:
    """Metric (P, P) of the channels without a ridge: mean squared moves of predictors by steps.

    It is that of `moestat.solvers.problem.Problem.metric`, with products of inputs and 0 along
    what moves no predictor: linear relations among inputs, and the gate of a single expert.
    Logarithms of gaps between thresholds move these by the gap.
    """
    family, data = problem.family, problem.data
    gram = data.gram
    if any(channel.products is not None for channel in family.channels):
        gram = data.sum_parts(_gram) / float(data.weight.sum())
    unit = family.units(theta)
    gaps = gap_places(family)
    unit[gaps] = np.exp(-theta[gaps])
    for names in filter(None, family.likelihood.pairs.values()):
        # A dependence w of two responses moves their correlation by its relative change.
        at = np.array([np.ravel(family.blocks[name]) for name in names]).reshape(len(names), -1)
        unit[at] = np.sqrt(1.0 + np.sum(theta[at] ** 2, axis=0))
    metric = np.zeros((family.n_params, family.n_params))
    idle = family.n_experts == 1 and family.gate.normalised
    for c in range(family.first_expert_channel if idle else 0, len(family.channels)):
        width = int(family.width[c])
        places = np.concatenate([[0], family.offset[c] + np.arange(width - 1)])
        moves = gram[np.ix_(places, places)]
        for first in family.index[:, c]:
            metric[first : first + width, first : first + width] = moves
    metric /= unit[:, None] * unit
    if isinstance(problem, PenalisedProblem):
        # A prior density determines directions that no row does.
        metric += problem.penalty.hessian(theta) / float(data.weight.sum())
    return metric


def gap_places(family: Family) -> IntArray:
    """Places of logarithms of distances between thresholds, which grow as predictors do."""
    if family.likelihood.support is None:
        return np.empty(0, dtype=np.int64)
    logs = [c for c, channel in enumerate(family.channels) if channel.log]
    return family.index[:, logs].ravel()


def _gram(part: Rows) -> FloatArray:
    """Weighted sum of ``phi phi'`` with phi = (1, x, products)."""
    phi = features(part.X.T)
    return (phi * part.weight) @ phi.T


def identified(
    family: Family, solution: Solution, n: float, metric: FloatArray | None = None
) -> Identified:
    """Sort the directions of parameter space by what the data say about them.

    With M the metric, directions u of ``M u = 0`` are aliased.  In a basis of the others that is
    orthonormal in M an eigenvector of the information with an eigenvalue below 1e-4 is flat: a
    maximum at infinity, as for separated classes (Albert and Anderson 1984), has such directions.
    Default bounds are not part of the model: a coordinate on one of them is flat if the
    distribution has a limit there.
    """
    theta, information = solution.theta, solution.information
    lower, upper = family.box_at(theta)
    absolute = metric is not None and not family.is_regression
    if metric is None:
        metric = np.diag(np.abs(np.diag(information))) / n
    estimated, given, ties = _estimated(family, theta, n, metric)
    unit, null, whole = _basis(metric, estimated, ties)
    related = np.any(np.abs(null) > DOUBT.part * unit[:, None], axis=1)
    on = estimated & ((theta <= lower) | (theta >= upper)) & ~related
    flattest = BFGS.flattest if absolute else 0.0

    def sort(fixed: np.ndarray) -> tuple[FloatArray, FloatArray, FloatArray, bool]:
        free = estimated & ~fixed
        basis = _basis(metric, free, ties)[2] if fixed.any() else whole
        return _sort_directions(information, flattest, free, basis)

    held, at_limit = on & given, on & ~given & _limits(family)
    flat, determined, whitened, definite = sort(held | at_limit)
    if on.any() and not definite:
        held, at_limit = on, on & False
        flat, determined, whitened, definite = sort(held)
    flat = np.column_stack([flat, np.diag(unit)[:, at_limit]])
    pinned = int(np.sum((lower < upper) & ~estimated))
    tied = _tied(ties)
    idle = 0
    if family.n_experts == 1 and family.gate.normalised:
        channels = range(family.first_expert_channel)
        places = [family.index[0, c] + np.arange(family.width[c]) for c in channels]
        gate = np.concatenate([np.empty(0, dtype=np.int64), *places])
        idle = int(np.sum(estimated[gate] & (np.diag(metric)[gate] == 0.0)))
    known = unit, null, flat, determined, whitened, definite
    return Identified(estimated, held, *known, pinned, tied, idle)


def _estimated(
    family: Family, theta: FloatArray, n: float, metric: FloatArray
) -> tuple[np.ndarray, np.ndarray, list[IntArray]]:
    """Which coordinates (P,) are estimated, which have bounds of the user's, and ties of those."""
    lower, upper = family.box_at(theta)
    given = np.zeros(family.n_params, dtype=bool)
    for name in family.given:
        given[family.blocks[name]] = True
    wide = (upper - lower) ** 2 * n * np.diag(metric) >= 1.0
    estimated = (lower < upper) & (wide | ~given)
    return estimated, given, [tie for tie in family.ties if estimated[tie].all()]


def _tied(ties: Sequence[IntArray]) -> int:
    """Number of coordinates that are equal to others."""
    return sum(tie.size - 1 for tie in ties)


def _limits(family: Family) -> np.ndarray:
    """Parameters (P,) at whose limit the distribution becomes a simpler one, for all the others."""
    limited = np.zeros(family.n_params, dtype=bool)
    for block in family.likelihood.limits:
        limited[family.blocks[block]] = True
    return limited


def rank_at(problem: Problem, theta: FloatArray) -> int:
    """`Identified.rank` at theta (P,), for which the information is not needed."""
    metric = channel_metric(problem, theta)
    estimated, _, ties = _estimated(problem.family, theta, float(problem.data.weight.sum()), metric)
    _, null, _ = _basis(metric, estimated, ties)
    return int(estimated.sum()) - _tied(ties) - null.shape[1]


def _basis(
    metric: FloatArray, free: np.ndarray, ties: Sequence[IntArray]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Units (P,), null directions and an orthonormal basis (P, r) of a metric at free places."""
    alone = free.copy()
    free_ties = [tie for tie in ties if free[tie].all()]
    for tie in ties:
        alone[tie] = False
    columns = np.eye(free.size)[:, alone]
    if free_ties:
        columns = np.column_stack([columns, *(np.isin(range(free.size), tie) for tie in free_ties)])
    metric = columns.T @ metric @ columns
    size = np.sqrt(np.diag(metric))
    size[size == 0.0] = 1.0
    values, vectors = np.linalg.eigh(metric / np.outer(size, size))
    full = columns @ (vectors / size[:, None])
    null = values <= ZERO_CURVATURE
    return columns @ (1.0 / size), full[:, null], full[:, ~null] / np.sqrt(values[~null])


def _sort_directions(
    information: FloatArray, flat: float, free: np.ndarray, basis: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, bool]:
    """Flat and determined directions of free coordinates, all of these, and definiteness.

    The `basis` (P, r) is orthonormal in the metric.
    """
    if not np.isfinite(information[np.ix_(free, free)]).all():
        return basis[:, :0], basis[:, :0], basis, False
    values, vectors = np.linalg.eigh(basis.T @ information @ basis)
    basis = basis @ vectors
    least = max(flat, ZERO_CURVATURE * float(np.abs(values).max(initial=0.0)))
    determined = values > least
    scaled = basis[:, determined] / np.sqrt(values[determined])
    return basis[:, np.abs(values) <= least], scaled, basis, bool(np.all(values >= -least))


def shortest(problem: Problem, solution: Solution) -> Solution:
    """The shortest of the solutions with the same predictors at every row.

    Along linear relations among inputs a solver may end anywhere, even on a default bound.
    """
    family, theta = problem.family, solution.theta
    lower, upper = family.box_at(theta)
    unit, null, _ = _basis(channel_metric(problem, theta), lower < upper, family.ties)
    if not null.size:
        return solution
    scale = np.where(unit > 0.0, unit, 1.0)
    shorter = theta - null @ ((null / scale[:, None]).T @ (theta / scale))
    if np.any((shorter < lower) | (shorter > upper)):
        return solution
    on = np.flatnonzero((lower < upper) & ((shorter <= lower) | (shorter >= upper)))
    active = tuple(family.param_names[j] for j in on)
    certificate = replace(solution.certificate, active=active)
    return replace(solution, theta=shorter, certificate=certificate)


def related_columns(data: Rows, used: IntArray) -> tuple[set[int], set[int]]:
    """The columns in `used` that are in a linear relation, and those of them that are spare."""
    if used.size < 2:
        return set(), set()
    covariance = data.covariance[np.ix_(used, used)]
    deviation = np.sqrt(np.diag(covariance))
    values, vectors = np.linalg.eigh(covariance / np.outer(deviation, deviation))
    null = vectors[:, values < ZERO_CURVATURE]
    among = np.flatnonzero(np.any(np.abs(null) > DOUBT.part, axis=1))
    if not among.size:
        return set(), set()
    # Without the columns at the pivots of the relations the others are independent.
    from scipy.linalg import qr

    pivots = qr(null.T, pivoting=True)[-1]
    spare = pivots[: null.shape[1]]
    return {int(used[j]) for j in among}, {int(used[j]) for j in spare}


def without_spare_columns(problem: Problem) -> Problem:
    """The problem without columns that are linear functions of others, for searches.

    The coefficients of these columns are held at 0.  Otherwise starts and climbs would move along
    directions that the data do not determine.
    A gate and experts that read different columns keep theirs, as do coefficients with a prior
    density or constraints of their own.
    """
    family = problem.family
    inputs = family.gate_inputs, family.expert_inputs
    parts = {family.read if part is None else tuple(part) for part in inputs} - {()}
    bent = any(c.axis is not None or (c.products and not c.slope) for c in family.channels)
    restricted = family.constraints or family.own_inputs is not None
    if len(parts) != 1 or bent or restricted or isinstance(problem, PenalisedProblem):
        return problem
    offset = () if family.offset_input is None else family.offset_input[:1]
    used = np.setdiff1d(family.read, [*family.held, *offset]).astype(int)
    _, spare = related_columns(problem.data, used)
    return replace(problem, family=family.holding({*family.held, *spare})) if spare else problem
