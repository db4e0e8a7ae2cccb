"""The regular maximum beside the highest one and the posterior mode, on rows that no fit has seen.

    python benchmarks/regular.py fresh [--first 3000] [--problems 150] [--minutes 20]
    python benchmarks/regular.py real [--splits 2] [--minutes 20]
    python benchmarks/regular.py experts [--sets 20] [--minutes 20]
    python benchmarks/regular.py coverage [--sets 40] [--minutes 20]
    python benchmarks/regular.py many [--sets 8] [--minutes 20]
    python benchmarks/regular.py orders [--sets 20] [--minutes 20]
    python benchmarks/regular.py slopes [--sets 12] [--minutes 20]
    python benchmarks/regular.py page

`fresh` draws problems as calibration.py does, from number 3000 on, which no constant was chosen on,
fits each by ``maximum="regular"`` (the default), ``maximum="highest"`` and ``prior="weak"``, and
takes the mean log density of 5,000 further rows of the truth.  `real` does the same on the suite of
search.py with half of the rows held out.  `experts` counts how often BIC, ICL and five-fold
cross-validation find the number of experts, with several data sets of each of 20 truths.
`coverage` counts how often 95% intervals of the conditional mean, which do not depend on the order
of experts, have the truth at 20 places of each of some truths.  `many` is `fresh` with six and with
eight experts, and takes the largest difference of the log-likelihoods of three seeds.  `orders`
fits problems with three seeds, with two other orders of the rows, and with inputs in other units,
and takes the largest difference of the log-likelihoods.  `slopes` takes the Hellinger
distance of the fitted conditional density from a truth of two normal lines, fitted with two and
with three experts to 100 up to 100,000 rows.  Each adds lines to results/regular.jsonl; `page`
writes results/regular.md.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Collection, Iterator
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
    result = moestat.fit(model, X, y, **{"rng": 0, "threads": 1, **options})
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


TRUTHS = 20
"""Number of truths of which `experts` draws data sets."""


def experts(sets: int, known: Collection[str] = ()) -> Iterator[dict[str, Any]]:
    """Numbers of experts that criteria choose, for data sets of some truths of 1 to 3 experts.

    Sets of all truths come in turn, without those whose names are known.  Each is of 300 rows at
    least, and of 1,000 at most.
    """
    truths = list[tuple[int, dict[str, Any]]]()
    number = 5000
    while len(truths) < TRUTHS:
        number += 1
        case = synthetic(number)
        if case["true"].n_experts <= 3 and 300 <= len(case["y"]) <= 1_000:
            truths.append((number, case))
    for one in range(sets):
        for number, case in truths:
            if f"{number} {one}" in known:
                continue
            true, n = case["true"], len(case["y"])
            rng = np.random.default_rng([number, one])
            X, y = moestat.sample(true, case["theta"], n, rng, design=moestat.Uniform(-2.0, 2.0))
            chosen, seconds = dict[str, int | None](), dict[str, float]()
            for name, options in CALLS.items():
                began = time.process_time()
                try:
                    table = moestat.select(
                        true,
                        X,
                        y,
                        range(1, true.n_experts + 2),
                        criterion="cv",
                        rng=0,
                        threads=1,
                        **options,
                    )
                except ValueError:  # a class or a number of responses may be absent from a fold
                    chosen |= {f"{name}, {criterion}": None for criterion in ("BIC", "ICL", "CV")}
                    continue
                seconds[name] = round(time.process_time() - began, 3)
                for criterion in ("bic", "icl", "cv"):
                    chosen[f"{name}, {criterion.upper()}"] = int(table.chosen(criterion))
            yield {
                "what": "experts",
                "name": f"{number} {one}",
                "likelihood": true.likelihood.name,
                "true": true.n_experts,
                "chosen": chosen,
                "seconds": seconds,
            }


MANY = 6, 8
"""Numbers of experts of `many`."""


def many(sets: int) -> Iterator[dict[str, Any]]:
    """Truths of many experts, each on 100 rows for each parameter, as `fresh` has them."""
    options = {**CALLS, "regular, seed 1": {"rng": 1}, "regular, seed 2": {"rng": 2}}
    for one in range(sets):
        for name in ("gaussian", "poisson", "multinomial"):
            sizes = {"n_classes": 3} if name == "multinomial" else {}
            for k in MANY:
                true = moestat.family(name, gate="softmax", n_experts=k, n_features=2, **sizes)
                rng = np.random.default_rng([8000, one, k])
                theta, design = true.typical(rng), moestat.Uniform(-2.0, 2.0)
                X, y = moestat.sample(true, theta, 100 * true.n_free_params, rng, design=design)
                X_new, y_new = moestat.sample(true, theta, FRESH, rng, design=design)
                calls = {
                    label: call(true, X, y, X_new, y_new, **more) for label, more in options.items()
                }
                heights = [calls[label]["llf"] for label in calls if label.startswith("regular")]
                yield {
                    "what": "many",
                    "name": f"{name} {k} {one}",
                    "likelihood": name,
                    "k": k,
                    "more": 0,
                    "spread": max(heights) - min(heights),
                    "truth": float(np.mean(true.log_density(theta, X_new, y_new))),
                    "calls": compared({label: calls[label] for label in CALLS}),
                }


PLACES = 20
"""Number of inputs at which intervals of the conditional mean are looked at."""


def coverage(sets: int) -> Iterator[dict[str, Any]]:
    """Intervals of the conditional mean, from fits with as many experts as the truth."""
    number, made = 6000, 0
    while made < sets:
        number += 1
        case = synthetic(number)
        true, theta = case["true"], case["theta"]
        if case["truth"] is None or true.likelihood.parts or true.n_experts > 3:
            continue
        rng = np.random.default_rng([number, 9])
        places = rng.uniform(-2.0, 2.0, (PLACES, true.n_features))
        calls: dict[str, Any] = {}
        try:
            known = np.asarray(true.mean(theta, places))
            for name, options in CALLS.items():
                result = moestat.fit(true, case["X"], case["y"], rng=0, threads=1, **options)
                prediction = result.get_prediction(places)
                low, high = np.moveaxis(np.asarray(prediction.conf_int()), -1, 0)
                fitted = np.asarray(true.mean(result.theta, places))
                if low.shape != known.shape or not np.allclose(prediction.predicted, fitted):
                    raise ValueError("what is predicted is not the mean")
                inside = (low <= known) & (known <= high)
                finite = np.isfinite(low) & np.isfinite(high)
                calls[name] = {
                    "open": is_open(result),
                    "inside": float(np.mean(inside & finite)),
                    "none": float(np.mean(~finite)),
                }
        except (ValueError, AttributeError, NotImplementedError) as error:
            print(number, error, flush=True)
            continue
        made += 1
        yield {
            "what": "coverage",
            "name": number,
            "likelihood": true.likelihood.name,
            "calls": calls,
        }


def orders(sets: int) -> Iterator[dict[str, Any]]:
    """Log-likelihoods of the same rows with other seeds, in other orders and in other units."""
    number, made = 7000, 0
    while made < sets:
        number += 1
        case = synthetic(number)
        family, X, y = case["family"], np.asarray(case["X"]), np.asarray(case["y"])

        def height(rows: Any, inputs: Any, seed: int, family: Any = family, y: Any = y) -> float:
            return moestat.fit(family, inputs[rows], y[rows], rng=seed, threads=1).llf

        every, mixed = np.arange(len(y)), np.random.default_rng(number).permutation(len(y))
        try:
            seeds = [height(every, X, seed) for seed in range(3)]
            rows = [height(at, X, 0) for at in (mixed, every[::-1].copy())]
            units = [height(every, 1e3 * X + 50.0, 0)]
        except ValueError as error:
            print(number, error, flush=True)
            continue
        made += 1
        spread = {
            "seeds": max(seeds) - min(seeds),
            "rows": max(abs(height - seeds[0]) for height in rows),
            "units": abs(units[0] - seeds[0]),
        }
        yield {
            "what": "orders",
            "name": number,
            "likelihood": family.likelihood.name,
            "more": family.n_experts - case["true"].n_experts,
            "spread": spread,
        }


SIZES = 100, 316, 1_000, 3_162, 10_000, 31_623, 100_000
"""Numbers of rows of `slopes`."""


def slopes(sets: int) -> Iterator[dict[str, Any]]:
    """Hellinger distances from a truth, by the number of rows."""
    true = moestat.family("gaussian", gate="softmax", n_experts=2)
    blocks = {"beta0": [0.3, 0.0], "beta1": [2.0, 0.0], "a": [1.0, -1.0], "b": [0.5, -0.5]}
    theta = true.pack({**blocks, "nu": [0.25, 0.5]})
    design = moestat.Uniform(-2.0, 2.0)
    for replicate in range(sets):
        for n in SIZES:
            X, response = moestat.sample(true, theta, n, rng=[replicate, n], design=design)
            for k in (2, 3):
                family, losses = true.with_experts(k), dict[str, float]()
                for name, options in CALLS.items():
                    found = moestat.fit(family, X, response, rng=0, threads=1, **options)
                    distance = moestat.hellinger(family, found.theta, true, theta, design)
                    losses[name] = distance.value
                yield {"what": "slopes", "n": n, "k": k, "replicate": replicate, "losses": losses}


def slope_of(lines: list[dict[str, Any]], name: str) -> tuple[float, float]:
    """The log-log slope of mean losses against rows, and its standard error by replicates."""
    ids = sorted({line["replicate"] for line in lines})
    table = np.array(
        [
            [
                one["losses"][name]
                for n in SIZES
                for one in lines
                if (one["replicate"], one["n"]) == (i, n)
            ]
            for i in ids
        ]
    )

    def of(rows: np.ndarray) -> float:
        return float(np.polyfit(np.log(SIZES), np.log(rows.mean(axis=0)), 1)[0])

    rng = np.random.default_rng(0)
    again = [of(table[rng.integers(len(ids), size=len(ids))]) for _ in range(200)]
    return of(table), float(np.std(again))


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
    for what, title in (
        ("fresh", "Simulated truths"),
        ("real", "Real data, half held out"),
        ("many", f"Truths of {' and '.join(map(str, MANY))} experts"),
    ):
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
        if what == "many":
            spread = np.array([line["spread"] for line in some])
            text[-1] += (
                f" Three seeds of the default call differ by more than .01 in"
                f" {int((spread > 0.01).sum())}, by {np.median(spread):.2g} in the median and by"
                f" {spread.max():.2g} at most."
            )
    some = [line for line in lines if line["what"] == "experts"]
    if some:
        text += ["", "## The number of experts that BIC, ICL and cross-validation choose", ""]
        text += [
            f"{len({line['name'].split()[0] for line in some})} truths of 1 to 3 experts,"
            f" {len(some)} data sets; 1 to one expert more than the truth's are compared. Median"
            " time of a comparison with five folds: "
            + ", ".join(
                f"{name} {np.median([line['seconds'].get(name, np.nan) for line in some]):.2f} s"
                for name in CALLS
            )
            + ".",
            "",
        ]
        text += ["| estimate | right | too few | too many | of |", "|---|---|---|---|---|"]
        for name in some[-1]["chosen"]:
            pairs = [(line["chosen"][name], line["true"]) for line in some]
            off = np.array([chosen - true for chosen, true in pairs if chosen is not None])
            counts = [int((off == 0).sum()), int((off < 0).sum()), int((off > 0).sum())]
            text.append(f"| {name} | {' | '.join(map(str, counts))} | {len(off)} |")
    some = [line for line in lines if line["what"] == "coverage"]
    if some:
        text += ["", "## Intervals of the conditional mean", ""]
        text += [
            f"95% intervals at {PLACES} places of each of {len(some)} truths, fitted with as many"
            " experts. A place without an interval (infinite or NaN) is not covered.",
            "",
            "| estimate | covered | without an interval | covered, of those with one | no finite"
            " maximum |",
            "|---|---|---|---|---|",
        ]
        for name in CALLS:
            own = [line["calls"][name] for line in some]
            inside, none, ended = (
                float(np.mean([one[key] for one in own])) for key in ("inside", "none", "open")
            )
            shares = f"{inside:.1%} | {none:.1%} | {inside / (1.0 - none):.1%} | {ended:.0%}"
            text.append(f"| {name} | {shares} |")
    some = [line for line in lines if line["what"] == "slopes"]
    counts = np.bincount([line["replicate"] for line in some])
    some = [line for line in some if counts[line["replicate"]] == 2 * len(SIZES)]
    if some:
        text += ["", "## The loss by the number of rows", ""]
        text += [
            "Mean Hellinger distance of the conditional density from a truth of two normal"
            f" lines, {len(some) // (2 * len(SIZES))} data sets of each size; slope of its"
            " logarithm against that of the number of rows, with a bootstrap standard error."
            " Theory has -1/2, with a logarithm of n for three experts.",
            "",
            f"| experts | estimate | {' | '.join(f'n = {n:,}' for n in SIZES)} | slope |",
            f"|---|---|{'---|' * len(SIZES)}---|",
        ]
        for k in (2, 3):
            own = [line for line in some if line["k"] == k]
            for name in CALLS:
                means = [
                    np.mean([line["losses"][name] for line in own if line["n"] == n]) for n in SIZES
                ]
                slope, error = slope_of(own, name)
                cells = " | ".join(f"{mean:.2g}" for mean in means)
                text.append(f"| {k} | {name} | {cells} | {slope:.2f} ({error:.2f}) |")
    some = [line for line in lines if line["what"] == "orders"]
    if some:
        text += ["", "## Seeds, orders of rows, units", ""]
        text += [
            f"Of {len(some)} problems, those whose log-likelihoods differ by more than .01, and the"
            " largest difference.",
            "",
            "| what changes | differ, as many experts as the truth | another number | largest |",
            "|---|---|---|---|",
        ]
        for what, words in (
            ("seeds", "the seed, of three"),
            ("rows", "the order of rows, of two others"),
            ("units", "units of the inputs"),
        ):
            sizes = [(line["more"] != 0, line["spread"][what]) for line in some]
            counts = [
                f"{sum(size > 0.01 for more, size in sizes if more is kind)} of"
                f" {sum(more is kind for more, _ in sizes)}"
                for kind in (False, True)
            ]
            largest = max(size for _, size in sizes)
            text.append(f"| {words} | {' | '.join(counts)} | {largest:.2g} |")
    return "\n".join(text) + "\n"


def main() -> None:
    """Run a command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "command",
        choices=("fresh", "real", "experts", "coverage", "many", "orders", "slopes", "page"),
    )
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
        "experts": lambda: experts(given.sets, [line["name"] for line in made]),
        "coverage": lambda: coverage(given.sets),
        "many": lambda: many(given.sets),
        "orders": lambda: orders(given.sets),
        "slopes": lambda: slopes(given.sets),
    }
    warnings.simplefilter("ignore", MoEWarning)
    until = time.monotonic() + 60.0 * given.minutes
    others = [line for line in known if line["what"] != given.command]
    made = list[dict[str, Any]]()
    if given.command == "experts":  # goes on where it ended
        made += [line for line in known if "regular, CV" in line.get("chosen", {})]
    for line in makers[given.command]():
        made.append(line)
        print(json.dumps(line)[:200], flush=True)
        path.write_text("".join(json.dumps(one) + "\n" for one in [*others, *made]))
        if time.monotonic() > until:
            break


if __name__ == "__main__":
    main()
