"""Designs: the law of the inputs X."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from moestat._registry import Registry
from moestat._types import FloatArray
from moestat._validate import positive_int, real_in

__all__ = ["DESIGNS", "Design", "Uniform", "make_design"]


class Design(Protocol):
    """A law of X that can be sampled and integrated against."""

    @property
    def name(self) -> str:
        """Name in the registry."""
        ...

    def draw(self, n: int, n_features: int, rng: np.random.Generator) -> FloatArray:
        """N inputs, shape (d, n)."""
        ...

    def quadrature(self, n_features: int, n_nodes: int) -> tuple[FloatArray, FloatArray]:
        """Nodes (d, m) and weights (m,) that sum to 1."""
        ...


@dataclass(frozen=True)
class Uniform:
    """Independent uniform inputs on [low, high] (mlmoe (003), Sec. 5: [0, 1]).

    Parameters
    ----------
    low, high : float
        Ends of the interval of every input.

    Examples
    --------
    >>> import numpy as np
    >>> Uniform(0, 1).draw(3, 2, np.random.default_rng(0)).shape
    (2, 3)
    """

    low: float = 0.0
    high: float = 1.0
    name: str = "uniform"

    def __post_init__(self) -> None:
        low, high = real_in("low", self.low), real_in("high", self.high)
        if not low < high:
            raise ValueError(f"design: low must be below high, got ({low:g}, {high:g})")

    def draw(self, n: int, n_features: int, rng: np.random.Generator) -> FloatArray:
        """N inputs, shape (d, n)."""
        return rng.uniform(self.low, self.high, size=(n_features, n))

    def quadrature(self, n_features: int, n_nodes: int) -> tuple[FloatArray, FloatArray]:
        """Tensor Gauss-Legendre nodes (d, m), m = n_nodes ** d, and weights (m,) summing to 1."""
        nodes, weights = np.polynomial.legendre.leggauss(positive_int("n_nodes", n_nodes))
        nodes = self.low + (self.high - self.low) * (nodes + 1.0) / 2.0
        grid = np.meshgrid(*[nodes] * n_features, indexing="ij")
        mass = np.meshgrid(*[weights / 2.0] * n_features, indexing="ij")
        points = np.stack([axis.ravel() for axis in grid])
        return points, np.prod([axis.ravel() for axis in mass], axis=0)


@dataclass(frozen=True)
class _DesignKind:
    name: str
    make: Any


DESIGNS: Registry[_DesignKind] = Registry("design")
DESIGNS.register(_DesignKind("uniform", Uniform))


def make_design(options: Mapping[str, Any]) -> Design:
    """A design from its table in a spec, ``{law = "uniform", low = 0, high = 1}``."""
    options = dict(options)
    kind = DESIGNS[options.pop("law", "uniform")]
    try:
        return kind.make(**options)
    except TypeError:
        raise ValueError(
            f"design {kind.name!r} does not take these options: {', '.join(sorted(options))}"
        ) from None
