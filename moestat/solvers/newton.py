"""Newton's method with the exact Hessian, a trust region and a box."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from moestat.base.types import FloatArray
from moestat.base.validate import positive_int, real_in
from moestat.solvers.certificate import certify
from moestat.solvers.needs import Needs
from moestat.solvers.problem import Evaluation, Iteration, Objective, Problem, Request, Sample
from moestat.solvers.rules import TRUST
from moestat.solvers.solution import Solution
from moestat.solvers.trust_region.kinks import has_kinks, kinked_steps
from moestat.solvers.trust_region.newton_loop import newton_steps

Ended = tuple[FloatArray, Evaluation, str, int, float]
"""Parameters, evaluation, status, iterations, and the reach of steps across kinks."""


@dataclass(frozen=True)
class Newton:
    """Trust-region Newton on the exact Hessian, inside the box of the parameter space.

    Parameters
    ----------
    tolerance : float
        Stop when a step can gain no more than this many units of log-likelihood.
    max_iterations : int
        Largest number of iterations, one pass over the data each.

    Notes
    -----
    The subproblem is solved exactly in the metric of `moestat.solvers.trust_region.region`, so
    negative curvature is used and not repaired.  Where the data can be compressed (see
    `moestat.model.compression`) the iteration runs on the compressed data first; it then goes on,
    and ends, on all of them.  Status "stalled" means that steps shrank, or stopped gaining, before
    the tolerance was met.  A likelihood with kinks (the Euclidean gate with one input) is climbed
    by a model that knows them, see `moestat.solvers.trust_region.kinks`.

    Examples
    --------
    >>> from moestat import family, fit, sample
    >>> F = family("multinomial", gate="softmax", n_experts=1, n_classes=2)
    >>> X, y = sample(F, [0, 0, 1, -2], n=500, rng=0)
    >>> fit(F, X, y, solver=Newton(), rng=0).certificate.status
    'converged'
    """

    tolerance: float = 1e-9
    max_iterations: int = 3000
    name: str = "newton"

    needs: ClassVar[Needs] = Needs()

    def __post_init__(self) -> None:
        real_in("tolerance", self.tolerance, 0.0, open_low=True)
        positive_int("max_iterations", self.max_iterations)

    def steps(self, problem: Problem, start: FloatArray) -> Iteration[Solution]:
        """The iteration from `start` (P,), already inside the box."""
        self.needs.check(self.name, problem.family)
        theta, here, status, iterations, reach = yield from self.climb(problem, start)
        metric = problem.metric(theta)
        model = self._model(problem, theta, here, metric)
        certificate = certify(problem, theta, model, metric, status, iterations, reach)
        return Solution(theta, -here.value, here.hessian, certificate)

    def climb(self, problem: Problem, start: FloatArray) -> Iteration[Ended]:
        """The iteration without a certificate at its end."""
        levels = problem.detail()
        ended = yield from self._through(problem, levels, start, self.max_iterations)
        if problem.has_doubtful_previews():
            begun = yield Request(Objective.VALUE, start)
            if begun.value < ended[1].value:
                # The part of the data has led to another maximum, below the start.
                spent = ended[3]
                left = self.max_iterations - spent
                ended = yield from self._through(problem, levels[-1:], start, left)
                ended = *ended[:3], spent + ended[3], ended[4]
        return ended

    def _through(
        self, problem: Problem, levels: list[tuple[int, Sample]], theta: FloatArray, most: int
    ) -> Iteration[Ended]:
        """Climb on one level of the data after the other."""
        spent = 0
        while True:
            (level, data), *levels = levels
            metric = problem.metric(theta)
            tolerance = max(self.tolerance, TRUST.preview if data.preview else 0.0)
            theta, here, status, iterations, reach = yield from self._climb(
                problem, level, theta, metric, tolerance, most - spent
            )
            spent += iterations
            if not levels:
                return theta, here, status, spent, reach

    def _model(
        self, problem: Problem, theta: FloatArray, here: Evaluation, metric: FloatArray
    ) -> Evaluation:
        """The quadratic model of the objective around theta that the certificate judges."""
        return here

    def _climb(
        self,
        problem: Problem,
        level: int,
        theta: FloatArray,
        metric: FloatArray,
        tolerance: float,
        max_iterations: int,
    ) -> Iteration[Ended]:
        """Minimise on one level of the data."""
        if has_kinks(problem.family):
            return (
                yield from kinked_steps(problem, level, theta, metric, tolerance, max_iterations)
            )
        bounds = metric, *problem.family.box_at(theta)
        ran = yield from newton_steps(
            problem, Objective.OBSERVED, theta, tolerance, max_iterations, level, bounds
        )
        return ran.theta, ran, ran.status, ran.iterations, 1.0
