"""What a cell of a microscope costs at n = 1e5 and at n = 1e14.

    OPENBLAS_NUM_THREADS=1 python benchmarks/microscope.py [--replicates 20] [--random 1] [SPEC ...]

A cell is sampled, fitted from all its starts and scored.  The two sample sizes run in turns in
this process; processor time counts, after one cell of each has compiled what they need.  Beside
them stands what a study without lattices pays: the same cell with 1e5 random inputs.
"""

from __future__ import annotations

import re
import time

import numpy as np
from microscopes import cells_of, parser, text_of
from results import save
from threadpoolctl import threadpool_limits

from moestat.sweep import parse_spec
from moestat.sweep.run.cell import run_cell
from moestat.sweep.spec.plan import Cell
from moestat.sweep.store.record import Record

SPECS = ("gaussian", "mlmoe", "mlmoe_four", "published", "published_four", "attention")
SMALL, LARGE = 1e5, 1e14


def random_inputs(text: str) -> str:
    """A spec with the uniform law of its lattice, and sizes that are rows."""
    text = re.sub(r",?\s*nodes = \d+", "", text.replace('"lattice"', '"uniform"'))
    return re.sub(r"stop = 1e14, num = 12", "stop = 1e5, num = 3", text)


def timed(text: str, cell: Cell) -> tuple[Record, float]:
    """The record of a cell, and seconds of processor time."""
    began = time.process_time()
    record = run_cell(text, cell)
    return record, time.process_time() - began


def measure(name: str, replicates: int, random: int) -> list[dict]:
    """One row per curve of a spec."""
    lattice = text_of(name)
    texts = {"1e5": lattice, "1e14": lattice, "1e5, random": random_inputs(lattice)}
    rows = []
    for curve in parse_spec(lattice).curves:
        seconds: dict[str, list[float]] = {column: [] for column in texts}
        certified = 0
        for replicate in range(-1, replicates):
            for column, spent in seconds.items():
                if column == "1e5, random" and not 0 <= replicate < random:
                    continue
                n = LARGE if column == "1e14" else SMALL
                cell = cells_of(texts[column])[curve.name, n, max(replicate, 0)]
                record, took = timed(texts[column], cell)
                if replicate >= 0:
                    spent.append(took)
                    certified += column == "1e14" and bool(record.certified)
        small, large, sampled = (np.array(spent) for spent in seconds.values())
        to_random = round(float(np.median(large) / np.median(sampled)), 3) if random else None
        row = {
            "experiment": name,
            "curve": curve.name,
            **{f"median at {c}": round(float(np.median(s)), 4) for c, s in seconds.items() if s},
            "ratio of medians": round(float(np.median(large) / np.median(small)), 2),
            "ratio of means": round(float(large.mean() / small.mean()), 2),
            "ratio to random": to_random,
            "certified at 1e14": f"{certified} of {len(large)}",
        }
        rows.append(row)
        print(row, flush=True)
    return rows


if __name__ == "__main__":
    arguments = parser(__doc__, SPECS)
    arguments.add_argument("--random", type=int, default=1, help="replicates with random inputs")
    options = arguments.parse_args()
    with threadpool_limits(1):
        found = [measure(name, options.replicates, options.random) for name in options.specs]
    save("microscope", [row for rows in found for row in rows])
