"""The regular maximum beside the highest one and the posterior mode, on rows that no fit has seen.

    python benchmarks/regular.py fresh [--first 3000] [--problems 150] [--minutes 20]
    python benchmarks/regular.py real [--splits 2] [--minutes 20]
    python benchmarks/regular.py experts [--sets 20] [--minutes 20]
    python benchmarks/regular.py page

`fresh` draws problems as calibration.py does, from number 3000 on, which no constant was chosen on,
fits each by ``maximum="regular"`` (the default), ``maximum="highest"`` and ``prior="weak"``, and
takes the mean log density of 5,000 further rows of the truth.  `real` does the same on the suite of
search.py with half of the rows held out.  `experts` counts how often BIC finds the number of
experts.  Each adds lines to results/regular.jsonl; `page` writes results/regular.md.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from calibration import synthetic
from search import REAL, real

import moestat
from moestat.base.warnings import BoundWarning, MoEWarning, SeparationWarning

HERE = Path(__file__).parent / "results"
FRESH = 5_000
"""Number of further rows."""
EQUAL = 1e-3
"""Difference of mean log densities that counts as none."""
CLIPPED = 1.0
"""Largest gain of a row that counts: one row with a density of 0 would decide a mean."""

CALLS: dict[str, dict[str, Any]] = {
    "regular": {},
    "highest": {"maximum": "highest"},
    "mode": {"prior": "weak"},
}


def is_open(result: Any) -> bool:
    """Whether the fit says that there is no finite maximum, or that it is on a default bound."""
    return not {SeparationWarning.__name__, BoundWarning.__name__}.isdisjoint(result.kinds)


def call(model: Any, X: Any, y: Any, X_new: Any, y_new: Any, **options: Any) -> dict[str, Any]:
    """A fit, its time, and the log densities of new rows."""
    began = time.process_time()
    result = moestat.fit(model, X, y, rng=0, threads=1, **options)
    seconds = time.process_time() - began
    with np.errstate(divide="ignore"):
        new = np.asarray(result.score_samples(X_new, y_new))
    return {
        "llf": result.llf,
        "open": is_open(result),
        "certified": result.certificate.certified,
        "seconds": round(seconds, 4),
        "new": new,
    }


def compared(calls: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The calls with mean log densities of new rows, and gains over the highest, row by row."""
    base = calls["highest"]["new"]
    found: dict[str, Any] = {}
    for name, one in calls.items():
        gain = np.clip(one["new"] - base, -CLIPPED, CLIPPED)
        found[name] = {**one, "new": float(np.mean(one["new"])), "gain": float(gain.mean())}
    return found


def fresh(numbers: range) -> Iterator[dict[str, Any]]:
    """Simulated problems."""
    for number in numbers:
        case = synthetic(number)
        true, theta = case["true"], case["theta"]
        X_new, y_new = moestat.sample(
            true, theta, FRESH, rng=number, design=moestat.Uniform(-2.0, 2.0)
        )
        try:
            calls = {
                name: call(case["family"], case["X"], case["y"], X_new, y_new, **options)
                for name, options in CALLS.items()
            }
        except ValueError as error:  # data that a law refuses
            print(number, error, flush=True)
            continue
        family = case["family"]
        yield {
            "what": "fresh",
            "name": number,
            "likelihood": family.likelihood.name,
            "more": family.n_experts - true.n_experts,
            "truth": float(np.mean(true.log_density(theta, X_new, y_new))),
            "calls": compared(calls),
        }


def held_out(splits: int) -> Iterator[dict[str, Any]]:
    """Real sets, with half of their rows held out."""
    for group in REAL:
        for case in real(REAL[group]):
            for split in range(splits):
                n = len(case.y)
                order = np.random.default_rng([7, split]).permutation(n)
                fit, new = order[: n // 2], order[n // 2 :]
                if len(fit) < 4 * case.family.n_free_params:
                    continue
                try:
                    calls = {
                        name: call(
                            case.family, case.X[fit], case.y[fit], case.X[new], case.y[new], **more
                        )
                        for name, more in CALLS.items()
                    }
                except ValueError as error:
                    print(case.name, error, flush=True)
                    continue
                yield {
                    "what": "real",
                    "name": f"{case.name} {group} {split}",
                    "likelihood": case.family.likelihood.name,
                    "more": 0,
                    "calls": compared(calls),
                }


def experts(sets: int) -> Iterator[dict[str, Any]]:
    """Numbers of experts that BIC chooses, for truths of two and three experts."""
    number, made = 5000, 0
    while made < sets:
        number += 1
        case = synthetic(number)
        true = case["true"]
        if true.n_experts > 3 or len(case["y"]) < 300:
            continue
        chosen: dict[str, int] = {}
        for name, options in CALLS.items():
            bic = []
            for k in range(1, true.n_experts + 2):
                family = true.with_experts(k)
                try:
                    bic.append(
                        moestat.fit(family, case["X"], case["y"], rng=0, threads=1, **options).bic
                    )
                except ValueError:
                    bic.append(np.inf)
            chosen[name] = int(np.argmin(bic)) + 1
        made += 1
        yield {
            "what": "experts",
            "name": number,
            "likelihood": true.likelihood.name,
            "true": true.n_experts,
            "chosen": chosen,
        }


def summary_rows(lines: list[dict[str, Any]]) -> list[str]:
    """How the calls compare with the highest maximum on new rows."""
    found = []
    for name in ("regular", "mode"):
        gains = np.array([line["calls"][name]["gain"] for line in lines])
        better, worse = int((gains > EQUAL).sum()), int((gains < -EQUAL).sum())
        found.append(
            f"| {name} | {better} | {worse} | {len(gains) - better - worse} |"
            f" {gains.mean():.3f} | {gains.min():.3f} |"
        )
    return found


def page(lines: list[dict[str, Any]]) -> str:
    """The page of all lines."""
    text = [
        "# The regular maximum",
        "",
        "What a fit returns by default (the maximum of the likelihood to which the highest"
        " posterior mode under the weak prior leads), beside the highest maximum that the longer"
        ' search of `maximum="highest"` finds, and the mode itself (`prior="weak"`). A gain is the'
        " mean difference of the log densities of new rows from those of the highest maximum, each"
        f" clipped at {CLIPPED:g}; differences below {EQUAL:g} count as none.",
    ]
    for what, title in (("fresh", "Simulated truths"), ("real", "Real data, half held out")):
        some = [line for line in lines if line["what"] == what]
        if not some:
            continue
        laws = len({line["likelihood"] for line in some})
        text += ["", f"## {title}", "", f"{len(some)} problems of {laws} likelihoods.", ""]
        text += [
            "| estimate | better | worse | same | mean gain | worst |",
            "|---|---|---|---|---|---|",
        ]
        text += summary_rows(some)
        text += ["", "| estimate | no finite maximum | certified | seconds, median | mean |"]
        text += ["|---|---|---|---|---|"]
        for name in CALLS:
            own = [line["calls"][name] for line in some]
            seconds = np.array([one["seconds"] for one in own])
            text.append(
                f"| {name} | {np.mean([one['open'] for one in own]):.0%} |"
                f" {np.mean([one['certified'] for one in own]):.0%} | {np.median(seconds):.3f} |"
                f" {seconds.mean():.3f} |"
            )
        differ = [
            line
            for line in some
            if abs(line["calls"]["regular"]["llf"] - line["calls"]["highest"]["llf"]) > 0.01
        ]
        gains = np.array([line["calls"]["regular"]["gain"] for line in differ])
        text += [
            "",
            f"The regular maximum differs from the highest one in {len(differ)} problems; it is"
            f" better on new rows in {int((gains > 0).sum())} of them.",
        ]
    some = [line for line in lines if line["what"] == "experts"]
    if some:
        text += ["", "## The number of experts that BIC chooses", ""]
        text += ["| estimate | right | too few | too many | of |", "|---|---|---|---|---|"]
        for name in CALLS:
            off = np.array([line["chosen"][name] - line["true"] for line in some])
            counts = [int((off == 0).sum()), int((off < 0).sum()), int((off > 0).sum())]
            text.append(f"| {name} | {' | '.join(map(str, counts))} | {len(some)} |")
    return "\n".join(text) + "\n"


def main() -> None:
    """Run a command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("fresh", "real", "experts", "page"))
    parser.add_argument("--first", type=int, default=3000)
    parser.add_argument("--problems", type=int, default=150)
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--sets", type=int, default=60)
    parser.add_argument("--minutes", type=float, default=20.0)
    given = parser.parse_args()
    path = HERE / "regular.jsonl"
    known = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    if given.command == "page":
        text = page(known)
        (HERE / "regular.md").write_text(text)
        print(text)
        return
    makers: dict[str, Callable[[], Iterator[dict[str, Any]]]] = {
        "fresh": lambda: fresh(range(given.first, given.first + given.problems)),
        "real": lambda: held_out(given.splits),
        "experts": lambda: experts(given.sets),
    }
    warnings.simplefilter("ignore", MoEWarning)
    until = time.monotonic() + 60.0 * given.minutes
    others = [line for line in known if line["what"] != given.command]
    made = []
    for line in makers[given.command]():
        made.append(line)
        print(json.dumps(line)[:200], flush=True)
        path.write_text("".join(json.dumps(one) + "\n" for one in [*others, *made]))
        if time.monotonic() > until:
            break


if __name__ == "__main__":
    main()
