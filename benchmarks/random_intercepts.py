"""Random intercepts of counts and binary responses beside brute force and lme4::glmer(nAGQ = 25).

    python benchmarks/random_intercepts.py

Forty data sets of 40 groups of five rows, with standard deviations of the intercepts from .1 to 100
in logarithmic steps, in turn binary responses and counts (up to a deviation of 3, beyond which
counts have no use).  The log-likelihood of each fit, and of glmer's estimates, is computed again by
Gauss's rule over panels that are halved until nothing changes, over effects up to 38 standard
deviations, beyond which the normal density is 0 in double precision.  The first panels are narrow
about each value of the effect at which the predictor of a row is 0, so that no answer's cliff is
missed, however large the standard deviation is.  Then the processor time of fits to larger tables,
in turn with glmer.  Rscript with lme4 is needed; results/random_intercepts.md is written.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from results import FOLDER
from scipy.special import gammaln

import moestat

PLACES, WEIGHTS = np.polynomial.legendre.leggauss(16)
SIZES = ((40, 5), (500, 5), (200, 20), (2000, 5))


def data_set(number: int, n: int = 40, m: int = 5) -> tuple[pd.DataFrame, str, float]:
    """Rows, the name of the likelihood and the standard deviation of one data set."""
    rng = np.random.default_rng(number)
    name = "poisson" if number % 2 else "binomial"
    sd = float(np.geomspace(0.1, 3.0 if name == "poisson" else 100.0, 20)[number // 2])
    owner, x = np.repeat(np.arange(n), m), rng.normal(size=n * m)
    eta = 0.3 + 0.5 * x + sd * rng.normal(size=n)[owner]
    y = (
        rng.poisson(np.exp(eta))
        if name == "poisson"
        else rng.random(n * m) < 1 / (1 + np.exp(-eta))
    )
    return pd.DataFrame({"id": owner, "x": x, "y": y.astype(float)}), name, sd


def height(table: pd.DataFrame, name: str, theta: np.ndarray) -> float:
    """The log-likelihood at an intercept, a slope and a standard deviation, by brute force."""
    return sum(
        _of_group(rows["y"].to_numpy(), theta[0] + theta[1] * rows["x"].to_numpy(), theta[2], name)
        for _, rows in table.groupby("id")
    )


def _of_group(y: np.ndarray, eta: np.ndarray, sd: float, name: str) -> float:
    def log_of(v: np.ndarray) -> np.ndarray:
        at = eta[:, None] + sd * v
        if name == "poisson":
            # Predictors beyond 700 have a probability of 0.
            log = y[:, None] * at - np.exp(np.minimum(at, 700.0)) - gammaln(y + 1.0)[:, None]
        else:
            log = y[:, None] * at - np.logaddexp(0.0, at)
        return log.sum(axis=0) - 0.5 * v**2 - 0.5 * np.log(2.0 * np.pi)

    edges = np.arange(-38.0, 38.0 + 1e-9, 0.25)
    if sd != 0.0:
        away = np.append(0.0, 2.0 ** np.arange(-2.0, 30.0))
        center = np.log(np.maximum(y, 0.5)) if name == "poisson" else 0.0
        spread = (np.concatenate([-away, away]) - (eta - center)[:, None]) / sd
        edges = np.unique(np.append(edges, spread[np.abs(spread) < 38.0]))
    top = float(log_of(np.linspace(-38.0, 38.0, 20001)).max())
    top = max(top, float(log_of(edges).max()))

    def by_panel(begin: np.ndarray, end: np.ndarray) -> np.ndarray:
        nodes = 0.5 * (begin + end)[:, None] + 0.5 * (end - begin)[:, None] * PLACES
        log = log_of(nodes.ravel()).reshape(nodes.shape)
        return 0.5 * (end - begin) * (np.exp(log - top) @ WEIGHTS)

    begin, end = edges[:-1], edges[1:]
    total, panels = 0.0, by_panel(begin, end)
    while begin.size:
        middle = 0.5 * (begin + end)
        halves = by_panel(begin, middle), by_panel(middle, end)
        change = np.abs(halves[0] + halves[1] - panels)
        rough = change > 1e-15 * (total + panels.sum())
        total += float((halves[0] + halves[1])[~rough].sum())
        begin, end = np.append(begin[rough], middle[rough]), np.append(middle[rough], end[rough])
        panels = np.append(halves[0][rough], halves[1][rough])
    return top + float(np.log(total))


def ours(table: pd.DataFrame, name: str) -> tuple[Any, float, list[str]]:
    """A fit, its processor seconds, and names of its warnings."""
    began = time.process_time()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        fit = moestat.fit_formula("y ~ x + (1 | id)", table, name, n_experts=1, rng=0)
    seconds = time.process_time() - began
    said = {w.category.__name__ for w in told if issubclass(w.category, UserWarning)}
    return fit, seconds, sorted(said)


def by_glmer(sets: dict[int, tuple[pd.DataFrame, str]]) -> dict[int, np.ndarray]:
    """Log-likelihood, intercept, slope, deviation, seconds and convergence of each data set."""
    rows = [table.assign(set=number, family=name) for number, (table, name) in sets.items()]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        pd.concat(rows).to_csv(path, index=False)
        script = Path(__file__).with_suffix(".R")
        out = subprocess.run(
            ["Rscript", str(script), str(path)], check=True, capture_output=True, text=True
        ).stdout
    lines = [np.array(line.split(), dtype=float) for line in out.splitlines()]
    return {int(line[0]): line[1:] for line in lines}


def forty() -> list[str]:
    """A row of the table for each data set, and the largest difference."""
    sets = {number: data_set(number) for number in range(40)}
    for name in ("binomial", "poisson"):  # compile
        ours(sets[int(name == "poisson")][0], name)
    other = by_glmer({number: (table, name) for number, (table, name, _) in sets.items()})
    lines, differences = list[str](), list[float]()
    for number, (table, name, sd) in sets.items():
        fit, seconds, said = ours(table, name)
        own = np.array([fit.params[key] for key in ("b[1]", "a[1,x]", "l[1,0]")])
        differences.append(abs(height(table, name, own) - fit.llf))
        llf, *theirs, other_seconds, content = other[number]
        at_theirs = height(table, name, np.array(theirs))
        lines.append(
            f"| {number} | {name} | {sd:.2f} | {abs(own[2]):.3f} | {fit.llf:.6f} |"
            f" {differences[-1]:.0e} | {seconds:.2f} | {theirs[2]:.3f} | {llf:.6f} |"
            f" {abs(llf - at_theirs):.0e} | {fit.llf - at_theirs:+.0e} | {other_seconds:.2f} |"
            f" {', '.join(said)}{'' if content else ' glmer warns'} |"
        )
        print(lines[-1], flush=True)
    lines.append(
        f"\nLargest difference of our log-likelihoods from brute force: {max(differences):.0e}."
    )
    return lines


def times() -> list[str]:
    """A row of the table for each size and family: medians of five data sets, in turn."""
    lines = list[str]()
    for n, m in SIZES:
        for first, name in ((14, "binomial"), (25, "poisson")):
            # Deviations of 1.3 and .9; the tables differ by their number.
            tables = [data_set(first, n, m)[0]]
            rng = np.random.default_rng(n + m)
            for _ in range(4):
                again = tables[0].copy()
                again["y"] = rng.permutation(again["y"].to_numpy().reshape(n, m)).ravel()
                tables.append(again)
            found = []
            for table in tables:
                fit, seconds, _ = ours(table, name)
                llf, *_, other_seconds, _ = by_glmer({0: (table, name)})[0]
                found.append((seconds, other_seconds, fit.llf - llf))
            one, two, gain = np.median(found, axis=0)
            lines.append(
                f"| {name} | {n} | {m} | {one:.2f} | {two:.2f} | {one / two:.1f} | {gain:+.0e} |"
            )
            print(lines[-1], flush=True)
    return lines


def main() -> None:
    """Measure and write the page."""
    page = [
        "# Random intercepts beside brute force and glmer",
        "",
        'See benchmarks/random_intercepts.py. "Error" is the difference of a program\'s'
        " log-likelihood from brute force at its own estimates; the gain is the brute-force"
        " log-likelihood at our estimates less that at glmer's (nAGQ = 25). Seconds of the"
        " processor.",
        "",
        "| set | family | sd | estimate | log-likelihood | error | s | glmer's estimate | its"
        " log-likelihood | error | gain | s | warnings |",
        "|" + "---|" * 13,
        *forty(),
        "",
        "## Processor time",
        "",
        "Medians of five tables, each fitted by both in turn; the last column is the difference of"
        " the log-likelihoods as the programs report them.",
        "",
        "| family | groups | rows of a group | ours, s | glmer, s | ratio | difference |",
        "|" + "---|" * 7,
        *times(),
    ]
    (FOLDER / "random_intercepts.md").write_text("\n".join(page) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
