"""Which exponents of the theorems the microscope sees, from the stores of its experiments.

    python -m experiments.pages.microscope_theorems [FOLDER]

reads the stores microscope_*.sqlite in FOLDER (or beside this script), those that are there, and
writes microscope_theorems.md into it.  Every prediction stands in this file; the rule that decides
is `moestat.rates.local_slopes.judge`.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from experiments.folders import FIGURES
from experiments.pages.microscope import NULL, Series, read
from moestat.rates.local_slopes import exponent_name, judge
from moestat.sweep.store.store import open_store

HALF, QUARTER, SIXTH, EIGHTH, TWELFTH = -1 / 2, -1 / 4, -1 / 6, -1 / 8, -1 / 12
ONE, TWO, THREE = "cells of one", "cells of two", "cells of three"
BLOCKS = {
    "mlmoe": ("a", "b", "expert"),
    "attention": ("A", "b", "expert"),
}


@dataclass(frozen=True)
class Prediction:
    """An exponent that a theorem gives to a quantity of a curve; None: slower than any power."""

    experiment: str
    curve: str
    row: str
    label: str
    exponent: float | None


def cells(
    experiment: str, curve: str, row: str, blocks: tuple[str, ...], exponent: float | None
) -> list[Prediction]:
    """The errors of several blocks in cells of one size."""
    return [Prediction(experiment, curve, row, block, exponent) for block in blocks]


def loss(experiment: str, curve: str, label: str, exponent: float | None) -> list[Prediction]:
    """A loss."""
    return [Prediction(experiment, curve, "loss", label, exponent)]


def multinomial(gate: str, label: str, exact: float | None, over: float | None):
    """The predictions of Table 1 of mlmoe for one gate: a loss, and cells of one, two, three."""
    own = BLOCKS["mlmoe"]
    experiment = "microscope_mlmoe"
    out = []
    for k in (2, 3, 4):
        out += loss(experiment + ("_four" if k == 4 else ""), f"{gate}, k = {k}", label, exact)
    out += cells(experiment, f"{gate}, k = 2", ONE, own, HALF)
    out += cells(experiment, f"{gate}, k = 3", TWO, own, over)
    out += cells(experiment + "_four", f"{gate}, k = 4", THREE, own, over)
    return out


def gaussian_softmax() -> list[Prediction]:
    """Exponents 1/(2 r) and 1/r with r = 4 in cells of two and 6 in cells of three."""
    experiment = "microscope_gaussian"
    out = []
    for k in (2, 3, 4):
        out += loss(experiment, f"softmax, k = {k}", "gaussian-softmax-D", HALF)
    out += cells(experiment, "softmax, k = 2", ONE, ("a", "b", "nu"), HALF)
    for curve, row, first, second in (
        ("softmax, k = 3", TWO, EIGHTH, QUARTER),
        ("softmax, k = 4", THREE, TWELFTH, SIXTH),
    ):
        out += cells(experiment, curve, row, ("beta1", "b"), first)
        out += cells(experiment, curve, row, ("a", "nu"), second)
    return out


def competition() -> list[Prediction]:
    """Exponent 1/2 of the loss and 1/4 in cells of several."""
    experiment, free = "microscope_gaussian", "competition, free masses"
    out = []
    for k in (2, 3, 4):
        out += loss(experiment, f"{free}, k = {k}", "competition-L2", HALF)
    for k in (3, 4):
        out += loss(experiment, f"competition, unit masses, k = {k}", "competition-L2", HALF)
    own = ("a", "b", "nu", "expert")
    out += cells(experiment, f"{free}, k = 2", ONE, own, HALF)
    out += cells(experiment, f"{free}, k = 3", TWO, own, QUARTER)
    out += cells(experiment, f"{free}, k = 4", THREE, own, QUARTER)
    out += cells(experiment, "competition, unit masses, k = 4", TWO, own, QUARTER)
    return out


def attention(kinds: tuple[str, ...], over: float | None) -> list[Prediction]:
    """The sparse regime of one sort of experts, under both gates."""
    experiment, out = "microscope_attention", []
    for gate, label in (("sigmoid", "L1"), ("softmax", "softmax-L1")):
        for kind in kinds:
            out += loss(experiment, f"{gate}, {kind}, exact", label, HALF)
            curve = f"{gate}, {kind}, sparse, N* + 1"
            out += loss(experiment, curve, label, None if over is None else HALF)
            out += cells(experiment, curve, TWO, BLOCKS["attention"], over)
    return out


def dense() -> list[Prediction]:
    """The dense regime: the distance to the printed truth, and to the set that it belongs to."""
    experiment, out = "microscope_attention", []
    for kind in ("relu", "gelu", "linear"):
        curve = f"sigmoid, {kind}, dense, N* + 1"
        out += loss(experiment, curve, "L3", HALF)
        if kind != "gelu":
            out += loss(experiment, curve, "dense-L3", HALF)
    return out


def regression_errors() -> list[Prediction]:
    """The distance of the regression functions, which all bounds rest on."""
    experiment, out = "microscope_attention", []
    for gate in ("sigmoid", "softmax"):
        for kind in ("relu", "gelu", "linear"):
            for label in ("exact", "sparse, N* + 1", "dense, N* + 1"):
                out += loss(experiment, f"{gate}, {kind}, {label}", "regression-error", HALF)
    return out


def published(gate: str, label: str, exponent: float | None) -> list[Prediction]:
    """The printed truths of mlmoe: one loss for each number of experts."""
    return [
        *loss("microscope_published", f"{gate}, k = 2", label, exponent),
        *loss("microscope_published", f"{gate}, k = 3", label, exponent),
        *loss("microscope_published_four", f"{gate}, k = 4", label, exponent),
    ]


THEOREMS: dict[str, list[Prediction]] = {
    "Softmax gate, classes, Regime 1 (Nguyen et al. (2024))": multinomial(
        "softmax", "softmax-D1", HALF, QUARTER
    ),
    "Softmax gate, classes, Regime 2 (same)": multinomial(
        "softmax-regime-2", "softmax-D2r, r = 2", None, None
    ),
    "Pham et al. (2026), Theorem 1: sigmoid gate": multinomial("sigmoid", "D1", HALF, QUARTER),
    "Pham et al. (2026), Theorem 2: temperature, inner product": multinomial(
        "inner", "D2r, r = 2", None, None
    ),
    "Pham et al. (2026), Theorem 3: temperature, Euclidean": multinomial(
        "euclidean", "D3", HALF, QUARTER
    ),
    "Softmax gate, Gaussian experts (Nguyen et al. (2023))": gaussian_softmax(),
    "Nguyen et al. (2025), Theorem J.1: experts that compete": competition(),
    "Yan et al. (2025), Theorem 1: sparse regime, strongly identifiable experts": attention(
        ("relu", "gelu"), QUARTER
    ),
    "Yan et al. (2025), Theorem 2: sparse regime, linear experts": attention(("linear",), None),
    "Yan et al. (2025), Theorem 3: dense regime": dense(),
    "Yan et al. (2025), Proposition 1 and Corollary 1: regression functions": regression_errors(),
    "Pham et al. (2026), Theorem 1 at Table 2's sigmoid truth": published("sigmoid", "D1", HALF),
    "Pham et al. (2026), Theorem 2 at Table 3's truth": published("inner", "D2r, r = 2", None),
    "Pham et al. (2026), Theorem 3 at Table 4's truth": published("euclidean", "D3", HALF),
}

AGREEING = (
    "How many slopes agree with the exponent of a bound counts what is seen here and refutes"
    " nothing: in cells of several atoms the bounds of -1/4 and slower are on errors times masses,"
    " the errors here are without them, and where an extra atom is light its error need not fall."
)
"""Read before the table of exponents."""

# What a truth or a gate leaves free, and what it says about a theorem.
RIDGES = {
    ("microscope_mlmoe", "inner, k = 2"): (
        "The ridge of the inner product: (alpha, beta, tau) has a free scale.  It contradicts the"
        " identifiability that Pham et al. (2026), Sec. 4.1, claims for this gate, and it"
        " illustrates"
        " Theorem 2: nothing converges along it, and across it the errors fall at their own rate."
    ),
    ("microscope_published", "inner, k = 2"): "The same ridge at Table 3's truth.",
    ("microscope_published", "euclidean, k = 2"): (
        "Table 4's flat directions: both positions lie outside the inputs, where the distance is"
        " linear.  They contradict the bound of Pham et al. (2026), Theorem 3, at the very truth"
        " that"
        " its figure uses."
    ),
    ("microscope_published", "sigmoid, k = 2"): (
        "Table 2's sigmoid truth: the two scores are opposite, which contradicts Pham et al."
        " (2026), Proposition 1."
    ),
}

Found = dict[str, dict[str, dict[str, dict[str, Series]]]]


def verdict(prediction: Prediction, found: Found) -> tuple[str, str] | None:
    """The row of one prediction, and the verdict; None where there are too few estimates."""
    series = found.get(prediction.experiment, {}).get(prediction.curve, {}).get(prediction.row, {})
    if prediction.label not in series:
        return None
    n, value = series[prediction.label]
    sight = judge(n, value, HALF if prediction.exponent is None else prediction.exponent)
    low, high = sight.interval
    if prediction.exponent is None:
        said, theory = "plateau" if low <= 0.0 <= high else "a power of n", "slower than powers"
    else:
        said, theory = str(sight), exponent_name(prediction.exponent)
    what = prediction.label if prediction.row == "loss" else f"{prediction.label}, {prediction.row}"
    row = f"| {prediction.curve} | {what} | {theory} | {sight.slope:.3f} [{low:.3f}, {high:.3f}] |"
    return f"{row} {said} |", sight.verdict if prediction.exponent is not None else said


def summary(predictions: list[Prediction], found: Found) -> str:
    """One sentence: which exponents are seen, and how the other quantities fall."""
    counts: dict[str, list[str]] = {}
    for prediction in predictions:
        result = verdict(prediction, found)
        if result is None:
            continue
        theory = "slower" if prediction.exponent is None else exponent_name(prediction.exponent)
        counts.setdefault(theory, []).append(result[1])
    parts = []
    for theory, verdicts in counts.items():
        kinds = sorted(set(verdicts), key=verdicts.index)
        shown = ", ".join(f"{kind} {verdicts.count(kind)}" for kind in kinds)
        name = "No power of n predicted" if theory == "slower" else f"{theory} predicted"
        parts.append(f"{name} {len(verdicts)} times: {shown}.")
    return "  ".join(parts) or "No estimates."


def sightings(found: Found) -> list[str]:
    """Each exponent with how often it was predicted and seen, and by which theorems' quantities."""
    lines = ["| exponent of the bound | quantities | slope agrees with it | where |"]
    lines.append("|---|---|---|---|")
    for exponent in (HALF, QUARTER, SIXTH, EIGHTH, TWELFTH):
        predicted, where = 0, []
        for theorem, predictions in THEOREMS.items():
            results = [verdict(p, found) for p in predictions if p.exponent == exponent]
            verdicts = [result[1] for result in results if result is not None]
            predicted += len(verdicts)
            if seen := verdicts.count("seen"):
                where.append(f"{theorem.split(':')[0]} ({seen})")
        count = sum(int(words.rsplit("(", 1)[1].rstrip(")")) for words in where)
        name, places = exponent_name(exponent), "; ".join(where) or "nowhere"
        lines.append(f"| {name} | {predicted} | {count} | {places} |")
    return lines


def ridge_rows(found: Found) -> list[str]:
    """What is left along null directions and across them, at n = 1e5 and at the largest n."""
    lines = []
    for (experiment, curve), words in RIDGES.items():
        series = found.get(experiment, {}).get(curve, {}).get(NULL, {})
        if not series:
            continue
        lines += ["", f"**{experiment}, {curve}.** {words}", ""]
        lines += [
            "| errors | 1e5 | 1e14 | slope over the last four decades | |",
            "|---|---|---|---|---|",
        ]
        for label, (n, value) in series.items():
            sight = judge(n, value, HALF)
            low, high = sight.interval
            ends = [f"{np.exp(np.mean(np.log(value[n == at]))):.2g}" for at in (1e5, n.max())]
            slope = f"{sight.slope:.3f} [{low:.3f}, {high:.3f}]"
            lines.append(f"| {label} | {' | '.join(ends)} | {slope} | {sight.verdict} |")
    return lines


def page(found: Found) -> str:
    """The page, as Markdown."""
    lines = [
        "# What the microscope sees of each theorem",
        "",
        "What this page is about is where maximum likelihood puts extra experts when their masses"
        " are"
        " free.  It does not test the theorems' exponents: they bound losses that weigh errors by"
        " the"
        " masses, on a compact set where no mass vanishes, while here errors are unweighted"
        " means, most"
        " fits of one expert too many have a light one, and the box of the log-masses, -10, binds"
        " from"
        " n = 1e8 or so on, within the window of the slopes.  [In a wide box](microscope_free.md)"
        " it does not.  [With floored masses]"
        "(microscope_floors.md) the exponents 1/8 and 1/16 are seen, and 1/12 is not shown yet.",
        "",
        "Slopes are over the last four decades, n = 1e10 to 1e14, with 95% intervals.  An exponent"
        " is *seen* if the interval holds it and reaches at most 0.1 to either side, and the n is"
        " the one from which on every local slope agrees with it; *plateau*: the interval is as"
        " narrow and holds 0 instead; *faster*, *slower*: all of it lies below or above the"
        " exponent; else *undecided*.  The theorems are upper bounds, so *faster* contradicts"
        " none of them.  The exponents 1/2, 1/4, 1/6, 1/8 and 1/12 stand for rates"
        " of n up to powers of log n.  Fits start at distances of 0.1 and 1 from the truth,"
        " whatever n; over-specified ones have many maxima of almost one height, and which of them"
        " is found can change a loss several-fold (benchmarks/start_distance.py).  Many of these"
        " fits do not merge atoms at all: see [where they put them](microscope_atoms.md). "
        " Stores read: " + ", ".join(sorted(found)) + "; `python -m moestat.sweep run NAME --out"
        " figures/NAME.sqlite` makes one, and `python -m experiments.pages.microscope_theorems`"
        " this page, which is anew only when they are.",
    ]
    lines += ["", AGREEING, "", *sightings(found)]
    for theorem, predictions in THEOREMS.items():
        lines += ["", f"## {theorem}", "", summary(predictions, found)]
        rows = [result[0] for p in predictions if (result := verdict(p, found)) is not None]
        if rows:
            lines += [
                "",
                "| curve | quantity | theory | slope | verdict |",
                "|---|---|---|---|---|",
            ]
            lines += rows
    lines += ["", "## Plateaus: what nothing identifies"]
    lines += ridge_rows(found)
    return "\n".join(lines) + "\n"


def main() -> None:
    """Read the stores and write the page."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FIGURES
    found: Found = {}
    for path in sorted(folder.glob("microscope_*.sqlite")):
        with open_store(path) as store:
            found[path.stem] = read(store)[1]
    out = folder / "microscope_theorems.md"
    out.write_text(page(found), encoding="utf-8")
    print(out)


if __name__ == "__main__":
    main()
