"""Activations of the experts' neurons.

Duy et al. (n.d.) never defines its sigma; the proofs force the cubic: Lemma 12 has 3 z^2 for its
derivative, and (73) odd third powers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moestat.base.door import door
from moestat.compiler.jit import device
from moestat.model import activations

__all__ = ["ACTIVATIONS", "activation"]


@device
def cubic(z):
    """``z^3``."""
    return z * z * z, 3 * z * z, 6 * z


ACTIVATIONS: dict[str, Callable[..., Any]] = {"cubic": cubic, **activations.ACTIVATIONS}
"""Functions ``f(z) -> (f, f', f'')``, by name."""


@door()
def activation(name: str) -> Callable[..., Any]:
    """The activation called `name`; an `UnknownNameError` if there is none."""
    return activations.activation(name, ACTIVATIONS)
