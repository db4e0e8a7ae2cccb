"""Perturbed cosine gate: softmax of ``gamma_i + alpha_i' x / ((|alpha_i| + tau1) (|x| + tau2))``.

tau1 and tau2, .1 each by default, are known: ``{"name": "perturbed-cosine", "tau1": 0.5}``.  They
make the score, which is else the cosine of an angle, see the length of alpha.

Source: Nguyen, Akbarian, Pham, Nguyen, Zhang and Ho (2024); .1 is the default of the program
LibMoE, ``moe_perturbed.py``.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from moestat.base.validate import real_in
from moestat.compiler.jit import device
from moestat.model.masses import gate_with_masses, places
from moestat.model.members import Channel, Gate, Units


@device
def block(eta, phi, m, order, a, da, d2a):
    """Log-score ``a = gamma + s`` with ``s = alpha' x / (R q)``, R and q the two factors.

    Channels are (gamma, alpha_1 .. alpha_d, tau1, tau2).  With ``u = alpha / |alpha|``, which
    counts as 0 at alpha = 0: ``g = ds/dalpha = x / (R q) - s u / R``, ``ds/dtau1 = -s / R`` and
    ``ds/dtau2 = -s / q``.
    """
    d = phi.shape[0] - 1
    one, two = d + 1, d + 2
    row_one, row_two = one * (one + 1) // 2, two * (two + 1) // 2
    for b in range(m):
        square = 0.0
        length = 0.0
        product = 0.0
        for j in range(1, one):
            square += eta[j, b] * eta[j, b]
            length += phi[j, b] * phi[j, b]
            product += eta[j, b] * phi[j, b]
        r = math.sqrt(square)
        R = r + eta[one, b]
        q = math.sqrt(length) + eta[two, b]
        s = product / (R * q)
        part = 1.0 / r if r > 0.0 else 0.0
        a[b] = eta[0, b] + s
        if order > 0:
            da[0, b] = 1.0
            da[one, b] = -s / R
            da[two, b] = -s / q
            for c in range(1, one):
                da[c, b] = phi[c, b] / (R * q) - s * eta[c, b] * part / R
        if order > 1:
            for c in range(two + 1):
                d2a[c * (c + 1) // 2, b] = 0.0
            for c in range(1, one):
                u = eta[c, b] * part
                row = c * (c + 1) // 2
                for e in range(1, c + 1):
                    v = eta[e, b] * part
                    bent = (1.0 if c == e else 0.0) - u * v
                    d2a[row + e, b] = (-(da[c, b] * v + da[e, b] * u) - s * bent * part) / R
                d2a[row_one + c, b] = (s * u / R - da[c, b]) / R
                d2a[row_two + c, b] = -da[c, b] / q
            d2a[row_one + one, b] = 2.0 * s / (R * R)
            d2a[row_two + one, b] = s / (R * q)
            d2a[row_two + two, b] = 2.0 * s / (q * q)


def reference(blocks, X, means):
    """Log-scores (k, n) at X (n, d)."""
    length = np.sqrt((blocks["alpha"] ** 2).sum(axis=1)) + blocks["tau1"]
    distance = np.sqrt((X**2).sum(axis=1)) + blocks["tau2"]
    return blocks["gamma"][:, None] + blocks["alpha"] @ X.T / length[:, None] / distance


@cache
def _build(tau1: float, tau2: float) -> Gate:
    known = {"tau1": tau1, "tau2": tau2}
    return gate_with_masses(
        lambda rng, k: known,
        {name: (value, value) for name, value in known.items()},
        name="perturbed-cosine",
        channels=lambda n_features: (
            *places(n_features),
            Channel("tau1", shared=True),
            Channel("tau2", shared=True),
        ),
        block=block,
        reference=reference,
        source="Nguyen, Akbarian, Pham, Nguyen, Zhang and Ho (2024)",
        units=Units(shift_inputs=False, common_scale=True, lengths=("tau1", "tau2")),
        options=known,
        configure=make,
    )


def make(tau1: float = 0.1, tau2: float = 0.1) -> Gate:
    """The gate with known perturbations of the two norms."""
    names = {"tau1": tau1, "tau2": tau2}
    return _build(
        *(
            float(real_in(f"perturbed-cosine: {name}", value, 0.0, 1e6, open_low=True))
            for name, value in names.items()
        )
    )


GATE = make()
