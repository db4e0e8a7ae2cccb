"""Clusters, each with a teacher of its own: the expert that a row needs is its cluster's."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from moestat.networks.smoe.training.blocks import make_block
from moestat.networks.smoe.training.settings import Settings
from moestat.networks.smoe.training.tasks.task import Sample, Task

__all__ = ["ClusterClasses", "ClusterRegression"]

N_CLUSTERS, N_INPUTS, N_OUTPUTS, N_UNITS = 8, 16, 8, 8
SPREAD, NOISE = 1.5, 0.1  # standard deviations


class _Clusters(Task):
    """``x ~ N(mu_c, I)`` with c uniform on 8 clusters, ``mu_c ~ N(0, 1.5^2 I)`` in 16 dimensions.

    The teacher of cluster c is ``tanh(x B_c) A_c`` with 8 hidden units, N(0, 1) entries over the
    root of the number of inputs.
    """

    def __init__(self, settings: Settings, seed: int) -> None:
        super().__init__(settings, seed)
        rng = self.generator(0)
        self.centres = SPREAD * rng.normal(size=(N_CLUSTERS, N_INPUTS))
        self.inner = rng.normal(size=(N_CLUSTERS, N_INPUTS, N_UNITS)) / np.sqrt(N_INPUTS)
        self.outer = rng.normal(size=(N_CLUSTERS, N_UNITS, N_OUTPUTS)) / np.sqrt(N_UNITS)

    def model(self) -> nn.Module:
        """One block."""
        return make_block(self.settings, N_INPUTS, N_OUTPUTS)

    def _draw(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        cluster = rng.integers(N_CLUSTERS, size=n)
        x = self.centres[cluster] + rng.normal(size=(n, N_INPUTS))
        hidden = np.tanh(x[:, None, :] @ self.inner[cluster])
        return x, (hidden @ self.outer[cluster])[:, 0]


class ClusterRegression(_Clusters):
    """The teacher's answer with normal errors of variance 0.01; squared error."""

    def sample(self, n: int, rng: np.random.Generator) -> Sample:
        """See `Task.sample`."""
        x, y = self._draw(n, rng)
        error = NOISE * rng.normal(size=y.shape)
        return Sample(_float(x), _float(y + error), float(np.mean(error**2)))

    def loss(self, answers: Tensor, targets: Tensor) -> Tensor:
        """Mean squared error."""
        return functional.mse_loss(answers, targets)


class ClusterClasses(_Clusters):
    """Class labels by the softmax of three times the teacher's answer; cross-entropy."""

    def sample(self, n: int, rng: np.random.Generator) -> Sample:
        """See `Task.sample`."""
        x, y = self._draw(n, rng)
        logits = 3.0 * y
        log_p = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
        label = (rng.random((n, 1)) >= np.exp(log_p).cumsum(1)[:, :-1]).sum(1)
        best = -float(np.mean(log_p[np.arange(n), label]))
        return Sample(_float(x), torch.from_numpy(label), best)

    def loss(self, answers: Tensor, targets: Tensor) -> Tensor:
        """Cross-entropy in nats."""
        return functional.cross_entropy(answers, targets)


def _float(array: np.ndarray) -> Tensor:
    return torch.from_numpy(array.astype(np.float32))
