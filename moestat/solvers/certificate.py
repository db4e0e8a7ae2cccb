"""The certificate: evidence that a fit is a maximum of the likelihood."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from moestat.base.types import FloatArray
from moestat.solvers.collapse import collapsed_atoms
from moestat.solvers.metric import without_relations
from moestat.solvers.problem import Evaluation, Problem
from moestat.solvers.rules import GAIN_LIMIT, ZERO_CURVATURE
from moestat.solvers.trust_region.kinks import has_kinks, one_sided
from moestat.solvers.trust_region.region import box_step, free_coordinates


@dataclass(frozen=True)
class Certificate:
    """Evidence that a fit is a maximum of the likelihood over the parameter space.

    Parameters
    ----------
    status : str
        How the solver ended: "converged", "iteration limit", "stalled", "searched" or "time limit".
    certified : bool
        Whether the gain is below 1e-4, no curvature is negative and no atom has collapsed.  The
        status of the solver does not matter.  If the likelihood is discontinuous, derivatives are
        not sufficient, and only fits by the solver `PieceSearch` are certified.
    gradient : float
        Norm of the gradient with respect to the free parameters, divided by the number of rows, in
        the metric of the predictors.
    gain : float
        Predicted increase of the log-likelihood (natural log) by the best step of length one.
    inertia : tuple of int
        Numbers of positive, zero and negative eigenvalues of minus the Hessian of the
        log-likelihood over the free coordinates, relative to the metric of the predictors; zero
        means below 1e-12 of the largest.
    condition : float
        Largest over smallest absolute eigenvalue; inf when one is zero.
    active : tuple of str
        Parameters on a bound of the box; fixed parameters are not listed.
    iterations : int
        Iterations of the solver from the best start.
    passes : float
        Number of rows that the solver visited from the best start, divided by the number of rows.
    seconds : float
        Wall-clock time of the whole fit, all starts, in seconds.
    start : str
        Name of the best start, such as "truth 2".
    n_starts, n_optima : int
        Number of starts, which includes runs of the search that were abandoned because their
        log-likelihood was too low; and number of distinct log-likelihoods (that differ by more
        than 0.01) among the certified fits.
    agreement : float
        Share of starts that reached the best log-likelihood to within 0.01.
    collapsed : tuple of int
        Atoms that describe a few rows only, see `moestat.solvers.collapsed_atoms`.
    n_collapsed : int
        Starts that ended with a collapsed atom.
    kinks : int
        Number of kinks of the log-likelihood at the estimate: it decreases on both sides of them.
    reach : float
        Length of the longest steps that the gain takes into account, in the metric of the
        predictors; for least squares with kinks, the largest distance of the points from which the
        balanced gradients come.
    p_higher : float or None
        Estimated probability that a higher maximum exists, computed from the results of the default
        search, or of the race of a sweep's over-specified fit.  None if it is not estimated: for
        other starts, one expert, least squares, posterior modes, and fits of many data sets or of
        several numbers of experts, whose searches are shorter.

    above_near_truth : float or None
        Log-likelihood minus that of the best run that began near the truth, where a sweep starts
        from all over the box; None for other starts.

    Notes
    -----
    Where a location of the Euclidean gate meets a sample, the log-likelihood of one input has a
    kink.  A coordinate held there (`kinks`) is stationary in the sense of one-sided derivatives:
    it counts like one on a bound, in neither `gradient` nor `inertia`.  The others are judged in
    the closed cell between their neighbouring samples, where the log-likelihood is smooth.
    `gain` also covers steps across kinks, by the model of `moestat.solvers.trust_region.kinks`, of
    up to `reach`: less than 1 when the model predicted more for longer steps and the data, tried,
    disagreed.

    `MomentNewton` has gain and inertia judged in the moments of close atoms.

    Regression functions with ReLU experts have a kink for every sample and expert, and a minimum
    of the sum of squares lies on many: no gradient is small there.  The evidence is then that
    gradients at points within `reach` of the fit balance: `gain`, and `gradient`, belong to their
    best convex combination, an element of Goldstein's subdifferential, under the Gauss-Newton
    matrix; `kinks` is one less than the gradients that it takes.  That is stationarity up to
    moves of the length `reach`, and no second-order statement: `inertia` and `condition` are those
    of the Gauss-Newton matrix.
    """

    status: str
    certified: bool
    gradient: float
    gain: float
    inertia: tuple[int, int, int]
    condition: float
    active: tuple[str, ...]
    iterations: int
    passes: float
    seconds: float = 0.0
    start: str = ""
    n_starts: int = 1
    n_optima: int = 1
    agreement: float = 1.0
    collapsed: tuple[int, ...] = ()
    n_collapsed: int = 0
    kinks: int = 0
    reach: float = 1.0
    p_higher: float | None = None
    above_near_truth: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers, strings and lists, ready for JSON; an infinite condition is None."""
        record: dict[str, Any] = dict(vars(self))
        record["inertia"] = list(self.inertia)
        record["active"] = list(self.active)
        record["collapsed"] = list(self.collapsed)
        record["condition"] = self.condition if np.isfinite(self.condition) else None
        for name in ("p_higher", "above_near_truth"):
            if record[name] is None:
                del record[name]
        return record


@dataclass(frozen=True)
class Spectrum:
    """Signs and spread of the curvatures (F,) over the free coordinates, relative to the metric."""

    inertia: tuple[int, int, int]
    condition: float


def spectrum(curvatures: FloatArray) -> Spectrum:
    """Inertia and condition number of curvatures (F,); without coordinates, zeros and 1."""
    size = np.abs(curvatures)
    if not size.size:
        return Spectrum((0, 0, 0), 1.0)
    zero = size <= ZERO_CURVATURE * size.max()
    inertia = (
        int(np.sum(~zero & (curvatures > 0))),
        int(zero.sum()),
        int(np.sum(~zero & (curvatures < 0))),
    )
    return Spectrum(inertia, float(size.max() / size.min()) if not zero.any() else math.inf)


def certificate_of(
    problem: Problem,
    theta: FloatArray,
    curvatures: FloatArray,
    slope: float,
    gain: float,
    status: str,
    iterations: int,
    doubt: bool,
    *,
    kinks: int = 0,
    reach: float = 1.0,
    across_ties: bool = True,
) -> Certificate:
    """The certificate of theta (P,), from curvatures, slope and gain that are known already.

    `curvatures` (F,) are the eigenvalues of the objective's Hessian over the free coordinates,
    relative to the metric; `slope` is the norm of the free gradient in the metric.  With `doubt`
    the fit is not certified, whatever these say.  With `across_ties` the curvatures include the
    directions across coefficients that are equal by constraint.
    """
    family = problem.family
    on_bound = family.on_bound(theta)
    summary, collapsed = spectrum(curvatures), collapsed_atoms(problem, theta)
    # Across coefficients that are equal the Hessian is positive by construction.
    ties = family.ties if across_ties else ()
    tied = sum(tie.size - 1 for tie in ties if not on_bound[tie].any())
    inertia = summary.inertia[0] - tied, *summary.inertia[1:]
    is_maximum = gain <= GAIN_LIMIT and summary.inertia[2] == 0
    return Certificate(
        status=status,
        certified=bool(is_maximum and not collapsed and not doubt),
        gradient=slope / float(problem.data.weight.sum()),
        gain=gain,
        inertia=inertia,
        condition=summary.condition,
        active=tuple(family.param_names[j] for j in np.flatnonzero(on_bound)),
        iterations=iterations,
        passes=problem.passes,
        collapsed=collapsed,
        kinks=kinks,
        reach=reach,
    )


def certify(
    problem: Problem,
    theta: FloatArray,
    evaluation: Evaluation,
    metric: FloatArray,
    status: str,
    iterations: int,
    reach: float = 1.0,
) -> Certificate:
    """The certificate of theta (P,), from an evaluation with the exact Hessian.

    `reach` is the length of the longest steps across kinks that the solver has ruled out.
    """
    family = problem.family
    lower, upper = family.box_at(theta)
    slopes = evaluation.gradient
    predicted = 0.0
    kinks = 0
    if has_kinks(problem.family):
        slopes, lower, upper, kinks, predicted = one_sided(
            problem, -1, theta, evaluation, metric, reach
        )
    at = np.flatnonzero(free_coordinates(theta, slopes, lower, upper))
    slope = 0.0
    values: FloatArray = np.empty(0)
    hessian, curvatures = without_relations(evaluation.hessian, metric, at)
    if at.size:
        # In coordinates where the metric is the identity; scipy's solver would do the same, but
        # importing it takes longer than most fits.
        factor = np.linalg.cholesky(metric[np.ix_(at, at)])
        slope = float(np.linalg.norm(np.linalg.solve(factor, slopes[at])))
        half = np.linalg.solve(factor, hessian[np.ix_(at, at)])
        values = curvatures(np.asarray(np.linalg.eigvalsh(np.linalg.solve(factor, half.T)), float))
    smooth = box_step(theta, slopes, hessian, metric, lower, upper, radius=1.0).decrease
    gain = max(predicted, smooth, 0.0)
    doubt = family.has_jumps or not np.isfinite(evaluation.value)
    arguments = problem, theta, values, slope, gain, status, iterations, doubt
    return certificate_of(*arguments, kinks=kinks, reach=reach)
