"""Starts near a fit: grown with a spring, with an expert drawn anew, or of resampled rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from moestat.base.types import FloatArray
from moestat.base.validate import positive_int, real_in
from moestat.estimation.rules import MOST_FITS
from moestat.estimation.search.runs import climb_all
from moestat.estimation.starts import (
    LineStarts,
    PlaneStarts,
    RandomStarts,
    SplitStarts,
    StartRule,
    into_box,
    one_expert,
    predictor_noise,
)
from moestat.model.family import Family
from moestat.solvers.penalised import PenalisedProblem, Penalty
from moestat.solvers.problem import Problem


@dataclass(frozen=True)
class SpringStarts:
    """Small splits of the one-expert fit, grown with a spring that ties every atom to it.

    Regions of the gate form before any of them saturates.  The spring adds ``s n (theta - c)' M
    (theta - c) / 2`` to minus the log-likelihood, c the one-expert fit in every atom and M the mean
    squares of predictors, with s log-uniform within ten times `spring`.

    A penalty that is let go is a homotopy, as deterministic annealing is (Ueda and Nakano 1998).
    """

    count: int = 1  # number of starts
    # standard deviation of the predictors around the one-expert fit, see `SplitStarts`
    noise: float = 0.1
    spring: float = 1e-3  # stiffness for each row
    steps: int = 12  # steps that each grows
    name: str = "spring"
    in_user_units: ClassVar[bool] = False

    def __post_init__(self) -> None:
        positive_int("starts: spring", self.count, maximum=MOST_FITS)
        positive_int("steps", self.steps)
        for key in ("noise", "spring"):
            real_in(f"starts: {key}", getattr(self, key), 0.0, open_low=True)

    def draw(self, problem: Problem, rng: np.random.Generator) -> FloatArray:
        """Starting values, shape (count, P)."""
        return self.grow(problem, SplitStarts(self.count, self.noise).draw(problem, rng), rng)

    def grow(self, problem: Problem, points: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Points (m, P) after some steps with the spring; unchanged for sums of squares."""
        points = into_box(problem.family, points)
        if problem.family.is_regression or not len(points):
            return points
        centre = one_expert(problem)
        unit = self.spring * problem.data.weight.sum() * problem.metric(centre)
        springs = 10.0 ** rng.uniform(-1.0, 1.0, len(points))
        none = np.arange(0)
        sprung: list[Problem] = [
            PenalisedProblem(
                problem.family, problem.data, penalty=Penalty(s * unit, none, centre=centre)
            )
            for s in springs
        ]
        return np.array([theta for theta, _ in climb_all(sprung, points, self.steps)])


@dataclass(frozen=True)
class GrownStarts:
    """A fit with fewer experts, of which one is split, or that gets a fresh one, as in `Moves`."""

    family: Family  # that of the smaller fit
    # (P,): its parameters, in the coordinates in which the larger one is fitted
    theta: FloatArray = field(repr=False)
    count: int | None = None  # number of starts; four for each expert by default
    name: str = "grown"
    in_user_units: ClassVar[bool] = False

    def draw(self, problem: Problem, rng: np.random.Generator) -> FloatArray:
        """Starting values, shape (count, P)."""
        family, (atoms, shared) = problem.family, self.family.split(self.theta)
        more = family.n_experts - len(atoms)
        theta = family.join(np.vstack([atoms, *[atoms[-1:]] * more]), shared)
        count, last = self.count or 4 * family.n_experts, family.n_experts - 1
        return draw_moves(problem, into_box(family, theta[None])[0], count, rng, last)


def near_planes(family: Family) -> StartRule:
    """The rule for starts near planes: `PlaneStarts` for numbers, `LineStarts` for classes."""
    if family.is_regression:  # sums of squares have no memberships
        return RandomStarts()
    return PlaneStarts(steps=8) if family.likelihood.support is None else LineStarts(steps=3)


def draw_moves(
    problem: Problem,
    theta: FloatArray,
    count: int,
    rng: np.random.Generator,
    which: int | None = None,
) -> FloatArray:
    """Parameters (count, P) with one atom of theta replaced.

    The new atom is a random one, a copy of another atom, or one of two into which the samples of a
    pair of atoms are divided.  Atoms are replaced in random order, or always the atom `which`.
    """
    family, rule = problem.family, near_planes(problem.family)
    every = np.arange(family.n_experts)
    replaced = rng.permutation(np.resize(every, count)) if which is None else np.full(count, which)
    pairs = [[g, rng.choice(np.delete(every, g))] for g in replaced]
    parted = np.empty((0, family.n_params))
    if isinstance(rule, PlaneStarts) and count > 1:
        parted = rule.divide_pairs(problem, theta, pairs[: count // 2], rng)
        pairs = pairs[count // 2 :]
    noise = predictor_noise(problem, rng, len(pairs))
    changed = np.empty_like(noise)
    before, shared = family.split(theta)
    fresh = family.split(one_expert(problem))[0]
    for j, pair in enumerate(pairs):
        atoms, change = before.copy(), 0.5 * family.split(noise[j])[0]
        g, other = pair
        if j % 2:
            atoms[g] = fresh[g] + change[g]
        else:
            atoms[g] = atoms[other]
            if family.mass_column is not None:
                atoms[pair, family.mass_column] -= np.log(2.0)
            atoms[pair] += change[pair]
        changed[j] = family.join(atoms, shared)
    changed[1::2] = SpringStarts().grow(problem, changed[1::2], rng)
    return np.vstack([changed, parted])


def climb_on_resamples(
    problem: Problem,
    theta: FloatArray,
    count: int,
    rng: np.random.Generator,
    steps: int,
) -> FloatArray:
    """Parameters (count, P) after `steps` steps from theta (P,) on resamples of the rows."""
    units = problem.data.units
    others = list[Problem]()
    # The number of draws is that of the rows, not the sum of their weights: with large weights a
    # bootstrap of that size would change the fit only a little.
    for indices in rng.choice(units.size, (count, units.size), p=units / units.sum()):
        times = units.mean() * np.bincount(indices, minlength=units.size)
        others.append(problem.replace_data(problem.data.reweighted(times)))
    ran = climb_all(others, np.tile(theta, (count, 1)), steps)
    return np.array([end for end, _ in ran])
