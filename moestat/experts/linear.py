"""Linear experts: each predictor of the likelihood is ``a' x + b``.

Source: mlmoe (003), Sec. 3, the display after eq. (1).
"""

from __future__ import annotations

from moestat._types import Channel, Expert

EXPERT = Expert(
    name="linear",
    channel=Channel("b", "a"),
    bounds={"a": (-30.0, 30.0), "b": (-30.0, 30.0)},
    source="mlmoe (003), Sec. 3",
)
