"""Normalised gradient descent of the experts, plain gradient descent of the router.

Source: Duy et al. (n.d.), Algorithm 1, (5) and (6).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from moestat.base.door import doors
from moestat.networks.expert_count.network import Weights
from moestat.networks.expert_count.optimisers.optimiser import Optimiser, sizes

__all__ = ["NormalisedGradientDescent"]


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
        moved = np.flatnonzero(size >= np.finfo(gradient.experts.dtype).tiny)
        for m in moved:
            # Dividing by the largest entry first, no square overflows or underflows.
            unit = gradient.experts[m] / size[m]
            weights.experts[m] -= self.learning_rate / np.sqrt(np.sum(unit**2)) * unit
        weights.router -= self.router_rate * gradient.router
