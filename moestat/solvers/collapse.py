"""Collapse: an atom that shrinks onto a few samples, where the likelihood has no bound."""

from __future__ import annotations

from functools import partial

import numpy as np

from moestat.base.types import FloatArray
from moestat.solvers.metric import related
from moestat.solvers.problem import Problem, Rows
from moestat.solvers.rules import EM_RULES


def collapsed_atoms(problem: Problem, theta: FloatArray) -> tuple[int, ...]:
    """Positions of atoms that fit a few samples instead of a part of the population.

    The likelihood of a Gaussian mixture is unbounded where an atom shrinks onto samples, so a
    maximum there says nothing about the truth.  An atom has collapsed when it fits half a sample or
    more, by the sum of its responsibilities, and

    - its variance is on the lower bound of the parameter space, or
    - it fits fewer than two samples per parameter of its own, with a variance below a tenth of that
      of every atom that fits more.

    An atom with almost no mass has not collapsed: over-specified estimates have such atoms.  An
    atom on a bound that follows from the rounding of the response (`Problem.resolved`) has not
    collapsed, nor has one whose variance is known, or on a bound that the user has given: the
    likelihood is bounded there.  Likelihoods without a scale have no collapsed
    atoms.  Each of several responses has a scale of its own: its variance given the earlier
    responses where they are correlated.
    """
    family, penalty = problem.family, getattr(problem, "penalty", None)
    # A prior density of the variances bounds what an atom gains on few samples.
    bounded = frozenset() if penalty is None else penalty.bounded
    collapsed = (
        _collapsed_in_block(problem, theta, block)
        for block in family.likelihood.scales
        if bounded.isdisjoint(family.blocks[block].ravel().tolist())
    )
    return tuple(sorted({i for atoms in collapsed for i in atoms}))


def _collapsed_in_block(problem: Problem, theta: FloatArray, block: str) -> tuple[int, ...]:
    """Atoms that have collapsed by the scale in one block of parameters."""
    family, data = problem.family, problem.data
    scale = family.blocks[block]
    free = family.lower[scale] < family.upper[scale]
    on_floor, level = theta[scale] <= family.lower[scale], theta[scale].copy()
    on_own = on_floor & (block in family.given)
    if block in problem.resolved:
        on_floor[:] = False
    on_floor &= ~on_own
    if names := family.likelihood.pairs.get(block, ()):
        at = np.array([family.blocks[name] for name in names])
        w = theta[at]
        on_floor |= np.any((w <= family.lower[at]) | (w >= family.upper[at]), axis=0)
        level -= np.log1p(np.sum(w**2, axis=0))
    on_floor &= free
    least = EM_RULES.samples * family.n_atom_params
    if (
        not on_floor.any()
        and float(np.ptp(level)) <= -np.log(EM_RULES.narrow)
        and data.weight.sum() >= least * len(scale)
    ):
        return ()  # one atom at least has enough samples, and no other is narrow beside it
    share: FloatArray = data.sum_parts(partial(_shares, problem, theta))

    def below(least: float) -> np.ndarray:
        starved = share < least
        fed = np.min(level[~starved], initial=np.inf)
        narrow = starved & (level < fed + np.log(EM_RULES.narrow))
        return (2.0 * share >= 1.0) & free & ~on_own & (on_floor | narrow)

    collapsed = below(least)
    if collapsed.any():
        # Coefficients of held inputs, and linear relations among the others, are no parameters.
        estimated = np.setdiff1d(np.arange(family.n_atom_params), family.held_positions)
        spare = family.n_atom_params - estimated.size
        spare += related(problem.metric(theta)[np.ix_(estimated, estimated)]).shape[1]
        collapsed = below(least - EM_RULES.samples * spare)
    return tuple(int(i) for i in np.flatnonzero(collapsed))


def _shares(problem: Problem, theta: FloatArray, part: Rows) -> FloatArray:
    """Sums of responsibilities (k,)."""
    return problem.rowwise(theta, part)[1] @ part.weight
