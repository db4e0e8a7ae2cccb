"""The ends of a search: other maxima of the likelihood beside the one that a fit returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from moestat.estimation.data.priors import as_prior, data_units
from moestat.estimation.fit.beside import Ends
from moestat.estimation.fit.identified import channel_metric, identified
from moestat.estimation.rules import DOUBT, SAME_HEIGHT, SEARCH
from moestat.estimation.search.higher import Mode
from moestat.estimation.search.runs import run_starts
from moestat.model.units import Coordinates
from moestat.solvers.penalised import PenalisedProblem
from moestat.solvers.problem import Objective, Problem, Request
from moestat.solvers.rules import NEWTON_STEPS
from moestat.solvers.solution import Solution

__all__ = ["ends_of"]


def ends_of(
    problem: Problem,
    best: Solution,
    modes: Sequence[Mode],
    coordinates: Coordinates,
    log_units: float,
) -> Ends:
    """The end that a fit returns, and those to which the next highest modes of its search lead.

    Parameters
    ----------
    problem : Problem
        The data of the fit in its coordinates.
    best : Solution
        The solution that the fit returns, in these coordinates.
    modes : sequence of Mode
        What a search on all rows has seen, the highest first.
    coordinates : Coordinates
        The map to the user's units.
    log_units : float
        The log-likelihood in standardised units minus that in the user's.
    """
    family = problem.family
    prior = as_prior("weak", family)
    assert prior is not None
    is_mode = isinstance(problem, PenalisedProblem)
    penalty = problem.penalty if is_mode else prior.penalty(family, data_units(problem.data))
    ends = [(best.theta, best.log_likelihood, modes[0].starts)]
    for mode in modes[1 : SEARCH.returned]:
        (end,) = run_starts(problem, mode.end.theta[None], NEWTON_STEPS)
        height = end.height + problem.prior_of(end.theta)
        is_known = any(abs(height - other) <= SAME_HEIGHT for _, other, _ in ends)
        if np.isfinite(height) and not is_known:
            ends.append((end.theta, height, mode.starts))
    looked = [_look(problem, replace(best, theta=theta)) for theta, _, _ in ends]
    heights = np.array([height for _, height, _ in ends])
    penalties = np.array([penalty.value(theta) for theta, _, _ in ends])
    channels = range(family.first_expert_channel, len(family.channels))
    n_own = sum(int(family.width[c]) for c in channels if not family.channels[c].shared)
    rows = np.array([each[1] for each in looked])
    return Ends(
        np.array([coordinates.outward(theta) for theta, _, _ in ends]),
        heights - log_units,
        heights - penalties - log_units,
        np.array([each[0] for each in looked]),
        rows,
        rows / max(n_own, 1),
        np.array([starts for _, _, starts in ends]),
        modes[0].collapsed,
    )


def _look(problem: Problem, end: Solution) -> tuple[bool, float]:
    """Whether an end is at finite parameters, and the fewest rows of an expert there."""
    _, tau, _ = problem.rowwise(end.theta)
    rows = float((tau @ problem.data.weight).min())
    information = problem.evaluate(Request(Objective.OBSERVED, end.theta)).hessian
    metric, total = channel_metric(problem, end.theta), float(problem.data.weight.sum())
    known = identified(problem.family, replace(end, information=information), total, metric)
    along = known.flat @ (known.flat.T @ (metric @ end.theta))
    return bool(along @ metric @ along < DOUBT.far**2), rows
