"""Gradient descent of the experts and of the router."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from moestat.base.door import doors
from moestat.networks.expert_count.network import Weights
from moestat.networks.expert_count.optimisers.optimiser import Optimiser

__all__ = ["GradientDescent"]


@doors
@dataclass(frozen=True)
class GradientDescent(Optimiser):
    """Steps of eta times the gradient of the experts, and eta_r times that of the router."""

    def step(self, weights: Weights, gradient: Weights, memory: Any) -> None:
        """Move the weights, in place."""
        weights.experts -= self.learning_rate * gradient.experts
        weights.router -= self.router_rate * gradient.router
