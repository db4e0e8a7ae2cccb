"""Densities and regression functions in plain NumPy, from the references that members declare.

They share no code with the compiled loops, and read like the equations.  They work on complex
parameters, so that a complex step gives derivatives to full precision.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from moestat.base.types import Encoded, FloatArray
from moestat.model.family import Family
from moestat.model.generate import sample
from moestat.model.members import Expert, Gate
from moestat.model.reference import log_sum_exp

__all__ = [
    "blocks_of",
    "check_loops",
    "expert_log_densities",
    "gate_scores",
    "log_density",
    "predictors",
    "regression",
    "weights",
]


def _blocks_of(member: Gate | Expert, blocks: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The blocks of one member of an axis."""
    return {name: blocks[name] for name in member.bounds}


def predictors(family: Family, blocks: dict[str, np.ndarray], X: FloatArray) -> np.ndarray:
    """Mean (k, n), or predictors (k, q, n), of each expert."""
    return family.expert.reference(_blocks_of(family.expert, blocks), X)


def _top(scores: np.ndarray, n_active: int) -> np.ndarray:
    """All below the largest scores at -inf; ties with the last of these stay."""
    threshold = np.sort(np.real(scores), axis=0)[::-1][:n_active][-1]
    return np.where(np.real(scores) >= threshold, scores, -np.inf)


def gate_scores(family: Family, blocks: dict[str, np.ndarray], X: FloatArray) -> np.ndarray:
    """Log-scores (k, n); X is (n, d)."""
    gate = family.gate
    means = predictors(family, blocks, X) if gate.reads_response else None
    scores = gate.reference(_blocks_of(gate, blocks), X, means)
    return scores if gate.n_active is None else _top(scores, gate.n_active)


def weights(family: Family, blocks: dict[str, np.ndarray], X: FloatArray) -> np.ndarray:
    """Weights (k, n) of the atoms."""
    scores = gate_scores(family, blocks, X)
    return np.exp(scores - log_sum_exp(scores)) if family.gate.normalised else np.exp(scores)


def regression(family: Family, theta: np.ndarray, X: FloatArray) -> np.ndarray:
    """Regression function (n,) of a possibly complex packed vector."""
    blocks = blocks_of(family, theta)
    return (weights(family, blocks, X) * predictors(family, blocks, X)).sum(axis=0)


def expert_log_densities(
    family: Family, blocks: dict[str, np.ndarray], X: FloatArray, y: Encoded
) -> np.ndarray:
    """``log f_i(y | x)`` (k, n); y holds labels 1..K or real responses."""
    assert family.likelihood.reference is not None
    if not family.likelihood.parts:
        blocks = family.likelihood.by_expert(blocks, family.n_experts)
    return family.likelihood.reference(predictors(family, blocks, X), blocks, y)


def log_density(
    family: Family, blocks: dict[str, np.ndarray], X: FloatArray, y: Encoded
) -> np.ndarray:
    """``log p(y | x)`` (n,)."""
    scores = gate_scores(family, blocks, X)
    return log_sum_exp(scores + expert_log_densities(family, blocks, X, y)) - log_sum_exp(scores)


def blocks_of(family: Family, theta: np.ndarray) -> dict[str, np.ndarray]:
    """Named blocks of a possibly complex packed vector."""
    logs = {channel.intercept for channel in family.channels if channel.log}
    return {
        name: np.exp(theta[positions]) if name in logs else theta[positions]
        for name, positions in family.blocks.items()
    }


def check_loops(family: Family) -> None:
    """Compare the compiled loop of this kind of atom with plain NumPy, once in a process.

    A compiler may make wrong code for a processor that nobody has tried; no fit should rest on it.

    It takes a third of a millisecond, on samples enough for the vectors of any processor and for
    the loop over the rest.
    """
    if family.loops in _CHECKED:
        return
    if family.likelihood.block is not None and family.likelihood.reference is None:
        return
    family = replace(family, offset_input=None)
    rng = np.random.default_rng(0)
    theta = family.typical(rng)
    X, y = sample(family, theta, _SAMPLES, rng, noise=0.0 if family.is_regression else None)
    if family.is_regression:
        compiled = family.regression(theta, np.ascontiguousarray(X.T))[0]
        expected = regression(family, theta, X)
    else:
        encoded = family.likelihood.encode(y, family.n_classes)
        compiled = family.rowwise(theta, np.ascontiguousarray(X.T), encoded)[2]
        expected = log_density(family, blocks_of(family, theta), X, y)
    if not np.allclose(compiled, expected, rtol=1e-9, atol=1e-9):
        raise RuntimeError(
            f"compiled code of {family!r} is wrong on this processor: it differs from the"
            f" references of its members in NumPy by {np.max(np.abs(compiled - expected)):.1e}. If"
            " they are moestat's own, please report it; the environment variable NUMBA_CPU_FEATURES"
            " can leave instructions out"
        )
    _CHECKED.add(family.loops)


_SAMPLES = 37
_CHECKED: set[object] = set()
