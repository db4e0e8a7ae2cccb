"""Starts from clusters of the samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from moestat.base.door import doors
from moestat.base.types import FloatArray
from moestat.base.validate import check_kind, positive_int
from moestat.estimation.rules import MOST_FITS, RUN_TOLERANCE, SEARCH
from moestat.estimation.starts.scale import Scale
from moestat.model.by_expert import possible
from moestat.model.family import Family
from moestat.solvers.bfgs import assigned_curvature, bfgs_steps
from moestat.solvers.driver import Cores, attempt, succeeded
from moestat.solvers.problem import Iteration, Objective, Problem, Rows
from moestat.solvers.trust_region.newton_loop import newton_steps


@doors
@dataclass(frozen=True)
class ClusterStarts:
    """The complete-data fit to clusters of the samples.

    Seeds are drawn as in k-means++ (Arthur and Vassilvitskii 2007) from the standardised inputs
    and continuous response; every sample belongs to its nearest seed, and gate and experts are
    fitted to these memberships by Newton steps.  At most 2000 samples are looked at;
    weighted ones are drawn by their weights.

    Parameters
    ----------
    count : int
        Number of starts.
    steps : int
        Newton steps of each at most.
    threads : int or None
        Threads over starts; all cores for None.  The starts do not depend on it.
    """

    count: int = 1
    steps: int = 15
    threads: int | None = 1
    name: str = "cluster"
    in_user_units: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_kind("starts: name", self.name, str, "a name")
        positive_int(f"starts: {self.name}", self.count, maximum=MOST_FITS)
        positive_int("steps", self.steps)
        if self.threads is not None:
            positive_int("threads", self.threads)

    def check_family(self, family: Family) -> None:
        """Refuse a family without memberships: one that is fitted by least squares."""
        if family.is_regression:
            raise ValueError(
                f"starts: rule {self.name!r} fits experts to shares of the samples, which a family"
                f" fitted by least squares (gate {family.gate.name!r}) does not have; its rules are"
                " 'random', 'split', 'truth', 'measure' and 'given'"
            )

    def draw(self, problem: Problem, rng: np.random.Generator) -> FloatArray:
        """Starting values, shape (count, P)."""
        self.check_family(problem.family)
        scale, points = self.choose_rows(problem, rng)
        memberships = [self.memberships(points, problem.family, rng) for _ in range(self.count)]
        return self.fit_memberships(scale, memberships, rng)

    def choose_rows(self, problem: Problem, rng: np.random.Generator) -> tuple[Scale, FloatArray]:
        """The samples that are used, with weight 1, and their positions (q, n)."""
        family, data = problem.family, problem.data
        if data.size <= SEARCH.clustered and data.begin is None and np.all(data.weight == 1.0):

            def choose_all() -> tuple[Scale, FloatArray]:
                scale = Scale(problem)
                return scale, self.places(scale)

            return data.remember(f"places of {self.name}", family, choose_all)
        if data.begin is not None:
            at = np.flatnonzero(data.owner <= data.owner[: SEARCH.clustered].max())
        elif np.ptp(data.weight) == 0.0:
            at = rng.permutation(data.size)[: SEARCH.clustered]
        else:
            at = rng.choice(data.size, SEARCH.clustered, p=data.weight / data.weight.sum())
        some = Problem(family, Rows(data.X[:, at].copy(), data.y[at].copy(), np.ones(at.size)))
        scale = Scale(some)
        points = self.places(scale)
        if data.begin is not None:
            # Rows of a group are where its mean is.
            owner = data.owner[at]
            size = np.bincount(owner)
            points = np.array([(np.bincount(owner, row) / size)[owner] for row in points])
        return scale, points

    def fit_memberships(
        self,
        scale: Scale,
        memberships: Sequence[FloatArray],
        rng: np.random.Generator,
        near: FloatArray | None = None,
    ) -> FloatArray:
        """The complete-data fits (m, P) to memberships (k, n), from the centre or `near` (P,)."""
        family, problems, origins = scale.problem.family, list[Problem](), list[FloatArray]()
        iterations: list[Iteration[tuple[FloatArray, *tuple[object, ...]]]] = []
        centre = scale.centre(family) if near is None else near
        begin = family.feasible(family.pin(centre))
        for share in memberships:
            if family.likelihood.choices is not None or family.own_inputs is not None:
                # Experts differ, so the assignment of clusters to experts is part of the start.
                share = share if near is not None else rng.permutation(share)
                share = possible(family.likelihood, share, scale.problem.data.y)
            origin = begin
            if family.expert.block is not None:
                origin = family.feasible(family.pin(centre + scale.noise(family, rng)[0]))
            origins.append(origin)
            restarted = scale.problem.restart()
            restarted.assign(share)
            problems.append(restarted)
            iterations.append(_complete_steps(restarted, origin, self.steps))
        ends = attempt(iterations, problems, Cores(self.threads))
        # A fit out of the range of float64 has failed, and its start is where it began.
        known = [
            (origin,) if isinstance(end, np.linalg.LinAlgError) else end
            for end, origin in zip(ends, origins, strict=True)
        ]
        return np.array([theta for theta, *_ in succeeded(known)])

    def places(self, scale: Scale) -> FloatArray:
        """Positions (q, n) of the samples: standardised inputs and a continuous response."""
        return np.vstack([scale.standardised, scale.places])

    def memberships(
        self, points: FloatArray, family: Family, rng: np.random.Generator
    ) -> FloatArray:
        """One row per atom, 1 for the points (q, n) nearest to its k-means++ seed, else 0."""
        n, k = points.shape[1], family.n_experts
        distance = np.full((k, n), np.inf)
        chance = np.full(n, 1.0 / n)
        for i in range(k):
            seed = points[:, rng.choice(n, p=chance)]
            distance[i] = np.sum((points - seed[:, None]) ** 2, axis=0)
            nearest = distance.min(axis=0)
            total = nearest.sum()
            chance = nearest / total if total > 0.0 else np.full(n, 1.0 / n)
        return (np.argmin(distance, axis=0) == np.arange(k)[:, None]).astype(np.float64)


@doors
@dataclass(frozen=True)
class SoftClusterStarts(ClusterStarts):
    """The complete-data fit to soft clusters of the samples.

    As `ClusterStarts`, with seeds that are k samples drawn at random, and memberships in proportion
    to ``exp(-s |z - c|^2)`` at a squared distance from the seed c; s is log-uniform on [1/4, 4].
    Every atom then has samples of all classes, which hard clusters of inputs need not have.

    Parameters
    ----------
    count : int
        Number of starts.
    steps : int
        Newton steps of each at most.
    threads : int or None
        Threads over starts; all cores for None.  The starts do not depend on it.
    """

    name: str = "soft cluster"

    def memberships(
        self, points: FloatArray, family: Family, rng: np.random.Generator
    ) -> FloatArray:
        """One row per atom, which sum to 1 over the atoms."""
        seeds = points[:, rng.choice(points.shape[1], family.n_experts, replace=False)]
        sharpness = 4.0 ** rng.uniform(-1.0, 1.0)
        score = -sharpness * np.sum((points[:, None] - seeds[:, :, None]) ** 2, axis=0)
        share = np.exp(score - score.max(axis=0))
        return share / share.sum(axis=0)


def _complete_steps(
    problem: Problem, origin: FloatArray, steps: int
) -> Iteration[tuple[FloatArray, *tuple[object, ...]]]:
    """Parameters (P,) after `steps` Newton steps to the complete-data fit, or more steps of BFGS.

    With many BFGS steps, which have no trust region, experts near few rows collapse.
    """
    family, near = problem.family, RUN_TOLERANCE
    if family.n_params > SEARCH.hessians:
        matrix = yield from assigned_curvature(problem, origin, -1)
        limit, complete = SEARCH.bfgs * steps, Objective.COMPLETE
        return (yield from bfgs_steps(problem, origin, -1, limit, near, matrix, complete))
    bounds = problem.metric(origin), family.lower, family.upper
    ran = yield from newton_steps(problem, Objective.COMPLETE, origin, near, steps, bounds=bounds)
    return (ran.theta,)
