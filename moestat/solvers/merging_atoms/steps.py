"""Steps along the ridge of merging atoms: a model in their moments, and the way back to the ridge.

A step is proposed by the quadratic model in the moments (`moestat.solvers.merging_atoms.moments`),
made, and led back to the ridge (`moestat.solvers.merging_atoms.corrector`) before it
is judged.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from moestat.base.types import FloatArray
from moestat.solvers.merging_atoms.corrector import Ridge
from moestat.solvers.merging_atoms.moments import Moments, Path
from moestat.solvers.merging_atoms.rules import RIDGE
from moestat.solvers.problem import End, Evaluation, Iteration, Objective, Problem, Request, Rows
from moestat.solvers.rules import TRUST
from moestat.solvers.trust_region.decrease import finest_decrease, is_converged, smallest_decrease
from moestat.solvers.trust_region.region import BoxStep, Region

_Ask = Callable[[FloatArray], Request]


class _Model:
    """The quadratic model of the objective around theta (P,), in the moments."""

    def __init__(
        self,
        moments: Moments,
        theta: FloatArray,
        current: Evaluation,
        metric: FloatArray,
        lower: FloatArray,
        upper: FloatArray,
    ) -> None:
        self.theta, self.current = theta, current
        self.chart = moments.chart(theta, lower, upper)
        self.hessian = current.hessian + self.chart.curvature(current.gradient)
        self._region = Region(theta, current.gradient, self.hessian, metric, lower, upper)

    def step(self, radius: float, null: float = TRUST.rounding) -> BoxStep:
        """The best step within the radius."""
        return self._region.step(radius, null)

    def shortest_step(self, radius: float) -> BoxStep:
        """The best step within the radius, shortened while it keeps most of its predicted decrease.

        Directions whose slope and curvature are rounding errors would make a long step that gains
        almost nothing.
        """
        move = self.step(radius, RIDGE.faintest)
        while move.decrease > 0.0:
            shorter = self.step(0.5 * move.length, RIDGE.faintest)
            if not shorter.decrease >= RIDGE.whole * move.decrease:
                break
            move = shorter
        return move

    def is_solved(self, radius: float, tolerance: float) -> bool:
        """Whether neither a step within the radius nor a step of length one gains enough."""
        current, move = self.current, self.step(radius)
        if is_converged(move.decrease, move.length, radius, current.value, tolerance):
            return True
        smallest = smallest_decrease(current.value, tolerance)
        # Rounding may have cut the radius; a certificate asks for steps of length one.
        return radius < 1.0 and max(move.decrease, self.step(1.0).decrease) <= smallest

    def is_suspect(self, move: BoxStep) -> bool:
        """Whether most of a step's predicted reduction comes from negative curvature.

        Off the ridge, soft curvatures are those of its sides, in proportion to the distance.
        """
        return -0.5 * float(move.step @ self.hessian @ move.step) > RIDGE.suspect * move.decrease

    def clip(self, theta: FloatArray) -> FloatArray:
        """The point of the box nearest to theta (P,)."""
        return np.minimum(np.maximum(theta, self._region.lower), self._region.upper)

    @cached_property
    def ridge(self) -> Ridge:
        """The corrector at this model, made when a step first needs it."""
        return Ridge(self._region, self.current)


@dataclass(frozen=True)
class _Proposal:
    """A step of a model, and the path of the parameters whose end is the trial point."""

    model: _Model
    move: BoxStep
    path: Path

    def ratio(self, end: FloatArray, proposed: Evaluation, gradient: FloatArray) -> float:
        """Decrease up to the end (P,), with its gradient, in units of the predicted one."""
        current, predicted = self.model.current, self.move.decrease
        decrease = current.value - proposed.value
        if max(predicted, abs(decrease)) <= finest_decrease(current.value):
            decrease = self._integral(end, gradient)
        return decrease / predicted

    def _integral(self, end: FloatArray, gradient: FloatArray) -> float:
        """The decrease from the slopes at both ends of the path.

        The path is continued to the end as a parabola, which leaves the ridge by a term of third
        order.  Curvatures would not help: along a path at an angle to the ridge, they are the
        curvatures of the sides of the ridge.
        """
        return -0.5 * sum(self._slopes(end, gradient))

    def _slopes(self, end: FloatArray, gradient: FloatArray) -> tuple[float, float]:
        """Slopes at both ends of the parabola that starts like the path and has this end (P,)."""
        velocity = self.path.velocity + 2.0 * (end - self.path.end)
        return float(self.move.step @ self.model.current.gradient), float(velocity @ gradient)

    def shortened(self, end: FloatArray, gradient: FloatArray, ratio: float) -> float:
        """The part of a failed step to try next: where a cubic is lowest.

        The cubic has the values and slopes of both ends.
        """
        start, stop = (slope / self.move.decrease for slope in self._slopes(end, gradient))
        square, cube = -(3.0 * ratio) - 2.0 * start - stop, start + stop + 2.0 * ratio
        inside = square * square - 3.0 * cube * start
        if not (np.isfinite(inside) and inside >= 0.0):
            return 0.5
        # The root that does not cancel; the other one is a maximum.
        sum_of = square + np.sqrt(inside)
        part = -start / sum_of if sum_of > 0.0 else 0.5
        return min(max(part, RIDGE.shortest), RIDGE.longest)


@dataclass(frozen=True)
class _Landing:
    """The end of a step after its corrections.

    The gradient (P,) is without the slopes in stiff directions.  The ratio is the decrease in units
    of the predicted one, minus infinity where the objective is not finite.
    """

    theta: FloatArray
    evaluation: Evaluation
    gradient: FloatArray
    ratio: float
    corrections: int = 0


def _land(proposal: _Proposal, curved: bool, ask: _Ask) -> Iteration[_Landing]:
    """Evaluate the trial point of a proposal, and correct it back to the ridge.

    If the step before needed a correction (`curved`), this step is corrected, too, even if it has
    gained: off the ridge a decrease says little about the step, and a model would be useless.
    """
    model = proposal.model
    predicted = proposal.move.decrease
    length = proposal.move.length
    point = model.clip(proposal.path.end)
    proposed = yield ask(point)
    gradient, finite = proposed.gradient, _is_finite(proposed)
    first = proposal.ratio(point, proposed, gradient) if finite else -np.inf
    count, before = 0, np.inf
    while finite and (curved or first < TRUST.good):
        back = model.ridge.correction(point, proposed, length, predicted, count)
        gradient = back.gradient
        # The predicted decrease of a correction measures how far the ridge is; it must shrink.
        comes_nearer = RIDGE.worth * predicted < back.decrease <= max(before, predicted)
        if not comes_nearer or count == RIDGE.corrections:
            break
        before = back.decrease
        point = model.clip(point + back.step)
        proposed = yield ask(point)
        finite, count = _is_finite(proposed), count + 1
    ratio = proposal.ratio(point, proposed, gradient) if finite else -np.inf
    return _Landing(point, proposed, gradient, ratio, count)


def _is_finite(proposed: Evaluation) -> bool:
    # A sum of squares is finite only where its terms are.
    return math.isfinite(proposed.value) and math.isfinite(
        np.vdot(proposed.hessian, proposed.hessian)
    )


def _refine(
    last: _Proposal, model: _Model, ask: _Ask
) -> Iteration[tuple[FloatArray, Evaluation] | None]:
    """Apply a further correction to the last step, from the model at its end.

    Returns None if there is nothing to correct, or if the corrected step does not gain.
    """
    ridge = last.model.ridge
    length = last.move.length
    predicted = last.move.decrease
    back = ridge.correction(model.theta, model.current, length, predicted, RIDGE.corrections)
    if back.length == 0.0:
        return None
    point = model.clip(model.theta + back.step)
    proposed = yield ask(point)
    if not _is_finite(proposed):
        return None
    gradient = ridge.correction(point, proposed, length, predicted, RIDGE.corrections).gradient
    ratio = last.ratio(point, proposed, gradient)
    return (point, proposed) if ratio > 0.0 else None


def _objective(data: Rows) -> Objective:
    """The objective to request: with the information of the scores if rows are few.

    The information improves corrections.  With few rows it costs little compared with the algebra
    of the steps.  With many rows it adds up to three quarters to the cost of a pass and saves fewer
    passes than that.
    """
    return Objective.INFORMED if data.size <= RIDGE.few_rows else Objective.OBSERVED


class _Radius:
    """The radius of the trust region, with the length of the last step that failed."""

    def __init__(self, start: float) -> None:
        self.value = start
        self.ceiling = np.inf
        self.is_failing = False

    def cut(self, part: float, length: float) -> None:
        """Reduce the radius to a part of the length of a failed step."""
        if not self.is_failing:
            self.ceiling = length
        self.is_failing = True
        self.value = part * min(length, self.value)

    def grow(self) -> None:
        """Enlarge the radius after a good step as long as the radius."""
        growth = RIDGE.growth
        near = RIDGE.whole * self.ceiling
        if growth * self.value > near:
            growth = max(min(growth, near / self.value), 1.0)
        self.ceiling *= RIDGE.relief
        self.value = min(growth * self.value, TRUST.largest)


def moment_steps(
    problem: Problem,
    theta: FloatArray,
    metric: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    tolerance: float,
    max_iterations: int,
    level: int = -1,
) -> Iteration[tuple[End, Evaluation]]:
    """Minimise minus the log-likelihood; returns the end and its evaluation.

    A step that gains less than its model predicted has left the ridge.  Corrections
    (`moestat.solvers.merging_atoms.corrector`) are applied before it is accepted or rejected.
    Iterations count passes.
    """
    moments = Moments(problem.family, metric)
    ask = partial(Request, _objective(problem.data.levels[level]), level=level)
    current = yield ask(theta)
    # A ridge curves on the scale of the distance between the atoms that merge.
    radius = _Radius(min(max(moments.closest(theta), TRUST.smallest), 1.0))
    model = _Model(moments, theta, current, metric, lower, upper)
    passes = 0
    curved = False
    last: _Proposal | None = None
    while passes < max_iterations:
        move = model.shortest_step(radius.value)
        if last is not None and curved and model.is_suspect(move):
            refined = yield from _refine(last, model, ask)
            passes += 1
            last = None
            if refined is not None:
                model = _Model(moments, *refined, metric, lower, upper)
            continue
        if model.is_solved(radius.value, tolerance):
            return End(model.theta, "converged", passes), model.current
        proposal = _Proposal(model, move, model.chart.path(move.step))
        landing = yield from _land(proposal, curved, ask)
        passes = passes + 1 + landing.corrections
        last = None
        if landing.ratio < TRUST.poor:
            part = proposal.shortened(landing.theta, landing.gradient, landing.ratio)
            radius.cut(part, move.length)
        elif landing.ratio > TRUST.good and move.length > TRUST.edge * radius.value:
            radius.grow()
        if landing.ratio > TRUST.accept:
            model = _Model(moments, landing.theta, landing.evaluation, metric, lower, upper)
            last = proposal
            curved = landing.corrections > 0
            radius.is_failing = False
        elif radius.value < TRUST.smallest:
            return End(model.theta, "stalled", passes), model.current
    return End(model.theta, "iteration limit", passes), model.current


def model_hessian(
    problem: Problem,
    theta: FloatArray,
    current: Evaluation,
    metric: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
) -> FloatArray:
    """Hessian (P, P) of the model in the moments around theta (P,), with its evaluation there."""
    return _Model(Moments(problem.family, metric), theta, current, metric, lower, upper).hessian
