"""Every kind of family that the registries make, for tests that hold for all of them."""

from __future__ import annotations

import numpy as np

import moestat
from moestat.model.experts import EXPERTS
from moestat.model.gates import GATES

QUADRATIC = [name for name, g in GATES.items() if any(c.products for c in g.channels(1))]
MIXING = [name for name in GATES if name not in QUADRATIC]
MULTINOMIAL = [("multinomial", name, "linear") for name in MIXING if not GATES[name].reads_response]
GAUSSIAN = [("gaussian", gate, "linear") for gate in MIXING]
# Compiling is what these cost, so each expert that is not linear meets one gate of each sort.
CURVED = [
    *(("gaussian", "softmax", expert) for expert in EXPERTS if expert != "linear"),
    ("gaussian", "competition-free", {"name": "ffn", "hidden": 3}),
    (
        "gaussian",
        {"name": "competition-top", "active": 2, "activation": "silu"},
        {"name": "polynomial", "degree": 3},
    ),
    # Both have blocks alpha and beta.
    ("gaussian", "sigmoid", "polynomial"),
]
KINDS = [*MULTINOMIAL, *GAUSSIAN, *CURVED]


def _neuron(activation, weighted=True):
    return {"name": "activation", "activation": activation, "weighted": weighted}


_RELU = _neuron("relu", weighted=False)
REGRESSION = [
    *(("least-squares", gate, _RELU) for gate in QUADRATIC),
    *(
        ("least-squares", "sigmoid-quadratic", expert)
        for expert in (
            {"name": "polynomial", "degree": 1},
            {"name": "polynomial", "degree": 3},
            {"name": "ffn", "hidden": 2},
            _neuron("gelu"),
            _neuron("relu"),
            _neuron("tanh", weighted=False),
            _neuron("gelu", weighted=False),
        )
    ),
    ("least-squares", "softmax-quadratic", _neuron("tanh")),
    ("least-squares", "softmax-partial", "linear"),
    ("least-squares", "sigmoid-quadratic", "linear"),  # both have a block b
    ("least-squares", "softmax", "linear"),
    ("least-squares", "sigmoid-inner", "linear"),
    ("least-squares", "sigmoid-euclidean", "linear"),
]


def kind_id(kind):
    """One word for a kind."""

    def word(axis):
        if isinstance(axis, str):
            return axis
        return "+".join(str(value) for value in axis.values())

    return "-".join(map(word, kind))


def make(kind, k, d, K=None):
    """The family of a kind with k experts, d inputs and K classes where there are classes."""
    likelihood, gate, expert = kind
    n_classes = K if likelihood == "multinomial" else None
    return moestat.family(
        likelihood, gate=gate, expert=expert, n_experts=k, n_features=d, n_classes=n_classes
    )


def random_theta(family, rng, scale=1.0):
    """Normal parameters; log-normal where only positive ones are allowed."""
    theta = scale * rng.normal(size=family.n_params)
    return np.where(family.lower > 0, np.exp(0.3 * rng.normal(size=theta.size)), theta)


def random_response(family, rng, n):
    """Responses that need not follow the family: labels 1..K or normal numbers."""
    if family.likelihood.support is None:
        return 2.0 * rng.normal(size=n)
    return rng.integers(1, family.n_classes + 1, size=n)
