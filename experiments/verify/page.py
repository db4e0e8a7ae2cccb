"""The Markdown pages of a verification: verdicts on claims, and the facts behind them."""

from __future__ import annotations

from collections import Counter
from itertools import groupby

from experiments.claims import rules
from experiments.claims.claim import PAPERS
from experiments.verify.tables import command
from experiments.verify.verification import ClaimResult, FactResult, Verification

__all__ = ["fact_markdown", "facts_markdown", "markdown"]

_RULES = f"""Verdicts are computed from the evidence by rules that were fixed before it
(`experiments/claims/rules.py`); no verdict is written down anywhere.

{chr(10).join(f"- *{verdict}*: {meaning}." for verdict, meaning in rules.VERDICTS.items())}

Two measures are one density at a distance of at most {rules.SAME:g} with a loss of at least
{rules.APART:g} between them; a bound fails where the distance falls like a power of the loss of at
least {rules.STEEP:g}.  A slope agrees if its 95% interval over the last four decades reaches the
predicted exponent (with its log factor), lies below 0 and is at most {rules.WIDE:g} to either side,
with {rules.CERTIFIED:.0%} of the fits certified; one of quantiles under floored masses agrees if
its interval is as narrow and holds the exponent, not 0.  A slope alone never refutes.

Masses: mlmoe's losses are printed with masses exp(gamma) as they are, and so are compete's; the
pairs opposite-scores, constant-gate, common-factor and doubled-* take them so.  Everywhere else the
masses of the fit are scaled to the truth's total first, which is the kinder reading, since a common
factor cancels in the gates."""


def markdown(verification: Verification) -> str:
    """The facts, and the claims with predictions, evidence and verdicts, paper by paper.

    Parameters
    ----------
    verification : Verification
        What to show.

    Returns
    -------
    str
        The page.
    """
    counts = verification.counts
    mode = "" if verification.quick else " --full"
    lines = [
        "# What becomes of the papers' claims",
        "",
        f"Made by `python -m experiments.verify{mode}` from {len(verification.facts)} facts"
        f" ([theory_facts.md](theory_facts.md)) and what sweeps measured:"
        f" {len(verification.results)} claims, "
        + ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
        + ".",
        "",
        _RULES,
        "",
        *_missing(verification),
        "## Facts",
        "",
        "| fact | what | seen | refutes | claims it decides |",
        "|---|---|---|---|---|",
        *(_fact_row(each, verification) for each in verification.facts),
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


def facts_markdown(verification: Verification) -> str:
    """All facts, one section each.

    Parameters
    ----------
    verification : Verification
        What to show.

    Returns
    -------
    str
        The page.
    """
    lines = [
        "# The facts behind the verdicts",
        "",
        "Each is one piece of mathematics: where the sentence stands, how it is read, the witness"
        " in"
        " closed form, at which truths, and what would mend the sentence.  The command reproduces"
        " it"
        " alone, without any store.",
    ]
    for each in verification.facts:
        lines += ["", fact_markdown(each).rstrip()]
    return "\n".join(lines) + "\n"


def fact_markdown(result: FactResult) -> str:
    """One fact with its evidence.

    Parameters
    ----------
    result : FactResult
        The fact and what its checks found.

    Returns
    -------
    str
        The section.
    """
    fact = result.fact
    lines = [
        f"## {fact.name}: {_plain(fact.title)}",
        "",
        f"- Where: {fact.paper}, {_plain(', '.join(fact.places))}.",
        f"- Reading: {_plain(fact.reading)}",
        f"- Witness: {_plain(fact.witness)}",
        f"- Truths: {_plain(fact.truths)}",
    ]
    if fact.repair:
        lines.append(f"- Repair: {_plain(fact.repair)}")
    lines += [f"- Reproduced by: `python -m experiments.verify fact {fact.name}`"]
    lines += [
        f"  - {each.check.name}: {_plain(each.text)}: **{each.outcome}**;"
        f" {_plain(each.check.about)}"
        for each in result.checks
    ]
    return "\n".join(lines) + "\n"


def _missing(verification: Verification) -> list[str]:
    """What could not be had without stores, and the commands that make it."""
    lost = verification.without_store
    if not lost:
        return []
    return [
        "## What could not be had without stores",
        "",
        "These slopes are on no page and their stores are not here; the commands make them.",
        "",
        *(f"- {count} of {name}: `{command(name)}`" for name, count in lost.items()),
        "",
    ]


def _fact_row(result: FactResult, verification: Verification) -> str:
    fact = result.fact
    deciding = Counter(
        each.verdict for each in verification.results if fact.name in each.claim.facts
    )
    claims = ", ".join(f"{count} {verdict}" for verdict, count in deciding.items())
    seen = "yes" if result.confirmed else "**no**"
    scope = fact.scope.removeprefix("fails ") or "nothing"
    return f"| `{fact.name}` ({fact.paper}) | {_plain(fact.title)} | {seen} | {scope} | {claims} |"


def _row(result: ClaimResult) -> str:
    claim = result.claim
    predicted = ", ".join(
        f"{what} {power}" if power else f"{what} slower than any power"
        for what, power in claim.predicted.items()
    )
    short = claim.id.partition(".")[2]
    said = f"{_plain(claim.statement)} ({_plain(claim.place)})"
    return f"| `{short}` | {said} | {predicted} | **{_verdict(result)}** |"


def _verdict(result: ClaimResult) -> str:
    """The verdict, with the number of truths where it is one of agreement."""
    count = result.n_truths
    if result.verdict != rules.CONSISTENT or not count:
        return result.verdict
    return f"{result.verdict} ({count} truth{'s' if count > 1 else ''})"


def _evidence(result: ClaimResult) -> list[str]:
    claim = result.claim
    head = f"- `{claim.id}`: {_verdict(result)}."
    if claim.note:
        head += f" {_plain(claim.note)}"
    lines = [head]
    if claim.untested:
        lines.append(f"  - not tested: {_plain(claim.untested)}")
    for each in result.facts:
        name, role = each.fact.name, claim.role(each.fact.name, each.fact.scope)
        lines.append(
            f"  - fact {name}: {_plain(each.fact.title)}: **{role}**"
            + ("" if each.confirmed else ", but not seen")
        )
    for each in result.checks:
        role = "" if each.check.required else " (attack)"
        notes = [_plain(words) for words in (each.check.note, each.check.about) if words]
        note = "".join(f"; {words}" for words in notes)
        outcome = each.outcome
        if each.shortfall and each.check.required and each.shortfall != each.text:
            outcome += f", {_plain(each.shortfall)}"
        source = f" [{each.source}]" if each.source not in ("", "computed") else ""
        lines.append(
            f"  - {each.check.name}{role}: {_plain(each.text)}{source}: **{outcome}**{note}"
        )
    return lines


def _plain(text: str) -> str:
    """Text that a Markdown table and list take as it is."""
    return " ".join(text.replace("|", "\\|").replace("*", "\\*").split())
