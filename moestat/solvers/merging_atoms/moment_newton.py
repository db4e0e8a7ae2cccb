"""Newton's method in the moments of merging atoms, for more experts than the truth has."""

from __future__ import annotations

from dataclasses import dataclass, replace

from moestat.base.types import FloatArray
from moestat.solvers.merging_atoms.kinks import between_kinks, kinked_moment_steps
from moestat.solvers.merging_atoms.steps import model_hessian, moment_steps
from moestat.solvers.newton import Newton
from moestat.solvers.problem import End, Evaluation, Iteration, Problem
from moestat.solvers.trust_region.kinks import has_kinks


@dataclass(frozen=True)
class MomentNewton(Newton):
    """Newton's method for over-specified fits of large samples.

    With more experts than the truth has, atoms merge, and the likelihood is a narrow curved ridge:
    `Newton` creeps along it, in a number of iterations that grows like a power of n between 1/4 and
    1/3.  In the moments of close atoms (`moestat.solvers.merging_atoms.moments`) the ridge is
    nearly straight.  What curvature is left is met by corrector steps: steps in the stiff
    directions alone, which lead a step that has left the ridge back to it
    (`moestat.solvers.merging_atoms.corrector`).

    Parameters
    ----------
    tolerance : float
        As of `Newton`.
    max_iterations : int
        Largest number of passes over the data.

    Notes
    -----
    For gates with jumps it is `Newton`; without close atoms, and for gates without free masses, it
    is `Newton` with corrections, one pass each. Where the likelihood has kinks, steps across them
    (`moestat.solvers.trust_region.kinks`) and steps in the moments between them take turns; jumps
    across kinks that the model in the moments predicts are tried in the end. The first radius is
    the distance of the two closest atoms, the scale on which a ridge curves. A step is as short as
    nine tenths of its predicted reduction allow. Up to a thousand rows, as on lattices with
    classes, corrections go by the information of the scores; beyond that, where it costs more than
    it saves, by the Hessian. Each one goes in fewer directions than the one before, from those that
    cost a step's predicted reduction over a third of its length to the stiffest. Once a step has
    needed a correction, the next one is corrected until the ridge is near, and only then judged:
    off the ridge values and curvatures are those of its sides. A step whose predicted reduction is
    mostly that of a negative curvature gets a further correction, in the stiffest directions alone,
    before it is made: the slightest slope left in these shows as a curvature of the soft ones.
    Steps along a curved ridge with a second-order correction are those of the geodesic acceleration
    of Transtrum and Sethna (2012), which predicts the correction at the price of a pass; here it is
    made where it is needed, from the derivatives that a trial has anyway. Gains too small to be
    read off the values are integrated along the path of a step, from the slopes at both ends,
    without those in stiff directions, which on the ridge are rounding. A step that has failed is
    cut to where the cubic with the values and slopes at both ends of its path is lowest.

    Steps follow curvatures down to 1e-16 of the largest, certificates count on those above 1e-14:
    below that their signs, at n = 1e14, are rounding.  So a ridge as flat as that counts as
    solved when one step down its slope gains too little, however long the ridge may be.

    The certificate's gain and inertia are those of the model in the moments: where a ridge is
    curved, a model in the parameters themselves predicts gains that are not there.

    Examples
    --------
    >>> from moestat import Lattice, family, fit, sample_weighted
    >>> from moestat.estimation.starts import TruthStarts
    >>> F = family("gaussian", gate="competition-free", n_experts=2)
    >>> theta = F.pack({"c": [0.4, 0], "a": [2, -1.5], "b": [1, -1], "nu": [0.25, 0.16]})
    >>> X, y, weight = sample_weighted(F, theta, 1e10, rng=0, design=Lattice(-2, 2, nodes=8))
    >>> options = {"sample_weight": weight, "starts": [TruthStarts(F, theta, 1, 0.1)], "rng": 0}
    >>> fit(F.with_experts(3), X, y, solver=MomentNewton(), **options).certificate.status
    'converged'
    """

    name: str = "moment-newton"

    def climb_level(
        self,
        problem: Problem,
        level: int,
        theta: FloatArray,
        tolerance: float,
        max_iterations: int,
    ) -> Iteration[tuple[End, Evaluation]]:
        """Steps in the moments of close atoms from theta (P,), on one level of the data."""
        if problem.family.has_jumps:
            return (
                yield from super().climb_level(problem, level, theta, tolerance, max_iterations)
            )
        metric = problem.metric(theta)
        if has_kinks(problem.family):
            return (
                yield from kinked_moment_steps(
                    problem, level, theta, metric, tolerance, max_iterations
                )
            )
        box = problem.family.box_at(theta)
        return (
            yield from moment_steps(problem, theta, metric, *box, tolerance, max_iterations, level)
        )

    def model(self, problem: Problem, theta: FloatArray, evaluation: Evaluation) -> Evaluation:
        """The quadratic model in the moments around theta (P,)."""
        if problem.family.has_jumps:
            return evaluation
        metric = problem.metric(theta)
        if has_kinks(problem.family):
            return between_kinks(problem, -1, theta, evaluation, metric)
        box = problem.family.box_at(theta)
        hessian = model_hessian(problem, theta, evaluation, metric, *box)
        return replace(evaluation, hessian=hessian)
