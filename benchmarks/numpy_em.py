"""What people write today: EM for softmax mixtures of lines or of classes in plain NumPy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["Fit", "log_joint", "score_pass", "fit", "fit_classes"]

_HALF_LOG_2PI = 0.5 * np.log(2 * np.pi)


@dataclass
class Fit:
    """Gates (k, 2), lines (k, 2), variances (k,), log-likelihood and iterations."""

    gate: np.ndarray
    line: np.ndarray
    variance: np.ndarray
    log_likelihood: float = -np.inf
    iterations: int = 0


def _log_softmax(scores):
    top = scores.max(axis=1, keepdims=True)
    return scores - top - np.log(np.exp(scores - top).sum(axis=1, keepdims=True))


def log_joint(parameters: Fit, X, y):
    """Log-priors and log-joint densities (n, k) and log-densities (n,)."""
    prior = _log_softmax(X @ parameters.gate.T)
    residual = y[:, None] - X @ parameters.line.T
    variance = parameters.variance
    joint = prior - _HALF_LOG_2PI - 0.5 * np.log(variance) - 0.5 * residual**2 / variance
    top = joint.max(axis=1)
    return prior, joint, top + np.log(np.exp(joint - top[:, None]).sum(axis=1))


def score_pass(parameters: Fit, X, y):
    """Log-likelihood and score (k, 5), vectorised."""
    prior, joint, density = log_joint(parameters, X, y)
    tau = np.exp(joint - density[:, None])
    residual = (y[:, None] - X @ parameters.line.T) / parameters.variance
    gate = (tau - np.exp(prior)).T @ X
    line = (tau * residual).T @ X
    scale = 0.5 * (tau * (residual**2 * parameters.variance - 1.0)).sum(axis=0)
    return density.sum(), np.hstack([gate, line, scale[:, None]])


def _newton_gate(gate, tau, X, iterations=10):
    """Multinomial logistic regression of weighted shares (n, k), last column the reference."""
    k, p = gate.shape
    total = tau.sum(axis=1, keepdims=True)
    gate = gate - gate[-1]
    for _ in range(iterations):
        share = np.exp(_log_softmax(X @ gate.T))
        gradient = ((tau - total * share)[:, :-1].T @ X).ravel()
        hessian = np.empty((p * (k - 1), p * (k - 1)))
        for i in range(k - 1):
            for j in range(k - 1):
                weight = total[:, 0] * share[:, i] * ((i == j) - share[:, j])
                hessian[p * i : p * i + p, p * j : p * j + p] = (X * weight[:, None]).T @ X
        step = np.linalg.solve(hessian + 1e-9 * np.eye(hessian.shape[0]), gradient)
        gate[:-1] += step.reshape(k - 1, p)
        if np.abs(step).max() < 1e-8:
            break
    return gate


def fit(start: Fit, x, y, tolerance=1e-6, max_iterations=3000) -> Fit:
    """EM from inputs (n,) or (n, d) until the log-likelihood changes by `tolerance` of itself."""
    X = np.column_stack([np.ones(len(x)), x])
    gate, line, variance = start.gate.copy(), start.line.copy(), start.variance.copy()
    now = Fit(gate, line, variance)
    for iteration in range(1, max_iterations + 1):
        _, joint, density = log_joint(now, X, y)
        before, now.log_likelihood, now.iterations = now.log_likelihood, density.sum(), iteration
        if abs(now.log_likelihood - before) < tolerance * (abs(now.log_likelihood) + 0.1):
            break
        tau = np.exp(joint - density[:, None])
        for i in range(len(variance)):
            weighted = X * tau[:, i : i + 1]
            line[i] = np.linalg.solve(weighted.T @ X, weighted.T @ y)
            variance[i] = tau[:, i] @ (y - X @ line[i]) ** 2 / tau[:, i].sum()
        now.gate = _newton_gate(now.gate, tau, X)
    return now


def fit_classes(gate, experts, x, shown, tolerance=1e-6, max_iterations=3000):
    """The same for experts of classes: gates (k, p), experts (k, K, p), classes shown (n, K).

    Returns the log-likelihood.
    """
    X = np.column_stack([np.ones(len(x)), x])
    gate, experts, value = gate.copy(), experts.copy(), -np.inf
    for _ in range(max_iterations):
        answers = np.stack([(shown * _log_softmax(X @ each.T)).sum(axis=1) for each in experts])
        joint = _log_softmax(X @ gate.T) + answers.T
        top = joint.max(axis=1)
        density = top + np.log(np.exp(joint - top[:, None]).sum(axis=1))
        before, value = value, density.sum()
        if abs(value - before) < tolerance * (abs(value) + 0.1):
            break
        tau = np.exp(joint - density[:, None])
        for i in range(len(experts)):
            experts[i] = _newton_gate(experts[i], tau[:, i : i + 1] * shown, X)
        gate = _newton_gate(gate, tau, X)
    return value
