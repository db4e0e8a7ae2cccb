"""``python -m experiments.own_gates.confirm FOLDER``: sweeps of the drawn families.

What was fixed before: `draw` and its output, the sizes, the replicates and the error that is
measured.  The error of a block in a cell of two atoms is the root of the mean of the squared
deviations, weighted by the shares: masses are bounded below, so that it has the order of the
largest deviation, and it does not depend on shares, which the likelihood tells apart by n^(-1/4)
only, less than its rounding at these sizes.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from experiments.folders import FIGURES
from experiments.own_gates.draw import PREDICTIONS, drawn_family
from experiments.pages.quantiles import FEWEST, quantile_slope
from moestat.metrics.losses import make_loss, voronoi_terms
from moestat.sweep.kinds.fit.spec import as_fits
from moestat.sweep.store.record import DONE
from moestat.sweep.store.store import open_store

RESULTS = "own_gates_confirmed.json"
_PAGE = "own_gates_confirmed.md"
_SIZES = "n = { start = 1e11, stop = 1e14, num = 3 }"
_REPLICATES = "replicates = 30"
_SEEN = 1e11
"""A block is expected to agree if its exponent can be seen from the first size on."""


def main(
    folder: Annotated[Path, typer.Argument(help="Where the stores are.")] = FIGURES,
    predictions: Annotated[Path, typer.Option(help="What was predicted.")] = FIGURES / PREDICTIONS,
) -> None:
    """Run the sweeps that are not done and write down all slopes."""
    drawn = json.loads(predictions.read_text(encoding="utf-8"))
    found: list[dict[str, Any]] = []
    for one in drawn:
        drawn_family(one["seed"])
        store = folder / f"drawn_{one['seed']}.sqlite"
        if not store.exists():
            _sweep(one["spec"], store)
        found += _slopes(one, store)
        text = json.dumps(found, indent=1)
        (predictions.parent / RESULTS).write_text(text + "\n", encoding="utf-8")
    text = "\n".join(_page(drawn, found)) + "\n"
    (predictions.parent / _PAGE).write_text(text, encoding="utf-8")
    typer.echo(text.splitlines()[4])


def _sweep(text: str, store: Path) -> None:
    spec = store.with_suffix(".toml")
    text = re.sub(r"^n = .*$", _SIZES, text, flags=re.MULTILINE)
    text = re.sub(r"^replicates = .*$", _REPLICATES, text, flags=re.MULTILINE)
    spec.write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "experiments.own_gates.sweep", "run", str(spec)]
    subprocess.run([*command, "--out", str(store)], check=True)


def _slopes(one: Mapping[str, Any], store: Path) -> Iterator[dict[str, Any]]:
    """Each block's prediction and its slopes."""
    errors = _errors(store)
    for block, told in one["blocks"].items():
        n, spread, largest = (np.array([row[k] for row in errors[block]]) for k in range(3))
        rng = np.random.default_rng(0)
        slopes = {}
        for name, error in (("spread", spread), ("largest", largest)):
            for level in (0.9, 0.5):
                own = quantile_slope(n, error, level, rng) if n.size >= FEWEST else None
                slopes[f"{name} {level}"] = own and [own.slope, own.low, own.high]
        theory = None if told["r"] is None else -0.5 / told["r"]
        seen = told["n_seen"] is not None and told["n_seen"] <= _SEEN
        decided = told["status"] in ("proved", "certified") and not told["at_least"]
        first = slopes["spread 0.9"]
        agrees = None if first is None or theory is None else first[1] <= theory <= first[2]
        yield {
            "seed": one["seed"],
            "block": block,
            **told,
            "theory": theory,
            "decided": decided,
            "seen": seen,
            "slopes": slopes,
            "agrees": agrees,
        }


def _page(drawn: list[dict[str, Any]], found: list[dict[str, Any]]) -> Iterator[str]:
    decided = [row for row in found if row["decided"] and row["agrees"] is not None]
    agreed = sum(row["agrees"] for row in decided)
    seen = [row for row in decided if row["seen"]]
    agreed_seen = sum(row["agrees"] for row in seen)
    yield "# Drawn gates and experts, predicted before they were swept"
    yield ""
    yield (
        "The confirmatory part of [rates of own gates](own_gates.md).  Made by `python -m"
        " experiments.own_gates.confirm`, from predictions that were written and committed before"
        " any sweep."
    )
    yield ""
    yield (
        f"**{agreed} of {len(decided)} decided blocks agree; of those whose exponent the tool said"
        f" can be seen from the first size on, {agreed_seen} of {len(seen)}.**"
    )
    yield ""
    told = [row["slopes"]["spread 0.9"] for row in decided]
    left_out = {r: sum(not low <= -0.5 / r <= high for _, low, high in told) for r in (1, 3, 4)}
    largest = [(row["theory"], *row["slopes"]["largest 0.9"]) for row in decided]
    by_largest = sum(low <= theory <= high for theory, _, low, high in largest)
    exponents = ", ".join(f"{r:g}" for r in sorted({row["r"] for row in decided}))
    yield (
        f"All exponents are {exponents}.  Of the {len(told)} intervals {left_out[1]} leave out"
        f" r = 1, {left_out[3]} leave out 3 and {left_out[4]} leave out 4.  With the largest"
        f" deviation in place of the root mean square {by_largest} agree.  The draws have no normal"
        " experts with linear means, so that the exponents 2m of those are not tried here.  Blocks"
        " of a family are errors of the same fits: they are not independent trials."
    )
    yield ""
    yield (
        "*Fixed before the sweeps.*  Families: the seeds 2026113001 to 2026113005, each draws a"
        " gate and an expert, sums of two of the functions s, tanh s, sin s and log(1 + s^2) of a"
        " linear score s (one expert in four is linear), and a truth of two atoms; no seed is"
        " passed over.  Prediction: `moestat.theory.rates` for three fitted atoms, X uniform on"
        " [-3, 3].  Sweep: the spec that the answer writes, 30 replicates at n = 1e11, 3e12 and"
        " 1e14 on a lattice, log-masses within +-1.2.  Error of a block: the root mean square"
        " deviation of the two atoms of a cell, weighted by their shares.  A block agrees where the"
        " 95% bootstrap interval of the slope of the error's 90% quantile holds -1/(2 r).  All fits"
        " enter.  *n seen* is the tool's size at the time of the prediction; it took distances on"
        " the samples of the search, which are too small, so that these sizes are up to thirty"
        " times larger than what it says now."
    )
    yield ""
    yield "| seed | family |"
    yield "|---|---|"
    yield from (f"| {one['seed']} | {one['family']} |" for one in drawn)
    yield ""
    yield (
        "| seed | block | r | status | n seen | theory | 90% quantile | median"
        " | largest deviation, 90% | agrees |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for row in found:
        slopes = [
            "" if (own := row["slopes"][name]) is None else "{:.3f} [{:.3f}, {:.3f}]".format(*own)
            for name in ("spread 0.9", "spread 0.5", "largest 0.9")
        ]
        cells = [
            str(row["seed"]),
            f"`{row['block']}`",
            f"{'>= ' if row['at_least'] else ''}{row['r']:g}",
            row["status"],
            "" if row["n_seen"] is None else f"{row['n_seen']:.0e}",
            f"{row['theory']:.3f}",
            *slopes,
            {True: "yes", False: "no", None: ""}[row["agrees"]],
        ]
        yield "| " + " | ".join(cells) + " |"


def _errors(store: Path) -> dict[str, list[tuple[float, float, float]]]:
    """Of each block, size, root mean square and largest deviation in cells of two atoms."""
    with open_store(store) as opened:
        records = [record for record in opened.records() if record.status == DONE]
        spec = as_fits(opened.spec)
    (curve,) = spec.curves
    fitted, target, loss = spec.fitted_family(curve), spec.target(curve), make_loss(curve.loss)
    found: dict[str, list[tuple[float, float, float]]] = {}
    for record in records:
        theta = np.array(record.params)
        terms = voronoi_terms(fitted.measure(theta), target, loss)
        blocks = fitted.measure(theta).atoms
        masses = np.exp(fitted.unpack(theta)["gamma"])
        for j in range(len(terms.cell_sizes)):
            mine = np.flatnonzero(np.asarray(terms.assignment) == j)
            if mine.size != 2:
                continue
            shares = masses[mine] / masses[mine].sum()
            for name, values in blocks.items():
                gaps = np.ravel(values[mine]) - np.ravel(target.atoms[name][j])
                spread = float(np.sqrt(shares @ gaps**2))
                found.setdefault(name, []).append((record.n, spread, float(np.abs(gaps).max())))
    return found


if __name__ == "__main__":
    typer.run(main)
