"""The Markdown page of a verification."""

from __future__ import annotations

from itertools import groupby

from moestat.papers.claims import rules
from moestat.papers.claims.claim import PAPERS
from moestat.papers.claims.rules import HOLDS, REFUTED, UNDECIDED
from moestat.papers.verify.verification import ClaimResult, Verification

__all__ = ["markdown"]

_RULES = f"""Verdicts are computed from the evidence by rules that were fixed before it
(`moestat/theory/claims/rules.py`); no verdict is written down anywhere.

- *{REFUTED}*: two explicit measures that the paper's assumptions allow have one density
  (distance at most {rules.SAME:g}) and a loss of at least {rules.APART:g} between them; or the
  distance falls like a power of the loss of at least {rules.STEEP:g} along a sequence of measures;
  or error and density both stay while certified fits see n grow; or an equation, a rank or an
  order comes out otherwise.  A slope alone never refutes.
- *{HOLDS}*: nothing refutes, and every required check supports: slopes over the last four decades
  whose 95% interval reaches the predicted exponent (with its log factor), lies below 0 and is at
  most {rules.WIDE:g} to either side, {rules.CERTIFIED:.0%} of the fits certified; least distances
  that fall like a power of the loss of at most {rules.FLAT:g}.  This is evidence at the truths
  that were tried, not a proof.
- *{UNDECIDED}*: anything else, with the reason."""


def markdown(verification: Verification) -> str:
    """The claims with predictions, evidence and verdicts, paper by paper.

    Parameters
    ----------
    verification : Verification
        What to show.

    Returns
    -------
    str
        The page.
    """
    mode = "--quick" if verification.quick else "--full"
    counts = verification.counts
    lines = [
        "# What becomes of the papers' claims",
        "",
        f"Made by `python -m moestat.verify {mode}`:"
        f" {len(verification.results)} claims, "
        + ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
        + ".",
        "",
        _RULES,
    ]
    for paper, results in groupby(verification.results, key=lambda result: result.claim.paper):
        own = list(results)
        lines += [
            "",
            f"## {paper}: {PAPERS[paper]}",
            "",
            "| claim | says | predicted exponents of n | verdict |",
            "|---|---|---|---|",
            *map(_row, own),
            "",
            "### Evidence",
            "",
            *(line for result in own for line in _evidence(result)),
        ]
    return "\n".join(lines) + "\n"


def _row(result: ClaimResult) -> str:
    claim = result.claim
    predicted = ", ".join(
        f"{what} {power}" if power else f"{what} slower than any power"
        for what, power in claim.predicted.items()
    )
    short = claim.id.partition(".")[2]
    said = f"{_plain(claim.statement)} ({_plain(claim.place)})"
    return f"| `{short}` | {said} | {predicted} | **{result.verdict}** |"


def _evidence(result: ClaimResult) -> list[str]:
    claim = result.claim
    head = f"- `{claim.id}`: {result.verdict}."
    if claim.note:
        head += f" {_plain(claim.note)}"
    lines = [head]
    if claim.untested:
        lines.append(f"  - not tested: {_plain(claim.untested)}")
    for each in result.checks:
        role = "" if each.check.required else " (attack)"
        notes = [_plain(words) for words in (each.check.note, each.check.about) if words]
        note = "".join(f"; {words}" for words in notes)
        outcome = each.outcome
        if each.shortfall and each.check.required:
            outcome += f", {_plain(each.shortfall)}"
        source = f" [{each.source}]" if each.source not in ("", "computed") else ""
        lines.append(
            f"  - {each.check.name}{role}: {_plain(each.text)}{source}: **{outcome}**{note}"
        )
    return lines


def _plain(text: str) -> str:
    """Text that a Markdown table and list take as it is."""
    return " ".join(text.replace("|", "\\|").replace("*", "\\*").split())
