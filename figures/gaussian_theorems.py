"""What the experiments say about each theorem on Gaussian experts, from their finished stores.

    python figures/gaussian_theorems.py COMPETITION SOFTMAX TOP [PAGE]

reads the stores of ``gaussian_competition``, ``gaussian_softmax`` and ``gaussian_exact_v1`` and
writes the page figures/gaussian_theorems.md, or PAGE.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy import stats

import moestat
from moestat.rates import RateResult, fit_rate
from moestat.sweep.analysis import CurveSummary, summarise
from moestat.sweep.store import open_store

WIDE = 0.15
PLATEAU = -0.25
RULES = f"""Rules.  A rate r *holds* at these sizes if the 95% interval of the measured slope
reaches down to -r, lies below 0 and is at most {WIDE} to either side; it is *refuted as printed*
if the interval lies above -r and the density itself does not converge (the interval of the
Hellinger distance's slope lies above {PLATEAU}); else it is *undecided*.  They were fixed before
the runs, but for "lies below 0", which was added when the slow rates of the softmax gate showed
that an interval may hold both -r and 0.  Cells of one fitted atom are exact, cells of several
over-specified; errors in cells are the largest of the cell, not weighted by masses as in the
losses, so an atom that has next to no mass counts in full.  A lower bound `E TV >= C loss` is
refuted by one measure with TV = 0 and a positive loss."""


def shown(rate: RateResult | None) -> str:
    """Slope with its interval."""
    if rate is None:
        return "none"
    low, high = rate.interval
    return f"{rate.slope:.2f} [{low:.2f}, {high:.2f}]"


def judged(rate: RateResult | None, theory: float, density: RateResult | None) -> str:
    """The verdict on one predicted slope, by the rules of the page."""
    if rate is None:
        return "undecided"
    low, high = rate.interval
    if low <= theory and high < 0.0 and (high - low) / 2.0 <= WIDE:
        return "holds"
    if low > theory and density is not None and density.interval[0] > PLATEAU:
        return "refuted as printed"
    return "undecided"


def distance_rows(store, summary: CurveSummary) -> Iterable[str]:
    """Hellinger and total variation: slope, and mean at the largest n with its 95% interval."""
    records = [r for r in store.records() if r.curve == summary.curve.name and r.certified]
    for name in ("hellinger", "total_variation"):
        n = np.array([r.n for r in records])
        value = np.array([r.losses[name] for r in records])
        last = value[n == n.max()]
        half = stats.t.ppf(0.975, last.size - 1) * last.std(ddof=1) / np.sqrt(last.size)
        slope = shown(fit_rate(n, value))
        yield f"{name.replace('_', ' ')} {slope}, {last.mean():.4f} ± {half:.4f} at n = {n.max():,}"


def exponent_rows(summary: CurveSummary, over: dict[str, float], exact: float) -> Iterable[str]:
    """A table row per kind of cell and block: measured slope, prediction, verdict."""
    for kind, blocks in summary.cell_errors.items():
        for block, exponent in blocks.items():
            theory = exact if kind == "exact" else over.get(block, over["*"])
            verdict = judged(exponent.rate, theory, summary.hellinger)
            slope = shown(exponent.rate) if exponent.rate else exponent.note
            yield f"| {summary.curve.name} | {kind} | {block} | {slope} | {theory:g} | {verdict} |"


def counterexample(path: Path, truth: str, loss: str) -> str:
    """The doubled measure of one truth: a sentence on its distance and its losses."""
    with open_store(path) as store:
        law, design = store.spec.truths[truth], store.spec.design
    family, theta = law.family, np.asarray(law.theta)
    more, doubled = family.with_experts(2 * family.n_experts), np.concatenate([theta, theta])
    tv = moestat.total_variation(more, doubled, family, theta, design).value
    given, scaled = (
        moestat.voronoi_loss(more.measure(doubled), family.measure(theta), loss, masses=masses)
        for masses in ("given", "normalised")
    )
    return (
        f"Every atom of the truth `{truth}` taken twice has TV = {tv:.1e} and, with unit masses"
        f" as printed, a loss of {given:g}: no lower bound.  With normalised masses the loss is"
        f" {scaled:g}."
    )


def statement(theorem: str, summaries: Sequence[CurveSummary], bound: str | None = None) -> str:
    """One plain sentence or two on a theorem, from the verdicts on its curves."""
    verdicts = {
        s.curve.name: judged(s.rate, s.curve.theory or -0.5, s.hellinger) for s in summaries
    }
    refuted = [s for s in summaries if verdicts[s.curve.name] == "refuted as printed"]
    held = [name for name, verdict in verdicts.items() if verdict == "holds"]
    open_ = [name for name, verdict in verdicts.items() if verdict == "undecided"]
    word = "refuted as printed" if refuted or bound else "holds" if not open_ else "undecided"
    parts = [f"- **{theorem}: {word}.**"]
    if bound:
        parts.append(bound)
    parts += [
        f"{s.curve.name}: the loss has slope {shown(s.rate)}, the Hellinger distance"
        f" {shown(s.hellinger)}."
        for s in refuted
    ]
    if held:
        parts.append(f"The rate of the loss holds for {'; '.join(held)}.")
    if open_:
        parts.append(f"Undecided: {'; '.join(open_)}.")
    return " ".join(parts)


def statements(competition: Path, top: Path) -> list[str]:
    """A plain statement per theorem."""
    with open_store(competition) as store:
        curves = summarise(store)
    with open_store(top) as store:
        exact = summarise(store)
    density = [replace(s, rate=s.hellinger) for s in exact]
    return [
        statement(
            "Theorem J.1 of compete (linear experts)",
            [s for s in curves if s.curve.truth == "lines"],
            counterexample(competition, "lines", "competition-L2"),
        ),
        statement(
            "Theorem 3.2 of compete (here feed-forward experts)",
            [s for s in curves if s.curve.truth == "networks"],
            counterexample(competition, "networks", "competition-L1"),
        ),
        statement("Theorem 4.1 of compete-v1 (Hellinger distance)", density),
        statement("Theorem 4.2 of compete-v1 (loss (9))", exact),
        "",
    ]


def section(title: str, path: Path, over: dict[str, float]) -> list[str]:
    """Tables of one store."""
    lines = [f"## {title}", ""]
    with open_store(path) as store:
        summaries: Sequence[CurveSummary] = summarise(store)
        lines += [
            "| curve | slope of the loss | theory | verdict | certified | failed | left out |",
            "|---|---|---|---|---|---|---|",
        ]
        for summary in summaries:
            theory = summary.curve.theory or -0.5
            lines.append(
                f"| {summary.curve.name} | {shown(summary.rate)} | {theory:g}"
                f" | {judged(summary.rate, theory, summary.hellinger)}"
                f" | {summary.certified}/{summary.done} | {summary.failed} | {summary.left_out} |"
            )
        lines.append("")
        for summary in summaries:
            lines.append(f"- {summary.curve.name}: {'; '.join(distance_rows(store, summary))}")
        lines += [
            "",
            "| curve | cells | block | slope | theory | verdict |",
            "|---|---|---|---|---|---|",
        ]
        for summary in summaries:
            lines += exponent_rows(summary, over, -0.5)
    return [*lines, ""]


def main() -> None:
    """Read the stores named on the command line and write the page."""
    competition, softmax, top = map(Path, sys.argv[1:4])
    target = Path(sys.argv[4]) if len(sys.argv) > 4 else Path("figures/gaussian_theorems.md")
    lines = ["# Theorems on Gaussian experts, and what certified maxima say", "", RULES, ""]
    lines += ["## Statements", "", *statements(competition, top)]
    lines += section(
        "Competition: compete (000), Theorems 3.2 (any expert) and J.1 (linear experts)",
        competition,
        {"*": -0.25, "mass": -0.5},
    )
    # Orders of arXiv 2305.03288 for cells of two; cells of three are slower still.
    lines += section(
        "The softmax gate with which they compare (arXiv 2305.03288)",
        softmax,
        {"*": -0.125, "a": -0.25, "nu": -0.25, "mass": -0.5, "expert": -0.125},
    )
    lines += section(
        "Top-K competition, exactly specified: compete-v1 (001), Theorems 4.1 and 4.2",
        top,
        {"*": -0.5},
    )
    target.write_text("\n".join(lines), encoding="utf-8")
    print(target)


if __name__ == "__main__":
    main()
