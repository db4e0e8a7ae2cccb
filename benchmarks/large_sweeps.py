"""Large sweeps: what a store of many cells costs to start, to look at and to read rates off.

    python benchmarks/large_sweeps.py [--cells 1000000] [--folder DIR]

The rows are those of a Gaussian softmax sweep with made-up numbers, written by the store's own
writer; nothing is fitted.  Each command then runs as a process of its own, as a user's would:
processor time is that of the whole process, start of Python counted, memory the largest resident
set.  The writer is timed twice: batches of 1,000 cells, and batches of 50, as dask workers send
cells of 10 ms.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from results import save

from moestat.sweep import create_store, open_cells, parse_spec
from moestat.sweep.spec.plan import Cell
from moestat.sweep.store.record import DONE, Record, machine, versions

_SPEC = """
title = "A large sweep"
seed = 1
replicates = {replicates}
n = [100, 178, 316, 562, 1000, 1778, 3162, 5623, 10000, 17783]

[design]
low = -4
high = 4

[truth.lines]
gate = "softmax"
beta0 = [-2.0, 0.0]
beta1 = [3.0, 0.0]
a = [[1.0, 0.0], [1.0, 0.0]]
b = [[-3.0, 0.0], [2.5, 0.0]]
"""
_CURVE = """
[[curve]]
name = "curve {number}"
truth = "lines"
n_experts = 2
loss = "softmax-D1"
starts = {{ truth = 1, noise = 0.1 }}
"""
_CURVES = 5
_SMALL = 50
"""Cells that a dask worker sends at once, if they take 10 ms each."""


def spec_text(cells: int) -> str:
    """A spec of so many cells."""
    curves = "".join(_CURVE.format(number=number) for number in range(1, _CURVES + 1))
    return _SPEC.format(replicates=cells // (10 * _CURVES)) + curves


def record_of(cell: Cell, rng: np.random.Generator) -> Record:
    """A record with the entries that a fit of two atoms has, and random numbers."""
    v = (cell.n**-0.5 * np.exp(0.3 * rng.standard_normal(40))).tolist()
    return Record(
        key=cell.key,
        curve=cell.curve,
        n=cell.n,
        replicate=cell.replicate,
        status=DONE,
        loss=v[0],
        log_likelihood=-1.4 * cell.n + v[1],
        certified=True,
        params=v[2:10],
        losses={
            "cell_sizes": [1, 1],
            "mass_errors": v[10:12],
            "block_errors": {"beta1": v[12:14], "a": v[14:16], "b": v[16:18]},
            "empty_cells": 0,
            "coverage": v[18],
            "hellinger": v[19],
            "hellinger_error": v[20],
            "total_variation": v[21],
            "total_variation_error": v[22],
            "also": {},
            "cells": [
                {
                    "size": 1,
                    "mass_error": v[at],
                    "errors": {"beta1": v[at + 1], "a": v[at + 2], "b": v[at + 3]},
                    "expert_error": v[at + 4],
                }
                for at in (23, 28)
            ],
        },
        certificate={
            "status": "converged",
            "certified": True,
            "gradient": v[33],
            "gain": v[34],
            "inertia": [6, 0, 0],
            "condition": v[35],
            "active": [],
            "iterations": int(rng.integers(3, 200)),
            "passes": v[36],
            "seconds": v[37],
            "start": f"random {int(rng.integers(3))}",
            "n_starts": 3,
            "n_optima": int(rng.integers(1, 4)),
            "agreement": v[38],
            "collapsed": [],
            "n_collapsed": 0,
            "kinks": 0,
            "reach": 1.0,
        },
        seconds=v[39],
        versions=versions(),
        identity=cell.identity,
        machine=machine(),
    )


def fill(path: Path, cells: int) -> dict:
    """Write the store; cells per second of processor time, and of the clock, by size of batch."""
    spec, rng, found = parse_spec(spec_text(cells)), np.random.default_rng(0), {}
    with create_store(path, spec) as store:
        ahead = iter(open_cells(spec, store))
        for size, most in ((_SMALL, 200), (1000, None)):
            batches, written, busy, wall = 0, 0, 0.0, 0.0
            while (most is None or batches < most) and (chosen := [*itertools.islice(ahead, size)]):
                records = [record_of(cell, rng) for cell in chosen]
                began, clock = time.process_time(), time.perf_counter()
                store.put(records)
                busy += time.process_time() - began
                wall += time.perf_counter() - clock
                batches, written = batches + 1, written + len(records)
            if written:
                found[f"cells/s, batches of {size}"] = round(written / busy)
                found[f"by the clock, {size}"] = round(written / wall)
    return found


def measured(*arguments: str) -> tuple[dict, str]:
    """Seconds of processor time and MB of memory of one process, and its output."""
    process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status):
        raise SystemExit(f"{arguments} failed")
    seconds, memory = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e3
    return {"s": round(seconds, 2), "MB": round(memory)}, output


_START = """
import sys
from moestat.sweep import create_store, load_spec, open_cells
spec = load_spec(sys.argv[1])
with create_store(sys.argv[2], spec) as store:
    store.drop_damaged()
    cells = open_cells(spec, store)
    print(len(cells), next(iter(cells), None))
"""


def measure(cells: int, folder: Path) -> dict:
    """The row of a store of so many cells."""
    path, text = folder / "large.sqlite", folder / "large.toml"
    row: dict = {"cells": cells} | fill(path, cells)
    row["bytes per cell"] = round(path.stat().st_size / cells)
    text.write_text(spec_text(cells))
    commands = {
        "first start": ("-c", _START, str(text), str(folder / "new.sqlite")),
        "resume": ("-c", _START, str(text), str(path)),
        "status": ("-m", "moestat.sweep", "status", str(path), "--json"),
        "rates": ("-m", "moestat.sweep", "rates", str(path), "--json"),
        "plot": ("-m", "moestat.sweep", "plot", str(path), "--out", str(folder / "plot.png")),
    }
    for name, arguments in commands.items():
        found, output = measured(*arguments)
        row |= {f"{name}, {unit}": value for unit, value in found.items()}
        if name == "rates":
            slopes = [each["rate"]["slope"] for each in json.loads(output)]
            assert max(abs(slope + 0.5) for slope in slopes) < 0.05, slopes
    return row


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cells", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--folder", type=Path, help="Where the stores are made, and left.")
    options = parser.parse_args()
    rows = []
    for cells in options.cells:
        with tempfile.TemporaryDirectory() as temporary:
            rows.append(measure(cells, options.folder or Path(temporary)))
        print(rows[-1], flush=True)
    save("large sweeps", rows)
