"""Families of derivatives of an atom, and their values on a random design."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from moestat.base.types import FloatArray
from moestat.theory.identifiability.atoms import Atom, Jet
from moestat.theory.identifiability.rank import Rank, numerical_rank

_POINTS_PER_FUNCTION = 12
_LEAST_POINTS = 240
_DRAWS = 3


@dataclass(frozen=True)
class Term:
    """One function of the family: a derivative, or a product of two first ones."""

    at: tuple[int, ...]
    """Positions of the parameters; none for the function itself."""
    product: bool = False
    """True for ``(d g / d theta_j) (d g / d theta_k)``."""

    def label(self, symbol: str, names: Sequence[str]) -> str:
        """Such as ``∂²u/∂alpha∂b``."""
        if not self.at:
            return symbol
        one = [f"∂{names[j]}" for j in self.at]
        if self.product:
            first, second = (f"∂{symbol}/{part}" for part in one)
            return f"({first})²" if first == second else f"{first}·{second}"
        if len(one) == 1:
            return f"∂{symbol}/{one[0]}"
        below = f"{one[0]}²" if one[0] == one[1] else "".join(one)
        return f"∂²{symbol}/{below}"

    def column(self, jet: Jet) -> FloatArray:
        """Values (n,) of the function."""
        if not self.at:
            return jet.value
        if len(self.at) == 1:
            return jet.first[self.at[0]]
        j, k = self.at
        return jet.first[j] * jet.first[k] if self.product else jet.second[j, k]


@dataclass(frozen=True)
class Collocation:
    """Functions (n, q) on a random design at random parameters (p,), and their rank."""

    theta: FloatArray = field(repr=False)
    columns: FloatArray = field(repr=False)
    rank: Rank


@dataclass(frozen=True)
class Derivatives:
    """Some derivatives of an atom's function or, `of_mean`, of its expert's mean.

    They are taken where the blocks named in `at` are held at a number.
    """

    atom: Atom
    terms: Sequence[Term]
    at: Mapping[str, int] = field(default_factory=dict)
    of_mean: bool = False

    def __post_init__(self) -> None:
        blocks = list(dict.fromkeys(p.block for p in self.atom.parameters))
        unknown = sorted(set(self.at) - set(blocks))
        if unknown:
            raise ValueError(f"at: unknown block {unknown[0]!r}; known: {', '.join(blocks)}")

    @property
    def held(self) -> dict[str, int]:
        """Parameters that are held at a number, by name."""
        return {p.name: self.at[p.block] for p in self.atom.parameters if p.block in self.at}

    @property
    def labels(self) -> list[str]:
        """Such as ``∂²u/∂alpha∂b``."""
        symbol = "g" if self.of_mean else self.atom.symbol
        return [term.label(symbol, self.atom.names) for term in self.terms]

    def generic(self, rng: np.random.Generator, with_weight: bool = False) -> Collocation:
        """Values at the draw of parameters with the largest rank, the one in general position.

        On demand the weight's derivatives are further rows below the function's.
        """
        draws = [self._draw(rng, with_weight) for _ in range(_DRAWS)]
        return max(draws, key=lambda draw: (draw.rank.rank, draw.rank.gap))

    def _draw(self, rng: np.random.Generator, with_weight: bool) -> Collocation:
        atom = self.atom
        theta = atom.draw(rng)
        for j, name in enumerate(atom.names):
            theta[j] = self.held.get(name, theta[j])
        n = max(_LEAST_POINTS, _POINTS_PER_FUNCTION * len(self.terms))
        X, y = atom.samples(n, rng, theta)
        jets = [atom.mean(theta, X) if self.of_mean else atom.functions(theta, X, y)[1]]
        if with_weight:
            jets.append(atom.weight(theta, X))
        columns = np.vstack([columns_of(self.terms, jet) for jet in jets])
        return Collocation(theta, columns, numerical_rank(columns))


def columns_of(terms: Sequence[Term], jet: Jet) -> FloatArray:
    """The terms (n, q) of a jet."""
    return np.stack([term.column(jet) for term in terms], axis=1)
