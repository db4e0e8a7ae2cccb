"""Starts at random predictors, or at noisy copies of the one-expert fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from moestat.base.door import doors
from moestat.base.types import FloatArray
from moestat.base.validate import positive_int, real_in
from moestat.estimation.rules import MOST_FITS
from moestat.estimation.starts.scale import Scale, one_expert
from moestat.solvers.problem import Problem


@doors
@dataclass(frozen=True)
class RandomStarts:
    """Predictors drawn at random.

    Each channel is standard normal at the centre of the inputs and changes by a normal amount,
    of standard deviation 2, per standard deviation of each input; means are so in units of a
    continuous response.

    Parameters
    ----------
    count : int
        Number of starts.
    """

    count: int = 1
    name: str = "random"
    in_user_units: ClassVar[bool] = False

    def __post_init__(self) -> None:
        positive_int("starts: random", self.count, maximum=MOST_FITS)

    def draw(self, problem: Problem, rng: np.random.Generator) -> FloatArray:
        """Starting values, shape (count, P)."""
        family, scale = problem.family, Scale(problem)
        starts = scale.centre(family) + scale.noise(family, rng, self.count)
        positive = (family.lower > 0.0) & (family.lower < family.upper)
        starts[:, positive] = np.exp(0.5 * rng.standard_normal((self.count, int(positive.sum()))))
        return starts


@doors
@dataclass(frozen=True)
class SplitStarts:
    """Noisy copies of the one-expert fit: every atom is that fit, split by Gaussian noise.

    The noise is scaled per predictor like that of `RandomStarts`, so it does not depend on the
    units of the data.

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
    in_user_units: ClassVar[bool] = False

    def __post_init__(self) -> None:
        positive_int("starts: split", self.count, maximum=MOST_FITS)
        real_in("starts: noise", self.noise, 0.0, open_low=True)

    def draw(self, problem: Problem, rng: np.random.Generator) -> FloatArray:
        """Starting values, shape (count, P)."""
        centre = one_expert(problem, rng)
        scale = Scale(problem)
        return centre + self.noise * scale.noise(problem.family, rng, self.count)
