"""Newton's method in the moments of merging atoms, for more experts than the truth has."""

from __future__ import annotations

from dataclasses import dataclass, replace

from moestat._types import FloatArray
from moestat.solvers._driver import Evaluation, Iteration, Problem
from moestat.solvers._kinks import has_kinks
from moestat.solvers._moment_steps import model_hessian, moment_steps
from moestat.solvers.newton import Newton

__all__ = ["MomentNewton"]


def _is_smooth(problem: Problem) -> bool:
    """Whether the likelihood has neither jumps nor kinks."""
    return not problem.family.has_jumps and not has_kinks(problem)


@dataclass(frozen=True)
class MomentNewton(Newton):
    """Newton's method for over-specified fits of large samples.

    With more experts than the truth has, atoms merge, and the likelihood is a narrow curved
    valley: `Newton` creeps along it, in a number of iterations that grows like a power of n
    between 1/4 and 1/3.  In the moments of close atoms (`moestat.solvers._moments`) the valley is
    nearly straight.  What bend is left is met by restorations: Newton steps in the stiff
    directions alone, which lead a step that has left the floor of the valley back to it
    (`moestat.solvers._valley`).

    Parameters
    ----------
    tolerance : float
        As of `Newton`.
    max_iterations : int
        Largest number of passes over the data.

    Notes
    -----
    For gates with jumps or with kinks it is `Newton`; without close atoms, and for gates without
    free masses, it is `Newton` with restorations, one pass each.  The first radius is the distance
    of the two closest atoms, the scale on which a valley bends.  A step is as short as nine
    tenths of its promise allow.  Once a step has needed a restoration, the next one is restored
    until the floor is near, and only then judged: off the floor values and curvatures are those
    of the walls.  A step whose promise is mostly that of a negative curvature gets a further
    restoration before it is made.  Steps along a curved valley with a second-order
    correction are those of the geodesic acceleration of Transtrum and Sethna (2012), which
    predicts the correction at the price of a pass; here it is made where it is needed, from the
    derivatives that a trial has anyway.  Gains too small to be read off the values are integrated
    along the path of a step, from the slopes at both ends.

    Steps follow curvatures down to 1e-16 of the largest, certificates count on those above 1e-14:
    below that their signs, at n = 1e14, are rounding.  So a ridge as flat as that counts as
    solved when one step down its slope gains too little, however long the ridge may be.

    The certificate's gain and inertia are those of the model in the moments: where a valley is
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
        return replace(here, hessian=model_hessian(problem, theta, here, metric))
