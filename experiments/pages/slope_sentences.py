"""How often each sentence on a slope is right, over twenty laws of losses that are known.

    python -m experiments.pages.slope_sentences [FOLDER]

writes slope_sentences.md into `figures`, or FOLDER.  Losses are drawn from a law, `fit_rate` is
asked for their slope, and `moestat.rates.bounds` for its sentences: the rule of the sweeps' reports
and of the claims.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from experiments.claims.rules import STILL_CHANGING
from experiments.folders import FIGURES
from moestat.base.types import FloatArray
from moestat.rates.rate import fit_rate

__all__ = ["DESIGNS", "LAWS", "Law", "page", "shares"]

RUNS = 200
_SEED = 20261127
DESIGNS: dict[str, tuple[FloatArray, int]] = {
    "20 sizes 1e4 to 1e5, 20 each": (np.geomspace(1e4, 1e5, 20), 20),
    "3 sizes 1e10 to 1e14, 80 each": (np.geomspace(1e10, 1e14, 3), 80),
}
"""Sizes and replicates: those of ordinary sweeps, and of the microscopes."""
Draw = Callable[[FloatArray, np.random.Generator], FloatArray]


@dataclass(frozen=True)
class Law:
    """Losses of a known law, and a bound that they are held against.

    Parameters
    ----------
    name : str
        The law in words.
    draw : callable
        ``draw(n, rng)``: one loss for each entry of n.
    bound : float
        Exponent of the bound ``(log n / n)^-bound``.
    truth : str
        ``"slower"``, ``"this exponent"`` or ``"faster"``: which word is true as n grows.
    """

    name: str
    draw: Draw
    bound: float
    truth: str


def _noisy(mean: Callable[[FloatArray], FloatArray], sd: float = 0.5) -> Draw:
    return lambda n, rng: mean(n) * np.exp(sd * rng.standard_normal(n.size))


def _power(exponent: float, log_power: float = 0.0) -> Draw:
    return _noisy(lambda n: n**exponent * np.log(n) ** log_power)


def _normal(exponent: float, root: float = 1.0) -> Draw:
    return lambda n, rng: n**exponent * np.abs(rng.standard_normal(n.size)) ** root


def _heavy(n: FloatArray, rng: np.random.Generator) -> FloatArray:
    return n**-0.5 * np.exp(0.5 * rng.standard_t(3, n.size))


def _spreading(n: FloatArray, rng: np.random.Generator) -> FloatArray:
    return n**-0.5 * np.exp(0.05 * np.log10(n) * rng.standard_normal(n.size))


def _halves(n: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Two normal atoms on one: n^(-1/8) in half of the data sets, n^(-1/4) in the others."""
    size = np.abs(rng.standard_normal(n.size))
    slow = 4.12 * (size / 24**0.5) ** 0.25 * n**-0.125
    return np.where(rng.random(n.size) < 0.5, slow, 3.0 * size * n**-0.25)


LAWS = (
    Law("n^(-1/2), log-normal", _power(-0.5), -0.5, "this exponent"),
    Law("n^(-1/2) |N|", _normal(-0.5), -0.5, "this exponent"),
    Law("n^(-1/4) |N|^(1/2)", _normal(-0.25, 0.5), -0.25, "this exponent"),
    Law("n^(-1/8) |N|^(1/4)", _normal(-0.125, 0.25), -0.125, "this exponent"),
    Law("n^(-1/2), heavy tails (t_3)", _heavy, -0.5, "this exponent"),
    Law("n^(-1/2), spread grows with n", _spreading, -0.5, "this exponent"),
    Law("(log n / n)^(1/2)", _power(-0.5, 0.5), -0.5, "this exponent"),
    Law("(log n / n)^(1/4)", _power(-0.25, 0.25), -0.25, "this exponent"),
    Law("n^(-1/2) (log n)^(1/4)", _power(-0.5, 0.25), -0.5, "this exponent"),
    Law("n^(-1/2) + 30 / n", _noisy(lambda n: n**-0.5 + 30.0 / n, 0.3), -0.5, "this exponent"),
    Law("n^(-1/8) or n^(-1/4), half each", _halves, -0.125, "this exponent"),
    Law("n^(-0.4)", _power(-0.4), -0.5, "slower"),
    Law("n^(-1/4)", _power(-0.25), -0.5, "slower"),
    Law("n^(-1/8)", _power(-0.125), -0.25, "slower"),
    Law("constant", _power(0.0), -0.5, "slower"),
    Law("n^(-1/2) + n^(-1/4) / 10", _noisy(lambda n: n**-0.5 + 0.1 * n**-0.25), -0.5, "slower"),
    Law("n^(-1/8) or n^(-1/4), half each", _halves, -0.25, "slower"),
    Law("n^(-1/2)", _power(-0.5), -0.25, "faster"),
    Law("n^(-1/2)", _power(-0.5), -0.125, "faster"),
    Law("n^(-1)", _power(-1.0), -0.5, "faster"),
)
"""Pure powers, logarithms, second terms, mixtures of rates, and bounds that are slack."""


def shares(
    law: Law, sizes: FloatArray, replicates: int, runs: int = RUNS, seed: int = _SEED
) -> dict[str, float]:
    """How often each sentence is said of a law's slope.

    Parameters
    ----------
    law : Law
        The law.
    sizes : ndarray of shape (S,)
        Sample sizes.
    replicates : int
        Losses at each.
    runs : int
        Slopes.
    seed : int
        Seed of the losses.

    Returns
    -------
    dict of str to float
        Shares: ``not slower``, ``this exponent``, ``faster``, and ``changing`` of slopes that a
        test of curvature calls no rate yet, for which no other sentence counts; ``covers`` of
        intervals that hold the law's own slope over these sizes, the mean of all runs.
    """
    rng = np.random.default_rng(seed)
    n = np.repeat(sizes, replicates)
    said = {"not slower": 0, "this exponent": 0, "faster": 0, "changing": 0}
    rates = [fit_rate(n, law.draw(n, rng), theory=law.bound, n_bootstrap=0) for _ in range(runs)]
    own = float(np.mean([rate.slope for rate in rates]))
    for rate in rates:
        if rate.curvature_p_value < STILL_CHANGING:
            said["changing"] += 1
            continue
        said["not slower"] += rate.bound.not_slower
        said["this exponent"] += rate.bound.this_exponent
        said["faster"] += rate.bound.faster
    held = sum(rate.interval[0] <= own <= rate.interval[1] for rate in rates)
    return {name: count / runs for name, count in said.items()} | {"covers": held / runs}


_TEXT = f"""\
# Three sentences on a slope: how often they are right

Made by `python -m experiments.pages.slope_sentences`: {RUNS} sets of losses of each of
{len(LAWS)} laws, their slope by `fit_rate`, and the sentences of `moestat.rates.bounds`, which
claims and the reports of sweeps share. *True* is the word that holds of the law as n grows: a law
is of the bound's exponent with any power of log n up to the theorem's, else slower or faster. A
slope with a p-value of curvature below {STILL_CHANGING:g} is *changing* and says nothing else.
Shares in per cent; bold are sentences that are false of the law. *Covers*: intervals that hold the
law's own slope over these sizes, the mean of the runs; 95 is nominal."""


def page(found: Sequence[dict[str, dict[str, float]]]) -> str:
    """The page, from `shares` by law and design.

    Parameters
    ----------
    found : sequence of mapping
        One per law of `LAWS`: design -> shares.

    Returns
    -------
    str
        Markdown.
    """
    lines = [_TEXT, ""]
    for design in DESIGNS:
        lines += [
            f"## {design}",
            "",
            "| law | bound | true | not slower | this exponent | faster | changing | covers |",
            "|---|---|---|---|---|---|---|---|",
            *(_row(law, each[design]) for law, each in zip(LAWS, found, strict=True)),
            "",
            _errors(design, found),
            "",
        ]
    lines += [
        "A slope sees sizes and not their limit. A law with a second term, or two laws in one"
        " sample, is what a slope is blind to: the mean of the logarithms of a mixture falls at the"
        " exponent of none of its parts, so that cells of several atoms are judged by quantiles. A"
        " law that is slower by a tenth of an exponent is told apart only where sizes are many.",
    ]
    return "\n".join(lines) + "\n"


_ALLOWED = {
    "slower": set[str](),
    "this exponent": {"not slower", "this exponent"},
    "faster": {"not slower", "faster"},
}


def _row(law: Law, said: dict[str, float]) -> str:
    cells = []
    for name, share in said.items():
        judged = name not in ("changing", "covers")
        false = judged and name not in _ALLOWED[law.truth] and round(100 * share) > 0
        shown = f"{100 * share:.0f}"
        cells.append(f"**{shown}**" if false else shown)
    bound = {-0.5: "-1/2", -0.25: "-1/4", -0.125: "-1/8"}[law.bound]
    name = law.name.replace("|", "\\|")
    return f"| {name} | {bound} | {law.truth} | {' | '.join(cells)} |"


def _errors(design: str, found: Sequence[dict[str, dict[str, float]]]) -> str:
    """The mean shares of right and of false sentences over the laws of which they are so."""
    told = []
    for name in ("not slower", "this exponent", "faster"):
        right = [
            each[design][name]
            for law, each in zip(LAWS, found, strict=True)
            if name in _ALLOWED[law.truth]
        ]
        false = [
            each[design][name]
            for law, each in zip(LAWS, found, strict=True)
            if name not in _ALLOWED[law.truth]
        ]
        told.append(
            f"*{name}* is said of {100 * np.mean(right):.0f}% where it is true ({len(right)} laws)"
            f" and of {100 * np.mean(false):.0f}% where it is false ({len(false)}), at worst"
            f" {100 * max(false):.0f}%"
        )
    return "; ".join(told) + "."


def main() -> None:
    """Draw all laws and write the page."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FIGURES
    found = [{design: shares(law, *sizes) for design, sizes in DESIGNS.items()} for law in LAWS]
    (folder / "slope_sentences.md").write_text(page(found), encoding="utf-8")


if __name__ == "__main__":
    main()
