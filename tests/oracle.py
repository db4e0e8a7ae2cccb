"""Plain-NumPy densities, written from the papers' formulas and independent of the package's code.

They work on complex parameters, so that a complex step gives derivatives to full precision.
"""

from __future__ import annotations

import numpy as np


def log_sum_exp(values, axis=0):
    top = values.real.max(axis=axis, keepdims=True)
    return np.squeeze(top, axis) + np.log(np.exp(values - top).sum(axis=axis))


def gate_scores(gate, blocks, X):
    """Log-scores (k, n); X is (n, d)."""
    if gate == "softmax":
        return blocks["beta1"] @ X.T + blocks["beta0"][:, None]
    if gate == "sigmoid":
        s = blocks["alpha"] @ X.T + blocks["beta"][:, None]
        return blocks["gamma"][:, None] - np.log(1.0 + np.exp(-s))
    if gate == "sigmoid-inner":
        s = (blocks["alpha"] @ X.T + blocks["beta"][:, None]) / blocks["tau"]
        return blocks["gamma"][:, None] - np.log(1.0 + np.exp(-s))
    if gate == "sigmoid-euclidean":
        gap = blocks["alpha"][:, None, :] - X
        # The square root of a sum of squares is analytic; an absolute value would not be.
        distance = np.sqrt((gap**2).sum(axis=2))
        s = (distance + blocks["beta"][:, None]) / blocks["tau"]
        return blocks["gamma"][:, None] - np.log(1.0 + np.exp(-s))
    raise NotImplementedError(gate)


def class_log_probabilities(blocks, X):
    """Log-probabilities (k, K, n) of each expert."""
    logits = np.einsum("kld,nd->kln", blocks["a"], X) + blocks["b"][..., None]
    zero = np.zeros((logits.shape[0], 1, logits.shape[2]), dtype=logits.dtype)
    logits = np.concatenate([logits, zero], axis=1)
    return logits - log_sum_exp(logits, axis=1)[:, None]


def log_density(gate, blocks, X, label):
    """``log p(y | x)`` (n,), labels 1..K."""
    scores = gate_scores(gate, blocks, X)
    picked = class_log_probabilities(blocks, X)[:, label - 1, np.arange(len(label))]
    return log_sum_exp(scores + picked) - log_sum_exp(scores)


def blocks_of(family, theta):
    """Named blocks of a possibly complex packed vector."""
    return {name: theta[positions] for name, positions in family.blocks.items()}


def log_likelihood(family, theta, X, label, weight):
    """Weighted log-likelihood of a possibly complex packed vector."""
    return weight @ log_density(family.gate.name, blocks_of(family, theta), X, label)


def score(family, theta, X, label, weight):
    """Score (P,) by complex step."""
    step = 1e-30
    out = np.empty(theta.size)
    for j in range(theta.size):
        moved = theta.astype(complex)
        moved[j] += 1j * step
        out[j] = log_likelihood(family, moved, X, label, weight).imag / step
    return out
