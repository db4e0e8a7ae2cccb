"""Coverage of 95% intervals where a part of the parameters is not identified.

``python benchmarks/unidentified_coverage.py [--sets 1000]`` draws data whose likelihood has no
finite maximum, or columns repeat each other, and counts how often intervals of what is identified
hold the truth; results/unidentified_coverage.json.  Normal intervals of maximum likelihood with an
estimated variance are too short for few rows of an expert: by the root of 1 - p/n, and by normal
quantiles in place of Student's. Student's interval stands beside them, and the same interval of a
regression of the rows of one expert alone; counts have no variance.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from scipy.stats import linregress, t

import moestat

Rng = np.random.Generator
Held = Iterator[tuple[str, bool]]


def holds(estimate: float, error: float, truth: float) -> bool:
    """Whether the normal interval of an estimate holds the truth."""
    return bool(abs(estimate - truth) <= 1.959964 * error)


def empty_level(rng: Rng) -> Held:
    """Counts of three levels, of which one has 0 only."""
    level = np.repeat([0, 1, 2], 40)
    y = np.where(level == 2, 0, rng.poisson(np.array([3.0, 5.0, 0.0])[level]))
    table = {"y": y, "g": np.array(["a", "b", "c"])[level]}
    fit = moestat.fit_formula("y ~ g", table, "poisson", n_experts=1, rng=0)
    at = dict(zip(fit.param_names, zip(fit.theta, fit.theta_bse, strict=True), strict=True))
    yield "empty level: intercept", holds(*at["b[1]"], np.log(3.0))
    yield "empty level: contrast", holds(*at["a[1,g[T.b]]"], np.log(5.0 / 3.0))
    low, high = fit.get_prediction({"g": ["b"]}).conf_int()[0]
    yield "empty level: mean of another level", bool(low <= 5.0 <= high)


def aliased(rng: Rng) -> Held:
    """A line with every level of a factor beside the intercept."""
    n = 150
    level = rng.integers(0, 3, n)
    x = rng.normal(size=n)
    X = np.column_stack([x, np.eye(3)[level]])
    y = 1 + 2 * x + np.array([0.0, 1.0, -1.0])[level] + rng.normal(size=n)
    fit = moestat.fit("gaussian", X, y, n_experts=1, rng=0)
    at = fit.param_names.index("a[1,0]")
    yield "aliased: slope", holds(fit.theta[at], fit.bse[at], 2.0)
    test = fit.t_test("a[1,2] - a[1,1] = 0")
    yield "aliased: contrast", holds(float(test.effect[0]), float(test.sd[0]), 1.0)


def separated(n: int, jump: bool) -> Callable[[Rng], Held]:
    """Two lines over intervals that do not meet; the lines meet in the gap, or `jump` there.

    Beside them the same interval of least squares of the rows of the left line alone, whose
    members are known, with the maximum-likelihood variance and with Student's interval.
    """

    def draw(rng: Rng) -> Held:
        x = np.r_[rng.uniform(0, 1, n // 2), rng.uniform(2, 3, n // 2)]
        right = -3 * x if jump else 10 - 3 * x
        y = np.where(x < 1.5, 1 + 2 * x, right) + 0.5 * rng.normal(size=n)
        fit = moestat.fit("gaussian", x, y, n_experts=2, rng=0)
        error = fit.theta_bse
        places = fit.family.blocks
        i = int(np.argmin(np.abs(fit.blocks["a"][:, 0] - 2.0)))
        label = f"lines that {'jump' if jump else 'meet'} beside a gap, n = {n}"
        slope, own = fit.blocks["a"][i, 0], error[places["a"][i, 0]]
        yield f"{label}: slope", holds(slope, own, 2.0)
        yield f"{label}: intercept", holds(fit.blocks["b"][i], error[places["b"][i]], 1.0)
        low, high = fit.get_prediction([0.5]).conf_int()[0]
        yield f"{label}: mean", bool(low <= 2.0 <= high)
        m = n // 2
        student = np.sqrt(m / (m - 2)) * t.ppf(0.975, m - 2) / 1.959964
        yield f"{label}: slope, Student", holds(slope, own * student, 2.0)
        line = linregress(x[:m], y[:m])
        least = line.stderr * np.sqrt((m - 2) / m)
        yield f"{label}: slope of the left rows alone", holds(line.slope, least, 2.0)

    return draw


def separated_counts(jump: bool) -> Callable[[Rng], Held]:
    """Two Poisson laws over intervals that do not meet, no scale to estimate."""

    def draw(rng: Rng) -> Held:
        n = 200
        x = np.r_[rng.uniform(0, 1, n // 2), rng.uniform(2, 3, n // 2)]
        y = rng.poisson(np.exp(np.where(x < 1.5, 1 + x, (6 if jump else 5) - x)))
        fit = moestat.fit("poisson", x, y, n_experts=2, rng=0)
        error, places = fit.theta_bse, fit.family.blocks
        i = int(np.argmax(fit.blocks["a"][:, 0]))
        label = f"counts that {'jump' if jump else 'meet'} beside a gap, n = {n}"
        yield f"{label}: slope", holds(fit.blocks["a"][i, 0], error[places["a"][i, 0]], 1.0)
        low, high = fit.get_prediction([0.5]).conf_int()[0]
        yield f"{label}: mean", bool(low <= np.exp(1.5) <= high)

    return draw


DESIGNS = (
    *(empty_level, aliased),
    *(separated(n, jump) for jump in (True, False) for n in (60, 200, 800)),
    *(separated_counts(jump) for jump in (True, False)),
)


def main() -> None:
    """Count, print and store."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sets", type=int, default=1000)
    count = parser.parse_args().sets
    warnings.simplefilter("ignore")
    rows = []
    for design in DESIGNS:
        found: dict[str, list[bool]] = {}
        for seed in range(count):
            for name, held in design(np.random.default_rng(seed)):
                found.setdefault(name, []).append(held)
        for name, held in found.items():
            rows.append({"interval": name, "sets": len(held), "coverage": float(np.mean(held))})
            print(f"{name:45s} {len(held)} {np.mean(held):.3f}", flush=True)
    path = Path(__file__).with_name("results") / "unidentified_coverage.json"
    if count >= 1000:
        path.write_text(json.dumps({"nominal": 0.95, "rows": rows}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
