"""Plain-NumPy densities, written from the papers' formulas and independent of the package's code.

They work on complex parameters, so that a complex step gives derivatives to full precision.
"""

from __future__ import annotations

import numpy as np
from scipy import special


def log_sum_exp(values, axis=0):
    top = values.real.max(axis=axis, keepdims=True)
    return np.squeeze(top, axis) + np.log(np.exp(values - top).sum(axis=axis))


def _sign(s):
    return np.where(s.real > 0, 1.0, -1.0)


def _log1p_exp(s):
    flipped = np.where(s.real > 0, -s, s)
    return np.where(s.real > 0, s, 0) + np.log(1 + np.exp(flipped))


ACTIVATIONS = {
    "softplus": _log1p_exp,
    "sigmoid": lambda s: np.exp(-_log1p_exp(-s)),
    "relu": lambda s: np.where(s.real > 0, s, 0),
    "silu": lambda s: s * np.exp(-_log1p_exp(-s)),
    "exp": np.exp,
    "norm": lambda s: _sign(s) * s,
    "tanh": np.tanh,
    "gelu": lambda s: s * (1 + special.erf(s / np.sqrt(2))) / 2,
}


def of_axis(axis, blocks):
    """Blocks under the names that the axis gives them, also where another axis uses the same."""
    return {name.removeprefix(f"{axis}_"): block for name, block in blocks.items()}


def means(family, blocks, X):
    """Scalar mean (k, n) of each expert."""
    blocks = of_axis("expert", blocks)
    name, options = family.expert.name, family.expert.options
    if name == "linear":
        return blocks["a"] @ X.T + blocks["b"][:, None]
    if name == "polynomial":
        return (blocks["alpha"] @ X.T + blocks["beta"][:, None]) ** options["degree"]
    if name == "activation":
        s = blocks["alpha"] @ X.T + blocks["beta"][:, None]
        scale = blocks["lambda"][:, None] if "lambda" in blocks else 1.0
        return scale * ACTIVATIONS[options["activation"]](s)
    if name == "ffn":
        s = np.einsum("khd,nd->khn", blocks["W1"], X) + blocks["b1"][..., None]
        return np.einsum("kh,khn->kn", blocks["W2"], ACTIVATIONS["softplus"](s))
    raise NotImplementedError(name)


def top(scores, n_active):
    """All below the largest scores at -inf; ties with the last of these stay."""
    threshold = np.sort(scores.real, axis=0)[::-1][:n_active][-1]
    return np.where(scores.real >= threshold, scores, -np.inf)


def gate_scores(family, blocks, X):
    """Log-scores (k, n); X is (n, d)."""
    blocks = of_axis("gate", blocks)
    gate = family.gate.name
    if gate in {"softmax", "softmax-top"}:
        scores = blocks["beta1"] @ X.T + blocks["beta0"][:, None]
        return scores if gate == "softmax" else top(scores, family.gate.options["active"])
    if gate.startswith("competition"):
        scores = ACTIVATIONS[family.gate.options["activation"]](means(family, blocks, X))
        if gate == "competition-free":
            scores = scores + blocks["c"][:, None]
        return top(scores, family.gate.options["active"]) if gate.endswith("top") else scores
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


def quadratic_scores(blocks, X, partial):
    """``x' A_i x + b_i' x + c_i`` (k, n), the second term unless `partial`, from packed symmetric
    matrices with sqrt(2) off the diagonal.
    """
    d = X.shape[1]
    A = np.zeros((len(blocks["c"]), d, d), dtype=blocks["A"].dtype)
    position = 0
    for f in range(d):
        for g in range(f, d):
            entry = blocks["A"][:, position]
            A[:, f, g] = A[:, g, f] = entry if f == g else entry / np.sqrt(2)
            position += 1
    s = np.einsum("nf,kfg,ng->kn", X, A, X) + blocks["c"][:, None]
    return s if partial else s + blocks["b"] @ X.T


def weights(family, blocks, X):
    """Weights (k, n) of the atoms in a regression function."""
    gate = family.gate.name
    partial, blocks = gate.endswith("partial"), of_axis("gate", blocks)
    if gate in {"sigmoid-quadratic", "sigmoid-partial"}:
        return 1.0 / (1.0 + np.exp(-quadratic_scores(blocks, X, partial)))
    if gate in {"softmax-quadratic", "softmax-partial"}:
        scores = quadratic_scores(blocks, X, partial)
    else:
        scores = gate_scores(family, blocks, X)
    return np.exp(scores - log_sum_exp(scores))


def regression(family, theta, X):
    """Regression function (n,) of a possibly complex packed vector."""
    blocks = blocks_of(family, theta)
    return (weights(family, blocks, X) * means(family, blocks, X)).sum(axis=0)


def jacobian(family, theta, X):
    """``df / dtheta`` (n, P) by complex step."""
    step = 1e-30
    out = np.empty((len(X), theta.size))
    for j in range(theta.size):
        moved = theta.astype(complex)
        moved[j] += 1j * step
        out[:, j] = regression(family, moved, X).imag / step
    return out


def class_log_probabilities(blocks, X):
    """Log-probabilities (k, K, n) of each expert."""
    logits = np.einsum("kld,nd->kln", blocks["a"], X) + blocks["b"][..., None]
    zero = np.zeros((logits.shape[0], 1, logits.shape[2]), dtype=logits.dtype)
    logits = np.concatenate([logits, zero], axis=1)
    return logits - log_sum_exp(logits, axis=1)[:, None]


def expert_log_densities(family, blocks, X, y):
    """``log f_i(y | x)`` (k, n); y holds labels 1..K or real responses."""
    if family.likelihood.name == "multinomial":
        return class_log_probabilities(blocks, X)[:, y - 1, np.arange(len(y))]
    nu = blocks["nu"][:, None]
    return -0.5 * np.log(2 * np.pi * nu) - (y - means(family, blocks, X)) ** 2 / (2 * nu)


def log_density(family, blocks, X, y):
    """``log p(y | x)`` (n,)."""
    scores = gate_scores(family, blocks, X)
    return log_sum_exp(scores + expert_log_densities(family, blocks, X, y)) - log_sum_exp(scores)


def blocks_of(family, theta):
    """Named blocks of a possibly complex packed vector."""
    blocks = {name: theta[positions] for name, positions in family.blocks.items()}
    if "nu" in blocks:
        blocks["nu"] = np.exp(blocks["nu"])
    return blocks


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
