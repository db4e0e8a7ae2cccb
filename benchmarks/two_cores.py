"""Fits on two threads: what of one start they share, in processor time, and what the clock says.

    python benchmarks/two_cores.py [--pairs 40]

Gaussian softmax, k = 3, d = 5, n = 1e5, one start near the truth.  Clocks need an idle machine, so
the processor time of every part of every pass is measured, too: serial is what is left of the fit,
and the longest path is the longer of two threads that take the parts in their order.  The ratio
from these leaves out what handing parts over costs.  Clocks are read in pairs of one and two
threads, one after the other: the ratio of the shortest times, and the median of the ratios.

Default calls, whose searches share their runs among the threads, are those of `peers.py`, with
clocks only, in 5 pairs.  The first row is what the machine itself gives: the passes of that one
start as two streams that share nothing.
"""

from __future__ import annotations

import argparse
import threading
import time
from typing import Any
from unittest import mock

import numpy as np
from peers import problem as of_peers
from results import save

import moestat
from moestat.estimation.starts import GivenStarts
from moestat.solvers.problem import Objective, Problem, Request, Rows

_DEFAULT = (
    "lines, k = 3, n = 1e4",
    "lines, k = 8, n = 1e4, d = 2",
    "lines, k = 3, n = 1e4, d = 20",
    "classes, k = 2, n = 1e4, K = 20",
    "classes, k = 3, n = 1e4, K = 3, d = 10",
)
_PAIRS = 5
_N, _D, _K = 100_000, 5, 3


def problem() -> tuple[Any, Any, Any, GivenStarts]:
    """Family, data and start."""
    family = moestat.family("gaussian", gate="softmax", n_experts=_K, n_features=_D)
    rng = np.random.default_rng(5)
    blocks = family.unpack(rng.standard_normal(family.n_params))
    theta = family.pack(
        {name: abs(b) + 0.2 if name == "nu" else 1.5 * b for name, b in blocks.items()}
    )
    X, y = moestat.sample(family, theta, _N, rng=6, design=moestat.Uniform(-2, 2))
    start = theta + 0.2 * rng.standard_normal(theta.size)
    return family, X, y, GivenStarts([start])


def shares(fit: Any) -> dict[str, float]:
    """Serial seconds, seconds in parts and seconds of the longest path, of the quickest of 20."""
    compute, found = Problem.evaluate_part, []

    def timed(self: Problem, request: Any, rows: slice) -> Any:
        began = time.thread_time()
        answer = compute(self, request, rows)
        parts.setdefault(id(request), []).append(time.thread_time() - began)
        requests.append(request)  # so that no other gets its id
        return answer

    with mock.patch.object(Problem, "evaluate_part", timed):
        for _ in range(20):
            parts: dict[int, list[float]] = {}
            requests: list[Any] = []
            began = time.thread_time()
            fit(1)
            total, path = time.thread_time() - began, 0.0
            for own in parts.values():
                threads = [0.0, 0.0]
                for seconds in own:
                    threads[threads.index(min(threads))] += seconds
                path += max(threads)
            found.append((total, sum(map(sum, parts.values())), path))
    total, inside, path = min(found)
    return {
        "serial, s": round(total - inside, 4),
        "in passes, s": round(inside, 4),
        "longest path, s": round(path, 4),
        "passes, times": round(inside / path, 2),
        "fit, times": round(total / (total - inside + path), 2),
    }


def clocks(fit: Any, pairs: int) -> dict[str, float]:
    """Ratios of the clock with one and two threads."""
    seconds = np.empty((pairs, 2))
    for pair in range(pairs):
        for threads in (1, 2):
            began = time.perf_counter()
            fit(threads)
            seconds[pair, threads - 1] = time.perf_counter() - began
    shortest, ratios = seconds.min(axis=0), seconds[:, 0] / seconds[:, 1]
    return {
        "clock, shortest": round(float(shortest[0] / shortest[1]), 2),
        "clock, median": round(float(np.median(ratios)), 2),
    }


def machine_itself(family: Any, X: Any, y: Any, theta: Any) -> dict[str, Any]:
    """Two streams of the same passes on two threads, against one of them alone."""
    at = Problem(family, Rows(np.ascontiguousarray(X.T), np.asarray(y), np.ones(len(y))))
    request = Request(Objective.OBSERVED, theta)

    def stream() -> None:
        for _ in range(20):
            at.evaluate(request)

    def run(threads: int) -> None:
        running = [threading.Thread(target=stream) for _ in range(threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()

    run(1)
    ratios = clocks(run, _PAIRS)
    return {"problem": "two streams of passes"} | {
        name: round(2.0 * ratio, 2) for name, ratio in ratios.items()
    }


def default_call(name: str) -> dict[str, Any]:
    """Clocks of a default call."""
    family, _, X, y = of_peers(name)

    def fit(threads: int) -> Any:
        return moestat.fit(family, X, y, rng=0, threads=threads)

    fit(2)
    return {"problem": f"{name}, default call"} | clocks(fit, _PAIRS)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=40)
    pairs = parser.parse_args().pairs
    family, X, y, start = problem()

    def fit(threads: int) -> Any:
        """The fit on so many threads."""
        return moestat.fit(family, X, y, starts=[start], rng=0, threads=threads)

    fit(2)
    row = {"problem": "gaussian softmax, k = 3, n = 1e5, d = 5, one start"}
    row |= {"parameters": family.n_params} | shares(fit) | clocks(fit, pairs)
    rows = [machine_itself(family, X, y, family.pin(start.points[0])), row]
    rows += map(default_call, _DEFAULT)
    print(*rows, sep="\n")
    save("two cores", rows)
