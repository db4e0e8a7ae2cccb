"""Row programmes of the experts: outputs, loss and gradients, sample by sample.

Samples are sorted by the expert that they are routed to, so that its weights and its gradient
stay in the first cache level; the coordinate of a patch is innermost, and eight neurons share
what they load of it.

Source: Duy et al. (n.d.), eqs. (3) and (4).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from moestat.compiler.jit import compile_loop, device
from moestat.compiler.math import logistic

__all__ = ["expert_loop", "sort_by_expert"]


@compile_loop
def sort_by_expert(chosen, label, starts, members):
    """Numbers of the samples expert by expert, in their order; empty ones are left out.

    Written are `starts` (M + 1,), where each expert's begin, and `members` (n,).
    """
    starts[:] = 0
    for i in range(len(chosen)):
        if label[i] != 0:
            starts[chosen[i] + 1] += 1
    for m in range(len(starts) - 1):
        starts[m + 1] += starts[m]
    for i in range(len(chosen)):
        if label[i] != 0:
            members[starts[chosen[i]]] = i
            starts[chosen[i]] += 1
    for m in range(len(starts) - 1, 0, -1):
        starts[m] = starts[m - 1]
    starts[0] = 0


@device
def _dot_eight(w, x, z):
    """Inner products of eight rows of w with x."""
    a = b = c = d = e = f = g = h = w.dtype.type(0)
    for i in range(len(x)):
        v = x[i]
        a += w[0, i] * v
        b += w[1, i] * v
        c += w[2, i] * v
        d += w[3, i] * v
        e += w[4, i] * v
        f += w[5, i] * v
        g += w[6, i] * v
        h += w[7, i] * v
    z[0], z[1], z[2], z[3], z[4], z[5], z[6], z[7] = a, b, c, d, e, f, g, h


@device
def _dot_one(w, x):
    a = w.dtype.type(0)
    for i in range(len(x)):
        a += w[i] * x[i]
    return a


@device
def _products(w, x, z):
    """Inner products of the rows of w (J, d) with x."""
    j = 0
    while j + 8 <= len(z):
        _dot_eight(w[j : j + 8], x, z[j : j + 8])
        j += 8
    while j < len(z):
        z[j] = _dot_one(w[j], x)
        j += 1


@device
def _column(w, c, factor, z):
    """Column c of w (J, d), times a factor."""
    for j in range(len(z)):
        z[j] = factor * w[j, c]


@device
def _add_to_column(z, factor, c, g):
    """Add ``factor z`` to column c of g (J, d)."""
    for j in range(len(z)):
        g[j, c] += factor * z[j]


@device
def _add_outer(z, x, g):
    """Add ``z x'`` to g (J, d)."""
    for j in range(len(z)):
        factor = z[j]
        row = g[j]
        for i in range(len(x)):
            row[i] += factor * x[i]


@cache
def expert_loop(
    block: Callable[[int], int], activation: Callable[..., Any]
) -> Callable[..., float]:
    """The loop over the samples of each expert, of which patch p meets the weights ``block(p)``.

    With weights and gradient (M, blocks, J, d) it adds to the gradient, writes f of the expert that
    each sample is routed to and ``dL/d log gate``, and returns the mean logistic loss of
    ``y gate f``.
    """

    @device
    def evaluate(z, slope):
        """Sum of the activations and their derivatives."""
        total = 0.0
        for r in range(len(z)):
            value, derivative, _ = activation(z[r])
            total += value
            slope[r] = derivative
        return total

    def loop(
        weights,
        starts,
        members,
        position,
        basis,
        amplitude,
        slots,
        rows,
        label,
        gate,
        output,
        coefficient,
        gradient,
        z,
        slope,
    ):
        n_experts, _, J, _ = weights.shape
        n_slots = slots.shape[1]
        n = len(members)
        loss = 0.0
        for m in range(n_experts):
            for at in range(starts[m], starts[m + 1]):
                i = members[at]
                for k in range(3):
                    w = weights[m, block(position[k, i])]
                    _column(w, basis[k, i], amplitude[k, i], z[k * J : (k + 1) * J])
                for q in range(n_slots):
                    w = weights[m, block(slots[i, q])]
                    _products(w, rows[i, q], z[(3 + q) * J : (4 + q) * J])
                output[i] = evaluate(z, slope)
                log_sigmoid, against = logistic(label[i] * gate[i] * output[i])
                loss -= log_sigmoid
                factor = -against * label[i] * gate[i] / n
                coefficient[i] = factor * output[i]
                for r in range(len(z)):
                    slope[r] *= factor
                for k in range(3):
                    g = gradient[m, block(position[k, i])]
                    _add_to_column(slope[k * J : (k + 1) * J], amplitude[k, i], basis[k, i], g)
                for q in range(n_slots):
                    g = gradient[m, block(slots[i, q])]
                    _add_outer(slope[(3 + q) * J : (4 + q) * J], rows[i, q], g)
        return loss / n

    return compile_loop(loop)
