"""How often fits warn of what their data are not: on regular data, and on misleading ones.

``python benchmarks/alarms.py`` writes results/alarms.json, which a page of the site reads: 200
data sets of each situation, with 300 rows; with groups 200 of them with 6 rows each, and 100 data
sets of each situation for a selection of 1 to 4 experts.
"""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import moestat
from moestat.base.warnings import (
    DependentRowsWarning,
    EdgeWarning,
    FewRowsWarning,
    MisfitWarning,
    MoEWarning,
)

KINDS = (MisfitWarning, DependentRowsWarning, FewRowsWarning)
N, FITS, SELECTIONS = 300, 200, 100
GROUPS, TIMES = 200, 6

Rng = np.random.Generator
Data = tuple[Any, ...]
"""Inputs and responses, and the labels of groups where there are any."""


def line(rng: Rng, n: int = N) -> Data:
    """One line with normal errors."""
    x = rng.uniform(-1, 1, n)
    return x, 1 + 2 * x + 0.5 * rng.normal(size=n)


def lines(rng: Rng, n: int = N) -> Data:
    """Two lines, the left one and the right one."""
    x = rng.uniform(-1, 1, n)
    right = rng.random(n) < 1 / (1 + np.exp(-4 * x))
    return x, np.where(right, 2 * x, 1 - 2 * x) + 0.4 * rng.normal(size=n)


def counts(rng: Rng, n: int = N) -> Data:
    """Poisson counts, mean exp(1 + x)."""
    x = rng.uniform(-1, 1, n)
    return x, rng.poisson(np.exp(1 + x))


def two_counts(rng: Rng, n: int = N) -> Data:
    """Counts of two Poisson laws."""
    x = rng.uniform(-1, 1, n)
    right = rng.random(n) < 1 / (1 + np.exp(-4 * x))
    return x, rng.poisson(np.exp(np.where(right, 2.5 - x / 2, 0.5 + x)))


def classes(rng: Rng, n: int = N) -> Data:
    """Two classes, their odds a line on either side."""
    x = rng.uniform(-2, 2, n)
    odds = np.exp(np.where(x > 0, 3 * x - 1, -2 * x - 1))
    return x, (rng.random(n) < odds / (1 + odds)).astype(int)


def plane(rng: Rng) -> Data:
    """Two planes of three inputs."""
    X = rng.normal(size=(N, 3))
    right = rng.random(N) < 1 / (1 + np.exp(-3 * X[:, 0]))
    return X, np.where(right, 2 + X[:, 1], X[:, 2] - 2) + 0.5 * rng.normal(size=N)


def positive(rng: Rng) -> Data:
    """Gamma responses."""
    x = rng.uniform(-1, 1, N)
    return x, rng.gamma(2.0, np.exp(1 + x) / 2.0)


def overdispersed(rng: Rng) -> Data:
    """Negative binomial counts, dispersion 0.5."""
    x = rng.uniform(-1, 1, N)
    mean = np.exp(1 + x)
    return x, rng.negative_binomial(2.0, 2.0 / (2.0 + mean))


def inflated(base: Callable[[Rng], Data], share: float = 0.3) -> Callable[[Rng], Data]:
    """Other responses with a share of zeros."""

    def draw(rng: Rng) -> Data:
        x, y = base(rng)
        return x, np.where(rng.random(len(y)) < share, 0, y)

    return draw


def rounded(rng: Rng) -> Data:
    """Two lines, responses and inputs to one decimal."""
    x, y = lines(rng)
    return x.round(1), y.round(1)


def levels(rng: Rng) -> Data:
    """Responses of five levels."""
    x, y = line(rng)
    return x, np.clip(y.round(), -1, 3)


def outliers(base: Callable[[Rng], Data], share: float = 0.01) -> Callable[[Rng], Data]:
    """Other responses, of which three of 300 are 50 higher."""

    def draw(rng: Rng) -> Data:
        x, y = base(rng)
        return x, y + 50 * (np.arange(N) < share * N)

    return draw


def long_tails(rng: Rng) -> Data:
    """Two lines with errors of Student's law with two degrees of freedom."""
    x = rng.uniform(-1, 1, N)
    right = rng.random(N) < 1 / (1 + np.exp(-4 * x))
    return x, np.where(right, 2 * x, 1 - 2 * x) + 0.4 * rng.standard_t(2, N)


def long_tails_one(rng: Rng) -> Data:
    """One line with such errors."""
    x = rng.uniform(-1, 1, N)
    return x, 2 * x + 0.4 * rng.standard_t(2, N)


def repeated(base: Callable[[Rng, int], Data], times: int) -> Callable[[Rng], Data]:
    """Rows that are there several times."""

    def draw(rng: Rng) -> Data:
        x, y = base(rng, N // times)
        order = rng.permutation(np.repeat(np.arange(len(y)), times))
        return x[order], y[order]

    return draw


def subjects(rng: Rng, ordered: bool, own: bool) -> Data:
    """Thirty subjects of ten rows with effects of their own; `own` says that each has one input."""
    subject = np.repeat(np.arange(30), 10)
    x = rng.uniform(-1, 1, 30)[subject] if own else rng.uniform(-1, 1, N)
    y = 1 + 2 * x + 0.4 * rng.normal(size=30)[subject] + 0.4 * rng.normal(size=N)
    order = np.arange(N) if ordered else rng.permutation(N)
    return x[order], y[order]


def numbered(rng: Rng) -> Data:
    """Such subjects, their number an input beside x."""
    subject = rng.permutation(np.repeat(np.arange(30), 10))
    x = rng.uniform(-1, 1, N)
    y = 1 + 2 * x + 0.4 * rng.normal(size=30)[subject] + 0.4 * rng.normal(size=N)
    return np.column_stack([x, subject]), y


def nearly_empty(rng: Rng) -> Data:
    """A line, and six rows of another beyond x = 1."""
    x = np.r_[rng.uniform(-1, 1, N - 6), rng.uniform(1.2, 1.6, 6)]
    return x, np.where(x > 1.1, -3 - 2 * x, 2 * x) + 0.4 * rng.normal(size=N)


def two_values(rng: Rng) -> Data:
    """Two lines over an input of 0 and 1, with equal variances."""
    x = rng.integers(0, 2, N).astype(float)
    right = rng.random(N) < 0.3 + 0.4 * x
    return x, np.where(right, 2 + 2 * x, -2 * x) + 0.4 * rng.normal(size=N)


def growth(intercept: float, slope: float = 0.0, classes: int = 1) -> Callable[[Rng], Data]:
    """Subjects seen at 6 times, in one or two classes, with random intercepts and slopes."""

    def draw(rng: Rng) -> Data:
        subject, t = np.repeat(np.arange(GROUPS), TIMES), np.tile(np.arange(float(TIMES)), GROUPS)
        second = (rng.random(GROUPS) < 0.4 * (classes - 1))[subject]
        own = intercept * rng.normal(size=GROUPS)[subject]
        own += slope * rng.normal(size=GROUPS)[subject] * (t - t.mean())
        y = 1 + 0.3 * t + second * (1 - 0.6 * t) + own + 0.5 * rng.normal(size=t.size)
        return t, y, subject

    return draw


def counted(sd: float) -> Callable[[Rng], Data]:
    """Counts of subjects whose logarithmic means have random intercepts."""

    def draw(rng: Rng) -> Data:
        subject, t = np.repeat(np.arange(GROUPS), TIMES), np.tile(np.arange(float(TIMES)), GROUPS)
        mean = np.exp(0.5 + 0.2 * t + sd * rng.normal(size=GROUPS)[subject])
        return t, rng.poisson(mean), subject

    return draw


REGULAR: dict[str, Any] = {
    "one line": ("gaussian", 1, line),
    "two lines": ("gaussian", 2, lines),
    "two lines, to one decimal": ("gaussian", 2, rounded),
    "two planes": ("gaussian", 2, plane),
    "one line, least squares": ("least-squares", 1, line),
    "two lines, Student's law": ("student-t", 2, long_tails),
    "Poisson": ("poisson", 1, counts),
    "two Poisson laws": ("poisson", 2, two_counts),
    "negative binomial": ("negative-binomial", 1, overdispersed),
    "zero-inflated Poisson": ("zero-inflated-poisson", 1, inflated(counts)),
    "gamma": ("gamma", 1, positive),
    "classes": ("multinomial", 2, classes),
    "one line, groups": ("gaussian", 1, growth(0.0)),
    "one line, groups, an expert too many: dependence alone": (
        *("gaussian", 2, growth(0.0), DependentRowsWarning),
    ),
    "two lines, groups": ("gaussian", 2, growth(0.0, classes=2)),
    "Poisson, groups": ("poisson", 1, counted(0.0)),
}

MISLEADING: dict[str, tuple[Any, int, Callable[[Rng], Data], type]] = {
    "3 of 300 responses 50 higher, one line": ("gaussian", 1, outliers(line), MisfitWarning),
    "the same, two lines": ("gaussian", 2, outliers(lines), KINDS),
    "errors of Student's law, two degrees, one line": (
        *("gaussian", 1, long_tails_one, MisfitWarning),
    ),
    "such errors, two lines": ("gaussian", 2, long_tails, MisfitWarning),
    "5% of the responses exactly 0, one line": ("gaussian", 1, inflated(line, 0.05), MisfitWarning),
    "the same, two experts": ("gaussian", 2, inflated(lines, 0.05), MisfitWarning),
    "responses of five levels": ("gaussian", 1, levels, MisfitWarning),
    "30% more zeros, Poisson": ("poisson", 1, inflated(counts), MisfitWarning),
    "negative binomial counts, Poisson": ("poisson", 1, overdispersed, MisfitWarning),
    "each row 25 times": ("gaussian", 1, repeated(line, 25), DependentRowsWarning),
    "each row twice, two lines": ("gaussian", 2, repeated(lines, 2), DependentRowsWarning),
    "each row twice, Poisson": ("poisson", 1, repeated(counts, 2), DependentRowsWarning),
    "each row 5 times, classes": ("multinomial", 2, repeated(classes, 5), DependentRowsWarning),
    "30 subjects, one input each": (
        *("gaussian", 1, lambda rng: subjects(rng, False, True), DependentRowsWarning),
    ),
    "30 subjects, rows in their order": (
        *("gaussian", 1, lambda rng: subjects(rng, True, False), DependentRowsWarning),
    ),
    "30 subjects, their number an input": ("gaussian", 1, numbered, DependentRowsWarning),
    "six rows beyond the others": ("gaussian", 2, nearly_empty, KINDS),
    "two lines over an input of 0 and 1": ("gaussian", 2, two_values, FewRowsWarning),
    "one line, groups, random intercepts of sd 0.3": (
        *("gaussian", 1, growth(0.3), DependentRowsWarning),
    ),
    "two lines, groups, random intercepts of sd 0.3": (
        *("gaussian", 2, growth(0.3, classes=2), DependentRowsWarning),
    ),
    "one line, groups, random slopes of sd 0.15": (
        *("gaussian", 1, growth(0.0, 0.15), DependentRowsWarning),
    ),
    "Poisson, groups, random intercepts of sd 0.3": (
        *("poisson", 1, counted(0.3), DependentRowsWarning),
    ),
}

CHOICES: dict[str, tuple[Callable[[Rng], Data], int]] = {
    f"{'one line' if k == 1 else 'two lines'}, random intercepts of sd {sd:g}": (
        *(growth(sd, classes=k), k),
    )
    for k in (1, 2)
    for sd in (0.0, 0.3, 0.7)
}


def said(likelihood: Any, k: int, draw: Callable[[Rng], Data], seed: int) -> set[str]:
    """Kinds of warnings of a fit to the data of a seed."""
    x, y, *groups = draw(np.random.default_rng(seed))
    own: dict[str, Any] = {"groups": groups[0], "gate_inputs": []} if groups else {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        moestat.fit(likelihood, x, y, n_experts=k, rng=seed, **own)
    return {w.category.__name__ for w in caught if issubclass(w.category, KINDS)}


def chosen(draw: Callable[[Rng], Data], seed: int) -> tuple[int, set[type]]:
    """The number of experts that BIC chooses from 1 to 4, and the kinds of warnings."""
    x, y, groups = draw(np.random.default_rng(seed))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = moestat.select(
            "gaussian", x, y, k=range(1, 5), groups=groups, gate_inputs=[], rng=seed
        )
    return found.chosen(), {w.category for w in caught if issubclass(w.category, MoEWarning)}


def selections(name: str, draw: Callable[[Rng], Data], k: int) -> dict[str, Any]:
    """What selections from data sets of a situation with k classes chose and warned of."""
    found = [chosen(draw, seed) for seed in range(SELECTIONS)]
    return {
        "situation": name,
        "data sets": SELECTIONS,
        "classes": k,
        "right": sum(size == k for size, _ in found),
        "largest": sum(size == 4 for size, _ in found),
        "dependence": sum(DependentRowsWarning in kinds for _, kinds in found),
        "edge": sum(EdgeWarning in kinds for _, kinds in found),
    }


def main() -> None:
    """Count, print and store."""
    record: dict[str, Any] = {"regular": [], "misleading": []}
    for group, situations in (("regular", REGULAR), ("misleading", MISLEADING)):
        for name, (likelihood, k, draw, *right) in situations.items():
            seen = [said(likelihood, k, draw, seed) for seed in range(FITS)]
            expected = right[0] if right else KINDS
            names = {e.__name__ for e in (expected if isinstance(expected, tuple) else (expected,))}
            row = {
                "situation": name,
                "likelihood": likelihood,
                "experts": k,
                "fits": FITS,
                "alarms": sum(bool(each & names) for each in seen),
                "kinds": dict(sorted(Counter(kind for each in seen for kind in each).items())),
            }
            record[group].append(row)
            print(group, *row.values(), flush=True)
    record["selections"] = [selections(name, *choice) for name, choice in CHOICES.items()]
    for row in record["selections"]:
        print("selections", *row.values(), flush=True)
    path = Path(__file__).with_name("results") / "alarms.json"
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
