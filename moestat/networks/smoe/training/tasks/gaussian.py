"""Gaussian mixtures gated by competition, from moestat's own generators."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from moestat.model.axes import family
from moestat.model.designs import Uniform
from moestat.model.family import Family
from moestat.model.generate import sample
from moestat.networks.smoe.dense import DenseBlock
from moestat.networks.smoe.layer import SMoE
from moestat.networks.smoe.training.blocks import make_block
from moestat.networks.smoe.training.settings import Settings
from moestat.networks.smoe.training.tasks.task import Sample, Task

__all__ = ["GaussianCompetition"]

N_TRUE, NOISE = 4, 0.04
_GRID = np.linspace(-1.0, 1.0, 41)


class GaussianCompetition(Task):
    """Four linear experts in one dimension; the strongest two by ``|g|`` answer (compete-v1).

    ``y | x`` is a mixture of N(a_i x + b_i, 0.04) over the two experts with the largest
    ``|a_i x + b_i|``, weighted by the softmax of these, x uniform on [-1, 1]; a, b are N(0, 4) and
    drawn anew with every seed.  The layer is trained on the squared error of n observations, so
    that it estimates the mean of that mixture, not its density.

    Notes
    -----
    Pham et al. (2024), eq. (6).  `truths` gives the distance from each true expert to the nearest
    fitted one, the largest absolute difference on [-1, 1].  The mean over true experts weighs them
    by the share of inputs that they answer, for one that never answers cannot be found.
    """

    def __init__(self, settings: Settings, seed: int) -> None:
        super().__init__(settings, seed)
        rng = self.generator(0)
        self.slopes, self.intercepts = 2.0 * rng.normal(size=(2, N_TRUE))

    @cached_property
    def law(self) -> Family:
        """The family of the truth."""
        gate = {"name": "competition-top", "active": 2}
        return family("gaussian", gate=gate, n_experts=N_TRUE)

    @cached_property
    def training(self) -> Sample:
        """The n observations."""
        return self.sample(self.settings.n, self.generator(3))

    def model(self) -> nn.Module:
        """One block with linear experts of (x, 1)."""
        return make_block(self.settings, 2, 1)

    def batch(self, step: int) -> Sample:
        """Rows of the training sample, drawn with replacement."""
        rows = self.generator(1, step).integers(self.settings.n, size=self.settings.batch_size)
        return Sample(self.training.inputs[rows], self.training.targets[rows])

    def sample(self, n: int, rng: np.random.Generator) -> Sample:
        """See `Task.sample`."""
        blocks = {
            "a": self.slopes[:, None],
            "b": self.intercepts,
            "nu": np.full(N_TRUE, NOISE),
        }
        X, y = sample(self.law, self.law.pack(blocks), n, rng, Uniform(-1.0, 1.0))
        answers = X * self.slopes + self.intercepts
        strong = np.sort(np.abs(answers), axis=1)[:, -2:]
        weight = np.where(np.abs(answers) >= strong[:, :1], np.exp(np.abs(answers)), 0.0)
        mean = (weight * answers).sum(1) / weight.sum(1)
        inputs = np.concatenate([X, np.ones((n, 1))], axis=1).astype(np.float32)
        targets = torch.from_numpy(y.astype(np.float32)[:, None])
        return Sample(torch.from_numpy(inputs), targets, float(np.mean((y - mean) ** 2)))

    def loss(self, answers: Tensor, targets: Tensor) -> Tensor:
        """Mean squared error."""
        return functional.mse_loss(answers, targets)

    def truths(self, model: nn.Module) -> dict[str, float]:
        """Sup-norm distances of true experts to the nearest fitted expert, averaged."""
        grid = np.stack([_GRID, np.ones_like(_GRID)], axis=1).astype(np.float32)
        assert isinstance(model, (SMoE, DenseBlock))
        with torch.no_grad():
            fitted = model.experts.every(torch.from_numpy(grid))[..., 0].double().numpy()
        true = np.outer(self.slopes, _GRID) + self.intercepts[:, None]
        distance = np.abs(true[:, None] - fitted[None]).max(-1)
        strong = np.argsort(np.abs(true), axis=0)[-2:]
        answered = np.bincount(strong.ravel(), minlength=N_TRUE) / strong.size
        return {"expert_error": float(answered @ distance.min(1))}
