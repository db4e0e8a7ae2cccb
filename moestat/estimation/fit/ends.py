"""The ends of a search: other maxima of the likelihood beside the one that a fit returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from moestat.estimation.data.priors import weak_penalty
from moestat.estimation.fit.beside import Ends
from moestat.estimation.fit.fitted import StandardFit
from moestat.estimation.fit.standardise import Standardised
from moestat.estimation.rules import DOUBT, SAME_HEIGHT, SEARCH
from moestat.estimation.search.higher import Mode
from moestat.estimation.search.runs import run_starts
from moestat.solvers.penalised import PenalisedProblem
from moestat.solvers.problem import Objective, Problem, Request
from moestat.solvers.rules import NEWTON_STEPS

__all__ = ["ends_of"]


def ends_of(
    standard: Standardised,
    fit: StandardFit,
    modes: Sequence[Mode],
) -> Ends:
    """The end that a fit returns, and those to which the next highest modes of its search lead.

    Parameters
    ----------
    standard : Standardised
        The data of the fit in its coordinates.
    fit : StandardFit
        The fit in these coordinates.
    modes : sequence of Mode
        What a search on all rows has seen, the highest first.
    """
    problem, best, log_units = standard.problem, fit.solution, standard.log_units
    family = problem.family
    penalty = problem.penalty if isinstance(problem, PenalisedProblem) else weak_penalty(problem)
    ends, fits = [(best.theta, best.log_likelihood, modes[0].starts)], [fit]
    for mode in modes[1 : SEARCH.returned]:
        (end,) = run_starts(problem, mode.end.theta[None], NEWTON_STEPS)
        height = end.height + problem.prior_of(end.theta)
        is_known = any(abs(height - other) <= SAME_HEIGHT for _, other, _ in ends)
        if np.isfinite(height) and not is_known:
            ends.append((end.theta, height, mode.starts))
            information = problem.evaluate(Request(Objective.OBSERVED, end.theta)).hessian
            there = replace(best, theta=end.theta, information=information)
            fits.append(standard.describe(there))
    looked = [_look(problem, each) for each in fits]
    heights = np.array([height for _, height, _ in ends])
    penalties = np.array([penalty.value(theta) for theta, _, _ in ends])
    channels = range(family.first_expert_channel, len(family.channels))
    n_own = sum(int(family.width[c]) for c in channels if not family.channels[c].shared)
    rows = np.array([each[1] for each in looked])
    return Ends(
        np.array([standard.coordinates.outward(theta) for theta, _, _ in ends]),
        heights - log_units,
        heights - penalties - log_units,
        np.array([each[0] for each in looked]),
        rows,
        rows / max(n_own, 1),
        np.array([starts for _, _, starts in ends]),
        modes[0].collapsed,
    )


def _look(problem: Problem, end: StandardFit) -> tuple[bool, float]:
    """Whether an end is at finite parameters, and the fewest rows of an expert there."""
    theta, metric = end.solution.theta, end.metric
    assert metric is not None
    _, tau, _ = problem.rowwise(theta)
    rows = float((tau @ problem.data.weight).min())
    flat = end.identified(float(problem.data.weight.sum())).flat
    along = flat @ (flat.T @ (metric @ theta))
    return bool(along @ metric @ along < DOUBT.far**2), rows
