"""Adam for the experts and for the router.

Source: Kingma and Ba (2015), Algorithm 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from moestat.base.door import doors
from moestat.networks.expert_count.network import Weights
from moestat.networks.expert_count.optimisers.optimiser import Optimiser

__all__ = ["Adam"]

_BETA_1, _BETA_2, _EPSILON = 0.9, 0.999, 1e-8


@doors
@dataclass(frozen=True)
class Adam(Optimiser):
    """Adam with its authors' constants, rates eta for the experts and eta_r for the router."""

    def start(self, weights: Weights) -> Any:
        """The step count and the moments of both gradients."""
        zeros = [np.zeros_like(weights.experts), np.zeros_like(weights.router)]
        return {"step": 0, "first": zeros, "second": [np.zeros_like(value) for value in zeros]}

    def step(self, weights: Weights, gradient: Weights, memory: Any) -> None:
        """Move the weights, in place."""
        memory["step"] += 1
        t = memory["step"]
        pairs = (
            (weights.experts, gradient.experts, self.learning_rate),
            (weights.router, gradient.router, self.router_rate),
        )
        for (value, g, rate), first, second in zip(
            pairs, memory["first"], memory["second"], strict=True
        ):
            first += (1 - _BETA_1) * (g - first)
            second += (1 - _BETA_2) * (g * g - second)
            spread = np.sqrt(second / (1 - _BETA_2**t)) + _EPSILON
            value -= rate / (1 - _BETA_1**t) * first / spread
