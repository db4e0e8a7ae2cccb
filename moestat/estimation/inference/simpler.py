"""Whether a fit has an expert too many: the best fit with one less, made from this one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from moestat.base.types import FloatArray
from moestat.estimation.inference.identified import identified_at
from moestat.estimation.inference.inner_fit import inner_fit
from moestat.model.family import Family
from moestat.solvers import Newton, Solution
from moestat.solvers.driver import Cores, attempt
from moestat.solvers.problem import Problem

if TYPE_CHECKING:
    from moestat.estimation.results import MoEResults


__all__ = ["Simpler", "simpler", "with_order"]

_TRIED = 2
"""Number of candidates that are fitted: those with the highest likelihood before the fit."""


@dataclass(frozen=True)
class Simpler:
    """A fit with one expert fewer.

    Parameters
    ----------
    log_likelihood : float
        Its log-likelihood.
    gain : float
        By how much Schwarz's criterion falls, or rises if negative.
    experts : tuple of int
        The two experts that became one, or the one that was left out.
    """

    log_likelihood: float
    gain: float
    experts: tuple[int, ...]

    def __str__(self) -> str:
        if self.gain <= 0.0:
            return (
                f"the data distinguish the experts: BIC is higher by {-self.gain:.1f} with one"
                " expert fewer"
            )
        numbers = " and ".join(str(atom + 1) for atom in self.experts)
        fewer = f"without expert {numbers}"
        if len(self.experts) > 1:
            fewer = f"with one expert in place of experts {numbers}"
        return (
            f"BIC is lower by {self.gain:.1f} {fewer}. If the true number of experts is"
            " smaller, the information matrix is singular at the truth and estimates are not"
            " normally distributed: Wald standard errors, tests and intervals are then not valid."
            " Use moestat.select or moestat.bootstrap_lrt to choose the number of experts"
        )


def simpler(result: MoEResults) -> Simpler | None:
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
    heights = [float(data.weight @ trial.rowwise(t)[2]) for _, t in candidates]
    best = np.argsort(np.nan_to_num(heights, nan=-np.inf))[::-1][:_TRIED]
    problems = [Problem(small, data) for _ in best]
    ends = attempt(
        [Newton().steps(p, candidates[i][1]) for p, i in zip(problems, best, strict=True)],
        problems,
        Cores(1),
    )
    solved = [(t, end) for t, end in enumerate(ends) if isinstance(end, Solution)]
    if not solved:
        return None
    top, solution = max(solved, key=lambda pair: pair[1].log_likelihood)
    # What the change of units adds to a log-likelihood is the same for both.
    loss = _height(result) - solution.log_likelihood
    spared = inner.known.rank - identified_at(problems[top], solution).rank
    gain = spared * np.log(result.n_independent) - 2.0 * loss
    height = result.log_likelihood - loss
    return Simpler(float(height), float(gain), candidates[int(best[top])][0])


def with_order(result: MoEResults) -> MoEResults:
    """The result with its comparison with one expert fewer, which summaries and tests mention."""
    stopped = "InterruptedWarning" in result.kinds
    if result.prior is not None or not result.has_rows or stopped:
        return result
    return replace(result, order=simpler(result))


def _height(result: MoEResults) -> float:
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
