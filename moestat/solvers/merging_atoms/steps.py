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
from moestat.solvers.merging_atoms.rules import RULES
from moestat.solvers.problem import End, Evaluation, Iteration, Objective, Problem, Request, Sample
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
        here: Evaluation,
        metric: FloatArray,
        lower: FloatArray,
        upper: FloatArray,
    ) -> None:
        self.theta, self.here = theta, here
        self.chart = moments.chart(theta, lower, upper)
        self.hessian = here.hessian + self.chart.curvature(here.gradient)
        self._region = Region(theta, here.gradient, self.hessian, metric, lower, upper)

    def step(self, radius: float, null: float = TRUST.rounding) -> BoxStep:
        """The best step within the radius."""
        return self._region.step(radius, null)

    def shortest_step(self, radius: float) -> BoxStep:
        """A step within the radius that is no longer than its predicted reduction is worth.

        Directions whose slope and curvature are rounding would lead far away for next to nothing.
        """
        move = self.step(radius, RULES.faintest)
        while move.decrease > 0.0:
            shorter = self.step(0.5 * move.length, RULES.faintest)
            if not shorter.decrease >= RULES.whole * move.decrease:
                break
            move = shorter
        return move

    def is_solved(self, radius: float, tolerance: float) -> bool:
        """Whether neither a step within the radius nor one of length one has something to gain."""
        here, move = self.here, self.step(radius)
        if is_converged(move.decrease, move.length, radius, here.value, tolerance):
            return True
        smallest = smallest_decrease(here.value, tolerance)
        # Rounding may have cut the radius; a certificate asks for steps of length one.
        return radius < 1.0 and max(move.decrease, self.step(1.0).decrease) <= smallest

    def is_suspect(self, move: BoxStep) -> bool:
        """Whether most of a step's predicted reduction comes from negative curvature.

        Off the ridge the soft curvatures are those of its sides, times how far it is.
        """
        return -0.5 * float(move.step @ self.hessian @ move.step) > RULES.suspect * move.decrease

    def clip(self, theta: FloatArray) -> FloatArray:
        """The point of the box nearest to theta (P,)."""
        return np.minimum(np.maximum(theta, self._region.lower), self._region.upper)

    @cached_property
    def ridge(self) -> Ridge:
        """The model's ridge, which is made for the first step that needs it."""
        return Ridge(self._region, self.here)


@dataclass(frozen=True)
class _Proposal:
    """A step of a model, and the path that it stands for, at the end of which it is tried."""

    model: _Model
    move: BoxStep
    path: Path

    def ratio(self, end: FloatArray, there: Evaluation, gradient: FloatArray) -> float:
        """Decrease up to the end (P,), with its gradient, in units of the predicted one."""
        here, predicted = self.model.here, self.move.decrease
        decrease = here.value - there.value
        if max(predicted, abs(decrease)) <= finest_decrease(here.value):
            decrease = self._integral(end, gradient)
        return decrease / predicted

    def _integral(self, end: FloatArray, gradient: FloatArray) -> float:
        """The decrease from the slopes at both ends of the path.

        It goes on to the end as a parabola, and so leaves the ridge by no more than
        third order.  Curvatures would be of no use: those along a path that leaves the ridge by
        an angle are the curvatures of the sides of the ridge.
        """
        return -0.5 * sum(self._slopes(end, gradient))

    def _slopes(self, end: FloatArray, gradient: FloatArray) -> tuple[float, float]:
        """Slopes at both ends of the parabola that starts like the path and has this end (P,)."""
        velocity = self.path.velocity + 2.0 * (end - self.path.end)
        return float(self.move.step @ self.model.here.gradient), float(velocity @ gradient)

    def shortened(self, end: FloatArray, gradient: FloatArray, ratio: float) -> float:
        """The part of a step that has failed at which a cubic is lowest.

        It has the values and slopes of both ends.
        """
        start, stop = (slope / self.move.decrease for slope in self._slopes(end, gradient))
        square, cube = -3.0 * ratio - 2.0 * start - stop, start + stop + 2.0 * ratio
        inside = square * square - 3.0 * cube * start
        if not (np.isfinite(inside) and inside >= 0.0):
            return RULES.half
        # The root that does not cancel; the other one is a maximum.
        sum_of = square + np.sqrt(inside)
        part = -start / sum_of if sum_of > 0.0 else RULES.half
        return min(max(part, RULES.shortest), RULES.longest)


@dataclass(frozen=True)
class _Landing:
    """Where a step has led, with its corrections.

    The gradient (P,) is without the slopes in stiff directions.  The ratio is the decrease in units
    of the predicted one, minus infinity for a step that must not be made.
    """

    theta: FloatArray
    evaluation: Evaluation
    gradient: FloatArray
    ratio: float
    corrections: int = 0


def _land(proposal: _Proposal, curved: bool, ask: _Ask) -> Iteration[_Landing]:
    """Go where the proposal leads, and from there back to the ridge.

    Where the step before had to be corrected (`curved`), this one is, too, however good it looks:
    off the ridge decreases are not what they seem, and the next model would be worthless.
    """
    model = proposal.model
    predicted = proposal.move.decrease
    length = proposal.move.length
    point = model.clip(proposal.path.end)
    there = yield ask(point)
    gradient, finite = there.gradient, _is_finite(there)
    first = proposal.ratio(point, there, gradient) if finite else -np.inf
    count, before = 0, np.inf
    while finite and (curved or first < RULES.good):
        back = model.ridge.correction(point, there, length, predicted, count)
        gradient = back.gradient
        # What a correction predicts is how far the ridge is; it must come nearer.
        comes_nearer = RULES.worth * predicted < back.decrease <= max(before, predicted)
        if not comes_nearer or count == RULES.corrections:
            break
        before = back.decrease
        point = model.clip(point + back.step)
        there = yield ask(point)
        finite, count = _is_finite(there), count + 1
    ratio = proposal.ratio(point, there, gradient) if finite else -np.inf
    return _Landing(point, there, gradient, ratio, count)


def _is_finite(there: Evaluation) -> bool:
    # A sum of squares is finite only where its terms are.
    return math.isfinite(there.value) and math.isfinite(np.vdot(there.hessian, there.hessian))


def _refine(
    last: _Proposal, model: _Model, ask: _Ask
) -> Iteration[tuple[FloatArray, Evaluation] | None]:
    """Go on with the corrections of the last step, from the model where it has ended.

    None where there is nothing to correct, or the step had gained nothing.
    """
    ridge = last.model.ridge
    length = last.move.length
    predicted = last.move.decrease
    back = ridge.correction(model.theta, model.here, length, predicted, RULES.corrections)
    if back.length == 0.0:
        return None
    point = model.clip(model.theta + back.step)
    there = yield ask(point)
    if not _is_finite(there):
        return None
    gradient = ridge.correction(point, there, length, predicted, RULES.corrections).gradient
    ratio = last.ratio(point, there, gradient)
    return (point, there) if ratio > 0.0 else None


def _objective(data: Sample) -> Objective:
    """Whether to ask for the information, too, which tells the way back to the ridge.

    With few rows it costs little next to the steps.  With many it adds up to three quarters to the
    cost of a pass, which is most of the cost, and saves fewer passes than that.
    """
    return Objective.INFORMED if data.size <= RULES.few_rows else Objective.OBSERVED


class _Radius:
    """The radius of the trust region, which remembers where a step has failed."""

    def __init__(self, start: float) -> None:
        self.value = start
        self.ceiling = np.inf
        self.is_failing = False

    def cut(self, part: float, length: float) -> None:
        """To a part of a step of some length that has failed."""
        if not self.is_failing:
            self.ceiling = length
        self.is_failing = True
        self.value = part * min(length, self.value)

    def grow(self) -> None:
        """After a good step that was as long as the radius."""
        growth = RULES.growth
        if growth * self.value > 0.9 * self.ceiling:
            growth = max(min(growth, 0.9 * self.ceiling / self.value), 1.1)
        self.ceiling *= RULES.relief
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

    A step that gains less than its model predicted has left the ridge.  It gets
    corrections (`moestat.solvers.merging_atoms.corrector`) before it is judged.  Iterations count
    passes.
    """
    moments = Moments(problem.family, metric)
    ask = partial(Request, _objective(problem.data.levels[level]), level=level)
    here = yield ask(theta)
    # A ridge curves on the scale of the distance between the atoms that merge.
    radius = _Radius(min(max(moments.closest(theta), TRUST.smallest), 1.0))
    model = _Model(moments, theta, here, metric, lower, upper)
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
            return End(model.theta, "converged", passes), model.here
        proposal = _Proposal(model, move, model.chart.path(move.step))
        landing = yield from _land(proposal, curved, ask)
        passes = passes + 1 + landing.corrections
        last = None
        if landing.ratio < RULES.poor:
            part = proposal.shortened(landing.theta, landing.gradient, landing.ratio)
            radius.cut(part, move.length)
        elif landing.ratio > RULES.good and move.length > 0.8 * radius.value:
            radius.grow()
        if landing.ratio > TRUST.accept:
            model = _Model(moments, landing.theta, landing.evaluation, metric, lower, upper)
            last = proposal
            curved = landing.corrections > 0
            radius.is_failing = False
        elif radius.value < TRUST.smallest:
            return End(model.theta, "stalled", passes), model.here
    return End(model.theta, "iteration limit", passes), model.here


def model_hessian(
    problem: Problem,
    theta: FloatArray,
    here: Evaluation,
    metric: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
) -> FloatArray:
    """Hessian (P, P) of the model in the moments around theta (P,), with its evaluation there."""
    return _Model(Moments(problem.family, metric), theta, here, metric, lower, upper).hessian
