"""Measures of the claims on Gaussian experts, which compete or share a softmax gate."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from experiments.claims.witnesses.witness import Blocks, Pair, Path
from moestat.base.types import FloatArray
from moestat.model.axes import family
from moestat.theory.explorer import deviation_loss


def _doubled(name: str, expert: Any, loss: str, blocks: Blocks) -> Pair:
    truth = family("gaussian", gate="competition", expert=expert, n_experts=2)
    twice = {block: [*value, *value] for block, value in blocks.items()}
    return Pair(
        name,
        truth,
        truth.with_experts(4),
        blocks,
        twice,
        loss,
        "N = 2 N* = 4, every atom of the truth twice, unit masses as printed.",
        -2.0,
        2.0,
        {"masses": "given"},
    )


DOUBLED_LINES = _doubled(
    "doubled-lines",
    "linear",
    "competition-L2",
    {"a": [2.0, -1.5], "b": [1.0, -1.0], "nu": [0.25, 0.16]},
)
DOUBLED_NETWORKS = _doubled(
    "doubled-networks",
    {"name": "ffn", "hidden": 1},
    "competition-L1",
    {
        "W1": np.array([[2.0], [-2.0]])[..., None],
        "b1": [[0.0], [0.5]],
        "W2": [[2.0], [-2.0]],
        "nu": [0.09, 0.09],
    },
)


def _never_active() -> Pair:
    truth = family("gaussian", gate={"name": "competition-top", "active": 2}, n_experts=3)
    blocks = {"a": [2.0, -1.5, 0.1], "b": [5.0, -4.0, 0.5], "nu": [0.25, 0.16, 0.09]}
    return Pair(
        "never-active",
        truth,
        truth,
        blocks,
        {**blocks, "a": [2.0, -1.5, 0.2], "b": [5.0, -4.0, 0.3]},
        "competition-top-D",
        "k = k* = 3, K = 2: the third expert answers less than the others at every input, so it"
        " never takes part.  Distinct atoms, experts differentiable and not 0.",
        options={"active": 2},
    )


NEVER_ACTIVE = _never_active()


def _flat_competitor(epsilon: float) -> Blocks:
    """The first atom, whose answer is constant, as two that keep mean, variance and mass."""
    weight = 0.5 * np.exp(0.4) * (1.0 + np.exp(1.0))
    places = np.array([1.0 + epsilon, 1.0 - epsilon])
    return {
        "c": [*(np.log(weight) - np.log1p(np.exp(places))), 0.0],
        **{"a": [0.0, 0.0, -1.5], "b": [*places, -1.0]},
        "nu": [0.25 - epsilon**2] * 2 + [0.16],
    }


FLAT_COMPETITOR = Path(
    "flat-competitor",
    family("gaussian", gate="competition-free", n_experts=2),
    family("gaussian", gate="competition-free", n_experts=3),
    {"c": [0.4, 0.0], "a": [0.0, -1.5], "b": [1.0, -1.0], "nu": [0.25, 0.16]},
    _flat_competitor,
    "competition-L2",
    "N* = 2, N = 3, a_1 = 0: the first expert and so its weight are constant in x, and two"
    " atoms"
    " b +- eps, nu - eps^2 that keep its mass are off by the fourth cumulant only.",
    -2.0,
    2.0,
)


def _gelu(z: FloatArray) -> FloatArray:
    return z * ndtr(z)


def _flat_neuron(epsilon: float) -> Blocks:
    """The first atom, a neuron without slope, as two that keep mean, variance and mass."""
    answer = float(_gelu(np.asarray(0.8)))
    places = np.array([answer + epsilon, answer - epsilon])
    inner = [brentq(lambda b, at=at: b * ndtr(b) - at, -0.5, 8.0, xtol=1e-15) for at in places]
    weight = 0.5 * np.exp(0.4) * (1.0 + np.exp(answer))
    return {
        "c": [*(np.log(weight) - np.log1p(np.exp(places))), 0.0],
        **{"alpha": [[0.0], [0.0], [1.1]], "beta": [*inner, -0.3]},
        "nu": [0.6 - epsilon**2] * 2 + [0.9],
    }


_NEURON = {"name": "activation", "activation": "gelu", "weighted": False}
FLAT_NEURON = Path(
    "flat-neuron",
    family("gaussian", gate="competition-free", expert=_NEURON, n_experts=2),
    family("gaussian", gate="competition-free", expert=_NEURON, n_experts=3),
    {"c": [0.4, 0.0], "alpha": [[0.0], [1.1]], "beta": [0.8, -0.3], "nu": [0.6, 0.9]},
    _flat_neuron,
    "competition-L1",
    "N* = 2, N = 3, GELU neurons without output weight, alpha_1 = 0: the first answer and so its"
    " weight are constant in x, and two answers at +- eps, nu - eps^2 that keep its mass are off by"
    " the fourth cumulant only.",
    -2.0,
    2.0,
)


def _gauss_hermite(m: int) -> Path:
    """A line as m lines at the nodes of Gauss-Hermite quadrature, all under its gate."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(m)
    shares = weights / weights.sum()

    def at(epsilon: float) -> Blocks:
        return {
            "beta0": [*(0.3 + np.log(shares)), 0.0],
            "beta1": [1.0] * m + [0.0],
            "a": [2.0] * m + [-1.5],
            "b": [*(1.0 + epsilon * nodes), -1.0],
            "nu": [0.01 - epsilon**2] * m + [0.5],
        }

    return Path(
        f"gauss-hermite-{m}",
        family("gaussian", gate="softmax", n_experts=2),
        family("gaussian", gate="softmax", n_experts=m + 1),
        {"beta0": [0.3, 0.0], "beta1": [1.0, 0.0], "a": [2.0, -1.5], "b": [1.0, -1.0]}
        | {"nu": [0.01, 0.5]},
        at,
        deviation_loss("gaussian-softmax-D"),
        f"{m} atoms b + eps z_i, nu - eps^2 with the weights of Gauss-Hermite quadrature: they have"
        f" the moments of N(b, nu) up to {2 * m - 1}.  The loss has all exponents 1.",
        -2.0,
        2.0,
        # From half the standard deviation down to where the distance is its rounding.
        (0.05, 0.03, 0.02, 0.01, 0.005),
    )


GAUSS_HERMITE = {m: _gauss_hermite(m) for m in (2, 3, 4)}
"""By the number of atoms."""
