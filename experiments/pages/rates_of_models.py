"""``python -m experiments.pages.rates_of_models``: `rates` on the papers' models, beside theorems.

The exponents of the theorems are those of their losses.  Every certificate of a certified answer is
written beside the page, and `docs/theory/check_certificates.py` checks them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

import moestat
from experiments.explorer.cases import CASES
from experiments.folders import FIGURES
from moestat.metrics.losses import VoronoiLoss, make_loss
from moestat.theory import Rate, Rates
from moestat.theory.exponents.certificates import write_certificates

_CASES = (
    "mlmoe-1",
    "mlmoe-1-table-2",
    "mlmoe-2",
    "mlmoe-3",
    "mlmoe-3-table-4",
    "attention-1",
    "attention-1-weighted",
    "attention-2",
    "attention-3",
    "attention-4",
    "attention-4-linear",
    "attention-5",
    "compete-32",
    "compete-32-unit",
    "compete-32-neurons",
    "compete-J1",
    "compete-J1-normalised",
    "compete-v1-42",
    "softmax-2",
)
_DOCS = Path(__file__).parents[2] / "docs" / "theory"
_TITLE = "# The rates of the papers' models, by one call"
_PREFACE = (
    "Made by `python -m experiments.pages.rates_of_models`.  For each truth of the explorer's cases"
    " `moestat.theory.rates` is called with the fitted number of experts and the inputs of the"
    " case.  *Theorem* is the exponent of the block in the theorem's loss, in cells of one atom and"
    " of several: estimates are said to err by n^(-1/(2 r)).  *Tool* is the exponent r of the worst"
    " case near this truth, with its status.  The fifth paper, on the number of experts under top-1"
    " routing, has no theorem about the error of parameters, so that it has no row.",
    "*proved*: a relation or symmetry makes the exponent.  *certified*: rank in 96 digits, with a"
    " certificate in `figures/certificates` that `docs/theory/check_certificates.py` checks in"
    " interval arithmetic.  *searched*: an explicit sequence, from which a slower one is not"
    " excluded; `>=` marks those whose exponent is a lower bound.  *not identified*: other"
    " parameters have the same density.  *no such measure*: no measure of so many atoms has the"
    " truth's density, so that the theorem says nothing near it.",
)


def main(
    folder: Annotated[Path, typer.Argument(help="Where certificates go.")] = FIGURES,
    page: Annotated[Path, typer.Option(help="The page.")] = _DOCS / "rates_of_models.md",
    seconds: Annotated[float, typer.Option(help="Time of each call's searches.")] = 25.0,
) -> None:
    """Ask for the rates of every case and write the page and the certificates."""
    certificates = folder / "certificates"
    certificates.mkdir(parents=True, exist_ok=True)
    lines = [_TITLE, "", *(line for text in _PREFACE for line in (text, ""))]
    lines += [
        "| case | source | block | atoms | theorem r | tool r | status | difference |",
        "|---|---|---|---|---|---|---|---|",
    ]
    reasons: dict[str, list[str]] = {}
    spent = []
    for name in _CASES:
        case = CASES[name]
        fitted, family, theta = case.families()
        found = moestat.theory.rates(
            family, theta, fitted.n_experts, case.design, seconds=seconds, progress=True
        )
        spent.append(found.seconds)
        write_certificates(found, certificates, name)
        own = _lines(found, make_loss(case.loss))
        lines += [f"| {name} | {case.source} | {line} |" for line in own]
        reasons[name] = [f"{', '.join(rows)}: {why}" for why, rows in found._reasons().items()]
        typer.echo(f"{name}: {found.seconds:.0f} s")
    lines += ["", f"Each call took {min(spent):.0f} to {max(spent):.0f} seconds.", "", "## Why", ""]
    for name, told in reasons.items():
        listed = [f"- {_plain(text)}" for text in told]
        lines += [f"**{name}** ({CASES[name].setting}).{_known(name)}", "", *listed, ""]
    page.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


def _known(name: str) -> str:
    """What the explorer's cases know of a model, which no block alone can say."""
    note = CASES[name].note
    return f" The explorer found: {_plain(note)}." if note else ""


def _plain(text: str) -> str:
    return text.replace("|", "\\|")


def _lines(found: Rates, loss: VoronoiLoss) -> Iterator[str]:
    """The rows of one truth without its name."""
    powers = {term.block: loss.exponents(term) for term in loss.terms}
    apart = {term.block for term in loss.terms if term.exact_only}
    joint = next((loss.exponents(term) for term in loss.terms if term.joint), None)
    for row in found:
        if row.block == "mass" or row.cell not in ("1", "2"):
            continue
        own = powers.get(row.block, joint)
        theorem = None if own is None else own[min(int(row.cell), len(own)) - 1]
        if row.cell == "2" and row.block in apart:
            theorem = None
        shown = "" if theorem is None else f"{theorem:g}"
        r = f"{'>= ' if row.at_least else ''}{row.r:.3g}".replace("nan", "?")
        told = _difference(row, theorem, loss)
        yield f"`{row.block}` | {row.cell} | {shown} | {r} | {row.status} | {told}"


def _difference(row: Rate, theorem: float | None, loss: VoronoiLoss) -> str:
    """What the two exponents say of each other."""
    if theorem is None:
        return "not in the loss"
    if row.status in ("no such measure", "undecided"):
        return row.reason
    if math.isinf(row.r) and loss.represent is not None:
        return "the loss takes the nearest of such measures for the truth"
    if math.isinf(row.r) and loss.free_order:
        return "agrees: the theorem says slower than any r"
    if row.r < theorem and loss.free_order:
        return "faster than the theorem's slowest rate: this block is identified"
    if math.isinf(row.r):
        return "finding: the block is not identified at this truth"
    if abs(row.r - theorem) < 0.06 * theorem:
        return "agrees as far as searched" if row.at_least else "agrees"
    if row.at_least and row.r < theorem:
        return "not decided: the tool has a lower bound of r"
    if row.r > theorem:
        return "finding: slower than the theorem's bound"
    return "the bound holds and is not sharp here"


if __name__ == "__main__":
    typer.run(main)
