"""A spring that ties parameters to a centre while a search begins, and is let go later."""

from __future__ import annotations

import numpy as np

from moestat.base.types import FloatArray
from moestat.compiler.jit import compact, device

Spring = tuple[FloatArray, FloatArray]
"""Centre c (P,) and stiffness Q (P, P) of the penalty ``(theta - c)' Q (theta - c) / 2``."""

FREE: Spring = np.zeros(0), np.zeros((0, 0))
"""A spring that does not pull."""


@device(forceinline=False)
@compact
def pull(spring, theta, gradient, hessian):
    """The penalty at theta (P,); adds its gradient (P,) and, unless it is empty, its Hessian."""
    centre, stiffness = spring
    value = 0.0
    for j in range(centre.size):
        force = 0.0
        for i in range(centre.size):
            force += stiffness[j, i] * (theta[i] - centre[i])
        value += 0.5 * force * (theta[j] - centre[j])
        gradient[j] += force
        for i in range(len(hessian)):
            hessian[j, i] += stiffness[j, i]
    return value
