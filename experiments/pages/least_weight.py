"""How light an atom can be anywhere in the box of fits under competition."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from moestat.base.types import FloatArray
from moestat.sweep.kinds.fit.spec import Curve, Spec

__all__ = ["least_weight"]


def least_weight(spec: Spec, curve: Curve) -> float:
    """The least mean weight under competition of an atom anywhere in the box of a curve.

    Weights grow in the atom's own log-mass and intercept and fall in the others', so that those
    are at their ends; slopes are searched at three values each.

    Parameters
    ----------
    spec : Spec
        The spec.
    curve : Curve
        A curve of two or more linear experts, d = 1, under competition with free masses.

    Returns
    -------
    float
        The mean over the design.
    """
    fitted = spec.fitted_family(curve)
    x, mass = spec.design.quadrature(1, 32)
    box = {name: fitted.box[name] for name in ("c", "a", "b")}
    slopes = np.linspace(*box["a"], 3)

    def least(own: float, others: Sequence[float]) -> float:
        def answer(c: float, a: FloatArray, b: float) -> FloatArray:
            return np.exp(c) * (1.0 + np.exp(a[..., None] * x[0] + b))

        light = answer(own, slopes, box["b"][0])
        heavy = np.zeros((1, x.shape[1]))
        for c in others:
            more = answer(c, slopes, box["b"][1])
            heavy = (heavy[:, None] + more[None]).reshape(-1, x.shape[1])
        return float(np.min((light[:, None] / (light[:, None] + heavy[None])) @ mass))

    low, high = box["c"]
    free = fitted.n_experts - 1  # the last log-mass is pinned to 0
    return min(least(low, [high] * (free - 1) + [0.0]), least(0.0, [high] * free))
