"""A sentence or an inequality of a paper, joined to what evaluates it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from experiments.claims.kinds import Evidence

__all__ = ["Trial"]

E = TypeVar("E", bound=Evidence)


@dataclass(frozen=True)
class Trial(Generic[E]):
    """What a paper says, and the function that evaluates it.

    Parameters
    ----------
    name : str
        Name, by which evidence is kept.
    evaluate : callable
        ``evaluate()``: the evidence.
    about : str
        What is evaluated, and where; empty where the claim says it.
    """

    name: str
    evaluate: Callable[[], E]
    about: str = ""

    def evidence(self) -> E:
        """What is found, computed anew."""
        return self.evaluate()
