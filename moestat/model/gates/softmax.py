"""Softmax gate: ``pi_i(x) ~ exp(beta1_i' x + beta0_i)``, over all atoms or the K of largest score.

The top-K gate jumps where two scores change places, so its likelihood is smooth only between
such places, and its maximiser may lie on one.  Atoms tied with the K-th largest score take part,
too.

Source: Nguyen et al. (2024), eq. (1), the gate that Pham et al. (2026), Sec. 5.1 compares with;
Pham et al. (2024), eqs. (1) and (2) for top-K.
"""

from __future__ import annotations

from dataclasses import replace

from moestat.base.validate import positive_int
from moestat.compiler.jit import device
from moestat.model.members import Channel, Gate, Units
from moestat.model.reference import apart


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


def reference(blocks, X, means):
    """Log-scores (k, n) at X (n, d)."""
    return blocks["beta1"] @ X.T + blocks["beta0"][:, None]


def typical(rng, n_experts, n_features):
    """Slopes that differ, so that atoms rule in different places."""
    return {
        "beta0": apart(rng, n_experts, (), -0.5, 0.5),
        "beta1": apart(rng, n_experts, (n_features,), -2.0, 2.0),
    }


GATE = Gate(
    name="softmax",
    channels=lambda n_features: (Channel("beta0", "beta1"),),
    block=block,
    reference=reference,
    typical=typical,
    mass="beta0",
    translations=("beta0", "beta1"),
    bounds={"beta0": (-30.0, 30.0), "beta1": (-30.0, 30.0)},
    source="Nguyen et al. (2024), eq. (1)",
    units=Units(),
)


def top(active: int = 1) -> Gate:
    """The gate over the K = `active` atoms of largest score."""
    return replace(
        GATE,
        name="softmax-top",
        source="Pham et al. (2024), eqs. (1) and (2)",
        n_active=positive_int("active", active),
        options={"active": active},
        configure=top,
    )


TOP = top()
