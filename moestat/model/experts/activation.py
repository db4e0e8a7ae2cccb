"""One-neuron experts: ``mean = lambda phi(alpha' x + beta)``, or without the output weight lambda.

Source: Yan et al. (2025), Sec. 4.1, the examples after Definition 1; eq. (84) for experts without
an output weight.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

from moestat.base.validate import short
from moestat.compiler.jit import device
from moestat.model.activations import KINKED, REFERENCES
from moestat.model.activations import activation as activation_named
from moestat.model.members import Channel, Expert, Symmetry, Units
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


def neuron(activation: str = "tanh", weighted: bool = True) -> Expert:
    """The expert with one activation function, with or without an output weight.

    The same object for the same options.
    """
    if not isinstance(weighted, bool):
        raise ValueError(f"weighted must be true or false, got {short(weighted)}")
    return _build(activation, weighted)


@cache
def _block(activation: str, weighted: bool) -> Callable[..., None]:
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

    @device
    def plain(eta, m, order, mean, d1, d2):
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

    return block if weighted else plain


@cache
def _build(activation: str, weighted: bool) -> Expert:
    def reference(blocks, X):
        """Means (k, n) at X (n, d)."""
        value = REFERENCES[activation](blocks["alpha"] @ X.T + blocks["beta"][:, None])
        return blocks["lambda"][:, None] * value if weighted else value

    def typical(rng, n_experts, n_features, n_responses):
        """Neurons that differ in direction, place and height."""
        heights = {"lambda": apart(rng, n_experts, (), 0.5, 2.5)} if weighted else {}
        return {
            "alpha": apart(rng, n_experts, (n_features,), -2.0, 2.0),
            "beta": apart(rng, n_experts, (), 0.0, 1.0),
            **heights,
        }

    channels = (Channel("beta", "alpha"), Channel("lambda", response=True))[: 1 + weighted]
    plain_units = _PLAIN_UNITS.get(activation, Units(shift_response=False, scale_response=False))
    return Expert(
        name="activation",
        channels=lambda n_features, n_responses: channels,
        block=_block(activation, weighted),
        reference=reference,
        typical=typical,
        bounds=dict.fromkeys(("alpha", "beta", "lambda")[: 2 + weighted], (-30.0, 30.0)),
        source=f"Yan et al. (2025), {'Sec. 4.1' if weighted else 'eq. (84)'}",
        units=Units(shift_response=False, powers={"lambda": 1.0}) if weighted else plain_units,
        symmetry=replace(_SYMMETRIES.get(activation, Symmetry()), linear_in=("lambda",))
        if weighted
        else _PLAIN_SYMMETRIES.get(activation, Symmetry()),
        kinked=activation in KINKED,
        options={"activation": activation} | ({} if weighted else {"weighted": False}),
        configure=neuron,
    )


EXPERT = neuron()
