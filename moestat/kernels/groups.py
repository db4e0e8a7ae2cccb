"""Sums over groups of rows that share one choice of an expert.

One loop hands out the rows of all atoms, another one, the same for every kind of atom, adds them up
within groups.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from moestat.compiler.jit import compile_loop
from moestat.kernels.atom import build_atom
from moestat.kernels.rows import pairs, predict_channel
from moestat.kernels.views import part, row


@cache
def atoms_loop(
    gate: Callable[..., None],
    expert: Callable[..., None] | None,
    likelihood: Callable[..., None],
    reads_response: bool,
) -> Callable[..., None]:
    """The loop over the atoms of one kind, compiled on first use.

    It is ``loop(theta, coefficients, y, order, phi, m, rows)`` with the `Coefficients`, the encoded
    responses y (m,) and the features phi (1 + d, size) of m <= size rows.  It fills `rows`, arrays
    (., size) of all atoms one below the other: the log-score, its derivatives in the gate's
    channels and by their pairs, the log-density and those in the others.
    """
    forward, n_work = build_atom(gate, expert, likelihood, reads_response)

    @compile_loop
    def loop(theta, coefficients, y, order, phi, m, rows):
        index, width, layout = coefficients
        a, da, d2a, density, dl, d2l = rows
        k, n_channels = index.shape
        n_gate, first, n_mean, _ = layout
        n_like = n_channels - first
        eta = np.empty((n_channels, phi.shape[1]))
        work = np.empty((n_work(n_channels, n_mean), phi.shape[1]))
        for i in range(k):
            for c in range(n_channels):
                predict_channel(theta, index[i, c], width[c], phi, m, row(eta, c))
            forward(
                eta,
                layout,
                phi,
                y,
                m,
                order,
                work,
                row(a, i),
                part(da, i * n_gate, (i + 1) * n_gate),
                part(d2a, i * pairs(n_gate), (i + 1) * pairs(n_gate)),
                row(density, i),
                part(dl, i * n_like, (i + 1) * n_like),
                part(d2l, i * pairs(n_like), (i + 1) * pairs(n_like)),
            )

    return loop


@cache
def join_loop() -> Callable[..., None]:
    """The loop over groups, compiled on first use.

    It is ``loop(coefficients, begin, m, weight, complete, order, phi, rows, group_values, drawn,
    chosen, curvature)`` with the first row of each group, `begin` (G,), of m rows, the weights of
    groups (G,), and `rows` and `phi` of `atoms_loop`.  The outputs `group_values` are the prior and
    posterior probabilities (k, G), the latter given where `complete`, and the log-density of each
    group (G,); `drawn` (G, P) are the mean slopes under the posterior, `chosen` (G, P) those of the
    gate under the prior.  The loop adds the sums of second derivatives and squared slopes of each
    atom to `curvature` (k, q, q), by the q coefficients of an atom, channel by channel.
    """

    @compile_loop
    def loop(
        coefficients,
        begin,
        m,
        weight,
        complete,
        order,
        phi,
        rows,
        group_values,
        group_slopes,
        chosen,
        curvature,
    ):
        index, width, layout = coefficients
        a, da, d2a, density, dl, d2l = rows
        prior, posterior, log_density = group_values
        k, n_channels = index.shape
        n_gate, first = layout[0], layout[1]
        n_like, q = n_channels - first, curvature.shape[1]
        joint, group_weight = np.empty(k), np.empty((k, m))
        slopes, gate = np.zeros((k, q)), np.zeros((k, q))
        G = begin.size
        for g in range(G):
            s, e = begin[g], begin[g + 1] if g + 1 < G else m
            top = below = -1e300
            for i in range(k):
                total = 0.0
                for r in range(s, e):
                    total += density[i, r]
                joint[i] = total + a[i, s]
                top = max(top, joint[i])
                below = max(below, a[i, s])
            total = share = value = 0.0
            for i in range(k):
                prior[i, g] = math.exp(a[i, s] - below)
                share += prior[i, g]
                if complete:
                    value += posterior[i, g] * joint[i] if posterior[i, g] > 0.0 else 0.0
                else:
                    posterior[i, g] = math.exp(joint[i] - top)
                    total += posterior[i, g]
            for i in range(k):
                prior[i, g] /= share
                if not complete:
                    posterior[i, g] /= total
            log_density[g] = (value if complete else top + math.log(total)) - below
            log_density[g] -= math.log(share)
            if order == 0:
                continue
            group_slopes[g] = 0.0
            chosen[g] = 0.0
            for i in range(k):
                at = 0
                for c in range(n_channels):
                    for f in range(width[c]):
                        chance = da[i * n_gate + c, s] * phi[f, s] if c < n_gate else 0.0
                        total = 0.0
                        if c >= first and f == 0:
                            for r in range(s, e):
                                total += dl[i * n_like + c - first, r]
                        elif c >= first:
                            for r in range(s, e):
                                total += dl[i * n_like + c - first, r] * phi[f, r]
                        total += chance
                        gate[i, at], slopes[i, at] = chance, total
                        group_slopes[g, index[i, c] + f] += posterior[i, g] * total
                        chosen[g, index[i, c] + f] += prior[i, g] * chance
                        at += 1
            if order == 1:
                continue
            for i in range(k):
                up, down = weight[g] * posterior[i, g], weight[g] * prior[i, g]
                for r in range(s, e):
                    group_weight[i, r] = up
                up = 0.0 if complete else up
                for p in range(q):
                    for t in range(q):
                        curvature[i, p, t] += up * slopes[i, p] * slopes[i, t]
                at = 0
                for c in range(n_gate):
                    other_at = 0
                    for h in range(c + 1):
                        bend = weight[g] * (posterior[i, g] - prior[i, g])
                        bend *= d2a[i * pairs(n_gate) + pairs(c) + h, s]
                        for f in range(width[c]):
                            for j in range(width[h]):
                                term = bend * phi[f, s] * phi[j, s]
                                term -= down * gate[i, at + f] * gate[i, other_at + j]
                                curvature[i, at + f, other_at + j] += term
                                if h < c:
                                    curvature[i, other_at + j, at + f] += term
                        other_at += width[h]
                    at += width[c]
        if order > 1:
            start = 0
            for c in range(first):
                start += width[c]
            bent, both = np.empty(m), np.empty(m)
            for i in range(k):
                at = start
                for c in range(n_like):
                    other_at = start
                    for h in range(c + 1):
                        second = row(d2l, i * pairs(n_like) + pairs(c) + h)
                        for r in range(m):
                            bent[r] = group_weight[i, r] * second[r]
                        for f in range(width[first + c]):
                            for r in range(m):
                                both[r] = bent[r] * phi[f, r]
                            for j in range(width[first + h]):
                                total = 0.0
                                for r in range(m):
                                    total += both[r] * phi[j, r]
                                curvature[i, at + f, other_at + j] += total
                                if h < c:
                                    curvature[i, other_at + j, at + f] += total
                        other_at += width[first + h]
                    at += width[first + c]

    return loop
