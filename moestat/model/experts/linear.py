"""Linear experts: each predictor of the likelihood is ``a' x + b``.

Source: Pham et al. (2026), Sec. 3, the display after eq. (1); Nguyen et al. (2025), App. J.
"""

from __future__ import annotations

import numpy as np

from moestat.model.members import Channel, Expert, Symmetry, Units
from moestat.model.reference import apart


def channels(n_features: int, n_responses: int | None) -> tuple[Channel, ...]:
    """One channel per predictor."""
    if n_responses is None:
        return (Channel("b", "a", response=True),)
    return tuple(Channel("b", "a", component=c) for c in range(n_responses))


def reference(blocks, X):
    """Means (k, n), or predictors (k, K - 1, n), at X (n, d)."""
    return np.einsum("...d,nd->...n", blocks["a"], X) + blocks["b"][..., None]


def typical(rng, n_experts, n_features, n_responses):
    """Lines that differ in slope and intercept."""
    shape = () if n_responses is None else (n_responses,)
    return {
        "a": apart(rng, n_experts, (*shape, n_features), -2.5, 2.5),
        "b": apart(rng, n_experts, shape, -1.5, 1.5),
    }


EXPERT = Expert(
    name="linear",
    channels=channels,
    block=None,
    reference=reference,
    typical=typical,
    bounds={"a": (-30.0, 30.0), "b": (-30.0, 30.0)},
    source="Pham et al. (2026), Sec. 3; Nguyen et al. (2025), App. J",
    units=Units(level="b", powers={"b": 1.0}),
    symmetry=Symmetry(linear_in=("a", "b")),
)
