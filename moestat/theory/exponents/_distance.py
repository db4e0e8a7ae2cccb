"""The Hellinger distance between the truth and some fitted atoms, by quadrature."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from moestat.base.types import FloatArray
from moestat.model.designs import Design
from moestat.model.family import Family
from moestat.theory.explorer._nodes import make_nodes
from moestat.theory.exponents._search import Configuration, Ladder
from moestat.theory.exponents._series import to_floats

__all__ = ["IN_FLOATS", "hellinger_of", "hellinger_to"]

_NODES = 48
"""Inputs at which the distance is taken: the functions are smooth among them."""
IN_FLOATS = 1e-12
"""Below this distance, rounding of float64, 1e-15 at each node, is above a thousandth of it."""


def hellinger_of(
    family: Family, truth: FloatArray, design: Design, ladder: Ladder
) -> Iterator[float]:
    """The distance at each deviation of a ladder.

    What is too small for float64 follows the ladder's own distances, which are root mean squares on
    the samples that it was fitted to and therefore smaller by a factor.
    """
    factor = 1.0
    for at, distance in zip(ladder.steps, ladder.distances, strict=True):
        own = hellinger_to(family, truth, design, at) if factor * distance > IN_FLOATS else 0.0
        if own > IN_FLOATS:
            factor = own / distance
        yield factor * distance


def hellinger_to(family: Family, truth: FloatArray, design: Design, at: Configuration) -> float:
    """Between the truth and some fitted atoms; of functions with noise of variance 1, its limit."""
    fitted = family.with_experts(len(at.cells))
    theta = _packed(family, fitted, truth, at)
    nodes = make_nodes(family, truth, design, _NODES)
    if family.is_regression:
        X = np.ascontiguousarray(nodes.X)
        gap = fitted.regression(theta, X)[0] - family.regression(truth, X)[0]
        return float(np.sqrt(nodes.mass @ gap**2 / 8.0))
    X = nodes.X.T
    y = family.likelihood.decode(nodes.y)
    own = family.log_density(truth, X, y)
    half = np.expm1(0.5 * (fitted.log_density(theta, X, y) - own))
    weight = nodes.mass[nodes.owner] * nodes.weight * np.exp(own)
    return float(np.sqrt(0.5 * np.sum(weight * half**2)))


def _packed(family: Family, fitted: Family, truth: FloatArray, at: Configuration) -> FloatArray:
    """The fitted atoms as packed parameters, references at their values."""
    theta = np.zeros(fitted.n_params)
    mass = family.gate.mass if family.gate.normalised else None
    logs = to_floats(np.array(at.logs(), dtype=object)) if mass else np.zeros(len(at.cells))
    for i, (j, values) in enumerate(zip(at.cells, at.values, strict=True)):
        numbers = to_floats(values)
        for c, channel in enumerate(family.channels):
            width = int(family.width[c])
            own = int(family.index[j, c]) + np.arange(width)
            new = int(fitted.index[i, c]) + np.arange(width)
            theta[new] = numbers[own]
            if c < family.layout[0] and channel.intercept == mass:
                theta[new[0]] = truth[own[0]] + logs[i]
    for name in family.gate.translations:
        if name in fitted.blocks:
            at_block = np.reshape(fitted.blocks[name], (len(at.cells), -1))
            theta[at_block] -= theta[at_block[-1]]
    return theta
