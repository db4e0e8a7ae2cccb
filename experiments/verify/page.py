"""The Markdown pages of a verification: verdicts on claims, and the facts behind them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import groupby

from experiments.claims import rules
from experiments.claims.claim import PAPERS
from experiments.claims.kinds import Bound, Far, Inequality
from experiments.claims.margins import margin
from experiments.claims.scope import EQUATION
from experiments.scopes import scope_of
from experiments.verify.measured import command
from experiments.verify.results import NOT_RUN, ClaimResult, FactResult, Verification

__all__ = ["fact_markdown", "facts_markdown", "markdown"]


def _margins() -> str:
    """Examples of half the gap, by exponent and block."""
    shown = ((Fraction(-1, 2), "expert"), (Fraction(-1, 4), "expert"), (Fraction(-1, 8), "b"))
    return ", ".join(f"{margin(power, block):.3g} at {power} of {block}" for power, block in shown)


_RULES = f"""What is computed is the evidence: whether two measures have one density, how a
distance falls, what a slope is; the rules that read it were fixed before
(`experiments/claims/rules.py`).  What a fact says of a sentence (proves it, refutes it, and at
which truths) is a reading of the paper, typed in beside the fact's proof; it counts once the fact's
witness is seen.

{chr(10).join(f"- *{verdict}*: {meaning}." for verdict, meaning in rules.VERDICTS.items())}

Two measures are one density at a distance of at most {rules.SAME:g} with a loss of at least
{rules.APART:g} between them; a bound fails where the distance falls like a power of the loss of at
least {rules.STEEP:g}.  A theorem on rates is an upper bound, and three sentences on a slope are
told apart, by the one rule of the sweeps' reports: *not slower than the bound* (its 95% interval
over the last four decades reaches the predicted slope, with its logarithm, or lies below), *this
exponent* (it holds one between those with and without the logarithm), *faster than the bound*
(it lies below both, which refutes nothing).  A slope supports a bound if it is not slower, lies
below 0, is to either side at most half the gap to the nearest exponent that the theory knows for
the block ({_margins()})
and does not still change, with {rules.CERTIFIED:.0%} of the fits certified:
an estimate that is no certified maximum says nothing on maximum likelihood, and
one in ten is what a handful of fits on a bound amounts to ([how often each sentence is true or
false](slope_sentences.md)).  The
rate of cells of several atoms is read off the 90% quantile of errors with floored masses, since in
cells of two errors may fall faster in half of the data sets (proved for two normal atoms without
inputs, and not so for three, see the page on the limit law): it agrees if its interval is as narrow
and holds the exponent, not 0.  Beside each slope stand the known exponents that it leaves out.  A
slope alone never refutes.  The explorer searches
near a truth; a search far from it starts at random, at turned signs, at copies of atoms and at
atoms whose expert is 0, and a bound without one is *near it only*.  Where a bound is false at some
truths, a rate claimed for all of them fails in the worst case; of one truth by itself it may hold
(*worst case* and *pointwise* in the glossary).  *Agrees here* stands beside
measurements and searches of claims that fail or are vacuous: the truths that were tried are not
those of the facts, or the fits do not come near their witness, and nothing is said for the claim.

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
        f" {sum(counts.values())} claims of the papers, "
        + ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
        + ".",
        "",
        _RULES,
        "",
        "Each claim on a model has a scope that a program reads (`experiments/scopes.py`, and"
        " `theory_claims.json`): families, parameter set and conditions with their place in the"
        " paper, as many atoms as the truth or more, worst case or pointwise, all, almost all or"
        " some truths.  A claim that is consistent or proved must have no witness in its scope,"
        f" else the verification fails: {verification.comparison.text}",
        "",
        *_missing(verification),
        *_repaired(verification),
        "## Facts",
        "",
        f"{_refuting(verification)}  *Seen* means that the program finds the witness, or that a"
        " proof's equations and inequalities hold where they are tried.",
        "",
        "| fact | what | seen | refutes | claims it decides |",
        "|---|---|---|---|---|",
        *(_fact_row(each, verification) for each in verification.facts),
    ]
    printed = [result for result in verification.results if not result.claim.repairs]
    for paper, results in groupby(printed, key=lambda result: result.claim.paper):
        own = list(results)
        lines += [
            "",
            f"## {paper}: {PAPERS[paper]}",
            "",
            _counted(own),
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
    tried = not fact.scope and all(isinstance(each, Inequality) for each in fact.checks)
    head = "The proof is above; its inequalities are tried by" if tried else "Reproduced by"
    lines += [f"- {head}: `python -m experiments.verify fact {fact.name}`"]
    lines += [
        f"  - {each.check.name}: {_plain(each.text)}: **{_SEEN[each.outcome]}**"
        + (f"; {_plain(each.check.about)}" if each.check.about else "")
        for each in result.checks
    ]
    return "\n".join(lines) + "\n"


def _repaired(verification: Verification) -> list[str]:
    """The theorems that stand, or seem to, with one more assumption."""
    rows = [result for result in verification.results if result.claim.repairs]
    if not rows:
        return []
    of = {result.claim.id: result.verdict for result in verification.results}
    return [
        "## Repaired theorems",
        "",
        "For theorems that are vacuous or fail, the weakest further assumptions found under which"
        " the search, or a proof, supports them.  The distance falls like the loss to the power r;"
        " r = 1 is the theorem.  A search is at one truth and is no proof; *near it only* says that"
        " none was made far from it.",
        "",
        "| theorem | as printed | with more assumed | scope | supported by |",
        "|---|---|---|---|---|",
        *(
            f"| `{each.claim.repairs}` | {of.get(each.claim.repairs, '')} |"
            f" {_plain(each.claim.statement)} | {_scoped(each)} | **{_verdict(each)}**:"
            " {_support(each)} |"
            for each in rows
        ),
        "",
    ]


def _scoped(result: ClaimResult) -> str:
    """The scope of a repaired theorem, and its note."""
    scope = scope_of(result.claim)
    told = [scope.text if scope else "", result.claim.note]
    return _plain(".  ".join(each for each in told if each))


def _support(result: ClaimResult) -> str:
    """What supports a repaired theorem: facts, and checks with the power r of the search."""
    told = [f"fact {each.fact.name}" for each in result.facts]
    told += [f"{each.check.name}: {each.text}" for each in result.checks]
    return _plain("; ".join(told))


def _refuting(verification: Verification) -> str:
    seen = [each for each in verification.facts if each.confirmed]
    bad = sum(bool(each.fact.scope) for each in seen)
    return (
        f"{len(seen)} of {len(verification.facts)} facts are seen; {bad} of these refute sentences."
    )


def _counted(results: Sequence[ClaimResult]) -> str:
    counts = Counter(result.verdict for result in results)
    named = [f"{counts[verdict]} {verdict}" for verdict in rules.VERDICTS if counts[verdict]]
    return f"Of {len(results)} claims: {', '.join(named)}."


def _missing(verification: Verification) -> list[str]:
    """What could not be had without stores, and the commands that make it."""
    lost = verification.without_store
    if not lost:
        return []
    return [
        "## What could not be had without stores",
        "",
        "These were never kept and their stores are not here; the commands make them.",
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
    """The verdict, with the number of truths, and of cells that ran, where it is agreement."""
    count = result.n_truths
    if result.verdict != rules.CONSISTENT or not count:
        return result.verdict
    told = f"{count} truth{'s' if count > 1 else ''}"
    ran = [map(int, found) for each in result.checks for found in _RAN.findall(each.source)]
    kinds = {type(each.check) for each in result.checks}
    if Bound in kinds and Far not in kinds:
        told += "; near it only" if count == 1 else "; near them only"
    for done, planned in sorted({(one, two) for one, two in ran if one < two}):
        told += f"; {done} of {planned} designed cells"
    return f"{result.verdict} ({told})"


def _evidence(result: ClaimResult) -> list[str]:
    claim = result.claim
    head = f"- `{claim.id}`: {_verdict(result)}."
    if claim.note:
        head += f" {_plain(claim.note)}"
    lines = [head]
    scope = scope_of(claim)
    if scope is not None and scope.asserts != EQUATION:
        lines.append(f"  - scope: {_plain(scope.text)}")
    if claim.unsupported:
        lines.append(f"  - why: {_plain(claim.unsupported)}")
    if claim.quotes:
        lines.append(f"  - quoted: {claim.quotes}")
    if claim.untested:
        lines.append(f"  - not tested: {_plain(claim.untested)}")
    if claim.outside:
        lines.append(f"  - not decided: {_plain(claim.outside)}")
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
        outcome = NOT_RUN if each.text.startswith(NOT_RUN) else each.outcome
        if claim.outside and outcome == rules.SUPPORTS:
            outcome = "agrees, outside the claim's class"
        elif outcome == rules.SUPPORTS and result.verdict in _REFUTED:
            outcome = "agrees here"
        if said := each.check.says(each.evidence):
            outcome += f", {said}"
        if outcome != NOT_RUN and each.check.required and each.shortfall not in ("", each.text):
            outcome += f", {_plain(each.shortfall)}"
        source = f" [{each.source}]" if each.source not in ("", "computed") else ""
        lines.append(
            f"  - {each.check.name}{role}: {_plain(each.text)}{source}: **{outcome}**{note}"
        )
    return lines


_RAN = re.compile(r"(\d+) of (\d+) cells")
_REFUTED = (rules.SPECIAL, rules.EVERYWHERE, rules.VACUOUS)
"""Verdicts beside which a check that agrees must not read as support."""
_SEEN = {rules.SUPPORTS: "seen", rules.REFUTES: "not so", rules.OPEN: "not seen"}
"""Outcomes of a fact's checks: that a refuting fact is seen supports no claim."""


def _plain(text: str) -> str:
    """Text that a Markdown table and list take as it is."""
    return " ".join(text.replace("|", "\\|").replace("*", "\\*").split())
