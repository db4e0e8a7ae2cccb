"""Newton's method in the moments of merging atoms, for more experts than the truth has."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from moestat._types import FloatArray
from moestat.solvers._decrease import (
    finest_decrease,
    is_converged,
    path_decrease,
    smallest_decrease,
    straight_decrease,
)
from moestat.solvers._driver import Evaluation, Iteration, Problem, Request
from moestat.solvers._kinks import has_kinks
from moestat.solvers._moments import Moments, Path
from moestat.solvers._trust_region import BoxStep, box_step
from moestat.solvers._valley import Floor
from moestat.solvers.newton import Newton

__all__ = ["MomentNewton", "moment_steps"]

_ACCEPT = 1e-4
_SMALLEST_RADIUS = 1e-10
_LARGEST_RADIUS = 1e4
_GOOD = 0.75  # part of the promised decrease that needs no restoration
_RESTORATIONS = 4
_PROGRESS = 0.5  # part of the error that a restoration may leave
_GROWTH = (3.0, 2.0, 1.5, 1.0, 1.0)  # of the radius, by the number of restorations
_AGREEMENT = 0.1  # of integrated decreases with values, as a part of the finest decrease of these
_BEARABLE = 30.0  # error, in units of the promised decrease, that restorations can undo


@dataclass(frozen=True)
class _Proposal:
    """A step of the model in the moments, and the path that it stands for."""

    move: BoxStep
    hessian: FloatArray
    slope: float
    curvature: float
    path: Path
    trial: FloatArray

    def decrease(self, there: Evaluation) -> float:
        """Decrease along the path, from the derivatives at both ends."""
        velocity = self.path.velocity
        bend = velocity @ there.hessian @ velocity + there.gradient @ self.path.acceleration
        return path_decrease(
            self.slope, self.curvature, float(there.gradient @ velocity), float(bend)
        )


def _propose(
    moments: Moments,
    theta: FloatArray,
    here: Evaluation,
    metric: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    radius: float,
) -> _Proposal:
    """The best step within the radius, by the quadratic model in the moments at theta."""
    chart = moments.chart(theta, lower, upper)
    hessian = here.hessian + chart.curvature(here.gradient)
    move = box_step(theta, here.gradient, hessian, metric, lower, upper, radius)
    path = chart.path(move.step)
    return _Proposal(
        move,
        hessian,
        float(move.step @ here.gradient),
        float(move.step @ hessian @ move.step),
        path,
        np.minimum(np.maximum(path.end, lower), upper),
    )


@dataclass(frozen=True)
class _Landing:
    """Where a step has led, with its restorations.

    Decreases are in units of the promised one: `first` before the restorations, `ratio` at the
    end.
    """

    theta: FloatArray
    evaluation: Evaluation
    ratio: float
    first: float
    restorations: int


def _is_sound(here: Evaluation) -> bool:
    return bool(np.isfinite(here.value) and np.isfinite(here.hessian).all())


def _land(
    proposal: _Proposal,
    theta: FloatArray,
    here: Evaluation,
    metric: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    level: int,
) -> Iteration[_Landing]:
    """Go where the proposal leads, and from there back to the floor of the valley."""
    promised, length = proposal.move.decrease, proposal.move.length

    def ratio(there: Evaluation, along: float) -> float:
        decrease, finest = here.value - there.value, finest_decrease(here)
        if max(promised, abs(decrease)) <= finest:
            # An integral over a path far off the floor is rounded like its largest terms.
            decrease = along if abs(along - decrease) <= _AGREEMENT * finest else -np.inf
        return decrease / promised if np.isfinite(decrease) else -np.inf

    trial, there = proposal.trial, (yield Request("observed", proposal.trial, level))
    along = proposal.decrease(there) if _is_sound(there) else 0.0
    first = ratio(there, along)
    best = _Landing(trial, there, first, first, 0)
    if first >= _GOOD or not _is_sound(there):
        return best
    floor = Floor(theta, here.gradient, proposal.hessian, metric, lower, upper)
    current = first
    for count in range(1, _RESTORATIONS + 1):
        error = promised * max(1.0, 1.0 - current)
        move = floor.restoration(trial, there, error, length)
        if move is None:
            break
        end = np.minimum(np.maximum(trial + move.step, lower), upper)
        after = yield Request("observed", end, level)
        if not _is_sound(after):
            return replace(best, restorations=count)
        along += straight_decrease(end - trial, there, after)
        restored = ratio(after, along)
        better = restored > best.ratio
        best = (
            _Landing(end, after, restored, first, count)
            if better
            else replace(best, restorations=count)
        )
        if best.ratio >= _GOOD or 1.0 - restored > _PROGRESS * (1.0 - current):
            break
        trial, there, current = end, after, restored
    return best


def moment_steps(
    problem: Problem,
    theta: FloatArray,
    metric: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    tolerance: float,
    max_iterations: int,
    level: int = -1,
) -> Iteration[tuple[FloatArray, Evaluation, str, int]]:
    """Minimise minus the log-likelihood; returns (theta, evaluation, status, iterations).

    A step that gains less than its model promised has left the floor of a valley.  It gets
    restorations (`moestat.solvers._valley`) before it is judged.  Iterations count passes.
    """
    moments = Moments(problem.family, metric)
    here = yield Request("observed", theta, level)
    radius, passes = 1.0, 0
    while passes < max_iterations:
        proposal = _propose(moments, theta, here, metric, lower, upper, radius)
        length = proposal.move.length
        if is_converged(proposal.move.decrease, length, radius, here, tolerance):
            return theta, here, "converged", passes
        if proposal.move.decrease <= smallest_decrease(here, tolerance) and radius < 1.0:
            # Rounding may have cut the radius; a certificate asks for steps of length one.
            whole = _propose(moments, theta, here, metric, lower, upper, 1.0)
            if whole.move.decrease <= smallest_decrease(here, tolerance):
                return theta, here, "converged", passes
        landing = yield from _land(proposal, theta, here, metric, lower, upper, level)
        passes += 1 + landing.restorations
        if landing.ratio < 0.25:
            # A displacement's cost relative to the promise grows like the third power of a step.
            shrink = (_BEARABLE / max(1.0 - landing.first, 1.0)) ** (1.0 / 3.0)
            radius = min(max(shrink, 0.05), 0.5) * min(length, radius)
        elif landing.ratio > _GOOD and length > 0.8 * radius:
            radius = min(_GROWTH[landing.restorations] * radius, _LARGEST_RADIUS)
        if landing.ratio > _ACCEPT:
            theta, here = landing.theta, landing.evaluation
        elif radius < _SMALLEST_RADIUS:
            return theta, here, "stalled", passes
    return theta, here, "iteration limit", passes


def _is_smooth(problem: Problem) -> bool:
    """Whether the likelihood has neither jumps nor kinks."""
    return not problem.family.has_jumps and not has_kinks(problem)


@dataclass(frozen=True)
class MomentNewton(Newton):
    """Newton's method for over-specified fits of large samples.

    With more experts than the truth has, atoms merge, and the likelihood is a narrow curved
    valley: `Newton` creeps along it, in a number of iterations that grows like a power of n
    between 1/4 and 1/3.  In the moments of pairs of close atoms (`moestat.solvers._moments`) the
    valley is nearly straight.  What bend is left, and that of cells of three and more, is met by
    restorations: Newton steps in the stiff directions alone, which lead a step that has left the
    floor of the valley back to it (`moestat.solvers._valley`).

    Parameters
    ----------
    tolerance : float
        As of `Newton`.
    max_iterations : int
        Largest number of passes over the data.

    Notes
    -----
    For gates with jumps or with kinks it is `Newton`; without close atoms, and for gates without
    free masses, it is `Newton` with restorations, one pass each.  The radius grows less after
    steps that took restorations, and is cut by the error of a step that they could not undo.
    Steps along a curved valley with a second-order correction are those of the geodesic
    acceleration of Transtrum and Sethna (2012), which predicts the correction at the price of a
    pass; here it is made where it is needed, from the derivatives that a trial has anyway.
    Gains too small to be read off the values are integrated
    along the path of a step, from gradients and Hessians at both ends, as in `Newton`.  The
    certificate's gain and inertia are those of the model in the moments: where a valley is
    curved, a model in the parameters themselves promises gains that are not there.

    Examples
    --------
    >>> from moestat import Lattice, family, fit, sample_weighted
    >>> from moestat.starts import TruthStarts
    >>> F = family("gaussian", gate="competition-free", n_experts=2)
    >>> theta = F.pack({"c": [0.4, 0], "a": [2, -1.5], "b": [1, -1], "nu": [0.25, 0.16]})
    >>> X, y, weight = sample_weighted(F, theta, 1e10, rng=0, design=Lattice(-2, 2, nodes=8))
    >>> options = {"sample_weight": weight, "starts": [TruthStarts(F, theta, 1, 0.1)], "rng": 0}
    >>> fit(F.with_experts(3), X, y, solver=MomentNewton(), **options).certificate.status
    'converged'
    """

    name: str = "moment-newton"

    def _climb(
        self,
        problem: Problem,
        theta: FloatArray,
        metric: FloatArray,
        lower: FloatArray,
        upper: FloatArray,
        tolerance: float,
        max_iterations: int,
        level: int,
    ) -> Iteration[tuple[FloatArray, Evaluation, str, int]]:
        if not _is_smooth(problem):
            return super()._climb(
                problem, theta, metric, lower, upper, tolerance, max_iterations, level
            )
        return moment_steps(problem, theta, metric, lower, upper, tolerance, max_iterations, level)

    def _model(
        self, problem: Problem, theta: FloatArray, here: Evaluation, metric: FloatArray
    ) -> Evaluation:
        if not _is_smooth(problem):
            return here
        chart = Moments(problem.family, metric).chart(theta, *problem.family.box_at(theta))
        return replace(here, hessian=here.hessian + chart.curvature(here.gradient))
