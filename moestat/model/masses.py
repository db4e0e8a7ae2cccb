"""What gates with log-masses gamma and a vector alpha of each atom share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from moestat.model.members import Channel, Gate
from moestat.model.reference import apart

__all__ = ["gate_with_masses", "places"]

WIDE = (-30.0, 30.0)
"""Bounds of the papers' compact space for what is neither a mass nor a temperature."""


def places(n_features: int) -> tuple[Channel, ...]:
    """Channels of gamma and of alpha, a place among the inputs."""
    return Channel("gamma"), *(Channel("alpha", component=j, axis=j) for j in range(n_features))


def gate_with_masses(
    others: Callable[[np.random.Generator, int], Mapping[str, ArrayLike]],
    bounds: Mapping[str, tuple[float, float]],
    **fields: Any,
) -> Gate:
    """A gate with gamma and alpha; ``others(rng, k)`` and `bounds` are of its further blocks."""

    def typical(rng: np.random.Generator, n_experts: int, n_features: int) -> dict[str, ArrayLike]:
        """Scores that differ."""
        gamma = apart(rng, n_experts, (), -0.5, 0.5)
        alpha = apart(rng, n_experts, (n_features,), -3.0, 3.0)
        return {"gamma": gamma, "alpha": alpha, **others(rng, n_experts)}

    common = {"mass": "gamma", "translations": ("gamma",)}
    box = {"gamma": (-10.0, 10.0), "alpha": WIDE, **bounds}
    return Gate(typical=typical, bounds=box, **(common | fields))
