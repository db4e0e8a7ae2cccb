"""What an optimiser of a network is: two learning rates and a rule for a step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moestat.base.validate import real_in
from moestat.networks.expert_count.network import Weights

__all__ = ["Optimiser", "sizes"]


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
        """What the rule remembers from step to step; nothing by default."""
        return None

    def step(self, weights: Weights, gradient: Weights, memory: Any) -> None:
        """Move the weights, in place."""
        raise NotImplementedError


def sizes(gradient: NDArray[Any]) -> NDArray[np.float64]:
    """Largest absolute entry of each expert's gradient."""
    return np.abs(gradient).reshape(len(gradient), -1).max(axis=1).astype(np.float64)
