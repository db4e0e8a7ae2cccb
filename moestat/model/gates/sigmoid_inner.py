"""Sigmoid gate with a temperature on the inner product.

``pi_i(x) ~ exp(gamma_i) sigma((alpha_i' x + beta_i) / tau)`` with one tau > 0 for all atoms.

The density depends on (alpha / tau, beta / tau) only: multiplying alpha, beta and tau by a common
positive factor changes nothing, which is the exact content of the PDE (8) of the paper.  (As
printed it lacks the factor 1 / tau of the beta term.)

Source: Pham et al. (2026), eq. (6).
"""

from __future__ import annotations

from moestat.compiler.jit import device
from moestat.compiler.math import tempered_log_sigmoid
from moestat.model.masses import WIDE, gate_with_masses
from moestat.model.members import Channel, Units
from moestat.model.reference import apart, log_sigmoid


@device
def block(eta, phi, m, order, a, da, d2a):
    """Log-score ``a = gamma + log sigma(s / tau)``; channels are (gamma, s, tau)."""
    for b in range(m):
        value, d_s, d_t, d_ss, d_st, d_tt = tempered_log_sigmoid(eta[1, b], eta[2, b])
        a[b] = eta[0, b] + value
    if order > 0:
        for b in range(m):
            value, d_s, d_t, d_ss, d_st, d_tt = tempered_log_sigmoid(eta[1, b], eta[2, b])
            da[0, b] = 1.0
            da[1, b] = d_s
            da[2, b] = d_t
    if order > 1:
        for b in range(m):
            value, d_s, d_t, d_ss, d_st, d_tt = tempered_log_sigmoid(eta[1, b], eta[2, b])
            d2a[2, b] = d_ss
            d2a[4, b] = d_st
            d2a[5, b] = d_tt
        for b in range(m):
            d2a[0, b] = 0.0
            d2a[1, b] = 0.0
            d2a[3, b] = 0.0


def reference(blocks, X, means):
    """Log-scores (k, n) at X (n, d)."""
    s = (blocks["alpha"] @ X.T + blocks["beta"][:, None]) / blocks["tau"]
    return blocks["gamma"][:, None] + log_sigmoid(s)


GATE = gate_with_masses(
    lambda rng, k: {"beta": apart(rng, k, (), 0.5, 2.0), "tau": rng.uniform(0.7, 1.3)},
    {"beta": WIDE, "tau": (0.01, 10.0)},
    name="sigmoid-inner",
    channels=lambda n_features: (
        Channel("gamma"),
        Channel("beta", "alpha"),
        Channel("tau", shared=True),
    ),
    block=block,
    reference=reference,
    source="Pham et al. (2026), eq. (6)",
    units=Units(),
    scaling=("alpha", "beta", "tau"),
)
