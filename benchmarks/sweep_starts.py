"""Over-specified cells of sweeps beside sixty further starts: is the estimate the maximum?

    OPENBLAS_NUM_THREADS=1 python benchmarks/sweep_starts.py [--replicates 6]
    OPENBLAS_NUM_THREADS=1 python benchmarks/sweep_starts.py doubt [--replicates 5] [--seed 3851]

Each cell is fitted from the starts near the truth (`estimate = "near-truth"`), from the search for
the maximum, from the search and the second pass of `run --confirm`, and from sixty further starts
of other kinds.  Shown are the share of the cells in which the sixty are higher by more than 0.02,
the mean height below the highest of all, and the processor time of a whole cell over that of one
near the truth.  Then the probability of a higher maximum is fitted to one half of the cells, and
compared with what happened in the other half.

`doubt` takes cells of another seed and asks what the estimated probability and the agreement of
the runs say of single cells, and whether a probability fitted to the even replicates says more of
the odd ones, and the other way about.  The sixty starts judge.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from results import markdown

from moestat import starts
from moestat.estimation.data.data import Data
from moestat.estimation.fit.batches import fit_jobs
from moestat.estimation.fit.job import FitJob
from moestat.estimation.fit.run import RunningFit
from moestat.estimation.search.maximum import MaximumStarts, covariates
from moestat.solvers import make_solver
from moestat.solvers.driver import Cores
from moestat.sweep.kinds.fit.cell import data_of
from moestat.sweep.kinds.fit.confirm import SECOND_PASS
from moestat.sweep.kinds.fit.spec import Spec, as_fits
from moestat.sweep.run.cell import run_cell
from moestat.sweep.spec.plan import Cell, plan_cells
from moestat.sweep.spec.read import parse_spec

HEAD = """
title = "over-specified"
seed = {seed}
replicates = {replicates}
n = {sizes}
design = {{ law = "uniform", low = {low}, high = {high} }}

[truth.t]
{truth}

[[curve]]
name = "over"
truth = "t"
n_experts = {k}
loss = "{loss}"
{starts}
{more}
"""
CLASSES = """\
gate = "softmax"
n_classes = 3
beta0 = [0.5, 0.0]
beta1 = [-1.5, 0.0]
a = [[2.0, -1.0, 0.0], [-1.5, 1.0, 0.0]]
b = [[0.5, 1.0, 0.0], [-0.5, -1.0, 0.0]]"""
SOFTMAX = """\
gate = "softmax"
n_classes = 2
beta0 = [-2.0, 0.0]
beta1 = [3.0, 0.0]
a = [[1.0, 0.0], [1.0, 0.0]]
b = [[-3.0, 0.0], [2.5, 0.0]]"""
SIGMOID = """\
gate = "sigmoid"
n_classes = 3
gamma = [-0.5, 0.0]
alpha = [-2.5, -1.5]
beta = [2.0, -1.5]
a = [[3.0, -3.0, 0.0], [-2.5, 1.5, 0.0]]
b = [[0.5, 1.5, 0.0], [-1.0, -3.0, 0.0]]"""
LINES = """\
a = [2.0, -1.5]
b = [1.0, -1.0]
nu = [0.25, 0.16]"""
GAUSSIAN = f"""\
likelihood = "gaussian"
gate = "softmax"
beta0 = [0.3, 0.0]
beta1 = [1.0, 0.0]
{LINES}
bounds = {{ nu = [0.01, 10], beta0 = [-10, 10], beta1 = [-10, 10] }}"""
COMPETITION = f"""\
likelihood = "gaussian"
gate = "competition"
{LINES}
bounds = {{ nu = [0.01, 10] }}"""
NEURONS = """\
likelihood = "least-squares"
gate = "sigmoid-quadratic"
expert = { name = "activation", activation = "tanh", weighted = false }
n_features = 2
noise = 0.01
A = [[1.0, 0.5, -1.0], [0.3, -0.4, 0.5]]
b = [[0.3, -0.6], [-0.5, 0.2]]
c = [0.2, 0.4]
alpha = [[1.0, -1.0], [-0.7, 1.5]]
beta = [0.5, -0.3]"""
FREE = 'gate = "competition-free"'
# Truth, loss, range of the inputs, more of the curve, and sizes.
FAMILIES: dict[str, tuple[str, str, float, str, list[int]]] = {
    "sigmoid, 3 classes": (SIGMOID, "D1", 4.0, "", [1000, 4000, 16000]),
    "softmax, 2 classes": (SOFTMAX, "softmax-D1", 4.0, "", [1000, 4000, 16000]),
    "softmax, 3 classes": (CLASSES, "softmax-D1", 4.0, "", [1000, 4000, 16000]),
    "gaussian softmax": (GAUSSIAN, "gaussian-softmax-D", 2.0, "", [1000, 4000, 16000]),
    "gaussian competition": (COMPETITION, "competition-L2", 2.0, FREE, [1000, 4000, 16000]),
    "least squares": (NEURONS, "L1", 1.0, "", [1000]),
}
STARTS = {
    "near-truth": "starts = { truth = 3, noise = 0.1 }",
    "maximum": f"starts = {{ maximum = {MaximumStarts.count} }}",
}
MARGIN = 0.02
"""Log-likelihood by which a maximum is higher: twice the difference that counts as the same."""


def spec_of(name: str, estimate: str, replicates: int, k: int = 3, seed: int = 85) -> Spec:
    """The sweep of one family."""
    truth, loss, reach, more, sizes = FAMILIES[name]
    values = {"low": -reach, "high": reach, "loss": loss, "more": more, "sizes": sizes}
    head = {"replicates": replicates, "truth": truth, "k": k, "starts": STARTS[estimate]}
    head |= {"seed": seed}
    return as_fits(parse_spec(HEAD.format(**values, **head)))


def further(spec: Spec) -> list[starts.StartRule]:
    """Sixty starts that have nothing to do with those of a search."""
    truth, fitted = spec.truths["t"], spec.fitted_family(spec.curves[0])
    known = truth.family, truth.theta
    rules: list[starts.StartRule] = [starts.TruthStarts(*known, 10, z) for z in (0.1, 0.5, 1.5)]
    rules += [starts.MeasureStarts(*known, 6, 0.3), starts.RandomStarts(10), starts.SplitStarts(7)]
    last = starts.RandomStarts(7) if fitted.is_regression else starts.ClusterStarts(7)
    return [*rules, last]


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """What a call returns, and its processor time."""
    began = time.process_time()
    return call(), time.process_time() - began


def height(spec: Spec, cell: Cell, rules: Sequence[starts.StartRule]) -> tuple[float, float, Any]:
    """Log-likelihood from some starts, its processor time and certificate."""
    family, curve = spec.fitted_family(spec.curves[0]), spec.curves[0]
    job = FitJob(
        family,
        Data.of(family, *data_of(spec, cell)),
        solver=make_solver(dict(curve.solver)),
        starts=rules,
        rng=np.random.default_rng(cell.fit_seed).spawn(1)[0],
    )
    (result,), seconds = timed(lambda: fit_jobs([job], Cores(1)))
    return float(result.llf), seconds, result.certificate


def measure(name: str, replicates: int, k: int = 3) -> tuple[dict[str, object], list[list[float]]]:
    """The row of a family, and of each cell the covariates of the probability and what happened."""
    near, spec = (spec_of(name, estimate, replicates, k) for estimate in ("near-truth", "maximum"))
    truth = spec.truths["t"]
    second = MaximumStarts(truth.family, truth.theta, SECOND_PASS)
    run_cell(near.text, plan_cells(near)[0])  # compiles
    height(spec, plan_cells(spec)[0], spec.start_rules(spec.curves[0]))
    rows: list[list[float]] = []
    cells: list[list[float]] = []
    for cell in plan_cells(spec):
        whole = timed(lambda cell=cell: run_cell(near.text, cell))[1]
        before, time_before, _ = height(near, cell, near.start_rules(near.curves[0]))
        after, time_after, _ = height(spec, cell, spec.start_rules(spec.curves[0]))
        both = [*spec.start_rules(spec.curves[0]), second]
        confirmed, time_confirmed, _ = height(spec, cell, both)
        most, time_most, _ = height(spec, cell, further(spec))
        rest = whole - time_before
        times = [(rest + t) / whole for t in (time_after, time_confirmed, time_most)]
        rows.append([before, after, confirmed, most, *times])
        first, pooled = ends_of(spec, cell, second)
        cells.append([*covariates(first), float(most > after + MARGIN)])
        cells.append([*covariates(pooled), float(most > confirmed + MARGIN)])
    table = np.array(rows)
    heights, times = table[:, :4], table[:, 4:].mean(axis=0)
    below = heights.max(axis=1)[:, None] - heights
    higher = np.mean(heights[:, 3:] > heights[:, :3] + MARGIN, axis=0)
    row: dict[str, object] = {"family": name, "k": k, "cells": len(rows)}
    row |= {
        f"further starts higher, {label}": f"{100 * share:.0f}%"
        for label, share in zip(("near truth", "search", "confirmed"), higher, strict=True)
    }
    for label, mean in zip(("near truth", "search", "confirmed"), below.mean(axis=0), strict=False):
        row[f"below the highest, {label}"] = round(float(mean), 2)
    row |= {
        f"time, {q}": round(float(t), 1)
        for q, t in zip(("search", "confirmed"), times[:2], strict=True)
    }
    return row, cells


def ends_of(spec: Spec, cell: Cell, second: MaximumStarts) -> tuple[list[float], list[float]]:
    """Heights of the runs of the first search of a cell, and of both searches."""
    family, (first,) = spec.fitted_family(spec.curves[0]), spec.start_rules(spec.curves[0])
    assert isinstance(first, MaximumStarts)
    job = FitJob(family, Data.of(family, *data_of(spec, cell)))
    problem = RunningFit.in_own_box(job, Cores(1)).inner
    rng = np.random.default_rng(cell.fit_seed).spawn(1)[0]
    ends = first.search(problem, rng).ends
    return ends, [*ends, *second.search(problem, rng).ends]


def logistic(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Coefficients of a logistic regression, by Newton steps with a small ridge."""
    b = np.zeros(X.shape[1])
    for _ in range(50):
        p = 1.0 / (1.0 + np.exp(-X @ b))
        hessian = (X.T * (p * (1.0 - p))) @ X + 1e-3 * np.eye(b.size)
        b = b + np.linalg.solve(hessian, X.T @ (y - p) - 1e-3 * b)
    return b


def calibration(cells: list[list[float]]) -> str:
    """Predicted and observed shares in the half of the cells that coefficients have not seen."""
    values = np.array(cells)
    X, y = values[:, :-1], values[:, -1]
    fitted = np.arange(len(values)) // 2 % 2 == 0  # both rows of a cell
    p = 1.0 / (1.0 + np.exp(-X[~fitted] @ logistic(X[fitted], y[fitted])))
    held = y[~fitted]
    rows = [
        {
            "predicted": f"{low:g} to {high:g}",
            "cells": int(at.sum()),
            "mean": round(float(p[at].mean()), 2),
        }
        | {"observed": round(float(held[at].mean()), 2)}
        for low, high in ((0, 0.2), (0.2, 0.4), (0.4, 0.6), (0.6, 0.8), (0.8, 1.0))
        if (at := (p >= low) & (p < high)).any()
    ]
    brier = float(np.mean((p - held) ** 2))
    coefficients = ", ".join(f"{c:.3f}" for c in logistic(X, y))
    return (
        f"Coefficients from all cells, after one search and after two: {coefficients}. Half of the"
        f" cells fitted, the other half held out: Brier score {brier:.3f}.\n\n{markdown(rows)}"
    )


DOUBTED = [*((name, 3) for name in FAMILIES if name != "least squares"), ("softmax, 2 classes", 4)]
"""Families and numbers of experts of `doubt`."""


class Judged(NamedTuple):
    """A cell of `doubt`: what its runs say, and whether the sixty starts were higher."""

    name: str
    k: int
    replicate: int
    ends: list[float]  # heights of the runs of the first search
    chance: float  # estimated probability of a higher maximum, and share of the runs that agree
    agreement: float
    missed: bool
    chance_after: float  # the same after a second pass
    agreement_after: float
    missed_after: bool
    moved: bool  # by the second pass


def judged(replicates: int, seed: int) -> list[Judged]:
    """The cells of `doubt`."""
    found: list[Judged] = []
    for name, k in DOUBTED:
        spec = spec_of(name, "maximum", replicates, k, seed)
        truth, rules = spec.truths["t"], spec.start_rules(spec.curves[0])
        second = MaximumStarts(truth.family, truth.theta, SECOND_PASS)
        for cell in plan_cells(spec):
            after, _, first = height(spec, cell, rules)
            confirmed, _, both = height(spec, cell, [*rules, second])
            most, _, _ = height(spec, cell, further(spec))
            found.append(
                Judged(
                    name=name,
                    k=k,
                    replicate=cell.replicate,
                    ends=ends_of(spec, cell, second)[0],
                    chance=first.p_higher,
                    agreement=first.agreement,
                    missed=most > after + MARGIN,
                    chance_after=both.p_higher,
                    agreement_after=both.agreement,
                    missed_after=most > confirmed + MARGIN,
                    moved=confirmed > after + MARGIN,
                )
            )
    return found


def ranks(score: np.ndarray, missed: np.ndarray) -> float:
    """Probability that a cell that missed has the higher score of two, ties as a half."""
    high, low = score[missed][:, None], score[~missed]
    return float(np.mean((high > low) + 0.5 * (high == low)))


def doubt_page(cells: Sequence[Judged]) -> str:
    """What single cells' numbers say, in tables."""
    chance, chance_after = (
        np.array([getattr(c, f) for c in cells]) for f in ("chance", "chance_after")
    )
    agree, agree_after = (
        np.array([getattr(c, f) for c in cells]) for f in ("agreement", "agreement_after")
    )
    missed, missed_after, moved = (
        np.array([getattr(c, f) for c in cells], bool) for f in ("missed", "missed_after", "moved")
    )
    families = [
        {
            "family": name,
            "k": k,
            "cells": int(at.sum()),
            "estimated": round(float(chance[at].mean()), 2),
            "missed": round(float(missed[at].mean()), 2),
            "estimated after the second pass": round(float(chance_after[at].mean()), 2),
            "missed after it": round(float(missed_after[at].mean()), 2),
        }
        for name, k in DOUBTED
        if (at := np.array([(c.name, c.k) == (name, k) for c in cells])).any()
    ]
    bins = [
        {
            "runs at the best height": f"{low:.0%} to {high:.0%}",
            "cells": int(at.sum()),
            "estimated": round(float(chance[at].mean()), 2),
            "missed": round(float(missed[at].mean()), 2),
            "moved by the second pass": round(float(moved[at].mean()), 2),
        }
        for low, high in ((0, 0.1), (0.1, 0.2), (0.2, 0.5), (0.5, 1.0))
        if (at := (agree >= low) & (agree < high)).any()
    ]
    scores = [
        {
            "pass": label,
            "missed": round(float(y.mean()), 2),
            "Brier score, estimated": round(float(np.mean((p - y) ** 2)), 3),
            "of the mean share": round(float(np.mean((y.mean() - y) ** 2)), 3),
            "higher score of a cell that missed, estimated": round(ranks(p, y), 2),
            "by agreement": round(ranks(-a, y), 2),
        }
        for label, p, a, y in (
            ("first", chance, agree, missed),
            ("second", chance_after, agree_after, missed_after),
        )
    ]
    X = np.array([covariates(cell.ends)[:3] for cell in cells])
    even = np.array([cell.replicate % 2 == 0 for cell in cells])
    halves = []
    for fitted in (even, ~even):
        held, y = ~fitted, missed[~fitted]
        again = 1.0 / (1.0 + np.exp(-X[held] @ logistic(X[fitted], missed[fitted].astype(float))))
        halves.append(
            f"{np.mean((chance[held] - y) ** 2):.3f} as shipped, {np.mean((again - y) ** 2):.3f}"
            f" fitted again, {np.mean((missed[fitted].mean() - y) ** 2):.3f} for the mean share"
        )
    return (
        "# What the runs of a cell say about a higher maximum\n\n"
        f"{markdown(families)}\n\n{markdown(scores)}\n\n{markdown(bins)}\n\n"
        f"Brier scores of the held-out half, the odd replicates: {halves[0]}; the even ones:"
        f" {halves[1]}.\n"
    )


def main() -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("what", choices=("starts", "doubt"), nargs="?", default="starts")
    parser.add_argument("--replicates", type=int, default=12)
    parser.add_argument("--seed", type=int, default=3851)
    arguments = parser.parse_args()
    replicates, results = arguments.replicates, Path(__file__).with_name("results")
    if arguments.what == "doubt":
        page = doubt_page(judged(replicates, arguments.seed))
        print(page)
        results.joinpath("sweep_doubt.md").write_text(page, "utf-8")
        return
    rows: list[dict[str, object]] = []
    cells: list[list[float]] = []
    both = ("softmax, 2 classes", 4), ("gaussian softmax", 2)
    for name, k in [*((name, 3) for name in FAMILIES), *both]:
        row, more = measure(name, replicates, k)
        rows.append(row)
        cells += more
        print(markdown([row]), flush=True)
    title = "# Over-specified cells beside sixty further starts"
    page = f"{title}\n\n{markdown(rows)}\n\n{calibration(cells)}\n"
    print(page)
    results.joinpath("sweep_starts.md").write_text(page, "utf-8")


if __name__ == "__main__":
    main()
