"""Sigmoid gate with a temperature on the Euclidean score.

``pi_i(x) ~ exp(gamma_i) sigma((||alpha_i - x|| + beta_i) / tau)`` with one tau > 0 for all atoms.

The norm has no derivative at x = alpha.  Nothing is smoothed: at that very point the derivative
is taken as 0, one of its subgradients, and its curvature as 0.  With one input the norm is
|alpha - x|: its slope jumps where alpha passes a sample, and the likelihood has a kink there.

Source: mlmoe (003), eq. (10).
"""

from __future__ import annotations

import math

from moestat._jit import device
from moestat._math import tempered_log_sigmoid
from moestat._types import Channel, Gate


@device
def block(eta, phi, m, order, a, da, d2a):
    """Log-score ``a = gamma + log sigma((r + beta) / tau)`` with ``r = ||alpha - x||``.

    Channels are (gamma, alpha_1 .. alpha_d, beta, tau).
    """
    d = phi.shape[0] - 1
    beta = d + 1
    tau = d + 2
    for b in range(m):
        square = 0.0
        for j in range(1, d + 1):
            square += (eta[j, b] - phi[j, b]) ** 2
        value, d_s, d_t, d_ss, d_st, d_tt = tempered_log_sigmoid(
            math.sqrt(square) + eta[beta, b], eta[tau, b]
        )
        a[b] = eta[0, b] + value
        if order > 0:
            r = math.sqrt(square)
            inverse = 1.0 / r if r > 0.0 else 0.0
            da[0, b] = 1.0
            da[beta, b] = d_s
            da[tau, b] = d_t
            for j in range(1, d + 1):
                da[j, b] = d_s * (eta[j, b] - phi[j, b]) * inverse
            if order > 1:
                q = 0
                for c in range(d + 3):
                    for e in range(c + 1):
                        d2a[q, b] = 0.0
                        q += 1
                for c in range(1, d + 1):
                    unit = (eta[c, b] - phi[c, b]) * inverse
                    row = c * (c + 1) // 2
                    for e in range(1, c + 1):
                        other = (eta[e, b] - phi[e, b]) * inverse
                        kink = (1.0 if c == e else 0.0) - unit * other
                        # With one input the norm is straight on both sides of the kink.
                        bend = kink * inverse if d > 1 else 0.0
                        d2a[row + e, b] = d_ss * unit * other + d_s * bend
                    d2a[beta * (beta + 1) // 2 + c, b] = d_ss * unit
                    d2a[tau * (tau + 1) // 2 + c, b] = d_st * unit
                d2a[beta * (beta + 1) // 2 + beta, b] = d_ss
                d2a[tau * (tau + 1) // 2 + beta, b] = d_st
                d2a[tau * (tau + 1) // 2 + tau, b] = d_tt


GATE = Gate(
    name="sigmoid-euclidean",
    channels=lambda n_features: (
        Channel("gamma"),
        *(Channel("alpha", component=j) for j in range(n_features)),
        Channel("beta"),
        Channel("tau", shared=True),
    ),
    block=block,
    mass="gamma",
    translations=("gamma",),
    bounds={
        "gamma": (-10.0, 10.0),
        "alpha": (-30.0, 30.0),
        "beta": (-30.0, 30.0),
        "tau": (0.01, 10.0),
    },
    source="mlmoe (003), eq. (10)",
)
