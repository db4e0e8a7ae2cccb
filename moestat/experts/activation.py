"""One-neuron experts: ``mean = lambda phi(alpha' x + beta)``.

Source: attention (004), Sec. 4.1, the examples after Definition 1.
"""

from __future__ import annotations

from functools import cache

from moestat._activations import activation as activation_named
from moestat._jit import device
from moestat._types import Channel, Expert, Symmetry

_FACTOR = "a positive factor of alpha and beta, against lambda"
# What leaves lambda phi(alpha' x + beta) as it is: an odd or even phi, a homogeneous one, exp.
_SYMMETRIES = {
    "tanh": Symmetry(flips=("alpha", "beta", "lambda")),
    "norm": Symmetry(flips=("alpha", "beta"), free=_FACTOR),
    "relu": Symmetry(free=_FACTOR),
    "exp": Symmetry(free="a shift of beta, against lambda"),
}


@cache
def neuron(activation: str = "tanh") -> Expert:
    """The expert with one activation function."""
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

    return Expert(
        name="activation",
        channels=lambda n_features, n_responses: (
            Channel("beta", "alpha"),
            Channel("lambda", response=True),
        ),
        block=block,
        bounds={"alpha": (-30.0, 30.0), "beta": (-30.0, 30.0), "lambda": (-30.0, 30.0)},
        source="attention (004), Sec. 4.1",
        symmetry=_SYMMETRIES.get(activation, Symmetry()),
        options={"activation": activation},
        configure=neuron,
    )


EXPERT = neuron()
