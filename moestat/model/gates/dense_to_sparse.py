"""Softmax gate with a temperature: ``pi_i(x) ~ exp(gamma_i + f(alpha_i' x + beta_i) / tau)``.

The dense-to-sparse gate has f(s) = s, and one tau > 0 for all atoms: with tau to 0 only one atom
takes part at each x.  Its density depends on alpha / tau only: it is the softmax gate with one
parameter more, which is 1 unless ``bounds={"tau": (0.1, 10)}`` frees it, and a common factor of
alpha and tau changes nothing.  The activation dense-to-sparse gate, ``{"name": "dense-to-sparse",
"activation": "sigmoid"}``, has an activation function f, with which tau is identified.

As the papers have them beta is 0; ``bounds={"beta": (-30, 30)}`` frees it, for an activation.
gamma_i is the paper's ``beta0_i / tau``, so that ``exp(gamma_i)`` is the mass of an atom.

Source: Nguyen, Akbarian and Ho (2024).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from moestat.compiler.jit import device
from moestat.model.activations import REFERENCES
from moestat.model.activations import activation as activation_named
from moestat.model.masses import gate_with_masses
from moestat.model.members import Channel, Gate, Units
from moestat.model.reference import apart


@device
def _identity(s):
    return s, 1.0, 0.0


@cache
def _block(activation: str | None) -> Callable[..., None]:
    f = _identity if activation is None else activation_named(activation)

    @device
    def block(eta, phi, m, order, a, da, d2a):
        """Log-score ``a = gamma + f(s) / tau``; channels are (gamma, s, tau)."""
        for b in range(m):
            value, slope, curve = f(eta[1, b])
            inverse = 1.0 / eta[2, b]
            a[b] = eta[0, b] + value * inverse
            da[0, b] = 1.0
            da[1, b] = slope * inverse
            da[2, b] = -value * inverse * inverse
            if order > 1:
                d2a[0, b] = 0.0
                d2a[1, b] = 0.0
                d2a[2, b] = curve * inverse
                d2a[3, b] = 0.0
                d2a[4, b] = -slope * inverse * inverse
                d2a[5, b] = 2.0 * value * inverse**3

    return block


@cache
def make(activation: str | None = None) -> Gate:
    """The gate with an activation of its scores, or with none."""
    block = _block(activation)  # refuses unknown names
    plain = activation is None
    f: Callable[[Any], Any] = (lambda s: s) if activation is None else REFERENCES[activation]

    def reference(blocks, X, means):
        """Log-scores (k, n) at X (n, d)."""
        s = blocks["alpha"] @ X.T + blocks["beta"][:, None]
        return blocks["gamma"][:, None] + f(s) / blocks["tau"]

    def others(rng, n_experts):
        """Scores without beta; the temperature of those with an activation."""
        beta = apart(rng, n_experts, (), 0.0, 0.0)
        return {"beta": beta, "tau": 1.0 if plain else rng.uniform(0.7, 1.3)}

    return gate_with_masses(
        others,
        {"beta": (0.0, 0.0), "tau": (1.0, 1.0) if plain else (0.01, 10.0)},
        name="dense-to-sparse",
        channels=lambda n_features: (
            Channel("gamma"),
            Channel("beta", "alpha"),
            Channel("tau", shared=True),
        ),
        block=block,
        reference=reference,
        translations=("gamma", "alpha") if plain else ("gamma",),
        source="Nguyen, Akbarian and Ho (2024)",
        units=Units(shift_inputs=False),
        scaling=("alpha", "beta", "tau") if plain else (),
        options={} if plain else {"activation": activation},
        configure=make,
    )


GATE = make()
