"""Conditions on experts, checked as printed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from experiments.claims.kinds.base import Check, Evidence
from experiments.claims.rules import (
    CLEAR,
    CONSISTENT,
    EVERYWHERE,
    GAP,
    OPEN,
    PROVED,
    REFUTES,
    SUPPORTS,
)
from moestat.theory.identifiability import check_condition

__all__ = ["Condition", "DependenceEvidence", "judge_dependence"]

_DEPENDENCIES = 2


@dataclass(frozen=True)
class DependenceEvidence(Evidence):
    """The rank of a family of functions.

    Parameters
    ----------
    n_functions, rank : int
        Functions, and linearly independent ones among them.
    gap : float
        Smallest singular value that counts as positive over the largest that counts as zero.
    dependencies : tuple of str
        The dependencies by name.
    """

    n_functions: int
    rank: int
    gap: float
    dependencies: tuple[str, ...]

    @property
    def text(self) -> str:
        """The evidence in a few words."""
        text = f"rank {self.rank} of {self.n_functions}, gap {self.gap:.0e}"
        if self.dependencies:
            named = "; ".join(self.dependencies[:_DEPENDENCIES])
            more = len(self.dependencies) - _DEPENDENCIES
            text += f": {named}" + (f"; {more} more" if more > 0 else "")
        return text


def judge_dependence(evidence: DependenceEvidence, independent: bool) -> str:
    """A family of functions that a claim says is linearly `independent`, or is not.

    The singular values must jump by a factor of a thousand at the rank, else ``open``.

    Examples
    --------
    >>> judge_dependence(DependenceEvidence(5, 4, 1e12, ("F_bb = F_A",)), independent=True)
    'refutes'
    """
    if evidence.gap < GAP:
        return OPEN
    return SUPPORTS if (evidence.rank == evidence.n_functions) == independent else REFUTES


@dataclass(frozen=True)
class Condition(Check):
    """A condition on an expert, checked as printed, `judge_dependence`.

    Parameters
    ----------
    condition : str
        A name in `moestat.theory.identifiability.CONDITIONS`.
    expert : str or mapping
        The expert.
    claimed : bool
        Whether the claim is that the expert satisfies the condition.
    """

    condition: str
    expert: str | Mapping[str, Any]
    claimed: bool = True

    @property
    def strength(self) -> str:
        """A dependence that is found is exact; independence is seen at random parameters."""
        return CONSISTENT if self.claimed else PROVED

    @property
    def scope(self) -> str:
        """Parameters are drawn at random, so what is found there is found everywhere."""
        return EVERYWHERE

    @property
    def name(self) -> str:
        """The check in a few words."""
        expert = self.expert if isinstance(self.expert, str) else _told(self.expert)
        return f"condition {self.condition}, {expert}"

    def _rule(self, evidence: DependenceEvidence) -> str:
        return judge_dependence(evidence, self.claimed)

    def gather(self, quick: bool) -> Evidence:
        """The evidence; `quick` searches with fewer starts and radii."""
        found = check_condition(self.condition, self.expert, exact=False)
        relations = [str(relation) for part in found.parts for relation in part.primitive]
        worst = min(found.parts, key=lambda part: part.rank.rank - part.rank.n_functions)
        rank, functions, gap = worst.rank.rank, worst.rank.n_functions, worst.rank.gap
        if rank == functions and found.coincidences:
            # One atom satisfies the condition, two that coincide in some blocks do not.
            pair = found.coincidences[0]
            rank, functions, gap = pair.rank.rank, pair.rank.n_functions, pair.rank.gap
        return DependenceEvidence(
            functions,
            rank,
            min(gap, CLEAR),
            (*relations, *(str(pair) for pair in found.coincidences)),
        )


def _told(table: Mapping[str, object]) -> str:
    options = ", ".join(f"{key} {value}" for key, value in table.items() if key != "name")
    return f"{table['name']} ({options})"
