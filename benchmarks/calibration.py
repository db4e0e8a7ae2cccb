"""How probable a higher maximum is after a default call, by what its search saw: data and fit.

    python benchmarks/calibration.py collect [--problems 300] [--minutes 50] [--real]
    python benchmarks/calibration.py fit

`collect` adds to results/calibration.jsonl a line for each problem that is not there yet: five
default calls with what their searches saw, and how high other looks came (sixty starts in the pool
where calls are quick, and a start at the truth where the fit has as many experts).  `fit`
estimates the coefficients of moestat/estimation/chances.py on the problems of odd numbers, judges
them on those of even numbers, and writes results/calibration.md.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import moestat
from moestat.estimation.runs import Seen
from moestat.estimation.searching import Agreement
from moestat.estimation.starts import GivenStarts

HERE = Path(__file__).parent / "results"
SEEDS, WORK, QUICK = 5, 1e5, 2.0
"""Calls of a problem, rows times squared parameters at most, and seconds of all calls below which
one more has sixty starts."""

LAWS: tuple[Any, ...] = (
    "gaussian",
    "poisson",
    {"name": "multinomial", "n_classes": 3},
    "negative-binomial",
    {"name": "student-t", "dof": 5.0},
    "gamma",
    "zero-inflated-poisson",
    {"name": "ordinal", "n_classes": 4},
    "gaussian",
    "log-normal",
    "beta",
    {"name": "binomial", "trials": 6},
    "weibull",
    "hurdle-poisson",
    {"name": "multinomial", "n_classes": 2},
    {"name": "multivariate-gaussian", "responses": 2},
    "gaussian",
    "inverse-gaussian",
    "geometric",
    "zero-inflated-negative-binomial",
    "exponential",
    {"name": "multinomial", "n_classes": 4},
    "truncated-poisson",
    "hurdle-negative-binomial",
)
"""Likelihoods of the problems in turn; the commonest come several times."""

GATES = ("softmax",) * 7 + ("dense-to-sparse", "laplace", "sigmoid")


def families(number: int) -> tuple[Any, Any, int, int, np.random.Generator]:
    """Families of the truth and of the fit, rows, and a generator, of a problem."""
    law = LAWS[number % len(LAWS)]
    rng = np.random.default_rng([65, number])
    n, d = int(10.0 ** rng.uniform(2.2, 3.4)), int(rng.integers(1, 4))
    k = int(rng.choice([2, 2, 3, 3, 4]))
    more = int(rng.choice([-1, 0, 0, 0, 1]))
    gate = str(rng.choice(GATES)) if number % 3 == 0 else "softmax"
    options = dict(law) if isinstance(law, dict) else {"name": law}
    sizes = {"n_classes": options.pop("n_classes")} if "n_classes" in options else {}
    name: Any = options if len(options) > 1 else options["name"]

    def of(experts: int) -> Any:
        return moestat.family(name, gate=gate, n_experts=experts, n_features=d, **sizes)

    fitted = of(min(max(k + more, 2), 4))
    size = fitted.n_free_params
    return of(k), fitted, max(min(n, int(WORK / size**2)), 6 * size), d, rng


def synthetic(number: int) -> dict[str, Any]:
    """A problem with a truth: a typical one, moved at random, or one of normal coefficients."""
    true, fitted, n, _, rng = families(number)
    blocks = true.unpack(true.typical(rng))
    if rng.random() < 0.5:
        own = true.unpack(rng.standard_normal(true.n_params))
        steep = 2.0 if true.likelihood.link is None else 0.5
        blocks |= {name: 2.0 * own[name] for name in ("beta1", "b") if name in own}
        blocks |= {name: steep * own[name] for name in ("a",) if name in own}
    theta = true.pack(blocks)
    theta = theta + rng.uniform(0.0, 0.5) * rng.standard_normal(theta.size)
    lower, upper = true.box_at(theta)
    theta = true.pin(np.clip(theta, lower, upper))
    X, y = moestat.sample(true, theta, n, rng, design=moestat.Uniform(-2.0, 2.0))
    truth = theta if true.n_experts == fitted.n_experts else None
    return {"name": f"{number}", "family": fitted, "X": X, "y": y, "truth": truth}


def watch(seen: list[Seen]) -> None:
    """Let every search add what it has seen to a list."""
    found = Agreement.find

    def find(self: Any, problem: Any, rng: Any, own: Any = None) -> Any:
        own = own or Seen()
        seen.append(own)
        return found(self, problem, rng, own)

    Agreement.find = find  # type: ignore[method-assign]


def plain(height: float) -> float | None:
    """A height for JSON."""
    return round(float(height), 4) if np.isfinite(height) else None


def called(case: dict[str, Any], seed: int, seen: list[Seen]) -> dict[str, Any]:
    """A default call: its end, and what its search saw."""
    seen.clear()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        began = time.process_time()
        result = moestat.fit(case["family"], case["X"], case["y"], rng=seed, threads=1)
        seconds = time.process_time() - began
    certificate, family = result.certificate, case["family"]
    encoded = family.likelihood.encode(np.asarray(result.data.y), family.n_classes)
    shares = family.rowwise(result.theta, case["X"], encoded)[1]
    own = seen[0]
    return {
        "seed": seed,
        "height": plain(result.log_likelihood),
        "certified": certificate.certified,
        "collapsed": len(certificate.collapsed),
        "active": len(certificate.active),
        "said": sorted({w.category.__name__ for w in said}),
        "starts": certificate.n_starts,
        "agreement": round(certificate.agreement, 4),
        "optima": certificate.n_optima,
        "pool": [[kind, plain(height)] for kind, height in own.pool],
        "ends": [plain(height) for height in own.ends],
        "rounds": [own.rounds, int(own.gains)],
        "overlap": round(float(1.0 - shares.max(axis=0).mean()), 4),
        "smallest": round(float(shares.mean(axis=1).min()), 4),
        "seconds": round(seconds, 3),
    }


def looks(case: dict[str, Any], seconds: float) -> dict[str, Any]:
    """How high other looks come: more starts, where calls are quick, and from the truth."""
    rules: dict[str, Any] = {"sixty": {"n_starts": 60}} if seconds < QUICK else {}
    if case["truth"] is not None:
        rules["truth"] = {"starts": [GivenStarts([case["truth"]])]}
    found = {}
    for name, options in rules.items():
        result = moestat.fit(case["family"], case["X"], case["y"], rng=99, threads=1, **options)
        sound = result.certificate.certified and not result.certificate.collapsed
        found[name] = [plain(result.log_likelihood), bool(sound)]
    return found


def record_of(case: dict[str, Any], seen: list[Seen]) -> dict[str, Any]:
    """The line of a problem."""
    family = case["family"]
    calls = [called(case, seed, seen) for seed in range(SEEDS)]
    return {
        "name": case["name"],
        "likelihood": family.likelihood.name,
        "gate": family.gate.name,
        "n": len(case["y"]),
        "d": family.n_features,
        "k": family.n_experts,
        "K": family.n_classes,
        "P": family.n_free_params,
        "calls": calls,
        "looks": looks(case, sum(call["seconds"] for call in calls)),
    }


def cases(count: int, real: bool, known: set[str]) -> Iterator[dict[str, Any]]:
    """Problems that are not known yet."""
    if real:
        from search import real as sets

        for case in sets("softmax"):
            name, size = f"real {case.name}", case.family.n_free_params
            if name not in known:
                most = max(int(WORK / size**2), 6 * size)
                rows = slice(None, None, max(1, round(len(case.y) / most)))
                data = {"X": case.X[rows], "y": case.y[rows]}
                yield {"name": name, "family": case.family, **data, "truth": None}
        return
    for number in range(count):
        if f"{number}" not in known:
            yield synthetic(number)


def collect(path: Path, count: int, minutes: float, real: bool) -> None:
    """Add lines of problems until they are so many, or so much time is over."""
    lines = path.read_text().splitlines() if path.exists() else []
    known = {json.loads(line)["name"] for line in lines}
    seen: list[Seen] = []
    watch(seen)
    warnings.simplefilter("ignore")
    until = time.monotonic() + 60.0 * minutes
    for case in cases(count, real, known):
        try:
            record = record_of(case, seen)
        except ValueError as error:  # data that a law refuses, such as an absent class
            print(case["name"], error, flush=True)
            continue
        with path.open("a") as file:
            file.write(json.dumps(record) + "\n")
        heights = [call["height"] for call in record["calls"]]
        print(record["name"], record["likelihood"], heights, record["looks"], flush=True)
        if time.monotonic() > until:
            return


def main() -> None:
    """Run a command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("collect",))
    parser.add_argument("--problems", type=int, default=300)
    parser.add_argument("--minutes", type=float, default=50.0)
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--out", type=Path, default=HERE / "calibration.jsonl")
    given = parser.parse_args()
    collect(given.out, given.problems, given.minutes, given.real)


if __name__ == "__main__":
    main()
