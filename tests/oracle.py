"""Plain-NumPy densities and regression functions, from the references that members declare.

They share no code with the compiled loops.  They work on complex parameters, so that a complex
step gives derivatives to full precision.
"""

from __future__ import annotations

import numpy as np

from moestat.model.reference import log_sum_exp


def own(member, blocks):
    """The blocks of one member of an axis."""
    return {name: blocks[name] for name in member.bounds}


def predictors(family, blocks, X):
    """Mean (k, n), or predictors (k, q, n), of each expert."""
    return family.expert.reference(own(family.expert, blocks), X)


def top(scores, n_active):
    """All below the largest scores at -inf; ties with the last of these stay."""
    threshold = np.sort(scores.real, axis=0)[::-1][:n_active][-1]
    return np.where(scores.real >= threshold, scores, -np.inf)


def gate_scores(family, blocks, X):
    """Log-scores (k, n); X is (n, d)."""
    gate = family.gate
    means = predictors(family, blocks, X) if gate.reads_response else None
    scores = gate.reference(own(gate, blocks), X, means)
    return scores if gate.n_active is None else top(scores, gate.n_active)


def weights(family, blocks, X):
    """Weights (k, n) of the atoms in a regression function."""
    scores = gate_scores(family, blocks, X)
    return np.exp(scores - log_sum_exp(scores)) if family.gate.normalised else np.exp(scores)


def regression(family, theta, X):
    """Regression function (n,) of a possibly complex packed vector."""
    blocks = blocks_of(family, theta)
    return (weights(family, blocks, X) * predictors(family, blocks, X)).sum(axis=0)


def jacobian(family, theta, X):
    """``df / dtheta`` (n, P) by complex step."""
    step = 1e-30
    out = np.empty((len(X), theta.size))
    for j in range(theta.size):
        moved = theta.astype(complex)
        moved[j] += 1j * step
        out[:, j] = regression(family, moved, X).imag / step
    return out


def expert_log_densities(family, blocks, X, y):
    """``log f_i(y | x)`` (k, n); y holds labels 1..K or real responses."""
    return family.likelihood.reference(predictors(family, blocks, X), blocks, y)


def log_density(family, blocks, X, y):
    """``log p(y | x)`` (n,)."""
    scores = gate_scores(family, blocks, X)
    return log_sum_exp(scores + expert_log_densities(family, blocks, X, y)) - log_sum_exp(scores)


def blocks_of(family, theta):
    """Named blocks of a possibly complex packed vector."""
    logs = {channel.intercept for channel in family.channels if channel.log}
    return {
        name: np.exp(theta[positions]) if name in logs else theta[positions]
        for name, positions in family.blocks.items()
    }


def log_likelihood(family, theta, X, y, weight):
    """Weighted log-likelihood of a possibly complex packed vector."""
    return weight @ log_density(family, blocks_of(family, theta), X, y)


def score(family, theta, X, y, weight):
    """Score (P,) by complex step."""
    step = 1e-30
    out = np.empty(theta.size)
    for j in range(theta.size):
        moved = theta.astype(complex)
        moved[j] += 1j * step
        out[j] = log_likelihood(family, moved, X, y, weight).imag / step
    return out
