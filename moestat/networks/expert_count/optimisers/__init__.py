"""Optimisers of networks: two learning rates and a rule for a step; new ones are registered here.

Sources: Duy et al. (n.d.), Algorithm 1; Kingma and Ba (2015), Algorithm 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moestat.base.door import doors
from moestat.base.registry import Maker, Registry
from moestat.base.validate import real_in
from moestat.networks.expert_count.network import Weights

__all__ = ["OPTIMISERS", "Adam", "GradientDescent", "NormalisedGradientDescent", "Optimiser"]

_BETA_1, _BETA_2, _EPSILON = 0.9, 0.999, 1e-8


@dataclass(frozen=True)
class Optimiser:
    """A rule for steps of the experts and of the router.

    Parameters
    ----------
    learning_rate : float
        eta of the experts, >= 0.
    router_rate : float
        eta_r of the router, >= 0.

    Raises
    ------
    ValueError
        If a rate is negative.
    """

    learning_rate: float = 0.001
    router_rate: float = 0.1

    def __post_init__(self) -> None:
        real_in("learning_rate", self.learning_rate, 0.0)
        real_in("router_rate", self.router_rate, 0.0)

    def start(self, weights: Weights) -> Any:
        """The state that the rule keeps from step to step; None by default."""
        return None

    def step(self, weights: Weights, gradient: Weights, memory: Any) -> None:
        """Move the weights, in place."""
        raise NotImplementedError


def sizes(gradient: NDArray[np.floating]) -> NDArray[np.float64]:
    """Largest absolute entry of each expert's gradient."""
    return np.abs(gradient).reshape(len(gradient), -1).max(axis=1).astype(np.float64)


@doors
@dataclass(frozen=True)
class GradientDescent(Optimiser):
    """Steps of eta times the gradient of the experts, and eta_r times that of the router."""

    def step(self, weights: Weights, gradient: Weights, memory: Any) -> None:
        """Move the weights, in place."""
        weights.experts -= self.learning_rate * gradient.experts
        weights.router -= self.router_rate * gradient.router


@doors
@dataclass(frozen=True)
class NormalisedGradientDescent(Optimiser):
    """Each expert moves by eta along its gradient; the router by eta_r times its own.

    A gradient that is zero, or so small that it has lost its leading digits, has no direction:
    its expert stays where it is.

    Notes
    -----
    Duy et al. (n.d.), (5): ``W_m - eta G_m / ||G_m||_F``; (6): ``theta - eta_r g``.
    """

    def step(self, weights: Weights, gradient: Weights, memory: Any) -> None:
        """Move the weights, in place."""
        size = sizes(gradient.experts)
        updated = np.flatnonzero(size >= np.finfo(gradient.experts.dtype).tiny)
        for m in updated:
            # Dividing by the largest entry first, no square overflows or underflows.
            unit = gradient.experts[m] / size[m]
            weights.experts[m] -= self.learning_rate / np.sqrt(np.sum(unit**2)) * unit
        weights.router -= self.router_rate * gradient.router


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


OPTIMISERS: Registry[Maker] = Registry("optimiser", "moestat.networks.optimisers")
for _name, _rule in (
    ("normalised-gd", NormalisedGradientDescent),
    ("gd", GradientDescent),
    ("adam", Adam),
):
    OPTIMISERS.register(Maker(_name, _rule))


def __dir__() -> list[str]:
    return sorted(__all__)
