"""Errors at the numbers of rows of `moestat.required_n`, by simulation.

``python benchmarks/required_rows.py`` writes results/required_rows.json; with numbers it runs
these merging truths alone.  Regular: at twenty random
truths of two experts the mean squared error of 40 fits, started at the truth, over the one asked
for, which is the ratio of the rows that it takes to those predicted.  Merging: at ten random truths
in which two experts are equal, the root mean squared error of 400 other fits at the number of rows
found, half and twice as many, and the ratio at which a power law through these three has the error
asked for, with its 95% interval by the bootstrap.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import moestat
from moestat.estimation.studies.required import Merged, equal_experts

DESIGN = moestat.Uniform(-1, 1)


def regular(seed: int, fits: int = 40) -> dict[str, Any]:
    """Rows and the ratio of mean squared errors at one truth of two experts that differ."""
    rng, name = np.random.default_rng(seed), ("gaussian", "poisson")[seed % 2]
    family = moestat.family(name, gate="softmax", n_experts=2)
    slope = rng.uniform(1, 3)
    blocks = {
        "beta0": [rng.normal() * 0.5, 0],
        "beta1": [rng.uniform(2, 4), 0],
        "a": [slope, -slope],
        "b": [rng.normal() * 0.3, 1.0],
    }
    if name == "gaussian":
        blocks["nu"] = [0.1, 0.2]
    truth = family.pack(blocks)
    error = 0.08 if name == "gaussian" else 0.12
    need = moestat.required_n(family, truth, DESIGN, error=error, what="a[1,0]")
    found = []
    for k in range(fits):
        X, y = moestat.sample(family, truth, n=need.n, rng=1000 * seed + k, design=DESIGN)
        start = [moestat.starts.GivenStarts([truth])]
        slopes = moestat.fit(family, X, y, starts=start, rng=0).blocks["a"][:, 0]
        found.append(slopes[np.argmin(np.abs(slopes - slope))] - slope)
    ratio = float(np.mean(np.square(found)) / error**2)
    return {"likelihood": name, "experts": "2", "error": error, "n": need.n, "ratio": ratio}


def merging(seed: int, fits: int = 400) -> dict[str, Any]:
    """The same at a truth with two equal experts, alone or beside another one."""
    rng, k = np.random.default_rng(100 + seed), 2 + seed % 2
    family = moestat.family("gaussian", gate="softmax", n_experts=k)
    slope, level, noise = rng.uniform(1, 3), rng.normal(), rng.uniform(0.2, 0.4)
    blocks = {
        "beta0": [0.0] * k,
        "beta1": [0.0] * (k - 1) + [0.0 if k == 2 else 4.0],
        "a": [slope, slope, -slope][:k],
        "b": [level, level, level + 2.0][:k],
        "nu": [noise] * k,
    }
    truth = family.pack(
        {name: np.subtract(v, v[-1]) if name == "beta1" else v for name, v in blocks.items()}
    )
    error = 0.3
    need = moestat.required_n(family, truth, DESIGN, error=error, what="a[1,0]", rng=seed)
    row = np.array([name == "a[1,0]" for name in family.param_names], dtype=float)
    merged = Merged(family, truth, equal_experts(family, truth), row, DESIGN, fits)
    factors = np.array([0.5, 1.0, 2.0])
    squares = [merged.squares(need.n * factor, rng) for factor in factors]
    draws = np.array([np.mean(rng.choice(each, (400, each.size)), axis=1) for each in squares])
    means = np.column_stack([[each.mean() for each in squares], draws])
    slopes, levels = np.polyfit(np.log(factors), 0.5 * np.log(means), 1)
    ratios = np.exp((np.log(error) - levels) / slopes)
    return {
        "truth": seed,
        "likelihood": "gaussian",
        "experts": f"{k}, two of them equal",
        "error": error,
        "n": need.n,
        "interval": need.interval,
        "exponent": need.exponent,
        "root mean squared errors": np.sqrt(means[:, 0]).tolist(),
        "ratio": float(ratios[0]),
        "ratio, 95%": np.quantile(ratios[1:], [0.025, 0.975]).tolist(),
    }


def curve(what: str, fits: int = 20) -> dict[str, Any]:
    """Errors of one of two equal lines from 1e5 to 1e10 rows, with 95% ends by the bootstrap."""
    family = moestat.family("gaussian", gate="softmax", n_experts=2)
    blocks = {"beta0": [0, 0], "beta1": [0, 0], "a": [3, 3], "b": [1, 1], "nu": [0.25, 0.25]}
    truth, rng = family.pack(blocks), np.random.default_rng(0)
    row = np.array([name == what for name in family.param_names], dtype=float)
    merged = Merged(family, truth, equal_experts(family, truth), row, DESIGN, fits)
    rows = []
    for n in 10.0 ** np.arange(5, 11):
        squares = merged.squares(n, rng)
        draws = np.sqrt(np.mean(rng.choice(squares, (400, squares.size)), axis=1))
        rows.append([n, float(np.sqrt(squares.mean())), *np.quantile(draws, [0.025, 0.975])])
    return {"what": what, "rows": rows}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    path = Path(__file__).with_name("results") / "required_rows.json"
    alone = [int(case) for case in sys.argv[1:]]
    record: dict[str, Any] = {"curves": [], "regular": [], "merging": []}
    if alone:
        record = json.loads(path.read_text("utf-8"))
        record["merging"] = [row for row in record["merging"] if row.get("truth") not in alone]
    parts: Any = (
        ("curves", curve, () if alone else ("a[1,0]", "b[1]")),
        ("regular", regular, () if alone else range(20)),
        ("merging", merging, alone or range(10)),
    )
    for kind, simulate, cases in parts:
        for case in cases:
            record[kind].append(simulate(case))
            print(kind, *(f"{value}" for value in record[kind][-1].values()), flush=True)
            path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
