"""From the sums of the device's units to scores, Hessians and information, on the host."""

from __future__ import annotations

import numpy as np

from moestat.compiler.jit import compile_loop
from moestat.kernels.rows import padded, scatter_hessian, scatter_score


@compile_loop
def assemble(units, sums, index, width, d, score, hessian, information):
    """Fill scores (B, P), Hessians and information (B, P, P) from sums (B, U, 3).

    Both of the latter may be empty.
    """
    n_rows = index.size
    n_products = padded((1 + d) * (2 + d) // 2)
    gradient = np.zeros((n_rows, padded(1 + d)))
    curvature = hessian.shape[0] > 0
    informed = information.shape[0] > 0
    pairs = n_rows * (n_rows + 1) // 2
    moments = np.zeros((pairs if curvature else 0, n_products))
    outer = np.zeros((pairs if informed else 0, n_products))
    for problem in range(sums.shape[0]):
        for u in range(units.shape[0]):
            p = units[u, 0]
            other = units[u, 1]
            first = units[u, 2]
            for q in range(3):
                if other < 0:
                    gradient[p, first + q] = sums[problem, u, q]
                elif other < n_rows:
                    moments[p * (p + 1) // 2 + other, first + q] = sums[problem, u, q]
                else:
                    outer[p * (p + 1) // 2 + other - n_rows, first + q] = sums[problem, u, q]
        scatter_score(gradient, index, width, score[problem])
        if curvature:
            scatter_hessian(moments, index, width, 1 + d, hessian[problem])
        if informed:
            scatter_hessian(outer, index, width, 1 + d, information[problem])
