"""Activation functions with two derivatives, for experts and for competing gates."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from moestat.base.registry import UnknownNameError
from moestat.base.validate import short
from moestat.compiler.jit import device
from moestat.compiler.math import decay, decay_less_one, exp, log1p_inverse
from moestat.model.reference import log1p_exp, log_sigmoid

__all__ = ["ACTIVATIONS", "KINKED", "REFERENCES", "activation"]

_INVERSE_ROOT_2 = 1.0 / math.sqrt(2.0)
_INVERSE_ROOT_2PI = 1.0 / math.sqrt(2.0 * math.pi)


@device
def softplus(s):
    """``log(1 + e^s)`` with ``sigma(s)`` and ``sigma(s) sigma(-s)``."""
    e = decay(-abs(s))
    value, inverse = log1p_inverse(e)
    p = inverse if s >= 0.0 else e * inverse
    return (s if s > 0.0 else 0.0) + value, p, p * (1.0 - p)


@device
def sigmoid(s):
    """``1 / (1 + e^-s)``."""
    e = decay(-abs(s))
    p = (1.0 if s >= 0.0 else e) / (1.0 + e)
    v = p * (1.0 - p)
    return p, v, v * (1.0 - 2.0 * p)


@device
def silu(s):
    """``s sigma(s)``."""
    e = decay(-abs(s))
    p = (1.0 if s >= 0.0 else e) / (1.0 + e)
    v = p * (1.0 - p)
    return s * p, p + s * v, v * (2.0 + s * (1.0 - 2.0 * p))


@device
def relu(s):
    """``max(s, 0)``; at 0 the derivative is 0, one of its subgradients."""
    return (s if s > 0.0 else 0.0), (1.0 if s > 0.0 else 0.0), 0.0


@device
def norm(s):
    """``|s|``, the norm of a scalar; at 0 the derivative is 0, one of its subgradients."""
    return abs(s), (1.0 if s > 0.0 else (-1.0 if s < 0.0 else 0.0)), 0.0


@device
def exponential(s):
    """``e^s``."""
    e = exp(s)
    return e, e, e


@device
def tanh(s):
    """``tanh(s) = (1 - e^-2s) / (1 + e^-2s)``."""
    less_one = decay_less_one(-2.0 * abs(s))
    t = -less_one / (2.0 + less_one)
    t = t if s >= 0.0 else -t
    return t, 1.0 - t * t, -2.0 * t * (1.0 - t * t)


@device
def gelu(s):
    """``s Phi(s)`` with the normal distribution function Phi."""
    upper = 0.5 * math.erfc(-s * _INVERSE_ROOT_2)
    density = _INVERSE_ROOT_2PI * decay(-0.5 * s * s)
    return s * upper, upper + s * density, density * (2.0 - s * s)


ACTIVATIONS: dict[str, Callable[..., Any]] = {
    "softplus": softplus,
    "sigmoid": sigmoid,
    "relu": relu,
    "silu": silu,
    "exp": exponential,
    "norm": norm,
    "tanh": tanh,
    "gelu": gelu,
}
"""Functions ``f(s) -> (f, f', f'')``, by name."""


def _gelu_reference(s):
    from scipy.special import erf  # slow to import

    return s * (1 + erf(s / np.sqrt(2))) / 2


REFERENCES: dict[str, Callable[..., np.ndarray]] = {
    "softplus": log1p_exp,
    "sigmoid": lambda s: np.exp(log_sigmoid(s)),
    "relu": lambda s: np.where(s.real > 0, s, 0),
    "silu": lambda s: s * np.exp(log_sigmoid(s)),
    "exp": np.exp,
    "norm": lambda s: np.where(s.real > 0, s, -s),
    "tanh": np.tanh,
    "gelu": _gelu_reference,
}
"""The activation functions in plain NumPy, for the references of gates and experts."""

KINKED = frozenset({"relu", "norm"})
"""Names of the activations with a corner at 0."""


def activation(
    name: str, known: Mapping[str, Callable[..., Any]] = ACTIVATIONS
) -> Callable[..., Any]:
    """The activation called `name`, among those that are known."""
    if name not in known:
        names = ", ".join(map(repr, known))
        raise UnknownNameError(f"unknown activation {short(name)}; known: {names}")
    return known[name]
