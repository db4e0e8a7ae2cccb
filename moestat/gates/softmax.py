"""Softmax gate: ``pi_i(x) ~ exp(beta1_i' x + beta0_i)``.

Source: arXiv 2310.14188, eq. (1); the gate that mlmoe (003), Sec. 5.1 compares with.
"""

from __future__ import annotations

from moestat._jit import device
from moestat._types import Channel, Gate


@device
def block(eta, phi, m, order, a, da, d2a):
    """Log-score ``a = eta``, with derivative 1 and no curvature."""
    for b in range(m):
        a[b] = eta[0, b]
    if order > 0:
        for b in range(m):
            da[0, b] = 1.0
    if order > 1:
        for b in range(m):
            d2a[0, b] = 0.0


GATE = Gate(
    name="softmax",
    channels=lambda n_features: (Channel("beta0", "beta1"),),
    block=block,
    mass="beta0",
    translations=("beta0", "beta1"),
    bounds={"beta0": (-30.0, 30.0), "beta1": (-30.0, 30.0)},
    source="arXiv 2310.14188, eq. (1)",
)
