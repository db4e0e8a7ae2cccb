"""A penalty on the parameters that compiled iterations know: a quadratic form, and variances."""

from __future__ import annotations

import math

import numpy as np

from moestat.base.types import FloatArray
from moestat.compiler.jit import compact, device

Spring = tuple[FloatArray, FloatArray, FloatArray]
"""Centre c (P,), stiffness Q (P, P) and coefficients a, b (2, P) of the penalty
``(theta - c)' Q (theta - c) / 2 + sum(a theta + b exp(-theta))``; (2, 0) without the sum."""

FREE: Spring = np.zeros(0), np.zeros((0, 0)), np.zeros((2, 0))
"""No penalty."""


@device(forceinline=False)
@compact
def pull(spring, theta, gradient, hessian):
    """The penalty at theta (P,); adds its gradient (P,) and, unless it is empty, its Hessian."""
    centre, stiffness, logs = spring
    value = 0.0
    for j in range(centre.size):
        force = 0.0
        for i in range(centre.size):
            force += stiffness[j, i] * (theta[i] - centre[i])
        value += 0.5 * force * (theta[j] - centre[j])
        gradient[j] += force
        for i in range(len(hessian)):
            hessian[j, i] += stiffness[j, i]
    for j in range(logs.shape[1]):
        if logs[0, j] != 0.0:  # of other coefficients the exponential may be infinite
            inverse = logs[1, j] * math.exp(-theta[j])
            value += logs[0, j] * theta[j] + inverse
            gradient[j] += logs[0, j] - inverse
            if len(hessian):
                hessian[j, j] += inverse
    return value
