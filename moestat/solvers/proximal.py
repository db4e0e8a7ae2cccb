"""Sparse fits: a smooth objective with norms of coefficients, whose minimiser has zeros.

The objective per row is ``f(u) + penalty * sum_g w_g (r |u_g| + (1 - r) |u_g|^2 / (2 w_g))`` with f
minus the mean log-likelihood, Euclidean norms over groups g of coefficients, and r between 1
(lasso, of single coefficients or of groups) and 0 (ridge).  A step minimises the quadratic model of
f with the penalty as it is, by descent over groups (Tseng and Yun 2009): a proximal Newton method,
whose steps are Newton's once the zeros are known.  Where f is not convex the model has the absolute
curvatures, and where it is trusted too far a multiple of 1 besides.

Slopes of an expert with a scale are measured in that scale, ``b = u sigma``, as the scale itself is
estimated: else an expert with more inputs than rows would fit these with a scale of 0, at a finite
penalty (Staedler, Buehlmann and van de Geer 2010).

Inputs whose coefficients are all 0 are not in the model: they enter with the gradient, which is
computed over all inputs, so that a Hessian is as large as the inputs that are in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from moestat.base.types import FloatArray, IntArray
from moestat.compiler.jit import compile_loop
from moestat.model.family import Family
from moestat.solvers.problem import Objective, Problem, Request, Rows
from moestat.solvers.rules import (
    HALF_OF_DIGITS,
    NEGLIGIBLE,
    NEWTON_TOLERANCE,
    SQUARES,
    TRUST,
    ZERO_CURVATURE,
)

__all__ = ["Groups", "SparseProblem", "Stationary", "slopes_of"]

_ITERATIONS = 200
"""Largest number of steps of one fit; on a path, where a fit starts from its neighbour, it takes
three to ten."""

_STATIONARY = NEWTON_TOLERANCE
"""Gradient per row, in standardised coordinates, that counts as 0."""

_POWERS = {"nu": 2.0, "phi": 2.0, "sigma": 1.0}
"""Scales of likelihoods by their blocks' names: power of the scale."""

_SWEEPS = 1000
"""Largest number of sweeps of block descent; a step that ends before the minimum of its model is
still a descent step."""

_LARGEST = 1.0 / ZERO_CURVATURE
"""Largest damping: curvatures that are smaller count as zero beside it."""

_FLAT = HALF_OF_DIGITS
"""Smallest curvature, as a share of the largest.  Smaller ones are replaced by it so that the model
has a minimum."""


@dataclass(frozen=True)
class Groups:
    """Groups of coefficients that become 0 together."""

    group_of: IntArray
    """Group of each packed parameter, -1 for those without penalty; shape (P,)."""
    weight: FloatArray
    """Factor of each group's norm; shape (G,)."""
    ratio: float = 1.0
    """Share r of norms in the penalty; squares have the rest."""

    @cached_property
    def square(self) -> FloatArray:
        """Factor (G,) of each group's square: that of a single coefficient."""
        return self.weight / np.sqrt(
            np.bincount(self.group_of[self.group_of >= 0], minlength=self.weight.size)
        )

    def norms(self, values: FloatArray, group: IntArray) -> FloatArray:
        """Norm (G,) of each group of values, whose groups are `group`."""
        penalised = group >= 0
        return np.sqrt(np.bincount(group[penalised], values[penalised] ** 2, self.weight.size))


@dataclass(frozen=True)
class Stationary:
    """A stationary point of the penalised objective."""

    theta: FloatArray
    """Packed parameters, with all of a gate's slopes; shape (P,)."""
    value: float
    """The penalised objective per row."""
    log_likelihood: float
    """Total log-likelihood."""
    residual: float
    """Largest violation of the conditions of Karush, Kuhn and Tucker over all coefficients, in the
    units of the penalty."""
    curvatures: FloatArray
    """Eigenvalues of the Hessian per row over the coefficients that are not 0,
    ascending; shape (F,)."""
    effective: float
    """Effective number of these coefficients, ``tr((H + Q)^-1 H)`` with the Hessian H of the data
    and Q of the squares in the penalty."""
    gain: float
    """Gain of a further step that the model predicts, per row."""
    iterations: int
    """Number of steps."""


@dataclass(frozen=True)
class Scaled:
    """Coefficients in units of a scale, ``theta_j = u_j exp(u_(at j) / power_j)``."""

    at: IntArray
    """Place of the logarithm of each one's scale, -1 for those that have none; shape (m,)."""
    power: FloatArray
    """Power of the scale whose logarithm it is: 2 of a variance; shape (m,)."""

    @cached_property
    def scaled(self) -> IntArray:
        """Positions of the coefficients that have a scale."""
        return np.flatnonzero(self.at >= 0)

    def _sizes(self, theta: FloatArray) -> FloatArray:
        return np.exp(theta[self.at[self.scaled]] / self.power[self.scaled])

    def outward(self, u: FloatArray) -> FloatArray:
        """Convert u (m,) to theta (m,)."""
        theta = u.copy()
        theta[self.scaled] *= self._sizes(u)
        return theta

    def inward(self, theta: FloatArray) -> FloatArray:
        """Convert theta (m,) to u (m,)."""
        u = theta.copy()
        u[self.scaled] /= self._sizes(theta)
        return u

    def gradient(self, theta: FloatArray, gradient: FloatArray) -> FloatArray:
        """The gradient in u at theta, from the gradient in theta."""
        scaled, evaluation = self.scaled, gradient.copy()
        evaluation[scaled] *= self._sizes(theta)
        np.add.at(
            evaluation, self.at[scaled], gradient[scaled] * theta[scaled] / self.power[scaled]
        )
        return evaluation

    def hessian(self, theta: FloatArray, gradient: FloatArray, hessian: FloatArray) -> FloatArray:
        """The Hessian in u at theta, from gradient and Hessian in theta."""
        scaled, at, power, size = self.scaled, self.at[self.scaled], self.power, self._sizes(theta)
        along = np.eye(theta.size)
        along[scaled, scaled] = size
        along[scaled, at] = theta[scaled] / power[scaled]
        evaluation = along.T @ hessian @ along
        mixed = gradient[scaled] * size / power[scaled]
        evaluation[scaled, at] += mixed
        evaluation[at, scaled] += mixed
        np.add.at(evaluation, (at, at), gradient[scaled] * theta[scaled] / power[scaled] ** 2)
        return evaluation


def slopes_of(family: Family) -> IntArray:
    """The input that each parameter (P,) is a slope of, -1 for others."""
    inputs = np.full(family.n_params, -1)
    for c, channel in enumerate(family.channels):
        if channel.slope is not None:
            at = family.index[:, c, None] + 1 + np.arange(family.n_features)
            inputs[at] = np.arange(family.n_features)
    return inputs


@compile_loop
def descend(B, g, u, v, begin, steep, norm, square, lower, upper, tolerance, sweeps):
    """Minimise ``g's + s'Bs / 2`` with penalties over groups of ``v = u + s``, group by group.

    Coordinates are sorted by groups, which begin at `begin` (G + 1,); `steep` (G,) is the largest
    eigenvalue of each block of B, `norm` and `square` (G,) its penalty.  Writes v (m,).
    """
    r = g.copy()
    for j in range(u.size):
        if v[j] != u[j]:
            for i in range(u.size):
                r[i] += B[i, j] * (v[j] - u[j])
    for _ in range(sweeps):
        largest = 0.0
        for group in range(begin.size - 1):
            size = 0.0
            L = steep[group]
            for j in range(begin[group], begin[group + 1]):
                size += (L * v[j] - r[j]) ** 2
            size = np.sqrt(size)
            shrink = 0.0
            if size > norm[group]:
                shrink = (1.0 - norm[group] / size) / (L + square[group])
            for j in range(begin[group], begin[group + 1]):
                new = min(max((L * v[j] - r[j]) * shrink, lower[j]), upper[j])
                move = new - v[j]
                if move != 0.0:
                    v[j] = new
                    for i in range(u.size):
                        r[i] += B[i, j] * move
                    largest = max(largest, L * abs(move))
        if largest <= tolerance:
            break


@dataclass
class SparseProblem:
    """Data and family in standardised coordinates, with groups of coefficients."""

    problem: Problem
    """Data and family."""
    groups: Groups
    """The groups that are penalised."""
    _restricted: tuple[tuple[int, ...], _Restricted] | None = field(default=None, repr=False)

    @property
    def family(self) -> Family:
        """The family of all inputs."""
        return self.problem.family

    @cached_property
    def size(self) -> float:
        """Sum of the weights of the rows."""
        return float(self.problem.data.weight.sum())

    @cached_property
    def free(self) -> np.ndarray:
        """Parameters (P,) that are estimated; all atoms have penalised slopes of the gate."""
        family = self.family
        free = family.lower < family.upper
        touched = {one.block for one in family.constraints}
        for c in self.sloped:
            name = family.channels[c].slope
            if name in family.gate.translations and name not in touched and family.n_experts > 1:
                free[family.blocks[name][-1]] = True
        free[family.held_positions] = free[family.unread_positions] = False
        free[family.offset_positions] = False
        return free

    @property
    def sloped(self) -> list[int]:
        """Channels with slopes."""
        return [c for c, channel in enumerate(self.family.channels) if channel.slope is not None]

    @cached_property
    def input_of(self) -> IntArray:
        """`slopes_of` the family."""
        return slopes_of(self.family)

    @cached_property
    def owner(self) -> IntArray:
        """The coordinate of each parameter (P,): parameters that are equal share one."""
        owner = np.arange(self.family.n_params)
        for tied in self.family.ties:
            owner[tied] = tied[0]
        return owner

    @cached_property
    def scaled(self) -> Scaled:
        """The scale of each parameter (P,)."""
        family = self.family
        at, power = np.full(family.n_params, -1), np.ones(family.n_params)
        scales = {
            int(family.response_of[c]): c
            for c in range(family.first_expert_channel, len(family.channels))
            if family.plain_name(c) in _POWERS and not self._has_counts(c)
        }
        for c in self.sloped:
            scale = scales.get(int(family.response_of[c]))
            if c >= family.first_expert_channel and scale is not None:
                places = family.index[:, c, None] + 1 + np.arange(family.n_features)
                at[places] = family.index[:, scale, None]
                power[places] = _POWERS[family.plain_name(scale)]
        for tied in family.ties:
            if np.ptp(at[tied]) > 0:
                at[tied] = -1  # equal in their own units
        return Scaled(np.where(self.free & (self.input_of >= 0), at, -1), power)

    def _has_counts(self, c: int) -> bool:
        return self.family.likelihood.laws[self.family.response_of[c]].counts

    def scores(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Minus the mean log-likelihood, and its gradient (P,) in the coordinates."""
        plain = self.scaled.outward(theta)
        evaluation = self.problem.evaluate(Request(Objective.SCORE, plain))
        gradient = self.scaled.gradient(plain, evaluation.gradient)
        gradient = np.bincount(self.owner, gradient, self.owner.size) / self.size
        return evaluation.value / self.size, gradient

    @cached_property
    def single(self) -> np.ndarray:
        """A mask (P,) with one parameter for each free coordinate."""
        return self.free & (self.owner == np.arange(self.owner.size))

    def residuals(self, theta: FloatArray, gradient: FloatArray, penalty: float) -> FloatArray:
        """Violations of stationarity, for each coordinate without penalty and for each group."""
        groups, single = self.groups, self.single
        lower, upper = self.family.lower, self.family.upper
        alone = single & (groups.group_of < 0)
        slope = gradient[alone]
        on_bound = (theta[alone] <= lower[alone]) & (slope > 0.0)
        on_bound |= (theta[alone] >= upper[alone]) & (slope < 0.0)
        places = np.flatnonzero(single & (groups.group_of >= 0))
        group, u, g = groups.group_of[places], theta[places], gradient[places]
        size = groups.norms(u, group)
        inner = np.maximum(groups.norms(g, group) - penalty * groups.ratio * groups.weight, 0.0)
        divisor = np.where(size > 0.0, size, 1.0)
        factor = groups.ratio * groups.weight / divisor + (1.0 - groups.ratio) * groups.square
        outer = groups.norms(g + penalty * factor[group] * u, group)
        return np.append(np.where(on_bound, 0.0, np.abs(slope)), np.where(size > 0.0, outer, inner))

    def penalty(self, theta: FloatArray, penalty: float) -> float:
        """The penalty of parameters (P,), per row."""
        groups = self.groups
        size = groups.norms(theta, np.where(self.single, groups.group_of, -1))
        norms = groups.ratio * groups.weight @ size
        return penalty * float(norms + 0.5 * (1.0 - groups.ratio) * groups.square @ size**2)

    def largest(self, theta: FloatArray) -> float:
        """The least penalty at which all of the penalised coefficients are 0 near theta (P,)."""
        groups = self.groups
        norms = groups.norms(self.scores(theta)[1], np.where(self.single, groups.group_of, -1))
        return float(np.max(norms / groups.weight, initial=0.0)) / max(groups.ratio, NEGLIGIBLE)

    def solve(self, theta: FloatArray, penalty: float) -> Stationary:
        """A stationary point from theta (P,): inputs enter until none violates its condition."""
        inputs, n_iterations = self.inputs_of(theta != 0.0), 0
        while True:
            if self._restricted is None or self._restricted[0] != inputs:
                self._restricted = inputs, _Restricted(self, inputs)
            evaluation = self._restricted[1].solve(theta, penalty)
            theta, curvatures, effective, gain, iterations = evaluation
            n_iterations += iterations
            value, gradient = self.scores(theta)
            violations = self.residuals(theta, gradient, penalty)
            violating = violations[violations.size - self.groups.weight.size :] > _STATIONARY
            entering = (self.groups.group_of >= 0) & np.append(violating, False)[
                self.groups.group_of
            ]
            more = self.inputs_of((theta != 0.0) | entering)
            if set(more) <= set(inputs):
                break
            inputs = tuple(sorted({*inputs, *more}))
        total = value + self.penalty(theta, penalty)
        worst = float(violations.max(initial=0.0))
        height = self.problem.prior_of(self.scaled.outward(theta)) - self.size * value
        fit = theta, total, height, worst, curvatures, effective, gain, n_iterations
        return Stationary(*fit)

    def inputs_of(self, which: np.ndarray) -> tuple[int, ...]:
        """Inputs of the marked parameters (P,), and of those without penalty."""
        marked = which | (self.free & (self.groups.group_of < 0))
        marked[self.family.offset_positions] = True
        return tuple(np.unique(self.input_of[marked & (self.input_of >= 0)]).tolist())


class _Restricted:
    """The problem with some of the inputs; the coefficients of the others are 0."""

    def __init__(self, full: SparseProblem, inputs: Sequence[int]) -> None:
        self.full = full
        family, data, groups = full.family, full.problem.data, full.groups
        columns = list(inputs) or [0]  # a family has one input at least
        small = replace(
            family,
            n_features=len(columns),
            **{"held": (), "gate_inputs": None, "expert_inputs": None},
            **{"offset_input": None, "constraints": ()},
        )
        X = np.ascontiguousarray(data.X[columns])
        self.at = np.flatnonzero(np.isin(full.input_of, [-1, *columns]))
        at = full.scaled.at[self.at]
        places = np.where(at < 0, -1, np.searchsorted(self.at, at))
        self.scaled = Scaled(places, full.scaled.power[self.at])
        sample = Rows(X, data.y, data.weight, begin=data.begin)
        self.problem = full.problem.restrict(small, sample, self.at)
        single = full.single[self.at] & np.isin(full.input_of[self.at], [-1, *inputs])
        free = self.at[single]
        # Each coordinate without penalty is a group by itself.
        group = np.where(
            groups.group_of[free] < 0,
            groups.weight.size + np.arange(free.size),
            groups.group_of[free],
        )
        order = np.argsort(group, kind="stable")
        self.coordinates, self.group = free[order], group[order]
        self.alone = self.group >= groups.weight.size
        group_or_none = np.where(self.alone, groups.weight.size, self.group)
        weight, self.ridge = (
            np.append(a, 0.0)[group_or_none] for a in (groups.weight, groups.square)
        )
        self.norm, self.ridge = groups.ratio * weight, (1.0 - groups.ratio) * self.ridge
        self.spread = (full.owner[self.at][:, None] == self.coordinates[None, :]).astype(np.float64)
        self.moving = self.spread.any(axis=1)
        self.lower = np.where(self.alone, family.lower[self.coordinates], -np.inf)
        self.upper = np.where(self.alone, family.upper[self.coordinates], np.inf)

    def solve(
        self, theta: FloatArray, penalty: float
    ) -> tuple[FloatArray, FloatArray, float, float, int]:
        """A stationary point: parameters, curvatures, effective number, gain and steps."""
        n, damping, point, gain = self.full.size, 0.0, theta.copy(), 0.0
        u, H, steps = point[self.coordinates], np.empty((0, 0)), 0
        while steps < _ITERATIONS:
            plain = self.scaled.outward(point[self.at])
            evaluation = self.problem.evaluate(Request(Objective.OBSERVED, plain))
            g = self.spread.T @ self.scaled.gradient(plain, evaluation.gradient) / n
            H = self.scaled.hessian(plain, evaluation.gradient, evaluation.hessian)
            H = self.spread.T @ H @ self.spread / n
            violation, live = self._live(point, g, penalty)
            if violation <= _STATIONARY:
                break
            values, vectors = np.linalg.eigh(H[np.ix_(live, live)])
            values = np.maximum(np.abs(values), _FLAT * np.abs(values).max(initial=_FLAT))
            value = evaluation.value / n + self.full.penalty(point, penalty)
            while damping < _LARGEST:
                B = (vectors * (values + damping)) @ vectors.T
                v = u.copy()
                precision = min(violation, NEGLIGIBLE) * violation**0.5
                v[live] = self._minimum(B, g, u, live, penalty, precision)
                trial, s = point.copy(), (v - u)[live]
                trial[self.at] = np.where(self.moving, self.spread @ v, point[self.at])
                cost = self.full.penalty(trial, penalty)
                change = g[live] @ s + 0.5 * s @ B @ s + cost - self.full.penalty(point, penalty)
                plain = self.scaled.outward(trial[self.at])
                evaluation = self.problem.evaluate(Request(Objective.VALUE, plain))
                gained = value - evaluation.value / n - cost
                rounded = abs(change) <= TRUST.rounding * max(1.0, abs(value))
                if gained >= -TRUST.accept * change or rounded:
                    break
                damping = max(4.0 * damping, SQUARES.damping)
            else:
                break
            point, u, gain, steps = trial, v, float(-change), steps + 1
            damping = damping / 4.0 if damping > NEGLIGIBLE * SQUARES.damping else 0.0
        inside = self.alone & (u > self.lower) & (u < self.upper)
        at = np.flatnonzero(inside | ((u != 0.0) & ~self.alone))
        squares = penalty * self.ridge[at]
        values, vectors = np.linalg.eigh(H[np.ix_(at, at)] + np.diag(squares))
        lost = squares @ vectors**2 / np.maximum(values, np.finfo(float).tiny)
        return point, values, at.size - float(lost.sum()), gain, steps

    def _live(self, point: FloatArray, g: FloatArray, penalty: float) -> tuple[float, IntArray]:
        """Largest violation of stationarity, and the coordinates that a step moves.

        A step moves the coefficients that are not 0, and the groups that violate their condition by
        more than these coefficients do.  With all violating groups the Hessian would not be
        positive definite.
        """
        gradient = np.zeros(point.size)
        gradient[self.coordinates] = g
        violations = self.full.residuals(point, gradient, penalty)
        of_groups = violations[violations.size - self.full.groups.weight.size :]
        size = self.full.groups.norms(point[self.coordinates], np.where(self.alone, -1, self.group))
        moving = np.append(violations[: violations.size - of_groups.size], of_groups[size > 0.0])
        live = (size > 0.0) | (of_groups > max(_STATIONARY, moving.max(initial=0.0)))
        at = self.alone | np.append(live, False)[np.minimum(self.group, live.size)]
        return float(violations.max(initial=0.0)), np.flatnonzero(at)

    def _minimum(
        self,
        B: FloatArray,
        g: FloatArray,
        u: FloatArray,
        live: IntArray,
        penalty: float,
        tolerance: float,
    ) -> FloatArray:
        """The minimiser of the model with the penalty at the coordinates that move."""
        begin = np.append(np.flatnonzero(np.diff(self.group[live], prepend=-1)), live.size)
        steep = np.diag(B)[begin[:-1]].copy()
        for j in np.flatnonzero(np.diff(begin) > 1):
            block = slice(begin[j], begin[j + 1])
            steep[j] = np.linalg.norm(B[block, block], 2)
        first, v = live[begin[:-1]], u[live]
        penalties = penalty * self.norm[first], penalty * self.ridge[first]
        bounds = self.lower[live], self.upper[live]
        descend(B, g[live], u[live], v, begin, steep, *penalties, *bounds, tolerance, _SWEEPS)
        return v
