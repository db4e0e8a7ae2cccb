"""The families of functions in the definitions of Yan et al. (2025), one inside another."""

from __future__ import annotations

from experiments.claims.kinds import InequalityEvidence
from experiments.claims.trial import Trial
from moestat.theory.identifiability import CONDITIONS

__all__ = ["FAMILIES"]

_WEAKER = {"strong": "weak", "partial-strong": "partial-weak", "partial-strong-eta": "partial-weak"}


def _families() -> InequalityEvidence:
    missing = [
        part
        for strong, weak in _WEAKER.items()
        for part in CONDITIONS[weak].parts
        if part not in CONDITIONS[strong].parts
    ]
    detail = "families of the weaker definitions that the stronger ones lack"
    return InequalityEvidence(float(len(missing)), len(_WEAKER), detail)


FAMILIES = Trial(
    "attention families-of-definitions",
    _families,
    "each family of Definitions 2 and 4 is one of Definitions 1 and 3",
)
