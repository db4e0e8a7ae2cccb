"""Members of a family of derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from moestat._types import FloatArray
from moestat.theory.identifiability.atoms import Jet

__all__ = ["Term"]


@dataclass(frozen=True)
class Term:
    """One function of the family: a derivative, or a product of two first ones.

    Parameters
    ----------
    at : tuple of int
        Positions of the parameters; none for the function itself.
    product : bool
        True for ``(d g / d theta_j) (d g / d theta_k)``.
    """

    at: tuple[int, ...]
    product: bool = False

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
