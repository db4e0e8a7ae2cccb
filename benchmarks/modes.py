"""How probable a higher posterior mode is, by what a search has seen: data and fit.

    python benchmarks/modes.py collect [--first 0] [--problems 200] [--minutes 20]
    python benchmarks/modes.py confirm [--excess 1] [--problems 100] [--minutes 20]
    python benchmarks/modes.py again [--minutes 20]
    python benchmarks/modes.py fit

`collect` adds to results/modes.jsonl.gz a line for each problem of `calibration.py` that is not
there yet: three searches with other seeds that make all of their batches, and after each batch
what the search had seen and how high its best mode was.  The highest mode of the three is the best
one known.  `fit` estimates the coefficients of `moestat.estimation.rules.MODES` on the problems up
to number 479, judges them on the others, and writes results/modes.md: calibration in ten bins, and
by each risk how many batches a search makes and how often it ends lower.

`confirm` counts how often a default call misses the highest mode without a word, on the problems
from number 70,000 on, in order, on which nothing was ever chosen, with one expert fewer than the
truth (``--excess -1``), as many (0), or one more (1).  Each call is judged by three full searches
of other seeds, by climbs of the posterior density from the truth, where the fit has as many
experts, and from the end of ``maximum="highest"``.  It adds lines to results/modes_confirm.jsonl,
which `fit` reads.  On those of problems before 70,000, which earlier counts left there, the risk
was chosen and the probability above which a fit warns.  `again` repeats the calls of all lines by
the rule of today, and judges them by what was found before.

Where higher modes come from: of searches that had ended lower, 34 of 21 problems with one expert
more than the truth (numbers 20,000 to 20,419), new runs ended higher with these mean probabilities,
whose standard errors are .01 to .03.

| from | a run ends higher |
|---|---|
| the best mode on resamples of the rows; of half of them; of a quarter | .09, .09, .06 |
| the second and the third mode on resamples | .03, .04 |
| the best mode with a new expert; a pair divided anew; a copied expert | .04, .05, .02 |
| the same without one expert, refitted, with one from a soft cluster | .04 to .06 |
| or with the largest directional derivative of twelve (Lindsay 1983) | .06 |
| the best mode with an expert of another mode | .03 |
| starts of the four kinds | .02 to .04 |

A run on a resample takes half to two thirds of the time of the others.

What a search has seen: of 417 problems from number 40,000 on, four searches each, with as many
experts as the truth and with one more, the number of starts that reached the best mode and of
rounds of neighbours say less of a higher one (Brier score .102 over five folds of problems, .114 of
the mean alone) than the number of all runs that reached it, neighbours included, and of neighbours
(.095): where few of its neighbours come back to a mode, there are many.  By the latter, with a
risk of .04 for .05, .066 of the searches with one expert more end lower in silence in place of
.108, in 1.07 times the time.  The gap to the second mode, modes within 3 of the best, modes seen
once, experts, parameters, rows a parameter, alone or together, lower the score by .003 at most.

Tried and not kept: a third kind of neighbours, on resamples of half of the rows.  In pairs of calls
on new problems with one expert more than the truth 36 of 297 missed a higher mode in silence, and
45 without (three seeds of each problem; the difference has a standard error of 6), in 1.16 times
the time; with as many experts 4 of 148 with and without, in 1.05 times the time; with one expert
fewer 6 of 105, and 3 without.

The probabilities above are of problems chosen because searches had missed something, so that they
flatter whatever such a search does little of.  Of full searches of 36 problems that were not chosen
(one expert more, numbers 20,420 to 20,639, two seeds), .25 end lower with two kinds of neighbours,
.26 with three in the same time, and .29 with two starts a batch and more resamples instead (72
searches each: standard errors of .05).
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from calibration import bins_of, families, fitted, lines_of, row_of, synthetic

import moestat
from moestat.base.threads import ONE_THREAD
from moestat.estimation.data.priors import as_prior, with_prior
from moestat.estimation.data.read import read_data
from moestat.estimation.fit.identified import without_spare_columns
from moestat.estimation.fit.job import FitJob
from moestat.estimation.fit.run import RunningFit
from moestat.estimation.rules import MODES, SAME_HEIGHT
from moestat.estimation.search.modes import ModeRecord, ModeSearch
from moestat.estimation.search.runs import run_starts
from moestat.solvers.driver import Cores
from moestat.solvers.rules import NEWTON_STEPS
from moestat.sweep.kinds.inference.analysis import wilson

HERE = Path(__file__).parent / "results"
SEEDS = 3
"""Searches of each problem."""
HELD = 480
"""The first problem that has no part in the fit."""
CONFIRM = 70_000
"""The first problem of the confirmatory count; lines of problems before it served to choose."""


class Watched(ModeRecord):
    """A record that keeps what it was after each batch."""

    def __init__(self) -> None:
        super().__init__()
        self.trace: list[dict[str, float]] = []
        self.began = time.process_time()

    def add(self, ends: Any, are_starts: bool = True) -> None:
        """Enter ends; a batch is over after its neighbours."""
        super().add(ends, are_starts)
        if not are_starts and self.modes:
            self.trace.append(
                {
                    "runs": self.best.runs,
                    "neighbours": self.neighbours,
                    "starts": self.starts,
                    "single": sum(mode.starts == 1 for mode in self.modes),
                    "height": round(self.best.end.height, 4),
                    "seconds": round(time.process_time() - self.began, 4),
                }
            )


def traces(case: dict[str, Any]) -> list[list[dict[str, float]]]:
    """What searches of a problem had seen after each of their batches."""
    family, data = read_data(case["family"], case["X"], case["y"], None, {})
    found = []
    with ONE_THREAD:
        running = RunningFit.in_data_box(FitJob(family, data, rng=0), Cores(1))
        problem = without_spare_columns(running.inner)
        for seed in range(SEEDS):
            record = Watched()
            ModeSearch(risk=0.0).find_starts(problem, np.random.default_rng([seed, 4]), record)
            found.append(record.trace)
    return found


def collect(path: Path, numbers: range, minutes: float) -> None:
    """Add lines of problems until they are so many, or so much time is over."""
    known = {json.loads(line)["name"] for line in lines_of(path)} if path.exists() else set()
    until = time.monotonic() + 60.0 * minutes
    warnings.simplefilter("ignore")
    for number in numbers:
        if f"{number}" in known:
            continue
        case = synthetic(number)
        family = case["family"]
        record: dict[str, Any] = {
            "name": case["name"],
            "likelihood": family.likelihood.name,
            "gate": family.gate.name,
            "n": len(case["y"]),
            "k": family.n_experts,
            "P": family.n_free_params,
            "more": case["truth"] is None,
        }
        try:
            record["traces"] = traces(case)
        except ValueError as error:  # data that a law refuses, such as an absent class
            print(case["name"], error, flush=True)
            continue
        with gzip.open(path, "at") as file:
            file.write(json.dumps(record) + "\n")
        print(record["name"], record["likelihood"], record["k"], flush=True)
        if time.monotonic() > until:
            return


def called(case: dict[str, Any]) -> tuple[dict[str, Any], np.ndarray]:
    """What a default call says, and the highest mode (P,) that it saw."""
    kept: list[ModeRecord] = []

    def new_record(rule: ModeSearch, on_all: bool, coefficients: Any) -> ModeRecord:
        kept.append(ModeRecord(on_all=on_all))
        return kept[-1]

    began = time.process_time()
    with mock.patch.object(ModeSearch, "new_record", new_record):
        result = moestat.fit(case["family"], case["X"], case["y"], rng=0, threads=1)
    seconds = time.process_time() - began
    (record,) = kept
    said = {
        "p_higher": result.certificate.p_higher,
        "kinds": sorted(set(result.kinds)),
        "seconds": round(seconds, 3),
    }
    return said, record.best.end.theta


def prepared(case: dict[str, Any]) -> tuple[RunningFit, Callable[[np.ndarray], float]]:
    """The fit before its search, and the height of the mode that parameters (P,) lead to."""
    family, data = read_data(case["family"], case["X"], case["y"], None, {})
    running = RunningFit.in_data_box(FitJob(family, data, rng=0), Cores(1))
    posterior = with_prior(without_spare_columns(running.inner), as_prior("weak", family))

    def height(theta: np.ndarray) -> float:
        return round(float(run_starts(posterior, theta[None], NEWTON_STEPS)[0].height), 4)

    return running, height


def repeated(case: dict[str, Any]) -> dict[str, Any]:
    """What a default call says, with the height of its best mode on all rows."""
    said, mode = called(case)
    with ONE_THREAD:
        return {**said, "call": prepared(case)[1](mode)}


def confirmed(case: dict[str, Any]) -> dict[str, Any]:
    """What a default call says, and heights on all rows of its best mode and of other looks."""
    said, mode = called(case)
    highest = moestat.fit(case["family"], case["X"], case["y"], rng=0, threads=1, maximum="highest")
    with ONE_THREAD:
        running, height = prepared(case)
        assert running.standard is not None
        inward = running.standard.coordinates.inward
        looks = {"highest": height(inward(highest.theta))}
        if case["truth"] is not None:
            looks["truth"] = height(inward(case["truth"]))
        for seed in range(SEEDS):
            other = ModeRecord()
            rng = np.random.default_rng([seed, 10])
            ModeSearch(risk=0.0).find_starts(without_spare_columns(running.inner), rng, other)
            looks[f"search {seed}"] = height(other.best.end.theta) if other.modes else -np.inf
        looks = {name: each for name, each in looks.items() if np.isfinite(each)}
        return {**said, "call": height(mode), "looks": looks}


def confirm(path: Path, excess: int, problems: int, minutes: float) -> None:
    """Add lines of the confirmatory count until they are so many, or so much time is over."""
    path.touch()
    known = {json.loads(line)["name"] for line in path.read_text().splitlines()}
    until = time.monotonic() + 60.0 * minutes
    warnings.simplefilter("ignore")
    for number in excesses(excess, problems):
        if number in known:
            continue
        case = synthetic(number)
        family = case["family"]
        record: dict[str, Any] = {
            "name": number,
            "likelihood": family.likelihood.name,
            "k": family.n_experts,
            "rule": [MODES.risk, *MODES.coefficients],
        }
        try:
            record |= confirmed(case)
        except ValueError as error:  # data that a law refuses, such as an absent class
            record["refused"] = str(error)
        with path.open("a") as file:
            file.write(json.dumps(record) + "\n")
        if time.monotonic() > until:
            return


def again(path: Path, minutes: float) -> None:
    """Repeat the calls that another rule made; what they saw before remains as a look."""
    records = [json.loads(line) for line in path.read_text().splitlines()]
    until, rule = time.monotonic() + 60.0 * minutes, [MODES.risk, *MODES.coefficients]
    warnings.simplefilter("ignore")
    for record in records:
        if "refused" in record or record["rule"] == rule:
            continue
        before = max(record["call"], record["looks"].get("former call", -np.inf))
        record |= repeated(synthetic(record["name"])) | {"rule": rule}
        record["looks"]["former call"] = before
        path.write_text("".join(json.dumps(one) + "\n" for one in records))
        if time.monotonic() > until:
            return


def excesses(excess: int, problems: int) -> list[int]:
    """The first so many problems of the count whose fit has so many experts more than the truth."""
    found, number = list[int](), CONFIRM
    while len(found) < problems:
        if excess_of(number) == excess:
            found.append(number)
        number += 1
    return found


def excess_of(number: int) -> int:
    """How many experts more than the truth the fit of a problem has."""
    true, fit, *_ = families(number)
    return fit.n_experts - true.n_experts


def confirmed_lines(path: Path) -> list[str]:
    """The part of the page on the confirmatory count."""
    records = [json.loads(line) for line in path.read_text().splitlines()]
    calls = [record for record in records if "refused" not in record]
    fresh = [call for call in calls if call["name"] >= CONFIRM]
    refused = sum("refused" in record for record in records if record["name"] >= CONFIRM)
    lines = [
        "",
        "## Where a fit warns",
        "",
        f"Default calls on {len(calls) - len(fresh)} problems from number 50,000 on, by the"
        f" probability of a higher mode above which they warn; the library's, {MODES.higher:g}, and"
        " the risk were chosen on them. A mode that is missed without a warning is missed in"
        " silence, and a warning where none is known is in vain.",
        "",
        "| warns above | experts | calls | missed | in vain | in silence |",
        "|---|---|---|---|---|---|",
    ]
    for accepted in (0.03, 0.04, 0.05, 0.07, 0.1, 0.15):
        for words, some in _by_excess([call for call in calls if call["name"] < CONFIRM]):
            lines.append(f"| {accepted:g} | {words} | {_counts(some, accepted)} |")
    lines += [
        "",
        "## A confirmatory count",
        "",
        f"`python benchmarks/modes.py confirm`: default calls on problems from number {CONFIRM:,}"
        " on, on which nothing was chosen before: of each kind in the table the first ones, in"
        f" order. {refused} more have data that their likelihood refuses. Each is"
        f" judged by {SEEDS} full searches of other seeds and by climbs of the posterior density"
        ' from the truth and from the end of `maximum="highest"`. A call misses the highest mode'
        f" where one of these is more than {SAME_HEIGHT} higher, and is silent where it does not"
        " warn of it. Intervals are Wilson's of 95%.",
        "",
        "| experts | calls | missed | warned in vain | in silence | 95% interval |",
        "|---|---|---|---|---|---|",
    ]
    for words, some in _by_excess(fresh):
        _, _, silent = _outcomes(some, MODES.higher)
        low, high = wilson(silent / len(some), len(some))
        lines.append(f"| {words} | {_counts(some, MODES.higher)} | {low:.1%} to {high:.1%} |")
    return lines


def _by_excess(calls: list[dict[str, Any]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The calls with as many experts as the truth, one more and one fewer, where there are any."""
    for excess, words in ((0, "as many as the truth"), (1, "one more"), (-1, "one fewer")):
        some = [call for call in calls if excess_of(call["name"]) == excess]
        if some:
            yield words, some


def _is_missed(call: dict[str, Any]) -> bool:
    """Whether a higher mode than that of a call is known."""
    return max(call["looks"].values()) - call["call"] > SAME_HEIGHT


def _outcomes(calls: list[dict[str, Any]], accepted: float) -> tuple[int, int, int]:
    """Calls that miss a higher mode, that warn in vain, and that miss one in silence.

    They warn where the probability of a higher mode is above the accepted one.
    """
    missed = np.array([_is_missed(call) for call in calls])
    warned = np.array([call["p_higher"] > accepted for call in calls])
    return int(missed.sum()), int(np.sum(warned & ~missed)), int(np.sum(missed & ~warned))


def _counts(calls: list[dict[str, Any]], accepted: float) -> str:
    """Calls, misses, warnings in vain and misses in silence, as cells of a table."""
    missed, vain, silent = _outcomes(calls, accepted)
    return f"{len(calls)} | {missed} | {vain} | {silent} ({silent / len(calls):.1%})"


def covariates(stop: dict[str, float]) -> list[float]:
    """Those of `ModeRecord.probability`."""
    return [1.0, np.log(stop["runs"] + 0.5), np.log1p(stop["neighbours"])]


def stops_of(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """All stops of all searches: covariates, whether a higher mode is known, and the problem."""
    found = []
    for record in records:
        ends = [trace[-1]["height"] for trace in record["traces"] if trace]
        if not ends:
            continue
        best = max(ends)
        for search, trace in enumerate(record["traces"]):
            for batch, stop in enumerate(trace):
                found.append(
                    {
                        "name": int(record["name"]),
                        "search": search,
                        "batch": batch,
                        "batches": stop["starts"] / MODES.starts,
                        "more": record["more"],
                        "z": covariates(stop),
                        "good_turing": stop["single"] / stop["starts"],
                        "lower": best - stop["height"] > SAME_HEIGHT,
                        "seconds": stop["seconds"],
                    }
                )
    return found


def halted(stops: list[dict[str, Any]], beta: np.ndarray, risk: float) -> list[dict[str, Any]]:
    """Where each search stops by a risk, with the probability that it then says."""
    ends: dict[tuple[int, int], dict[str, Any]] = {}
    for stop in stops:
        key = stop["name"], stop["search"]
        if key in ends and ends[key]["p"] <= risk:
            continue
        p = 1.0 / (1.0 + np.exp(-np.dot(stop["z"], beta)))
        ends[key] = {**stop, "p": p}
    return list(ends.values())


def judge(path: Path) -> None:
    """Fit on one half of the problems, judge on the other, and write the page."""
    records = [json.loads(line) for line in lines_of(path)]
    stops = stops_of(records)
    train = [stop for stop in stops if stop["name"] < HELD]
    held = [stop for stop in stops if stop["name"] >= HELD]
    Z = np.array([stop["z"] for stop in train])
    beta = fitted(Z, np.array([float(stop["lower"]) for stop in train]))
    said = np.array([1.0 / (1.0 + np.exp(-np.dot(stop["z"], beta))) for stop in held])
    lower = np.array([float(stop["lower"]) for stop in held])
    coverage = np.array([stop["good_turing"] for stop in held])
    bins = bins_of(said, lower)
    inside = sum(low <= share <= high for _, share, low, high, _ in bins)
    laws = len({record["likelihood"] for record in records})
    lines = [
        "# The probability of a higher posterior mode",
        "",
        f"{len(records)} simulated problems of {laws} likelihoods, three searches each, with what"
        " they had seen after each of their batches. A higher mode is known where another search,"
        " or a later batch, ended more than .01 higher. Coefficients are fitted to the"
        f" {len(train):,} stops of the problems up to number {HELD - 1} and judged on the"
        f" {len(held):,} of the others; stops of one problem are not independent, so that the bands"
        " of the binomial distribution are too narrow.",
        "",
        "Coefficients of 1, ln(runs + 1/2) and ln(1 + neighbours):"
        f" {', '.join(f'{b:.3f}' for b in beta)}."
        f" Brier score {np.mean((said - lower) ** 2):.3f}; of the mean alone"
        f" {np.mean((lower.mean() - lower) ** 2):.3f}; of the share of modes that one start reached"
        f" (Good 1953) {np.mean((coverage - lower) ** 2):.3f}. {inside} of 10 bins are within"
        " their band.",
        "",
        "| searches say | a higher one is known | 95% band | stops |",
        "|---|---|---|---|",
        *map(row_of, bins),
        "",
        "Searches of the problems that had no part in the fit, had they stopped by the risk:",
        "",
        "| risk | experts | batches, mean | seconds, mean | ends lower | of these in silence |",
        "|---|---|---|---|---|---|",
    ]
    for risk in (0.02, 0.03, 0.04, 0.05, 0.08):
        for more, words in ((False, "as many as the truth"), (True, "another number")):
            ends = [end for end in halted(held, beta, risk) if end["more"] is more]
            silent = [end for end in ends if end["lower"] and end["p"] <= MODES.higher]
            missed = np.mean([end["lower"] for end in ends])
            lines.append(
                f"| {risk:g} | {words} | {np.mean([end['batches'] for end in ends]):.1f} |"
                f" {np.mean([end['seconds'] for end in ends]):.2f} | {missed:.1%} |"
                f" {len(silent)} of {len(ends)} |"
            )
    now = np.array(MODES.coefficients)
    lines += ["", f"The library has the coefficients {', '.join(f'{c:g}' for c in now)}."]
    lines += confirmed_lines(HERE / "modes_confirm.jsonl")
    text = "\n".join(lines) + "\n"
    (HERE / "modes.md").write_text(text)
    print(text)


def main() -> None:
    """Run a command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("collect", "confirm", "again", "fit"))
    parser.add_argument("--problems", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--excess", type=int, choices=(-1, 0, 1), default=1)
    parser.add_argument("--minutes", type=float, default=20.0)
    given = parser.parse_args()
    path = HERE / "modes.jsonl.gz"
    if given.command == "collect":
        collect(path, range(given.first, given.first + given.problems), given.minutes)
    elif given.command == "confirm":
        confirm(HERE / "modes_confirm.jsonl", given.excess, given.problems, given.minutes)
    elif given.command == "again":
        again(HERE / "modes_confirm.jsonl", given.minutes)
    else:
        judge(path)


if __name__ == "__main__":
    main()
