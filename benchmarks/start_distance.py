"""Over-specified fits at n = 1e14 from starts at a fixed distance, and from nearer ones.

    OPENBLAS_NUM_THREADS=1 python benchmarks/start_distance.py [--replicates 20] [SPEC ...]

Near starts are at 1.8 n^-1/4 from a mixing measure that is the truth's, far ones at 0.1.  Both fit
the same data.  Means over replicates of the seconds of a cell, of the log-likelihood, and the
geometric mean of the loss, far over near: a loss that the distance of the starts decides would
differ by their ratio, 1 to 180.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from results import save
from threadpoolctl import threadpool_limits

from moestat.sweep.cell import run_cell
from moestat.sweep.plan import plan_cells
from moestat.sweep.spec import parse_spec

EXPERIMENTS = Path(__file__).parents[1] / "experiments"
SPECS = ("mlmoe", "mlmoe_four", "gaussian")
NEAR, FAR = "noise = 1.8, decay = 0.25", "noise = 0.1"
SIZE = 1e14
SAME = 0.05  # units of log-likelihood


def measure(name: str, replicates: int) -> list[dict]:
    """One row per over-specified curve of a spec whose starts have a distance to choose."""
    given = (EXPERIMENTS / f"microscope_{name}.toml").read_text()
    texts = [given.replace(FAR, NEAR), given.replace(NEAR, FAR)]
    specs = [parse_spec(text) for text in texts]
    rows = []
    for curve in specs[0].curves:
        if "measure" not in curve.starts or "inner" in curve.name:
            continue
        found = []
        for text, spec in zip(texts, specs, strict=True):
            cells = {
                c.replicate: c for c in plan_cells(spec) if (c.curve, c.n) == (curve.name, SIZE)
            }
            found.append([run_cell(text, cells[r]) for r in range(replicates)])
        height, loss, seconds = (
            np.array([[getattr(record, what) for record in own] for own in found])
            for what in ("log_likelihood", "loss", "seconds")
        )
        certified = [sum(bool(record.certified) for record in own) for own in found]
        higher = height[1] - height[0]
        row = {
            "experiment": name,
            "curve": curve.name,
            "seconds, near": round(float(seconds[0].mean()), 3),
            "seconds, far": round(float(seconds[1].mean()), 3),
            "certified, near": f"{certified[0]} of {replicates}",
            "certified, far": f"{certified[1]} of {replicates}",
            "log-likelihood, far - near": round(float(higher.mean()), 2),
            "its standard error": round(float(higher.std(ddof=1) / np.sqrt(replicates)), 2),
            "same": f"{int(np.sum(np.abs(higher) < SAME))} of {replicates}",
            "loss, far / near": round(float(np.exp(np.log(loss[1] / loss[0]).mean())), 2),
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
        rows = [measure(name, options.replicates) for name in options.specs or SPECS]
    save("start_distance", [row for own in rows for row in own])
