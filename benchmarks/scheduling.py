"""What scheduling costs: many tiny cells, and one worker against two.

    python benchmarks/scheduling.py overhead --executor process
    python benchmarks/scheduling.py overhead --executor dask
    python benchmarks/scheduling.py scaling

A cell computes for a known time and leaves a record of the usual size.  *Overhead* compares the
time of 10,000 cells, of a millisecond unless told otherwise, with the time that the workers would
need if nothing but the cells cost any, from the first record on: starting workers takes the same
time for any number of cells, and is shown beside it.  On a machine that others use, too, the clock
says more about them; processor time, of coordinator and workers together, less that of a run of a
few cells, does not.  *Scaling* compares a real sweep on one worker process and on two, alternating,
each from the first record on: by the clock, and by use, which is how much of the time the workers
had a cell to compute over how much processor time all of it took, and so leaves others out.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from moestat.sweep import create_store, open_cells, parse_spec, run_cells
from moestat.sweep.store.record import record_of

SPEC = """
title = "Tiny cells"
seed = 1
replicates = {replicates}
n = {sizes}

[design]
low = -4
high = 4

[truth.t]
gate = "softmax"
beta0 = [-2.0, 0.0]
beta1 = [3.0, 0.0]
a = [[1.0, 0.0], [1.0, 0.0]]
b = [[-3.0, 0.0], [2.5, 0.0]]

[[curve]]
name = "c"
truth = "t"
n_experts = 3
loss = "softmax-D1"
"""


def spin(text, cell):
    """Compute for n microseconds of processor time; a real record's worth of numbers."""
    end = time.process_time() + 1e-6 * cell.n
    while time.process_time() < end:
        pass
    block = {"a": [0.1, 0.2, 0.3], "b": [0.1, 0.2, 0.3]}
    cells = [{"size": 1, "mass_error": 0.1, "errors": {"a": 0.1, "b": 0.2}, "expert_error": 0.3}]
    return record_of(
        cell,
        "done",
        loss=cell.n**-0.5,
        log_likelihood=-0.1 * cell.n,
        certified=True,
        params=[0.1] * 12,
        losses={"cell_sizes": [1, 2], "block_errors": block, "hellinger": 0.1, "cells": cells * 2},
        certificate={"status": "converged", "gain": 1e-9, "condition": 1e3, "active": []},
        seconds=1e-6 * cell.n,
    )


@dataclass(frozen=True)
class Timing:
    """Seconds until the first record and the last; of all cells; of all processors."""

    first: float
    last: float
    seconds: float
    processor: float


def timed(text, executor, workers, cell_function=None):
    """The timing of a sweep into a new store."""
    spec = parse_spec(text)
    with (
        tempfile.TemporaryDirectory() as folder,
        create_store(Path(folder) / "cells.sqlite", spec) as store,
    ):
        cells = open_cells(spec, store)
        began, used, first, seconds = time.perf_counter(), processor_time(), 0.0, 0.0
        for record in run_cells(
            spec, store, cells, executor=executor, workers=workers, cell_function=cell_function
        ):
            first = first or time.perf_counter() - began
            seconds += record.seconds
        last = time.perf_counter() - began
        assert len(store.statuses()) == len(cells)
        return Timing(first, last, seconds, processor_time() - used)


def processor_time():
    """Seconds of this process and of those it has waited for."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def overhead(executor, workers, cells, milliseconds, repeats):
    """Compare the time of tiny cells with what they take by themselves."""
    ideal, walls, costs = cells * milliseconds / 1000, [], []
    sizes = f"[{round(1000 * milliseconds)}]"
    for _ in range(repeats):
        few = SPEC.format(replicates=2 * workers, sizes=sizes)
        start = timed(few, executor, workers, spin).processor
        many = SPEC.format(replicates=cells, sizes=sizes)
        run = timed(many, executor, workers, spin)
        walls.append((run.last - run.first) / (ideal / workers) - 1)
        costs.append((run.processor - start) / ideal - 1)
        print(
            f"{executor}: {cells} cells of {milliseconds:g} ms on {workers} workers,"
            f" ideal {ideal / workers:.2f} s: first record after {run.first:.2f} s, last after"
            f" {run.last:.2f} s; overhead {walls[-1]:.1%} by the clock, {costs[-1]:.1%} by"
            " processor time",
            flush=True,
        )
    print(
        f"{executor}: median overhead {statistics.median(walls):.1%} by the clock,"
        f" {statistics.median(costs):.1%} by processor time"
    )


def scaling(repeats):
    """Compare a real sweep on one worker and on two."""
    text = SPEC.format(replicates=60, sizes="[100000, 200000]").replace(
        'loss = "softmax-D1"', 'loss = "softmax-D1"\nstarts = { truth = 6, noise = 0.1 }'
    )
    by_clock, by_use = [], []
    for _ in range(repeats):
        rates, uses = [], []
        for workers in (1, 2):
            run = timed(text, "process", workers)
            busy = run.seconds / (workers * (run.last - run.first))
            rates.append(1.0 / (run.last - run.first))
            uses.append(workers * busy / run.processor)
            print(
                f"{workers} workers: {run.last - run.first:.1f} s, workers busy {busy:.1%},"
                f" {run.processor:.1f} s of processor time",
                flush=True,
            )
        by_clock.append(rates[1] / rates[0])
        by_use.append(uses[1] / uses[0])
        print(f"ratio {by_clock[-1]:.2f} by the clock, {by_use[-1]:.2f} by use", flush=True)
    print(
        f"1 to 2 workers: median ratio {statistics.median(by_clock):.2f} by the clock,"
        f" {statistics.median(by_use):.2f} by use"
    )


def main():
    """Read the command line."""
    parser = argparse.ArgumentParser(description="What scheduling costs.")
    parser.add_argument("what", choices=("overhead", "scaling"))
    parser.add_argument("--executor", default="process")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--cells", type=int, default=10_000)
    parser.add_argument("--milliseconds", type=float, default=1.0)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    if given.what == "overhead":
        overhead(given.executor, given.workers, given.cells, given.milliseconds, given.repeats)
    else:
        scaling(given.repeats)


if __name__ == "__main__":
    main()
