"""What the experiments on Gaussian experts say about each predicted rate, from their stores.

    python -m experiments.pages.gaussian_theorems COMPETITION SOFTMAX TOP [PAGE]

reads the stores of ``gaussian_competition``, ``gaussian_softmax`` and ``gaussian_exact_v1`` and
writes the page figures/gaussian_theorems.md, or PAGE.  The rules are those of the claims.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np

import moestat
from experiments.claims.kinds import Slope
from experiments.claims.rules import CERTIFIED
from experiments.quantities import Quantity
from experiments.verify.measured import slope_evidence
from moestat.rates.bounds import WIDE
from moestat.sweep.kinds.fit.spec import Curve, as_fits
from moestat.sweep.store.record import Record
from moestat.sweep.store.store import open_store

HALF, QUARTER = Fraction(-1, 2), Fraction(-1, 4)
INTRODUCTION = f"""# Predicted rates on Gaussian experts, and what certified maxima say

One line per error and predicted exponent, by the rules of `experiments.claims.rules`.  The
slope *supports* the exponent r if its 95% interval reaches down to r, but for the log factor, lies
below 0, is at most {WIDE} wide to either side, and {CERTIFIED:.0%} of the fits are certified; else
it is *open*: a slope never refutes.  Curves with unit masses and k = 3 are fits with exactly three
atoms, a class that does not hold the truth; the class as printed has at most three, and does.
Errors in cells are means over the cells of that size, not weighted by masses as in the losses, so
an atom that has next to no mass counts in full.

Verdicts on the theorems, with the explicit measures that decide some of them, are on the page
[of the claims](theory_claims.md).

Made by `python -m experiments.pages.gaussian_theorems COMPETITION SOFTMAX TOP` from the stores
of `gaussian_competition`, `gaussian_softmax` and `gaussian_exact_v1` (`python -m moestat.sweep run
gaussian_competition --no-confirm`, and so on; one to two hours of one processor in all).  It is
anew only when these are.
"""

Exponents = Mapping[str, Fraction]
"""By block; ``*`` is any other block."""

COMPETING = {1: {"*": HALF}, 2: {"*": QUARTER, "mass": HALF}}
# Orders of Nguyen et al. (2023) with rbar(2) = 4 and rbar(3) = 6.
SOFTMAX = {
    1: {"*": HALF},
    2: {"*": Fraction(-1, 8), "a": QUARTER, "nu": QUARTER, "mass": HALF},
    3: {"*": Fraction(-1, 12), "a": Fraction(-1, 6), "nu": Fraction(-1, 6), "mass": HALF},
}


def outcome(check: Slope, curve: Curve, records: Sequence[Record]) -> tuple[str, str]:
    """What one check says, and its evidence in words."""
    evidence = slope_evidence(check.quantity, curve, records)
    return check.judge(evidence), evidence.text


def row(
    experiment: str, curve: Curve, records: Sequence[Record], error: Quantity, r: Fraction
) -> str:
    """A table row on one error."""
    named = error if isinstance(error, str) else f"{error[1]} in cells of {error[0]}"
    word, text = outcome(Slope(experiment, curve.name, error, r), curve, records)
    return f"| {curve.name} | {named.replace('_', ' ')} | {r} | {text} | {word} |"


def errors(records: Sequence[Record], predicted: Mapping[int, Exponents]) -> Iterator[tuple]:
    """Every error in cells of some size that the records hold, with its exponent."""
    cells = [cell for record in records for cell in record.losses.get("cells", ())]
    for size in sorted({cell["size"] for cell in cells} & predicted.keys()):
        for block in ("mass", *cells[0]["errors"], "expert"):
            exponents = predicted[size]
            yield (size, block), exponents.get(block, exponents["*"])


def section(title: str, path: Path, predicted: Mapping[int, Exponents]) -> Iterator[str]:
    """Tables of one store."""
    rows = []
    with open_store(path) as store:
        every = list(store.records())
        for curve in store.spec.curves:
            records = [record for record in every if record.curve == curve.name]
            for error in ("loss", "hellinger", "total_variation"):
                rows.append(row(path.stem, curve, records, error, HALF))
            for error, exponent in errors(records, predicted):
                rows.append(row(path.stem, curve, records, error, exponent))
    yield from (f"## {title}", "", result(rows), "")
    yield "| curve | error | predicted | measured | the rule says |"
    yield "| --- | --- | --- | --- | --- |"
    yield from (*rows, "")


def result(rows: Sequence[str]) -> str:
    """What a table says, in a sentence before it."""
    agree = sum(each.endswith("| supports |") for each in rows)
    others = len(rows) - agree
    return f"**Of {len(rows)} slopes {agree} agree with their exponent; {others} are open.**"


def doubled(path: Path, truth: str, loss: str) -> str:
    """The measure with every atom of a truth taken twice: its distance and its losses."""
    with open_store(path) as store:
        spec = as_fits(store.spec)
        law, design = spec.truths[truth], spec.design
    family, theta = law.family, np.asarray(law.theta)
    more, twice = family.with_experts(2 * family.n_experts), np.concatenate([theta, theta])
    tv = moestat.total_variation(more, twice, family, theta, design).value
    given, scaled = (
        moestat.voronoi_loss(more.measure(twice), family.measure(theta), loss, masses=masses)
        for masses in ("given", "normalised")
    )
    return (
        f"- Every atom of `{truth}` taken twice: TV = {tv:.1e}, {loss} with unit masses as printed"
        f" {given:g}, with normalised masses {scaled:g}."
    )


def main() -> None:
    """Read the stores named on the command line and write the page."""
    competition, softmax, top = map(Path, sys.argv[1:4])
    target = Path(sys.argv[4]) if len(sys.argv) > 4 else Path("figures/gaussian_theorems.md")
    lines = [
        INTRODUCTION,
        *section(
            "Competition: Nguyen et al. (2025), Theorems 3.2 (any expert) and J.1 (linear experts)",
            competition,
            COMPETING,
        ),
        "The lower bounds `E TV >= C loss` of Theorems 3.2 and J.1, as printed with unit masses:\n",
        doubled(competition, "lines", "competition-L2"),
        doubled(competition, "networks", "competition-L1"),
        "",
        *section(
            "The softmax gate with which they compare (Nguyen et al. (2023))", softmax, SOFTMAX
        ),
        *section(
            "Top-K competition, exactly specified: Pham et al. (2024), Theorems 4.1 and 4.2",
            top,
            {1: {"*": HALF}},
        ),
    ]
    target.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    print(target)


if __name__ == "__main__":
    main()
