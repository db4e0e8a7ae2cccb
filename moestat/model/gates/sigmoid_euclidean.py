"""Sigmoid gate with a temperature on the Euclidean score.

``pi_i(x) ~ exp(gamma_i) sigma((||alpha_i - x|| + beta_i) / tau)`` with one tau > 0 for all atoms.

The norm has no derivative at x = alpha.  Nothing is smoothed: at that very point the derivative
is taken as 0, one of its subgradients, and its curvature as 0.  With one input the norm is
|alpha - x|: its slope jumps where alpha passes a sample, and the likelihood has a kink there.

Source: Pham et al. (2026), eq. (10).
"""

from __future__ import annotations

import math

import numpy as np

from moestat.compiler.jit import device
from moestat.compiler.math import tempered_log_sigmoid
from moestat.model.masses import WIDE, gate_with_masses, places
from moestat.model.members import Channel, Units
from moestat.model.reference import apart, log_sigmoid


@device
def block(eta, phi, m, order, a, da, d2a):
    """Log-score ``a = gamma + log sigma((r + beta) / tau)`` with ``r = ||alpha - x||``.

    Channels are (gamma, alpha_1 .. alpha_d, beta, tau).  With the unit vector
    ``n = (alpha - x) / r``: ``dr = n`` and ``d2r = (1 - n n') / r``, which is 0 for d = 1.
    ``a`` first holds r, ``da`` of alpha first n.
    """
    d = phi.shape[0] - 1
    beta = d + 1
    tau = d + 2
    for b in range(m):
        a[b] = 0.0
    for j in range(1, d + 1):
        for b in range(m):
            a[b] += (eta[j, b] - phi[j, b]) ** 2
    for b in range(m):
        a[b] = math.sqrt(a[b])
    if order > 0:
        for j in range(1, d + 1):
            for b in range(m):
                da[j, b] = (eta[j, b] - phi[j, b]) / a[b] if a[b] > 0.0 else 0.0
        for b in range(m):
            _, d_s, d_t, d_ss, d_st, d_tt = tempered_log_sigmoid(a[b] + eta[beta, b], eta[tau, b])
            da[0, b] = 1.0
            da[beta, b] = d_s
            da[tau, b] = d_t
    if order > 1:
        row_beta = beta * (beta + 1) // 2
        row_tau = tau * (tau + 1) // 2
        for b in range(m):
            _, d_s, d_t, d_ss, d_st, d_tt = tempered_log_sigmoid(a[b] + eta[beta, b], eta[tau, b])
            d2a[row_beta + beta, b] = d_ss
            d2a[row_tau + beta, b] = d_st
            d2a[row_tau + tau, b] = d_tt
        for c in range(d + 3):
            for b in range(m):
                d2a[c * (c + 1) // 2, b] = 0.0
        for c in range(1, d + 1):
            row = c * (c + 1) // 2
            for b in range(m):
                d2a[row_beta + c, b] = d2a[row_beta + beta, b] * da[c, b]
            for b in range(m):
                d2a[row_tau + c, b] = d2a[row_tau + beta, b] * da[c, b]
            for e in range(1, c + 1):
                for b in range(m):
                    d2a[row + e, b] = d2a[row_beta + beta, b] * da[c, b] * da[e, b]
                if d > 1:
                    for b in range(m):
                        curvature = (1.0 if c == e else 0.0) - da[c, b] * da[e, b]
                        d2a[row + e, b] += da[beta, b] * curvature / a[b] if a[b] > 0.0 else 0.0
    if order > 0:
        for c in range(1, d + 1):
            for b in range(m):
                da[c, b] *= da[beta, b]
    for b in range(m):
        value, d_s, d_t, d_ss, d_st, d_tt = tempered_log_sigmoid(a[b] + eta[beta, b], eta[tau, b])
        a[b] = eta[0, b] + value


def reference(blocks, X, means):
    """Log-scores (k, n) at X (n, d)."""
    # The square root of a sum of squares is analytic; an absolute value would not be.
    distance = np.sqrt(((blocks["alpha"][:, None, :] - X) ** 2).sum(axis=2))
    s = (distance + blocks["beta"][:, None]) / blocks["tau"]
    return blocks["gamma"][:, None] + log_sigmoid(s)


GATE = gate_with_masses(
    lambda rng, k: {"beta": apart(rng, k, (), -3.0, -2.0), "tau": rng.uniform(0.7, 1.3)},
    {"beta": WIDE, "tau": (0.01, 10.0)},
    name="sigmoid-euclidean",
    channels=lambda n_features: (
        *places(n_features),
        Channel("beta"),
        Channel("tau", shared=True),
    ),
    block=block,
    reference=reference,
    source="Pham et al. (2026), eq. (10)",
    units=Units(common_scale=True, lengths=("beta", "tau")),
    kink="alpha",
)
