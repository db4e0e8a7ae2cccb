"""Row programmes of the linear router: scores, routes and gates; and its gradient.

Samples come in blocks that share the positions of their noise patches, the sample innermost; rows
of experts come in fours, which share what they load, the last ones filled up with zeros.  A
structured patch enters by its one coordinate.

Source: Duy et al. (n.d.), New Architecture for MoE with MLP Experts and eq. (4).
"""

from __future__ import annotations

import numpy as np

from moestat.compiler.jit import compile_loop, device
from moestat.compiler.math import exp
from moestat.networks.expert_count.rows.noise import fill_counters, word

__all__ = ["ROWS", "route", "router_gradient"]

ROWS = 4
"""Experts whose scores are computed together."""


@device
def _score_structured(theta, place, amplitude, h):
    """``h = theta' x`` of the structured patches, with theta (P d,)."""
    for s in range(len(h)):
        h[s] = (
            theta[place[0, s]] * amplitude[0, s]
            + theta[place[1, s]] * amplitude[1, s]
            + theta[place[2, s]] * amplitude[2, s]
        )


@device
def _score_noise(t0, t1, t2, t3, x, h0, h1, h2, h3):
    """``h += t' x`` of noise patches x (d, width) for four experts."""
    d, width = x.shape
    c = 0
    while c + 4 <= d:
        for s in range(width):
            x0, x1, x2, x3 = x[c, s], x[c + 1, s], x[c + 2, s], x[c + 3, s]
            h0[s] += t0[c] * x0 + t0[c + 1] * x1 + t0[c + 2] * x2 + t0[c + 3] * x3
            h1[s] += t1[c] * x0 + t1[c + 1] * x1 + t1[c + 2] * x2 + t1[c + 3] * x3
            h2[s] += t2[c] * x0 + t2[c + 1] * x1 + t2[c + 2] * x2 + t2[c + 3] * x3
            h3[s] += t3[c] * x0 + t3[c + 1] * x1 + t3[c + 2] * x2 + t3[c + 3] * x3
        c += 4
    while c < d:
        for s in range(width):
            h0[s] += t0[c] * x[c, s]
            h1[s] += t1[c] * x[c, s]
            h2[s] += t2[c] * x[c, s]
            h3[s] += t3[c] * x[c, s]
        c += 1


@device
def _choose(h, m, counters, number, shift, unit, best, chosen):
    """Compare the noisy scores of expert m with the best ones so far."""
    for s in range(len(h)):
        score = h[s] + unit * h.dtype.type(word(counters[s], number, shift))
        higher = score > best[s]
        best[s] = score if higher else best[s]
        chosen[s] = m if higher else chosen[s]


@device
def _normalise(h, n_experts, chosen, chosen_score, total):
    """Softmax of the first rows of h (M, width), in place.

    The score of the chosen expert is subtracted: no score exceeds it by more than the noise.
    """
    for s in range(h.shape[1]):
        chosen_score[s] = h[chosen[s], s]
        total[s] = 0.0
    for m in range(n_experts):
        for s in range(h.shape[1]):
            e = exp(h[m, s] - chosen_score[s])
            h[m, s] = e
            total[s] += e
    for s in range(h.shape[1]):
        total[s] = 1.0 / total[s]
    for m in range(n_experts):
        for s in range(h.shape[1]):
            h[m, s] *= total[s]


@compile_loop
def route(
    theta, numbers, bounds, slots, columns, place, amplitude, order, noise, gates, chosen, gate
):
    """Route every sample, and give the gates of all experts and that of the chosen one.

    Given are theta (rows, P, d), with rows a multiple of `ROWS`; the number of each expert in the
    counters of the noise; the arrays of `packing.Packed`,
    `place` being ``position d + basis``; `noise`, the key of the step, the bits to drop and the
    unit, which is 0 without noise.  Written are the gates (rows N,) block by block, the chosen
    experts (N,) and their gates (N,).
    """
    n_rows, n_patches, d = theta.shape
    n_slots, n_experts = slots.shape[1], len(numbers)
    key, shift, unit = noise
    counters = np.empty(len(chosen), np.uint64)
    fill_counters(key, order, counters)
    best, total = np.empty(len(chosen), gates.dtype), np.empty(len(chosen), gates.dtype)
    best[:] = -np.inf
    chosen[:] = 0
    for b in range(len(bounds) - 1):
        start, stop = bounds[b], bounds[b + 1]
        width = stop - start
        h = gates[start * n_rows : stop * n_rows].reshape((n_rows, width))
        x = columns[start * n_slots * d : stop * n_slots * d].reshape((n_slots, d, width))
        for m in range(n_rows):
            _score_structured(
                theta[m].reshape(n_patches * d),
                place[:, start:stop],
                amplitude[:, start:stop],
                h[m],
            )
        for q in range(n_slots):
            t = theta[:, slots[start, q]]
            for m in range(0, n_rows, 4):
                _score_noise(
                    t[m],
                    t[m + 1],
                    t[m + 2],
                    t[m + 3],
                    x[q],
                    h[m],
                    h[m + 1],
                    h[m + 2],
                    h[m + 3],
                )
        chosen_of_block = chosen[start:stop]
        for m in range(n_experts):
            number = np.uint64(numbers[m])
            _choose(
                h[m],
                m,
                counters[start:stop],
                number,
                shift,
                unit,
                best[start:stop],
                chosen_of_block,
            )
        _normalise(h, n_experts, chosen_of_block, best[start:stop], total[start:stop])
        for s in range(width):
            gate[start + s] = h[chosen_of_block[s], s]


@device
def _through_softmax(h, m, chosen, coefficient):
    """``coefficient (1(chosen = m) - pi_m)`` from the gates of expert m, in place."""
    for s in range(len(h)):
        probability = h[s]
        h[s] = coefficient[s] * ((1 - probability) if chosen[s] == m else -probability)


@device
def _add_structured(h, place, amplitude, gradient):
    """Add ``h x`` of the structured patches to the gradient (P d,) of one expert."""
    for k in range(3):
        for s in range(len(h)):
            gradient[place[k, s]] += h[s] * amplitude[k, s]


@device
def _add_four(g, c, a, b, e, f):
    g[c] += a
    g[c + 1] += b
    g[c + 2] += e
    g[c + 3] += f


@device
def _add_noise(h0, h1, h2, h3, x, g0, g1, g2, g3):
    """Add ``x h`` of noise patches x (d, width) to the gradients of four experts."""
    d, width = x.shape
    c = 0
    zero = x.dtype.type(0)
    while c + 4 <= d:
        a0 = a1 = a2 = a3 = zero
        b0 = b1 = b2 = b3 = zero
        e0 = e1 = e2 = e3 = zero
        f0 = f1 = f2 = f3 = zero
        for s in range(width):
            x0, x1, x2, x3 = x[c, s], x[c + 1, s], x[c + 2, s], x[c + 3, s]
            h = h0[s]
            a0, a1, a2, a3 = a0 + h * x0, a1 + h * x1, a2 + h * x2, a3 + h * x3
            h = h1[s]
            b0, b1, b2, b3 = b0 + h * x0, b1 + h * x1, b2 + h * x2, b3 + h * x3
            h = h2[s]
            e0, e1, e2, e3 = e0 + h * x0, e1 + h * x1, e2 + h * x2, e3 + h * x3
            h = h3[s]
            f0, f1, f2, f3 = f0 + h * x0, f1 + h * x1, f2 + h * x2, f3 + h * x3
        _add_four(g0, c, a0, a1, a2, a3)
        _add_four(g1, c, b0, b1, b2, b3)
        _add_four(g2, c, e0, e1, e2, e3)
        _add_four(g3, c, f0, f1, f2, f3)
        c += 4
    while c < d:
        a0 = b0 = e0 = f0 = zero
        for s in range(width):
            a0 += h0[s] * x[c, s]
            b0 += h1[s] * x[c, s]
            e0 += h2[s] * x[c, s]
            f0 += h3[s] * x[c, s]
        g0[c] += a0
        g1[c] += b0
        g2[c] += e0
        g3[c] += f0
        c += 1


@compile_loop
def router_gradient(
    gates, n_experts, bounds, slots, columns, place, amplitude, chosen, coefficient, gradient
):
    """Add the gradient in theta (rows, P, d) of ``sum_i coefficient_i log pi_(chosen_i)``.

    The gates, as `route` gives them, are overwritten.
    """
    n_rows, n_patches, d = gradient.shape
    n_slots = slots.shape[1]
    for b in range(len(bounds) - 1):
        start, stop = bounds[b], bounds[b + 1]
        width = stop - start
        h = gates[start * n_rows : stop * n_rows].reshape((n_rows, width))
        x = columns[start * n_slots * d : stop * n_slots * d].reshape((n_slots, d, width))
        for m in range(n_experts):
            _through_softmax(h[m], m, chosen[start:stop], coefficient[start:stop])
            flat = gradient[m].reshape(n_patches * d)
            _add_structured(h[m], place[:, start:stop], amplitude[:, start:stop], flat)
        for q in range(n_slots):
            g = gradient[:, slots[start, q]]
            for m in range(0, n_rows, 4):
                _add_noise(
                    h[m],
                    h[m + 1],
                    h[m + 2],
                    h[m + 3],
                    x[q],
                    g[m],
                    g[m + 1],
                    g[m + 2],
                    g[m + 3],
                )
