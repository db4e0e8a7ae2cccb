"""Where the likelihood has no finite maximum: its fit at the bound, and the mode with a weak prior.

    python benchmarks/separation.py real [--minutes 9]
    python benchmarks/separation.py simulated [--sets 40] [--minutes 9]
    python benchmarks/separation.py calls [--minutes 9]
    python benchmarks/separation.py page

`real`: of the real sets of benchmarks/search.py with two, three and four experts those whose
default call says that the likelihood has no finite maximum.  Five folds each: the mean log-density
of held-out rows, for the default call and with ``prior="weak"``, from the same seeds.

`simulated`: four truths under which data are separated, or nearly so; fits to so many data sets of
each, the mean log-density of 2,000 fresh rows, and how often 95% intervals of five means, or of
the probabilities of the first class, hold the truth.

`calls`: 32 truths of three classes with three or four experts and one to three inputs, coefficients
normal with standard deviation 1.5, 2,000 rows: how many of four calls from other seeds end more
than .01 lower than the best of them, for the default call and with the prior.  Most of these
likelihoods have no finite maximum.

Lines are added to results/separation.jsonl, and what is there is not run again; `page` writes
results/separation.md.  A difference is that of the mode less the maximum, so that above 0 the mode
predicts better.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from results import FOLDER

import moestat

PATH = FOLDER / "separation.jsonl"
FOLDS, ROWS, FRESH = 5, 1500, 2000
WAYS: dict[str, dict[str, Any]] = {"maximum": {}, "mode": {"prior": "weak"}}
CALLED, CALLED_CASE, CALLS, LOWER = 2000, "calls on three classes", 4, 0.01
CATASTROPHE = -1.0
"""Mean log-density of a row that a difference falls below where predictions are ruined."""

Rng = np.random.Generator


def held_out(family: Any, X: Any, y: Any, labels: np.ndarray, options: Any) -> list[float]:
    """Mean log-density of the rows of each fold at a fit to the others; nan where it is refused."""
    found = []
    for fold in range(FOLDS):
        out = labels == fold
        try:
            fit = moestat.fit(family, X[~out], y[~out], rng=fold, threads=1, **options)
        except ValueError:  # such as a class that the other folds do not have
            found.append(float("nan"))
            continue
        found.append(float(np.mean(fit.score_samples(X[out], y[out]))))
    return found


def real_line(case: Any) -> dict[str, Any] | None:
    """What is found of a real set; None where the likelihood has a finite maximum."""
    step = -(-len(case.y) // ROWS)
    X, y = case.X[::step], case.y[::step]
    whole = moestat.fit(case.family, X, y, rng=0, threads=1)
    if "SeparationWarning" not in whole.kinds:
        return None
    labels = np.random.default_rng(0).permutation(np.arange(len(y)) % FOLDS)
    scores = {way: held_out(case.family, X, y, labels, options) for way, options in WAYS.items()}
    return {"n": len(y), "likelihood": case.family.likelihood.name} | scores


def real_cases() -> Iterator[tuple[str, Callable[[], dict[str, Any] | None]]]:
    """Names of cases, and what finds their lines."""
    from search import real

    for case in real("softmax"):
        yield case.name, partial(real_line, case)


def jump(rng: Rng, n: int) -> tuple[Any, Any, Any]:
    """Two regressions with a jump between them at 0: X (n, 1), y (n,) and means."""
    x = rng.uniform(-1.0, 1.0, n)
    mean = np.where(x > 0.0, 3.0 + x, -x)
    return x[:, None], mean + 0.3 * rng.normal(size=n), mean


def steep(rng: Rng, n: int) -> tuple[Any, Any, Any]:
    """Two regressions with a steep gate, which few rows show: as `jump`."""
    x = rng.uniform(-1.0, 1.0, n)
    share = 1.0 / (1.0 + np.exp(-20.0 * x))
    y = np.where(rng.random(n) < share, 3.0 + x, -x) + 0.3 * rng.normal(size=n)
    return x[:, None], y, share * (3.0 + x) - (1.0 - share) * x


def few_classes(rng: Rng, n: int) -> tuple[Any, Any, Any]:
    """Two classes of a logistic regression with two inputs, which few rows separate."""
    X = rng.normal(size=(n, 2))
    p = 1.0 / (1.0 + np.exp(-3.0 * X[:, 0] - 2.0 * X[:, 1]))
    return X, np.where(rng.random(n) < p, 1, 2), p


def empty_region(rng: Rng, n: int) -> tuple[Any, Any, Any]:
    """Counts whose mean is small on one side of 0, where few rows have only zeros."""
    x = rng.uniform(-1.0, 1.0, n)
    mean = np.where(x > 0.0, np.exp(1.5 + 0.5 * x), 0.05)
    return x[:, None], rng.poisson(mean), mean


TRUTHS: dict[str, tuple[Callable[..., Any], str, int, tuple[int, ...]]] = {
    "a jump": (jump, "gaussian", 2, (60, 200)),
    "a steep gate": (steep, "gaussian", 2, (60, 200)),
    "two classes, one expert": (few_classes, "multinomial", 1, (15, 30)),
    "nearly no counts on one side": (empty_region, "poisson", 2, (60, 200)),
}


def at_points(draw: Callable[..., Any], rng: Rng) -> tuple[np.ndarray, np.ndarray]:
    """Five inputs, and the means there."""
    X, _, mean = draw(rng, 5)
    return X, mean


def intervals_at(fit: Any, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ends of 95% intervals at points; of no length at nan where a mean overflows."""
    try:
        intervals = np.asarray(fit.get_prediction(points).conf_int())
    except ValueError:
        return np.full(len(points), np.nan), np.full(len(points), np.nan)
    if intervals.ndim == 3:  # of classes: the first one's
        intervals = intervals[:, 0]
    return intervals[:, 0], intervals[:, 1]


def simulated_line(name: str, n: int, number: int) -> dict[str, Any] | None:
    """What is found of a data set; None where there is no fit to it, as of one class."""
    draw, likelihood, k, _ = TRUTHS[name]
    rng = np.random.default_rng([number, n])
    X, y, _ = draw(rng, n)
    fresh = draw(rng, FRESH)
    points, means = at_points(draw, rng)
    found: dict[str, Any] = {"n": n, "likelihood": likelihood}
    for way, options in WAYS.items():
        try:
            fit = moestat.fit(likelihood, X, y, n_experts=k, rng=0, threads=1, **options)
        except ValueError:
            return None
        if way == "maximum":
            found["separated"] = "SeparationWarning" in fit.kinds
        low, high = intervals_at(fit, points)
        found[way] = float(np.mean(fit.score_samples(*fresh[:2])))
        found[f"{way} holds"] = int(np.sum((low <= means) & (means <= high)))
        found[f"{way} width"] = float(np.median(high - low))
    return found


def simulated_cases(sets: int) -> Iterator[tuple[str, Callable[[], dict[str, Any] | None]]]:
    """Names of data sets, and what finds their lines."""
    for number in range(sets):
        for name, (_, _, _, sizes) in TRUTHS.items():
            for n in sizes:
                yield f"{name}, n = {n}, {number}", partial(simulated_line, name, n, number)


def calls_line(k: int, d: int, number: int) -> dict[str, Any]:
    """Heights of calls from other seeds, and processor seconds of a call."""
    F = moestat.family("multinomial", gate="softmax", n_experts=k, n_features=d, n_classes=3)
    theta = 1.5 * np.random.default_rng(number).standard_normal(F.n_params)
    X, y = moestat.sample(F, theta, CALLED, rng=number + 1, design=moestat.Uniform(-2.0, 2.0))
    found: dict[str, Any] = {"k": k}
    for way, options in WAYS.items():
        began = time.process_time()
        fits = [moestat.fit(F, X, y, rng=seed, threads=1, **options) for seed in range(CALLS)]
        found[f"{way} seconds"] = (time.process_time() - began) / CALLS
        found[way] = [fit.log_posterior for fit in fits]
        found[f"{way} separated"] = sum("SeparationWarning" in fit.kinds for fit in fits)
        found[f"{way} warned"] = sum("DisagreementWarning" in fit.kinds for fit in fits)
    return found


def calls_cases() -> Iterator[tuple[str, Callable[[], dict[str, Any] | None]]]:
    """Names of truths, and what finds their lines."""
    for number in range(16):
        for k in (3, 4):
            yield (
                f"{CALLED_CASE}, k = {k}, {number}",
                partial(calls_line, k, 1 + number % 3, number),
            )


def collect(cases: Iterator[tuple[str, Callable[[], Any]]], minutes: float) -> None:
    """Add the lines of cases that have none, for so long."""
    known = set()
    if PATH.exists():
        known = {json.loads(line)["name"] for line in PATH.read_text().splitlines()}
    until = time.monotonic() + 60.0 * minutes
    warnings.simplefilter("ignore")
    for name, line in cases:
        if name in known:
            continue
        with PATH.open("a") as file:
            file.write(json.dumps({"name": name, "found": line()}) + "\n")
        if time.monotonic() > until:
            return


def real_rows(lines: list[dict[str, Any]]) -> list[str]:
    """The table of real sets, and its summary."""
    rows, gains = [], []
    finite = sum(line["found"] is None for line in lines)
    for line in lines:
        found = line["found"]
        if found is None:
            continue
        scores = np.array([found["maximum"], found["mode"]])
        scores = scores[:, np.isfinite(scores).all(axis=0)]
        if not scores.size:
            continue
        gain = scores[1] - scores[0]
        gains.append(gain.mean())
        cells = [line["name"], found["n"], f"{scores[0].mean():.3f}", f"{scores[1].mean():.3f}"]
        cells += [f"{gain.mean():+.3f}", f"{np.sum(gain > 0.0)} of {gain.size}"]
        rows.append(f"| {' | '.join(map(str, cells))} |")
    better = np.array(gains) > 0.0
    quantiles = ", ".join(f"{q:+.3f}" for q in np.quantile(gains, [0.0, 0.25, 0.5, 0.75, 1.0]))
    head = "| case | n | maximum | mode | difference | folds that the mode wins |"
    return [
        f"Of {len(lines)} real cases {finite} have a finite maximum. Of the other {len(gains)} the"
        f" mode predicts held-out rows better in {better.sum()}. Quartiles of the difference of"
        f" mean log-densities over cases: {quantiles}; the maximum loses more than"
        f" {-CATASTROPHE:g} a row in {np.sum(np.array(gains) > -CATASTROPHE)}, and the mode in"
        f" {np.sum(np.array(gains) < CATASTROPHE)}.",
        "",
        head,
        "|---|---|---|---|---|---|",
        *rows,
    ]


def simulated_rows(lines: list[dict[str, Any]]) -> list[str]:
    """The table of simulated data sets."""
    parts: dict[str, list[dict[str, Any]]] = {}
    for line in lines:
        if line["found"] is not None:
            parts.setdefault(line["name"].rsplit(", ", 1)[0], []).append(line["found"])
    rows = []
    for name, found in parts.items():
        for separated in (True, False):
            own = [each for each in found if each["separated"] is separated]
            if len(own) < 5:
                continue
            gain = np.array([each["mode"] - each["maximum"] for each in own])
            cells = [name, "no" if separated else "yes", str(len(own))]
            cells += [f"{np.median(gain):+.3f}", f"{gain.mean():+.3f}", f"{np.mean(gain > 0):.0%}"]
            for way in WAYS:
                held = np.mean([each[f"{way} holds"] for each in own]) / 5.0
                width = np.nanmedian([each[f"{way} width"] for each in own])
                cells += [f"{held:.0%} ({width:.2g})"]
            rows.append(f"| {' | '.join(cells)} |")
    head = "| truth | finite maximum | data sets | median difference | mean | the mode is better |"
    return [
        "Simulated data sets: differences of the mean log-density of 2,000 fresh rows, and coverage"
        " of 95% intervals of means with, in brackets, their median width.",
        "",
        head + " maximum covers | mode covers |",
        "|---|---|---|---|---|---|---|---|",
        *rows,
    ]


def calls_rows(lines: list[dict[str, Any]]) -> list[str]:
    """The table of calls from other seeds."""
    rows = []
    for k in (3, 4):
        own = [line["found"] for line in lines if line["found"]["k"] == k]
        for way in WAYS:
            below = np.array([np.max(each[way]) - each[way] for each in own])
            low = below > LOWER
            typical = f"{np.median(below[low]):.1f}" if low.any() else ""
            cells = [k, way, f"{low.sum()} of {low.size}", typical, f"{below.max():.1f}"]
            warned = (f"{way} {what}" for what in ("separated", "warned"))
            cells += [sum(each[key] for each in own) for key in warned]
            cells += [f"{np.median([each[f'{way} seconds'] for each in own]):.1f}"]
            rows.append(f"| {' | '.join(map(str, cells))} |")
    return [
        f"{len(lines)} truths of three classes, {CALLED:,} rows, {CALLS} calls from other seeds:"
        f" how many end more than {LOWER} lower than the best of the {CALLS}, by how much in the"
        " median of these and at most, how many warn of a separation and of disagreement, and the"
        " median of processor seconds of a call.",
        "",
        "| k | estimate | lower | median | most | separated | disagree | seconds |",
        "|---|---|---|---|---|---|---|---|",
        *rows,
    ]


def page() -> None:
    """Write the page."""
    lines = [json.loads(line) for line in PATH.read_text().splitlines()]
    lines = list({line["name"]: line for line in lines}.values())
    called = [line for line in lines if line["name"].startswith(CALLED_CASE)]
    lines = [line for line in lines if line not in called]
    truths = tuple(TRUTHS)
    simulated = [line for line in lines if line["name"].startswith(truths)]
    real = [line for line in lines if not line["name"].startswith(truths)]
    text = ["# Likelihoods without a finite maximum", "", "See benchmarks/separation.py.", ""]
    text += real_rows(real) if real else []
    text += ["", *simulated_rows(simulated)] if simulated else []
    text += ["", *calls_rows(called)] if called else []
    (FOLDER / "separation.md").write_text("\n".join(text) + "\n")
    print("\n".join(text))


def main() -> None:
    """Run a command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("real", "simulated", "calls", "page"))
    parser.add_argument("--sets", type=int, default=40)
    parser.add_argument("--minutes", type=float, default=9.0)
    given = parser.parse_args()
    if given.command == "page":
        page()
    else:
        cases = {
            "real": real_cases,
            "simulated": partial(simulated_cases, given.sets),
            "calls": calls_cases,
        }
        collect(cases[given.command](), given.minutes)


if __name__ == "__main__":
    main()
