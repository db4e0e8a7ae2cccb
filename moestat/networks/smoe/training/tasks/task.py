"""What tasks share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from torch import Tensor, nn

from moestat.base.validate import positive_int
from moestat.networks.smoe.training.settings import Settings

__all__ = ["Sample", "Task"]


class Sample(NamedTuple):
    """What a model is called with, what it should answer, and the least loss that is possible."""

    inputs: Tensor
    targets: Tensor
    best: float = 0.0


class Task:
    """A distribution of data, the model that is trained on it, and their loss.

    Data are functions of the seed and of what they are for: the batch of step t is the same
    whether or not training was interrupted before.

    Parameters
    ----------
    settings : Settings
        The run.
    seed : int
        Seed of the distribution and of all data.
    """

    def __init__(self, settings: Settings, seed: int) -> None:
        self.settings, self.seed = settings, positive_int("seed", seed, 0, None)

    def generator(self, *purpose: int) -> np.random.Generator:
        """A generator for one purpose."""
        return np.random.default_rng((self.seed, *purpose))

    def model(self) -> nn.Module:
        """A model with random weights."""
        raise NotImplementedError

    def batch(self, step: int) -> Sample:
        """The batch of a step."""
        step = positive_int("step", step, 0, None)
        return self.sample(self.settings.batch_size, self.generator(1, step))

    def sample(self, n: int, rng: np.random.Generator) -> Sample:
        """`n` new examples."""
        raise NotImplementedError

    def held_out(self, which: int) -> Sample:
        """The validation sample (0) or the test sample (1)."""
        return self.sample(self.settings.n_test, self.generator(2, positive_int("which", which, 0)))

    def loss(self, answers: Tensor, targets: Tensor) -> Tensor:
        """Mean loss of answers."""
        raise NotImplementedError

    def truths(self, model: nn.Module) -> dict[str, float]:
        """Errors of a model against the truth, by name; none for most tasks."""
        return {}
