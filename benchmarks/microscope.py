"""What a cell of a microscope costs at n = 1e5 and at n = 1e14.

    OPENBLAS_NUM_THREADS=1 python benchmarks/microscope.py [--replicates 20] [SPEC ...]

A cell is sampled, fitted from all its starts and scored.  The two sample sizes run in turns in
this process; processor time counts, after one cell of each has compiled what they need.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from results import save
from threadpoolctl import threadpool_limits

from moestat.sweep import load_spec
from moestat.sweep.cell import run_cell
from moestat.sweep.plan import Cell, plan_cells
from moestat.sweep.record import Record

EXPERIMENTS = Path(__file__).parents[1] / "experiments"
SPECS = ("gaussian", "mlmoe", "mlmoe_four", "published", "published_four", "attention")
SMALL, LARGE = 1e5, 1e14


def timed(text: str, cell: Cell) -> tuple[Record, float]:
    """The record of a cell, and seconds of processor time."""
    began = time.process_time()
    record = run_cell(text, cell)
    return record, time.process_time() - began


def measure(name: str, replicates: int) -> list[dict]:
    """One row per curve of a spec."""
    path = EXPERIMENTS / f"microscope_{name}.toml"
    text, spec = path.read_text(), load_spec(path)
    cells = {(c.curve, c.n, c.replicate): c for c in plan_cells(spec)}
    rows = []
    for curve in spec.curves:
        seconds: dict[float, list[float]] = {SMALL: [], LARGE: []}
        certified = 0
        for n in seconds:
            run_cell(text, cells[curve.name, n, 0])
        for replicate in range(min(replicates, spec.replicates)):
            for n, spent in seconds.items():
                record, took = timed(text, cells[curve.name, n, replicate])
                spent.append(took)
                certified += n == LARGE and bool(record.certified)
        small, large = (np.array(spent) for spent in seconds.values())
        row = {
            "experiment": name,
            "curve": curve.name,
            "median at 1e5": round(float(np.median(small)), 4),
            "median at 1e14": round(float(np.median(large)), 4),
            "ratio of medians": round(float(np.median(large) / np.median(small)), 2),
            "ratio of means": round(float(large.mean() / small.mean()), 2),
            "certified at 1e14": f"{certified} of {len(large)}",
        }
        rows.append(row)
        print(row, flush=True)
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("specs", nargs="*", metavar="SPEC", help=f"of {', '.join(SPECS)}")
    parser.add_argument("--replicates", type=int, default=20)
    options = parser.parse_args()
    with threadpool_limits(1):
        found = [measure(name, options.replicates) for name in options.specs or SPECS]
    save("microscope", [row for rows in found for row in rows])
