"""Designs: the distribution of the inputs X, or the inputs themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from numbers import Integral, Real
from typing import Any, ClassVar, Protocol

import numpy as np

from moestat.base.door import door, doors
from moestat.base.memory import FLOAT_BYTES, check_room
from moestat.base.registry import Maker, Registry, make_member
from moestat.base.types import FloatArray
from moestat.base.validate import check_kind, is_sequence, positive_int, real_in, short

__all__ = [
    "DESIGNS",
    "Design",
    "Equispaced",
    "Given",
    "Lattice",
    "Uniform",
    "make_design",
    "nodes_per_input",
]

_RULES = ("gauss", "uniform")

_MOST_NODES, _MOST_GAUSS, _MOST_INPUTS = 1_000_000, 2_000, 1_000
"""Points of a rule: scores at more of them fill gigabytes; of one Gauss rule: the square does.
Inputs of a lattice: Halton's sequence takes a prime for each."""


class Design(Protocol):
    """A distribution of X that can be sampled and integrated against."""

    @property
    def name(self) -> str:
        """Name in the registry."""
        ...

    counted: ClassVar[bool]
    """Whether the inputs are finitely many nodes, so that a sample is a table of counts."""

    def draw(self, n: int, n_features: int, rng: np.random.Generator) -> FloatArray:
        """N inputs, shape (d, n)."""
        ...

    def quadrature(self, n_features: int, n_nodes: int) -> tuple[FloatArray, FloatArray]:
        """Nodes (d, m) and weights (m,) that sum to 1."""
        ...


@doors
@dataclass(frozen=True)
class Uniform:
    """Independent uniform inputs on [low, high] (Pham et al. (2026), Sec. 5: [0, 1]).

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
    counted: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check_interval(self.low, self.high)

    def draw(self, n: int, n_features: int, rng: np.random.Generator) -> FloatArray:
        """N inputs, shape (d, n)."""
        _check_sizes(n, n_features)
        return rng.uniform(self.low, self.high, size=(n_features, n))

    def quadrature(self, n_features: int, n_nodes: int) -> tuple[FloatArray, FloatArray]:
        """Tensor Gauss-Legendre nodes (d, m), m = n_nodes ** d, and weights (m,) summing to 1."""
        size = positive_int("n_nodes", n_nodes, maximum=_MOST_GAUSS)
        unit, mass = _tensor("gauss", nodes_per_input(size, n_features), n_features)
        return self.low + (self.high - self.low) * unit, mass.copy()


@doors
@dataclass(frozen=True)
class Lattice:
    """Inputs on finitely many nodes: then a sample of any size n is a table of counts.

    For the asymptotics: `moestat.sample_weighted` draws the counts exactly and a pass
    over the data costs the number of nodes, whether n is 1e5 or 1e14.

    Parameters
    ----------
    low, high : float
        Ends of the interval of every input.
    nodes : int
        With d <= 2, nodes per input; with more inputs, nodes in all.
    rule : {"gauss", "uniform"}
        Gauss-Legendre nodes with their weights, or midpoints of equal parts with equal weights.
        With d > 2 the nodes are the first points of Halton's sequence, unscrambled and without
        the origin, with equal weights, whatever the rule.
    step : float
        Step of the lattice of a continuous response, in standard deviations of the narrowest
        true atom; below 1/2.

    Examples
    --------
    >>> nodes, mass = Lattice(-2, 2, nodes=3).quadrature(1)
    >>> nodes.round(3).tolist(), mass.round(3).tolist()
    ([[-1.549, 0.0, 1.549]], [0.278, 0.444, 0.278])
    """

    low: float = 0.0
    high: float = 1.0
    nodes: int = 64
    rule: str = "gauss"
    step: float = 0.4
    name: str = "lattice"
    counted: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_interval(self.low, self.high)
        positive_int("design: nodes", self.nodes, 2, _MOST_GAUSS)
        if self.rule not in _RULES:
            raise ValueError(
                f"design: rule must be one of {', '.join(_RULES)}, got {short(self.rule)}"
            )
        if not isinstance(self.step, Real) or not 0.0 < self.step < 0.5:
            raise ValueError(
                f"design: step must be above 0 and below 0.5 standard deviations, got"
                f" {short(self.step)}: a coarser lattice does not hold a normal density"
            )

    def draw(self, n: int, n_features: int, rng: np.random.Generator) -> FloatArray:
        """N inputs, shape (d, n), each a node drawn with its weight."""
        _check_sizes(n, n_features)
        nodes, mass = self.quadrature(n_features)
        return nodes[:, rng.choice(mass.size, size=n, p=mass)]

    def quadrature(self, n_features: int, n_nodes: int = 0) -> tuple[FloatArray, FloatArray]:
        """The distribution itself: nodes (d, m) and weights (m,); `n_nodes` is not used."""
        positive_int("n_features", n_features, maximum=_MOST_INPUTS)
        rule = self.rule if n_features <= 2 else "halton"
        unit, mass = _tensor(rule, self.nodes, n_features)
        return self.low + (self.high - self.low) * unit, mass.copy()


@doors
@dataclass(frozen=True)
class Equispaced:
    """Fixed inputs at n equal distances from `low` to `high`, both ends among them; d = 1.

    What is integrated against is their limit as n grows, the uniform distribution.

    Parameters
    ----------
    low, high : float
        First and last input.

    Notes
    -----
    The inputs of the simulation of Nguyen et al. (2023), with low = 0 and high = 1.

    Examples
    --------
    >>> import numpy as np
    >>> Equispaced(0, 1).draw(5, 1, np.random.default_rng(0)).tolist()
    [[0.0, 0.25, 0.5, 0.75, 1.0]]
    """

    low: float = 0.0
    high: float = 1.0
    name: str = "equispaced"
    counted: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check_interval(self.low, self.high)

    def check_features(self, n_features: int) -> None:
        """Refuse a family of several inputs."""
        if not isinstance(n_features, Integral) or n_features != 1:
            raise ValueError(f"design: equispaced is for one input, got {short(n_features)}")

    def draw(self, n: int, n_features: int, rng: np.random.Generator) -> FloatArray:
        """The n inputs, shape (1, n); nothing is random."""
        self.check_features(n_features)
        _check_sizes(n, n_features)
        return np.linspace(self.low, self.high, n)[None]

    def quadrature(self, n_features: int, n_nodes: int) -> tuple[FloatArray, FloatArray]:
        """Nodes and weights of a quadrature rule, see `Uniform.quadrature`."""
        self.check_features(n_features)
        return Uniform(self.low, self.high).quadrature(n_features, n_nodes)


@doors
@dataclass(frozen=True)
class Given:
    """Inputs of the user's own: the rows in their order, and from the first again if n is larger.

    Parameters
    ----------
    points : sequence of float, or of sequence of float
        One row per input, of length d; with d = 1 numbers will do.

    Examples
    --------
    >>> import numpy as np
    >>> Given([0.0, 0.5, 2.0]).draw(4, 1, np.random.default_rng(0)).tolist()
    [[0.0, 0.5, 2.0, 0.0]]
    """

    points: Sequence[Any] = ()
    name: str = "given"
    counted: ClassVar[bool] = False

    def __post_init__(self) -> None:
        given = self.points if is_sequence(self.points) else ()
        rows = [row if is_sequence(row) else [row] for row in given]
        if len({len(row) for row in rows}) != 1 or not rows[0]:
            raise ValueError("design: points must be rows of one length, or numbers where d = 1")
        points = tuple(tuple(real_in("design: points", x) for x in row) for row in rows)
        object.__setattr__(self, "points", points)

    def check_features(self, n_features: int) -> None:
        """Refuse a family with another number of inputs."""
        if not isinstance(n_features, Integral) or n_features != len(self.points[0]):
            raise ValueError(
                f"design: points have {len(self.points[0])} inputs, the family {short(n_features)}"
            )

    def draw(self, n: int, n_features: int, rng: np.random.Generator) -> FloatArray:
        """The first n rows, over and over, shape (d, n); nothing is random."""
        self.check_features(n_features)
        _check_sizes(n, n_features)
        return np.resize(np.array(self.points), (n, n_features)).T.copy()

    def quadrature(self, n_features: int, n_nodes: int = 0) -> tuple[FloatArray, FloatArray]:
        """The points (d, m) with equal weights (m,); `n_nodes` is not used."""
        self.check_features(n_features)
        return np.array(self.points).T.copy(), np.full(len(self.points), 1.0 / len(self.points))


def _check_sizes(n: int, n_features: int) -> None:
    """Refuse what are no numbers of rows and inputs, or more than fit into memory."""
    positive_int("n", n, 0, None)
    positive_int("n_features", n_features)
    check_room(FLOAT_BYTES * n * n_features, f"n = {n:g} rows of {n_features} inputs")


@lru_cache(maxsize=32)
def _tensor(rule: str, count: int, n_features: int) -> tuple[FloatArray, FloatArray]:
    """Nodes (d, m) in the unit cube and weights (m,) that sum to 1."""
    if rule == "halton":
        from scipy.stats import qmc

        # The first point of the sequence is the origin.
        points = qmc.Halton(n_features, scramble=False).random(count + 1)[1:]
        return np.ascontiguousarray(points.T), np.full(count, 1.0 / count)
    if rule == "gauss":
        nodes, weights = np.polynomial.legendre.leggauss(count)
        nodes, weights = (nodes + 1.0) / 2.0, weights / 2.0
    else:
        nodes, weights = (np.arange(count) + 0.5) / count, np.full(count, 1.0 / count)
    grid = np.meshgrid(*[nodes] * n_features, indexing="ij")
    mass = np.meshgrid(*[weights] * n_features, indexing="ij")
    points = np.stack([axis.ravel() for axis in grid])
    return points, np.prod([axis.ravel() for axis in mass], axis=0)


@door()
def nodes_per_input(n_nodes: int, n_features: int, minimum: int = 1) -> int:
    """`n_nodes` per input, if the rule over so many inputs fits into memory."""
    size = positive_int("n_nodes", n_nodes, minimum)
    if size**n_features > _MOST_NODES:
        raise ValueError(
            f"n_nodes must be at most {_MOST_NODES ** (1 / n_features):,.0f} per input with"
            f" {n_features} inputs, got {short(n_nodes)}"
        )
    return size


def _check_interval(low: float, high: float) -> None:
    if not real_in("low", low) < real_in("high", high):
        raise ValueError(f"design: low must be below high, got ({low:g}, {high:g})")


DESIGNS: Registry[Maker] = Registry("design", "moestat.designs")
DESIGNS.register(Maker("uniform", Uniform))
DESIGNS.register(Maker("lattice", Lattice))
DESIGNS.register(Maker("equispaced", Equispaced))
DESIGNS.register(Maker("given", Given))


def design_of(given: Design | None) -> Design:
    """The design that was given, the uniform one on [0, 1] by default, or one clear error."""
    if given is None:
        return Uniform()
    check_kind("design", given, "quadrature", "a design such as moestat.Uniform(0, 1)")
    return given


@door()
def make_design(options: Mapping[str, Any]) -> Design:
    """A design from its table in a spec, ``{law = "uniform", low = 0, high = 1}``."""
    options = dict(options)
    if "name" in options:
        raise ValueError("design: unknown option 'name'; the key 'law' chooses the distribution")
    return make_member(DESIGNS, options.pop("law", "uniform"), options)


def __dir__() -> list[str]:
    return sorted(__all__)
