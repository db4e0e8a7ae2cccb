"""Stochastic gradient descent at a fixed rate, as the attention paper trains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from moestat.base.types import FloatArray
from moestat.base.validate import positive_int, real_in
from moestat.kernels.regression import descent_loop
from moestat.solvers.least_squares.gauss_newton import last_look, least_squares_solution
from moestat.solvers.needs import Needs
from moestat.solvers.problem import Iteration, Problem
from moestat.solvers.solution import Solution


@dataclass(frozen=True)
class SGD:
    """Stochastic gradient descent on the mean squared residual, for published procedures.

    Parameters
    ----------
    epochs : int
        Passes over the data.
    learning_rate : float
        Fixed step size.
    batch_size : int
        Samples per step.
    seed : int
        Orders of the samples, together with the start.

    Notes
    -----
    Yan et al. (2025), App. E.1.2: 10 epochs at the rate 0.1.  The paper states neither the batch
    size nor the scale of the objective.  We read batches of 32, the samples in a new order in
    every epoch, and the mean of the squared residuals over a batch.  The packed A has symmetric
    matrices, and a step on it is the step of all d^2 entries' symmetric part; the antisymmetric
    part, which no data can move, is left out.  Every atom's gate is trained; a reference atom is
    pinned afterwards.

    The fit ends where the last step leaves it: the status is "iteration limit", and the
    certificate says what a least-squares solver could still gain.

    Examples
    --------
    >>> from moestat import family, fit, sample
    >>> F = family("least-squares", gate="softmax", n_experts=1)
    >>> X, y = sample(F, [0, 0, 1, -2], n=500, rng=0, noise=0.01)
    >>> result = fit(F, X, y, solver=SGD(), rng=0)
    >>> result.certificate.status, result.certificate.certified
    ('iteration limit', False)
    """

    epochs: int = 10
    learning_rate: float = 0.1
    batch_size: int = 32
    seed: int = 0
    name: str = "sgd"

    needs: ClassVar[Needs] = Needs(regression=True)

    def __post_init__(self) -> None:
        positive_int("epochs", self.epochs)
        positive_int("batch_size", self.batch_size)
        positive_int("seed", self.seed, 0, None)
        real_in("learning_rate", self.learning_rate, 0.0, open_low=True)

    def steps(self, problem: Problem, start: FloatArray) -> Iteration[Solution]:
        """The iteration from `start` (P,), already inside the box."""
        family, data = problem.family, problem.data
        self.needs.check(self.name, family)
        # Each start has its own orders of the samples, the same wherever it is run.
        rng = np.random.default_rng([self.seed, *np.ascontiguousarray(start).view(np.uint64)])
        lower, upper = family.lower.copy(), family.upper.copy()
        for name in family.gate.translations:
            lower[family.blocks[name]], upper[family.blocks[name]] = family.box[name]
        theta = start.copy()
        of_family = family.loops.regression, family.channel_places
        rates = self.batch_size, self.learning_rate
        for _ in range(self.epochs):
            order = rng.permutation(data.size)
            descent_loop(*of_family, theta, *data.arrays, order, *rates, lower, upper)
            problem.passes += 1.0
        theta = np.clip(family.pin(theta), family.lower, family.upper)
        evaluation = yield last_look(problem, theta)
        return least_squares_solution(problem, theta, evaluation, "iteration limit", self.epochs)
