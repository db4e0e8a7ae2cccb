"""Searches for other parameters with the law of a truth."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.claims.kinds.base import Check, Evidence, Missing
from experiments.claims.rules import CLEAR, GAP, LAW, OPEN, REFUTES, STARTS, SUPPORTS
from experiments.explorer import CASES
from moestat.theory.identifiability import find_orbits

__all__ = ["Orbit", "OrbitEvidence", "judge_orbit"]

_STARTS, _LENGTH = 12, 0.5  # of a search for orbits


@dataclass(frozen=True)
class OrbitEvidence(Evidence):
    """What a search for other parameters with the law of a truth found.

    Parameters
    ----------
    identified : bool
        Whether the truth came out alone.
    n_reached : int
        Starts that reached the law.
    gap : float
        Ratio of the singular values on the two sides of the rank, at the clearest orbit.
    discrepancy : float
        Largest discrepancy of the law there.
    orbits : tuple of str
        The orbits in words, the truth's own first.
    """

    identified: bool
    n_reached: int
    gap: float
    discrepancy: float
    orbits: tuple[str, ...]

    @property
    def text(self) -> str:
        """The evidence in a few words."""
        if self.identified:
            return f"no other parameters found, {self.n_reached} starts came back to the truth"
        more = len(self.orbits) - 1
        return f"not identified: {self.orbits[0]}" + (f"; {more} more" if more else "")


def judge_orbit(evidence: OrbitEvidence) -> str:
    """A claim that a truth is identified.

    ``refutes`` if other parameters have its law, to a discrepancy of at most 1e-8 and with a
    clear rank; ``supports`` if at least two starts reached the law and all came back to the
    truth, with a clear rank; else ``open``.

    Examples
    --------
    >>> judge_orbit(OrbitEvidence(False, 5, 1e8, 1e-15, ("true atom split",)))
    'refutes'
    """
    if evidence.gap < GAP or evidence.discrepancy > LAW:
        return OPEN
    if not evidence.identified:
        return REFUTES
    return SUPPORTS if evidence.n_reached >= STARTS else OPEN


@dataclass(frozen=True)
class Orbit(Check):
    """A search for other parameters with the law of a truth, `judge_orbit`.

    Parameters
    ----------
    case : str
        A name in `moestat.theory.explorer.CASES`, whose truth it is.
    over : bool
        Whether parameters of as many atoms as the case fits are searched, or as the truth has.
    """

    case: str
    over: bool = False

    @property
    def name(self) -> str:
        """The check in a few words."""
        return f"orbits, truth of {self.case}{', over-specified' if self.over else ''}"

    def _rule(self, evidence: OrbitEvidence) -> str:
        return judge_orbit(evidence)

    def gather(self, quick: bool) -> Evidence:
        """The evidence; `quick` searches with fewer starts and radii."""
        case = CASES[self.case]
        fitted, true_family, truth = case.families()
        found = find_orbits(
            fitted if self.over else true_family,
            truth,
            case.design,
            truth_family=true_family,
            n_starts=_STARTS,
            length=_LENGTH,
            rng=0,
        )
        # The truth's own orbit decides where it is alone, else the clearest one.
        best = max(found.orbits, key=lambda orbit: orbit.gap, default=None)
        if best is None:
            return Missing("no start reached the law of the truth")
        return OrbitEvidence(
            identified=found.identified,
            n_reached=found.n_reached,
            gap=min(best.gap, CLEAR),
            discrepancy=best.discrepancy,
            orbits=tuple(" ".join(str(orbit).split()) for orbit in found.orbits),
        )
