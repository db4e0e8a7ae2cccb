"""Orders of polynomial systems."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.claims.kinds.base import Check, Evidence
from experiments.claims.rules import OPEN, PROVED, REFUTES, SUPPORTS
from moestat.theory.polynomial_systems import order

__all__ = ["Order", "OrderEvidence", "judge_order"]


@dataclass(frozen=True)
class OrderEvidence(Evidence):
    """What is known of rbar(m), see `moestat.theory.polynomial_systems`.

    Parameters
    ----------
    m : int
        Atoms in the cell.
    at_least, at_most : int
        Bounds.
    """

    m: int
    at_least: int
    at_most: int

    @property
    def text(self) -> str:
        """The evidence in a few words."""
        if self.at_least == self.at_most:
            return f"rbar({self.m}) = {self.at_least}"
        return f"rbar({self.m}) from {self.at_least} to {self.at_most}"


def judge_order(evidence: OrderEvidence, claimed: int, at_least: bool = False) -> str:
    """A claim that rbar(m) is a number, or `at_least` that number.

    Examples
    --------
    >>> judge_order(OrderEvidence(2, 4, 4), claimed=4)
    'supports'
    >>> judge_order(OrderEvidence(4, 8, 8), claimed=7, at_least=True)
    'supports'
    """
    if at_least:
        if evidence.at_least >= claimed:
            return SUPPORTS
        return REFUTES if evidence.at_most < claimed else OPEN
    if evidence.at_least == evidence.at_most == claimed:
        return SUPPORTS
    return OPEN if evidence.at_least <= claimed <= evidence.at_most else REFUTES


@dataclass(frozen=True)
class Order(Check):
    """The order rbar(m) of a polynomial system, `judge_order`.

    Parameters
    ----------
    m : int
        Atoms in the cell.
    claimed : int
        The order, or a lower bound of it.
    at_least : bool
        Whether it is a lower bound.
    """

    m: int
    claimed: int
    at_least: bool = False

    @property
    def strength(self) -> str:
        """Exact: no sampling enters."""
        return PROVED

    @property
    def name(self) -> str:
        """The check in a few words."""
        return f"polynomial system, rbar({self.m})"

    def _rule(self, evidence: OrderEvidence) -> str:
        return judge_order(evidence, self.claimed, self.at_least)

    def gather(self, quick: bool) -> Evidence:
        """The evidence; `quick` searches with fewer starts and radii."""
        found = order(self.m)
        return OrderEvidence(self.m, found.at_least, found.at_most)
