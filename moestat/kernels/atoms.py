"""One atom by itself, and how it changes along a segment of parameters.

Where the loops of mixtures and regressions add atoms up, this one hands out their parts: for a
likelihood the log-score a and the log-density l, for a regression function the log-score a and
the mean g, each with its first derivatives.  The change of either from one end of a segment of
channels to the other is the integral of its derivative: unlike the difference of two values it
keeps its relative accuracy however short the segment is.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from moestat.compiler.jit import BLOCK, compile_loop, device
from moestat.kernels.atom import build_atom


@device
def _add_products(weight, slopes, step, first, m, change):
    """``change += weight sum_c slopes_c step_(first + c)``."""
    for c in range(slopes.shape[0]):
        for b in range(m):
            change[b] += weight * slopes[c, b] * step[first + c, b]


@cache
def segment_loop(
    gate: Callable[..., None],
    expert: Callable[..., None] | None,
    likelihood: Callable[..., None] | None,
    reads_response: bool,
) -> Callable[..., None]:
    """The loop of one kind of atom, compiled on first use.

    It is ``loop(eta, step, times, weights, layout, phi, y, a, da, value, dv, change_a, change_v)``
    with the channels eta (C, n) at the start and the segment's step (C, n), times (T,) in [0, 1]
    with weights (T,) of a quadrature rule, the `Layout`, the features phi (1 + d, n) and the
    encoded responses y (n,).  Outputs, all at the end ``eta + step``: a (n,) with da (gate's
    channels, n), and the log-density, or the mean without a likelihood, (n,) with its derivatives
    (expert's and likelihood's channels, n); and the integrals along the segment (n,) and (n,).
    """
    if likelihood is None:
        forward, n_work = _regression_atom(gate, expert)
    else:
        forward, n_work = build_atom(gate, expert, likelihood, reads_response)

    @compile_loop
    def loop(eta, step, times, weights, layout, phi, y, a, da, value, dv, change_a, change_v):
        n_channels, n = eta.shape
        first, n_mean = layout[1], layout[2]
        n_gate, n_value = da.shape[0], dv.shape[0]
        eta_b, step_b = np.empty((n_channels, BLOCK)), np.empty((n_channels, BLOCK))
        phi_b = np.empty((phi.shape[0], BLOCK))
        work = np.empty((n_work(n_channels, n_mean), BLOCK))
        a_b, value_b = np.empty(BLOCK), np.empty(BLOCK)
        in_a, in_v = np.empty(BLOCK), np.empty(BLOCK)
        da_b, dv_b = np.empty((n_gate, BLOCK)), np.empty((n_value, BLOCK))
        d2a = np.empty((n_gate * (n_gate + 1) // 2, BLOCK))
        d2v = np.empty((n_value * (n_value + 1) // 2, BLOCK))
        for start in range(0, n, BLOCK):
            m = min(BLOCK, n - start)
            y_b = y[start : start + m]
            step_b[:, :m] = step[:, start : start + m]
            phi_b[:, :m] = phi[:, start : start + m]
            in_a[:m] = 0.0
            in_v[:m] = 0.0
            for s in range(times.size + 1):
                time = times[s] if s < times.size else 1.0
                for c in range(n_channels):
                    for b in range(m):
                        eta_b[c, b] = eta[c, start + b] + time * step_b[c, b]
                forward(eta_b, layout, phi_b, y_b, m, 1, work, a_b, da_b, d2a, value_b, dv_b, d2v)
                if s < times.size:
                    _add_products(weights[s], da_b, step_b, 0, m, in_a)
                    _add_products(weights[s], dv_b, step_b, first, m, in_v)
            a[start : start + m] = a_b[:m]
            value[start : start + m] = value_b[:m]
            da[:, start : start + m] = da_b[:, :m]
            dv[:, start : start + m] = dv_b[:, :m]
            change_a[start : start + m] = in_a[:m]
            change_v[start : start + m] = in_v[:m]

    return loop


def _regression_atom(
    gate: Callable[..., None], expert: Callable[..., None] | None
) -> tuple[Callable[..., None], Callable[..., int]]:
    """The loop of one atom with the mean in place of the log-density, see `build_atom`."""

    @device
    def no_work(n_channels, n_mean):
        return 0

    if expert is None:

        @device
        def linear(eta, layout, phi, y, m, order, work, a, da, d2a, mean, dg, d2g):
            gate(eta[: layout[0]], phi, m, order, a, da, d2a)
            for b in range(m):
                mean[b] = eta[layout[1], b]
                dg[0, b] = 1.0

        return linear, no_work

    @device
    def function(eta, layout, phi, y, m, order, work, a, da, d2a, mean, dg, d2g):
        gate(eta[: layout[0]], phi, m, order, a, da, d2a)
        expert(eta[layout[1] : layout[1] + layout[2]], m, order, mean, dg, d2g)

    return function, no_work
