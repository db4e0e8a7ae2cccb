"""Whether a fit has an expert too many: the best fit with one less, made from this one."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np

from moestat.base.types import FloatArray
from moestat.estimation.fit.beside import Simpler
from moestat.estimation.fit.fitted import Fitted
from moestat.estimation.fit.identified import rank_at
from moestat.estimation.inference.inner_fit import inner_fit
from moestat.model.family import Family
from moestat.solvers import Newton
from moestat.solvers.driver import Cores, Unfinished, attempt
from moestat.solvers.problem import Problem

__all__ = ["Simpler", "simpler", "with_order"]

_Result = TypeVar("_Result", bound=Fitted)

_TRIED = 2
"""Number of candidates that are fitted: those with the highest likelihood before the fit."""


def simpler(result: Fitted) -> Simpler | None:
    """The best fit with one expert fewer among those near a fit.

    Every pair of experts becomes one, with their summed mass and the averages of their parameters,
    weighted by mass; and every expert is left out.  The likeliest of these are starts of Newton's
    method.  BIC (Schwarz 1978) detects a superfluous expert consistently (Keribin 2000); the
    chi-square distribution of the likelihood ratio does not hold for it.
    """
    family = result.family
    named = family.told_apart
    if family.n_experts < 2 or family.is_regression or family.gate.n_active is not None or named:
        return None
    inner = inner_fit(result)
    small = inner.family.with_experts(family.n_experts - 1)
    data = inner.data
    trial = Problem(small, data)
    candidates = _candidates(inner.family, small, inner.theta, data.X)
    best = [0]
    if len(candidates) > 1:
        heights = [float(data.weight @ trial.rowwise(t)[2]) for _, t in candidates]
        best = [*np.argsort(np.nan_to_num(heights, nan=-np.inf))[::-1][:_TRIED]]
    problems, newton = [Problem(small, data) for _ in best], Newton()
    ends = attempt(
        [newton.climb(p, candidates[i][1]) for p, i in zip(problems, best, strict=True)],
        problems,
        Cores(1),
    )
    failed = Exception, Unfinished
    solved = [(t, *end) for t, end in enumerate(ends) if not isinstance(end, failed)]
    if not solved:
        return None
    top, end, evaluation = min(solved, key=lambda each: each[2].value)
    # What the change of units adds to a log-likelihood is the same for both.
    loss = _height(result) + evaluation.value
    spared = inner.identified.rank - rank_at(problems[top], end.theta)
    gain = spared * np.log(result.n_independent) - 2.0 * loss
    height = result.llf - loss
    return Simpler(float(height), float(gain), candidates[int(best[top])][0])


def with_order(result: _Result) -> _Result:
    """The result with its comparison with one expert fewer, which summaries and tests mention."""
    stopped = "InterruptedWarning" in result.kinds
    if result.prior is not None or not result.has_rows or stopped:
        return result
    return replace(result, order=simpler(result))


def _height(result: Fitted) -> float:
    """The log-likelihood of a fit in the units in which it was found."""
    return float((result.standard or result).solution.log_likelihood)


def _candidates(
    family: Family, small: Family, theta: FloatArray, X: FloatArray
) -> list[tuple[tuple[int, ...], FloatArray]]:
    """Starts with one expert fewer, each with the experts that were merged or left out."""
    k = family.n_experts
    mass = family.gate_probabilities(theta, X.T).mean(axis=0)
    atoms, shared = family.split(theta)
    candidates = []
    for i in range(k):
        if k > 2:  # a single expert is where it is, from any start
            candidates.append(((i,), np.delete(atoms, i, axis=0)))
        for j in range(i):
            share = mass[i] / (mass[i] + mass[j])
            merged = share * atoms[i] + (1.0 - share) * atoms[j]
            if family.mass_column is not None:
                at = family.mass_column
                merged[at] = np.logaddexp(atoms[i, at], atoms[j, at])
            candidates.append(((j, i), np.vstack([np.delete(atoms, [i, j], axis=0), merged])))
    joined = [(who, small.pin(small.join(remaining, shared))) for who, remaining in candidates]
    return [(who, small.feasible(start)) for who, start in joined]
