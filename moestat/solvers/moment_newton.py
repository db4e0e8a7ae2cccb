"""Newton's method in the moments of merging atoms, for more experts than the truth has."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from moestat._types import FloatArray
from moestat.solvers._decrease import finest_decrease, is_converged, path_decrease
from moestat.solvers._driver import Evaluation, Iteration, Problem, Request
from moestat.solvers._kinks import has_kinks
from moestat.solvers._moments import Moments, Path, has_masses
from moestat.solvers._trust_region import BoxStep, box_step
from moestat.solvers.newton import Newton

__all__ = ["MomentNewton", "moment_steps"]

_ACCEPT = 1e-4
_SMALLEST_RADIUS = 1e-10
_LARGEST_RADIUS = 1e4
_CORRECTION = 0.25  # length of a correction, as a share of the step's


@dataclass(frozen=True)
class _Proposal:
    """A step of the model in the moments, and the path that it stands for."""

    move: BoxStep
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
        float(move.step @ here.gradient),
        float(move.step @ hessian @ move.step),
        path,
        np.minimum(np.maximum(path.end, lower), upper),
    )


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

    A step that leaves the floor of a valley gains less than its model promised.  It then gets a
    correction: a second, shorter step from where it ended.  Iterations count passes.
    """
    moments = Moments(problem.family, metric)
    here = yield Request("observed", theta, level)
    radius, passes = 1.0, 0
    while passes < max_iterations:
        first = _propose(moments, theta, here, metric, lower, upper, radius)
        move = first.move
        if is_converged(move.decrease, move.length, radius, here, tolerance):
            return theta, here, "converged", passes
        trial, there = first.trial, (yield Request("observed", first.trial, level))
        passes += 1
        decrease, along = here.value - there.value, 0.0
        sound = bool(np.isfinite(there.value) and np.isfinite(there.hessian).all())
        if sound:
            along = first.decrease(there)
        if max(move.decrease, abs(decrease)) <= finest_decrease(here):
            decrease = along
        corrected = False
        if sound and not decrease >= 0.25 * move.decrease:
            second = _propose(
                moments, trial, there, metric, lower, upper, _CORRECTION * move.length
            )
            after = yield Request("observed", second.trial, level)
            passes += 1
            total = here.value - after.value
            if max(move.decrease, abs(total)) <= finest_decrease(here):
                total = along + second.decrease(after)
            if total > decrease:
                trial, there, decrease, corrected = second.trial, after, total, True
        ratio = decrease / move.decrease
        if not np.isfinite(ratio):
            ratio = -1.0
        if ratio < 0.25:
            radius = 0.25 * min(move.length, radius)
        elif ratio > 0.75 and move.length > 0.8 * radius:
            radius = min((2.0 if corrected else 3.0) * radius, _LARGEST_RADIUS)
        if ratio > _ACCEPT:
            theta, here = trial, there
        elif radius < _SMALLEST_RADIUS:
            return theta, here, "stalled", passes
    return theta, here, "iteration limit", passes


def _charted(problem: Problem) -> bool:
    """Whether moments are coordinates: masses are free, and the likelihood is smooth."""
    family = problem.family
    return has_masses(family) and not family.has_jumps and not has_kinks(problem)


@dataclass(frozen=True)
class MomentNewton(Newton):
    """Newton's method for over-specified fits of large samples.

    With more experts than the truth has, atoms merge, and the likelihood is a narrow curved
    valley: `Newton` creeps along it, in a number of iterations that grows like a power of n
    between 1/4 and 1/3.  In the moments of pairs of close atoms (`moestat.solvers._moments`) the
    valley is nearly straight; what bend is left is met by corrected steps.

    Parameters
    ----------
    tolerance : float
        As of `Newton`.
    max_iterations : int
        Largest number of passes over the data.

    Notes
    -----
    For gates without free masses, with jumps or with kinks it is `Newton`; without close atoms it
    is `Newton` with corrected steps.  Gains too small to be read off the values are integrated
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
        if not _charted(problem):
            return super()._climb(
                problem, theta, metric, lower, upper, tolerance, max_iterations, level
            )
        return moment_steps(problem, theta, metric, lower, upper, tolerance, max_iterations, level)

    def _model(
        self, problem: Problem, theta: FloatArray, here: Evaluation, metric: FloatArray
    ) -> Evaluation:
        if not _charted(problem):
            return here
        chart = Moments(problem.family, metric).chart(theta, *problem.family.box_at(theta))
        return replace(here, hessian=here.hessian + chart.curvature(here.gradient))
