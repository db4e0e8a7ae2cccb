"""Modified sigmoid gate: ``pi_i(x) ~ exp(gamma_i) sigma(alpha_i' x + beta_i)``.

Source: Pham et al. (2026), eq. (1).
"""

from __future__ import annotations

from moestat.compiler.jit import device
from moestat.compiler.math import logistic
from moestat.model.masses import WIDE, gate_with_masses
from moestat.model.members import Channel, Units
from moestat.model.reference import apart, log_sigmoid


@device
def block(eta, phi, m, order, a, da, d2a):
    """Log-score ``a = gamma + log sigma(s)``; channels are (gamma, s).

    ``da/ds = sigma(-s)`` and ``d2a/ds2 = -sigma(s) sigma(-s)``.
    """
    for b in range(m):
        value, slope = logistic(eta[1, b])
        a[b] = eta[0, b] + value
        da[0, b] = 1.0
        da[1, b] = slope
    if order > 1:
        for b in range(m):
            d2a[0, b] = 0.0
            d2a[1, b] = 0.0
            d2a[2, b] = da[1, b] * (da[1, b] - 1.0)


def reference(blocks, X, means):
    """Log-scores (k, n) at X (n, d)."""
    s = blocks["alpha"] @ X.T + blocks["beta"][:, None]
    return blocks["gamma"][:, None] + log_sigmoid(s)


GATE = gate_with_masses(
    lambda rng, k: {"beta": apart(rng, k, (), 0.5, 2.0)},
    {"beta": WIDE},
    name="sigmoid",
    channels=lambda n_features: (Channel("gamma"), Channel("beta", "alpha")),
    block=block,
    reference=reference,
    source="Pham et al. (2026), eq. (1)",
    units=Units(),
)
