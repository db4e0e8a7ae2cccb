"""What all kinds of checks share, and evidence that is not there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from experiments.claims import rules

__all__ = ["Check", "Evidence", "Missing", "Subject"]


class Evidence:
    """What a check found: plain numbers, from which its rule decides."""

    @property
    def text(self) -> str:
        """The evidence in a few words."""
        raise NotImplementedError


@dataclass(frozen=True)
class Missing(Evidence):
    """No evidence, and why.

    Parameters
    ----------
    why : str
        One sentence.
    broken : bool
        Whether something went wrong, rather than being left out.
    """

    why: str
    broken: bool = False

    @property
    def text(self) -> str:
        """Why there is none."""
        return self.why


E = TypeVar("E", bound=Evidence, covariant=True)


class Subject(Protocol[E]):
    """What a check asks: an equation, a pair of measures, a sentence of a paper."""

    @property
    def name(self) -> str:
        """Name, by which evidence is kept."""
        ...

    @property
    def about(self) -> str:
        """What it says, or how it meets the assumptions of its claim."""
        ...

    def evidence(self) -> E:
        """What is found, computed anew."""
        ...


@dataclass(frozen=True, kw_only=True)
class Check:
    """What all checks share.

    Parameters
    ----------
    required : bool
        Whether the claim holds only if this check supports it.  One that is not required is an
        attack: it may refute, and says nothing when it does not.
    note : str
        What a reader should know.
    """

    required: bool = True
    note: str = ""

    @property
    def name(self) -> str:
        """The check in a few words."""
        raise NotImplementedError

    @property
    def about(self) -> str:
        """What a reader should know, beside the note; empty for most."""
        return ""

    @property
    def strength(self) -> str:
        """What the check's support amounts to."""
        return rules.CONSISTENT

    @property
    def scope(self) -> str:
        """Where its refutation bites; one truth unless more is known."""
        return rules.SPECIAL

    def says(self, evidence: Evidence) -> str:
        """What the evidence says more exactly than its outcome; empty for most."""
        return ""

    def judge(self, evidence: Evidence) -> str:
        """The outcome, by the rule of this kind of check; ``open`` without evidence."""
        return rules.OPEN if isinstance(evidence, Missing) else self._rule(evidence)

    def _rule(self, evidence: Any) -> str:
        raise NotImplementedError

    def gather(self, quick: bool) -> Evidence:
        """The evidence; `quick` searches with fewer starts and radii."""
        raise TypeError(f"no analysis for a check of kind {type(self).__name__}")

    def shortfall(self, evidence: Evidence) -> str:
        """Why the outcome is open; empty when it is not."""
        if self.judge(evidence) != rules.OPEN:
            return ""
        return evidence.why if isinstance(evidence, Missing) else self._shortfall(evidence)

    def _shortfall(self, evidence: Any) -> str:
        return f"within the margins of the rule: {evidence.text}"
