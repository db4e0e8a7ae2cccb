"""A plain NumPy implementation on dense patches, which allows complex weights."""

from __future__ import annotations

import numpy as np

VALUES = {"cubic": lambda z: z**3, "tanh": np.tanh}


def loss(experts, router, x, label, chosen, shared, activation="cubic"):
    """Mean of log(1 + exp(-y pi f)) at given routes."""
    n, P, _ = x.shape
    blocks = np.zeros(P, int) if shared else np.arange(P)
    z = np.einsum("mpjd,npd->nmpj", experts[:, blocks], x)
    f = VALUES[activation](z).sum(axis=(2, 3))
    h = np.einsum("mpd,npd->nm", router, x)
    e = np.exp(h - h.real.max(axis=1, keepdims=True))
    pi = e / e.sum(axis=1, keepdims=True)
    row = np.arange(n)
    return np.mean(np.log(1 + np.exp(-label * pi[row, chosen] * f[row, chosen])))


def derivative(experts, router, *given, part, at):
    """Derivative in one entry, by a step in an imaginary direction: exact to rounding."""
    moved = {"experts": experts.astype(complex), "router": router.astype(complex)}
    moved[part][at] += 1e-30j
    return loss(moved["experts"], moved["router"], *given).imag / 1e-30
