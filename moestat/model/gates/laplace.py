"""Laplace gate: ``pi_i(x) ~ exp(gamma_i - ||alpha_i - x|| / tau)`` with one tau > 0 for all atoms.

tau is 1, as in the papers: in the units of the inputs in a family that is made by itself, and in
standard deviations of the inputs in a fit of a model by name.  It is estimated with
``bounds={"tau": (0.01, 100)}``.  At x = alpha the norm has no derivative, see the Euclidean sigmoid
gate.

Source: Nguyen, Han, Harris, Saria and Ho (2024); Han, Nguyen, Harris, Ho and Saria (2024).
"""

from __future__ import annotations

import math

import numpy as np

from moestat.compiler.jit import device
from moestat.model.masses import gate_with_masses, places
from moestat.model.members import Channel, Units


@device
def block(eta, phi, m, order, a, da, d2a):
    """Log-score ``a = gamma - r / tau`` with ``r = ||alpha - x||``.

    Channels are (gamma, alpha_1 .. alpha_d, tau).  With the unit vector ``n = (alpha - x) / r``:
    ``dr = n`` and ``d2r = (1 - n n') / r``, which is 0 for d = 1.  ``a`` first holds r.
    """
    d = phi.shape[0] - 1
    tau = d + 1
    for b in range(m):
        a[b] = 0.0
    for j in range(1, tau):
        for b in range(m):
            a[b] += (eta[j, b] - phi[j, b]) ** 2
    for b in range(m):
        a[b] = math.sqrt(a[b])
    if order > 0:
        for b in range(m):
            da[0, b] = 1.0
            da[tau, b] = a[b] / eta[tau, b] ** 2
        for j in range(1, tau):
            for b in range(m):
                n = (eta[j, b] - phi[j, b]) / a[b] if a[b] > 0.0 else 0.0
                da[j, b] = -n / eta[tau, b]
    if order > 1:
        row_tau = tau * (tau + 1) // 2
        for c in range(tau):
            row = c * (c + 1) // 2
            for b in range(m):
                d2a[row, b] = 0.0
            for e in range(1, c + 1):
                for b in range(m):
                    d2a[row + e, b] = 0.0
                    if d > 1 and a[b] > 0.0:
                        across = da[c, b] * da[e, b] * eta[tau, b]
                        along = 1.0 / eta[tau, b] if c == e else 0.0
                        d2a[row + e, b] = (across - along) / a[b]
        for b in range(m):
            d2a[row_tau, b] = 0.0
            d2a[row_tau + tau, b] = -2.0 * da[tau, b] / eta[tau, b]
        for c in range(1, tau):
            for b in range(m):
                d2a[row_tau + c, b] = -da[c, b] / eta[tau, b]
    for b in range(m):
        a[b] = eta[0, b] - a[b] / eta[tau, b]


def reference(blocks, X, means):
    """Log-scores (k, n) at X (n, d)."""
    # The square root of a sum of squares is analytic; an absolute value would not be.
    distance = np.sqrt(((blocks["alpha"][:, None, :] - X) ** 2).sum(axis=2))
    return blocks["gamma"][:, None] - distance / blocks["tau"]


GATE = gate_with_masses(
    lambda rng, k: {"tau": 1.0},
    {"tau": (1.0, 1.0)},
    name="laplace",
    channels=lambda n_features: (
        *places(n_features),
        Channel("tau", shared=True),
    ),
    block=block,
    reference=reference,
    source="Nguyen, Han, Harris, Saria and Ho (2024)",
    units=Units(common_scale=True, lengths=("tau",)),
    kink="alpha",
)
