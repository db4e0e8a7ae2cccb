"""Newton's method with the exact Hessian, a trust region and a box."""

from __future__ import annotations

from dataclasses import dataclass

from moestat.base.types import FloatArray
from moestat.solvers.problem import End, Evaluation, Iteration, Objective, Problem
from moestat.solvers.rules import NEWTON_STEPS, NEWTON_TOLERANCE
from moestat.solvers.shell import LevelSolver
from moestat.solvers.trust_region.kinks import has_kinks, kinked_steps
from moestat.solvers.trust_region.newton_loop import newton_steps


@dataclass(frozen=True)
class Newton(LevelSolver):
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

    tolerance: float = NEWTON_TOLERANCE
    max_iterations: int = NEWTON_STEPS
    name: str = "newton"

    def climb_level(
        self,
        problem: Problem,
        level: int,
        theta: FloatArray,
        tolerance: float,
        max_iterations: int,
    ) -> Iteration[tuple[End, Evaluation]]:
        """Newton steps within a trust region from theta (P,), on one level of the data."""
        metric = problem.metric(theta)
        if has_kinks(problem.family):
            return (
                yield from kinked_steps(problem, level, theta, metric, tolerance, max_iterations)
            )
        bounds = metric, *problem.family.box_at(theta)
        ran = yield from newton_steps(
            problem, Objective.OBSERVED, theta, tolerance, max_iterations, level, bounds
        )
        return End(ran.theta, ran.status, ran.iterations), ran
