"""Gates and experts that no paper has, registered as a user's script would."""

from __future__ import annotations

import math

import numpy as np

from moestat.compiler.jit import device
from moestat.compiler.math import log1p_positive
from moestat.model.activations import tanh
from moestat.model.experts import EXPERTS
from moestat.model.gates import GATES
from moestat.model.members import Channel, Expert, Gate, Symmetry, Units
from moestat.model.reference import apart

__all__ = ["expert_of", "gate_of", "register"]


@device
def hyperbolic(eta, phi, m, order, a, da, d2a):
    """``gamma + 2 tanh(s)``."""
    for b in range(m):
        f, f1, f2 = tanh(eta[1, b])
        a[b] = eta[0, b] + 2.0 * f
        da[0, b] = 1.0
        da[1, b] = 2.0 * f1
        if order > 1:
            d2a[0, b] = 0.0
            d2a[1, b] = 0.0
            d2a[2, b] = 2.0 * f2


@device
def cauchy(eta, phi, m, order, a, da, d2a):
    """``gamma - log(1 + s^2)``."""
    for b in range(m):
        s = eta[1, b]
        q = 1.0 / (1.0 + s * s)
        a[b] = eta[0, b] - log1p_positive(s * s)
        da[0, b] = 1.0
        da[1, b] = -2.0 * s * q
        if order > 1:
            d2a[0, b] = 0.0
            d2a[1, b] = 0.0
            d2a[2, b] = -2.0 * q * q * (1.0 - s * s)


@device
def wave(eta, phi, m, order, a, da, d2a):
    """``gamma + sin(s)``."""
    for b in range(m):
        s = eta[1, b]
        f = math.sin(s)
        a[b] = eta[0, b] + f
        da[0, b] = 1.0
        da[1, b] = math.cos(s)
        if order > 1:
            d2a[0, b] = 0.0
            d2a[1, b] = 0.0
            d2a[2, b] = -f


@device
def bent(eta, m, order, mean, d1, d2):
    """``s + sin(s) / 2``."""
    for b in range(m):
        s = eta[0, b]
        f = 0.5 * math.sin(s)
        mean[b] = s + f
        d1[0, b] = 1.0 + 0.5 * math.cos(s)
        if order > 1:
            d2[0, b] = -f


@device
def arch(eta, m, order, mean, d1, d2):
    """``log(1 + s^2)``."""
    for b in range(m):
        s = eta[0, b]
        q = 1.0 / (1.0 + s * s)
        mean[b] = log1p_positive(s * s)
        d1[0, b] = 2.0 * s * q
        if order > 1:
            d2[0, b] = 2.0 * q * q * (1.0 - s * s)


def gate_of(name, block, score):
    """A gate of a linear score: its compiled block, and the log-score without the mass."""

    def reference(blocks, X, means):
        """Log-scores (k, n) at X (n, d)."""
        s = blocks["alpha"] @ X.T + blocks["beta"][:, None]
        return blocks["gamma"][:, None] + score(s)

    def typical(rng, n_experts, n_features):
        """Scores that bend among the inputs."""
        return {
            "gamma": apart(rng, n_experts, (), -0.5, 0.5),
            "alpha": apart(rng, n_experts, (n_features,), -2.0, 2.0),
            "beta": apart(rng, n_experts, (), -1.0, 1.0),
        }

    return Gate(
        name=name,
        channels=lambda n_features: (Channel("gamma"), Channel("beta", "alpha")),
        block=block,
        reference=reference,
        typical=typical,
        mass="gamma",
        translations=("gamma",),
        bounds={"gamma": (-10.0, 10.0), "alpha": (-30.0, 30.0), "beta": (-30.0, 30.0)},
        source="an example of one's own",
        units=Units(),
    )


def expert_of(name, block, mean, symmetry):
    """An expert whose mean is a function of a linear score, and its symmetry."""

    def reference(blocks, X):
        """Means (k, n) at X (n, d)."""
        return mean(blocks["a"] @ X.T + blocks["b"][:, None])

    def typical(rng, n_experts, n_features, n_responses):
        """Lines that cross."""
        return {
            "a": apart(rng, n_experts, (n_features,), -2.0, 2.0),
            "b": apart(rng, n_experts, (), -1.0, 1.0),
        }

    return Expert(
        name=name,
        channels=lambda n_features, n_responses: (Channel("b", "a", response=True),),
        block=block,
        reference=reference,
        typical=typical,
        bounds={"a": (-30.0, 30.0), "b": (-30.0, 30.0)},
        source="an example of one's own",
        units=Units(shift_response=False, scale_response=False),
        symmetry=symmetry,
    )


_EVEN = Symmetry(flips=("a", "b"))
"""A mean that is even in its score: slope and intercept may change sign together."""


def register() -> None:
    """Register all of them, once."""
    gates = (
        gate_of("own-hyperbolic", hyperbolic, lambda s: 2 * np.tanh(s)),
        gate_of("own-cauchy", cauchy, lambda s: -np.log(1 + s**2)),
        gate_of("own-wave", wave, np.sin),
    )
    experts = (
        expert_of("own-bent", bent, lambda s: s + np.sin(s) / 2, Symmetry()),
        expert_of("own-arch", arch, lambda s: np.log(1 + s**2), _EVEN),
    )
    for gate in gates:
        if gate.name not in GATES:
            GATES.register(gate)
    for expert in experts:
        if expert.name not in EXPERTS:
            EXPERTS.register(expert)
