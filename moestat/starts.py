"""Start rules: where the solvers begin.  A new rule is one class and a line in `make_starts`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from moestat._registry import UnknownNameError
from moestat._types import FloatArray
from moestat._validate import as_floats, positive_int, real_in
from moestat.families import Family
from moestat.solvers import Newton
from moestat.solvers._driver import Problem, drive

__all__ = ["RandomStarts", "SplitStarts", "StartRule", "TruthStarts", "make_starts"]


class StartRule(Protocol):
    """A rule that draws starting values for a problem."""

    @property
    def name(self) -> str:
        """What the certificate calls its starts."""
        ...

    def draw(self, problem: Problem, rng: np.random.Generator) -> FloatArray:
        """Starting values, shape (count, P), not yet put into the box."""
        ...


@dataclass(frozen=True)
class TruthStarts:
    """Around the truth, as the papers start.

    The fitted atoms are assigned to the true ones at random with no Voronoi cell empty; then
    every parameter gets independent Gaussian noise.

    Parameters
    ----------
    truth_family : Family
        Family of the truth, with k* experts.
    truth : ndarray of shape (P*,)
        Its packed parameters.
    count : int
        Number of starts.
    noise : float
        Standard deviation of the noise, in the units of the parameters.

    Notes
    -----
    mlmoe (003), Sec. 5, "Initialization".  The paper says "a small variance" and no number.
    """

    truth_family: Family
    truth: FloatArray = field(repr=False)
    count: int = 1
    noise: float = 0.1
    name: str = "truth"

    def __post_init__(self) -> None:
        as_floats("truth", self.truth, (self.truth_family.n_params,))
        positive_int("starts: truth", self.count)
        real_in("starts: noise", self.noise, 0.0)

    def draw(self, problem: Problem, rng: np.random.Generator) -> FloatArray:
        """Starting values, shape (count, P)."""
        family = problem.family
        k, k_true = family.n_experts, self.truth_family.n_experts
        atoms, shared = self.truth_family.split(np.asarray(self.truth))
        starts = np.empty((self.count, family.n_params))
        for start in starts:
            if k >= k_true:
                extra = rng.integers(0, k_true, size=k - k_true)
                cells = rng.permutation(np.concatenate([np.arange(k_true), extra]))
            else:
                cells = rng.choice(k_true, size=k, replace=False)
            start[:] = family.join(atoms[cells], shared)
            start += self.noise * rng.standard_normal(start.size)
        return starts


@dataclass(frozen=True)
class RandomStarts:
    """Predictors drawn at random.

    Each channel is standard normal at the centre of the inputs and changes by a normal amount,
    of standard deviation 2, per standard deviation of each input.

    Parameters
    ----------
    count : int
        Number of starts.
    """

    count: int = 1
    name: str = "random"

    def __post_init__(self) -> None:
        positive_int("starts: random", self.count)

    def draw(self, problem: Problem, rng: np.random.Generator) -> FloatArray:
        """Starting values, shape (count, P)."""
        family = problem.family
        X, weight = problem.data.X, problem.data.weight
        centre = np.average(X, axis=1, weights=weight)
        spread = np.sqrt(np.average((X.T - centre) ** 2, axis=0, weights=weight))
        starts = np.empty((self.count, family.n_params))
        for start in starts:
            for (_, c), first in np.ndenumerate(family.index):
                slope = rng.standard_normal(family.width[c] - 1)
                slope = slope * 2.0 / np.maximum(spread[: slope.size], 1e-12)
                start[first] = rng.standard_normal() - slope @ centre[: slope.size]
                start[first + 1 : first + family.width[c]] = slope
                axis = family.channels[c].axis
                if axis is not None:
                    start[first] = centre[axis] + 2.0 * spread[axis] * start[first]
            positive = family.lower > 0.0
            start[positive] = np.exp(0.5 * rng.standard_normal(int(positive.sum())))
        return starts


@dataclass(frozen=True)
class SplitStarts:
    """Noisy copies of the one-expert fit: every atom is that fit, split by Gaussian noise.

    The noise is scaled per predictor like that of `RandomStarts`, so it does not depend on the
    units of the inputs.

    Parameters
    ----------
    count : int
        Number of starts.
    noise : float
        Standard deviation of the predictors around the one-expert fit.
    """

    count: int = 1
    noise: float = 0.5
    name: str = "split"

    def __post_init__(self) -> None:
        positive_int("starts: split", self.count)
        real_in("starts: noise", self.noise, 0.0, open_low=True)

    def draw(self, problem: Problem, rng: np.random.Generator) -> FloatArray:
        """Starting values, shape (count, P)."""
        single = Problem(problem.family.with_experts(1), problem.data)
        origin = np.clip(0.0, single.family.lower, single.family.upper)
        (solution,) = drive([Newton().steps(single, origin)], [single], threads=1)
        atom, shared = single.family.split(solution.theta)
        centre = problem.family.join(np.repeat(atom, problem.family.n_experts, axis=0), shared)
        noise = RandomStarts(self.count).draw(problem, rng)
        return centre + self.noise * noise


def make_starts(
    options: Mapping[str, Any],
    truth_family: Family | None = None,
    truth: FloatArray | None = None,
) -> list[StartRule]:
    """Start rules from their table in a spec.

    Parameters
    ----------
    options : mapping
        Counts per rule, ``{"truth": 3, "random": 2, "split": 1}``, and ``"noise"``, the standard
        deviation of the truth-centred starts.
    truth_family, truth : Family and ndarray of shape (P*,), optional
        Needed by ``"truth"``.

    Returns
    -------
    list of StartRule
        In the order truth, split, random; rules with count 0 are left out.

    Raises
    ------
    ValueError
        If a key is unknown, a count negative, no start remains, or the truth is missing.

    Examples
    --------
    >>> [rule.name for rule in make_starts({"random": 2, "split": 1})]
    ['split', 'random']
    """
    known = ("truth", "split", "random", "noise")
    for key in options:
        if key not in known:
            raise UnknownNameError(f"unknown start rule {key!r}; known: {', '.join(known)}")
    counts = {key: options.get(key, 0) for key in known[:3]}
    for key, count in counts.items():
        positive_int(f"starts: {key}", count, 0)
    if not any(counts.values()):
        raise ValueError(f"starts must ask for at least one start, got {dict(options)}")
    if "noise" in options and not counts["truth"]:
        raise ValueError("starts: noise belongs to truth-centred starts, but truth is 0")
    rules: list[StartRule] = []
    if counts["truth"]:
        if truth_family is None or truth is None:
            raise ValueError("starts: truth-centred starts need a truth")
        rules.append(TruthStarts(truth_family, truth, counts["truth"], options.get("noise", 0.1)))
    if counts["split"]:
        rules.append(SplitStarts(counts["split"]))
    if counts["random"]:
        rules.append(RandomStarts(counts["random"]))
    return rules
