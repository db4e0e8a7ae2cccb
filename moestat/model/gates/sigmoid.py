"""Modified sigmoid gate: ``pi_i(x) ~ exp(gamma_i) sigma(alpha_i' x + beta_i)``.

Source: Pham et al. (2026), eq. (1).
"""

from __future__ import annotations

from moestat.base.types import Channel, Gate, Units
from moestat.compiler.jit import device
from moestat.compiler.math import logistic
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


def typical(rng, n_experts, n_features):
    """Scores that differ and are not opposite to each other."""
    return {
        "gamma": apart(rng, n_experts, (), -0.5, 0.5),
        "alpha": apart(rng, n_experts, (n_features,), -3.0, 3.0),
        "beta": apart(rng, n_experts, (), 0.5, 2.0),
    }


GATE = Gate(
    name="sigmoid",
    channels=lambda n_features: (Channel("gamma"), Channel("beta", "alpha")),
    block=block,
    reference=reference,
    typical=typical,
    mass="gamma",
    translations=("gamma",),
    bounds={"gamma": (-10.0, 10.0), "alpha": (-30.0, 30.0), "beta": (-30.0, 30.0)},
    source="Pham et al. (2026), eq. (1)",
    units=Units(),
)
