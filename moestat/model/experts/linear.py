"""Linear experts: each predictor of the likelihood is ``a' x + b``.

Source: mlmoe (003), Sec. 3, the display after eq. (1); compete (000), App. J.
"""

from __future__ import annotations

from moestat.base.types import Channel, Expert, Symmetry, Units


def channels(n_features: int, n_responses: int | None) -> tuple[Channel, ...]:
    """One channel per predictor."""
    if n_responses is None:
        return (Channel("b", "a", response=True),)
    return tuple(Channel("b", "a", component=c) for c in range(n_responses))


EXPERT = Expert(
    name="linear",
    channels=channels,
    block=None,
    bounds={"a": (-30.0, 30.0), "b": (-30.0, 30.0)},
    source="mlmoe (003), Sec. 3; compete (000), App. J",
    units=Units(level="b", powers={"b": 1.0}),
    symmetry=Symmetry(linear_in=("a", "b")),
)
