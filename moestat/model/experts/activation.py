"""One-neuron experts: ``mean = lambda phi(alpha' x + beta)``, or without the output weight lambda.

Source: Yan et al. (2025), Sec. 4.1, the examples after Definition 1; eq. (84) for experts without
an output weight.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from moestat.base.types import Channel, Expert, Symmetry, Units
from moestat.base.validate import short
from moestat.compiler.jit import device
from moestat.model.activations import KINKED, REFERENCES
from moestat.model.activations import activation as activation_named
from moestat.model.reference import apart

_FACTOR = "a positive factor of alpha and beta, against lambda"
# What leaves lambda phi(alpha' x + beta) as it is: an odd or even phi, a homogeneous one, exp.
_SYMMETRIES = {
    "tanh": Symmetry(flips=("alpha", "beta", "lambda")),
    "norm": Symmetry(flips=("alpha", "beta"), free=_FACTOR),
    "relu": Symmetry(free=_FACTOR),
    "exp": Symmetry(free="a shift of beta, against lambda"),
}


# The same without lambda.
_PLAIN_SYMMETRIES = {
    "norm": Symmetry(flips=("alpha", "beta"), positive_in=("alpha", "beta")),
    "relu": Symmetry(positive_in=("alpha", "beta")),
}
# A positive factor passes through a homogeneous activation.
_HOMOGENEOUS = Units(shift_response=False, powers={"beta": 1.0})
_PLAIN_UNITS = {"norm": _HOMOGENEOUS, "relu": _HOMOGENEOUS}
_BOUND = (-30.0, 30.0)


def neuron(activation: str = "tanh", weighted: bool = True) -> Expert:
    """The expert with one activation function, with or without an output weight.

    The same object for the same options.
    """
    if not isinstance(weighted, bool):
        raise ValueError(f"weighted must be true or false, got {short(weighted)}")
    return _weighted(activation) if weighted else _plain(activation)


@cache
def _weighted(activation: str) -> Expert:
    """The expert with an output weight."""
    phi = activation_named(activation)

    @device
    def block(eta, m, order, mean, d1, d2):
        """Mean and derivatives; channels are (s, w): ``mean = w phi(s)``."""
        for b in range(m):
            f, f1, f2 = phi(eta[0, b])
            mean[b] = eta[1, b] * f
        if order > 0:
            for b in range(m):
                f, f1, f2 = phi(eta[0, b])
                d1[0, b] = eta[1, b] * f1
                d1[1, b] = f
        if order > 1:
            for b in range(m):
                f, f1, f2 = phi(eta[0, b])
                d2[0, b] = eta[1, b] * f2
                d2[1, b] = f1
                d2[2, b] = 0.0

    def reference(blocks, X):
        """Means (k, n) at X (n, d)."""
        s = blocks["alpha"] @ X.T + blocks["beta"][:, None]
        return blocks["lambda"][:, None] * REFERENCES[activation](s)

    def typical(rng, n_experts, n_features, n_responses):
        """Neurons that differ in direction, place and height."""
        heights = {"lambda": apart(rng, n_experts, (), 0.5, 2.5)}
        return _inner(rng, n_experts, n_features) | heights

    return Expert(
        name="activation",
        channels=lambda n_features, n_responses: (
            Channel("beta", "alpha"),
            Channel("lambda", response=True),
        ),
        block=block,
        reference=reference,
        typical=typical,
        bounds={"alpha": _BOUND, "beta": _BOUND, "lambda": _BOUND},
        source="Yan et al. (2025), Sec. 4.1",
        units=Units(shift_response=False, powers={"lambda": 1.0}),
        symmetry=replace(_SYMMETRIES.get(activation, Symmetry()), linear_in=("lambda",)),
        kinked=activation in KINKED,
        options={"activation": activation},
        configure=neuron,
    )


def _inner(rng, n_experts, n_features, n_responses=None):
    """Directions and places that differ between atoms."""
    return {
        "alpha": apart(rng, n_experts, (n_features,), -2.0, 2.0),
        "beta": apart(rng, n_experts, (), 0.0, 1.0),
    }


@cache
def _plain(activation: str) -> Expert:
    """The expert without an output weight."""
    phi = activation_named(activation)

    @device
    def block(eta, m, order, mean, d1, d2):
        """Mean and derivatives; the one channel is s: ``mean = phi(s)``."""
        for b in range(m):
            f, f1, f2 = phi(eta[0, b])
            mean[b] = f
        if order > 0:
            for b in range(m):
                f, f1, f2 = phi(eta[0, b])
                d1[0, b] = f1
        if order > 1:
            for b in range(m):
                f, f1, f2 = phi(eta[0, b])
                d2[0, b] = f2

    def reference(blocks, X):
        """Means (k, n) at X (n, d)."""
        return REFERENCES[activation](blocks["alpha"] @ X.T + blocks["beta"][:, None])

    return Expert(
        name="activation",
        channels=lambda n_features, n_responses: (Channel("beta", "alpha"),),
        block=block,
        reference=reference,
        typical=_inner,
        bounds={"alpha": _BOUND, "beta": _BOUND},
        source="Yan et al. (2025), eq. (84)",
        units=_PLAIN_UNITS.get(activation, Units(shift_response=False, scale_response=False)),
        symmetry=_PLAIN_SYMMETRIES.get(activation, Symmetry()),
        kinked=activation in KINKED,
        options={"activation": activation, "weighted": False},
        configure=neuron,
    )


EXPERT = neuron()
