"""A default call on a file of rows: time, passes and memory of fits to blocks.

    python benchmarks/blocks.py [--rows 1e8] [--folder DIR]

The file holds n rows of d = 2 inputs and a response in float32, memory-mapped; the model has three
Gaussian experts under a softmax gate.  Seconds are of processor time and of the clock, on all
cores, once; memory is what the process's own resident set, without pages of files, grew by, at
most, after a small fit has compiled everything.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from resident import Growth
from results import rows_of, save

import moestat
from moestat import Blocks

_PART = 1_000_000


def measure(n: int, path: Path) -> dict:
    """The row of a file of n rows."""
    family = moestat.family("gaussian", gate="softmax", n_experts=3, n_features=2)
    rng = np.random.default_rng(5)
    blocks = family.unpack(rng.standard_normal(family.n_params))
    theta = family.pack(
        {name: abs(b) + 0.2 if name == "nu" else 1.5 * b for name, b in blocks.items()}
    )
    law = moestat.Uniform(-2, 2)
    file = np.memmap(path, dtype=np.float32, mode="w+", shape=(n, 3))
    for begin in range(0, n, _PART):
        X, y = moestat.sample(family, theta, min(_PART, n - begin), rng=begin, design=law)
        file[begin : begin + _PART] = np.column_stack([X, y])
    file.flush()
    del file
    # In a process of its own, whose memory holds nothing of the sampling.
    with get_context("spawn").Pool(1) as pool:
        return pool.apply(fitted, (n, path))


def fitted(n: int, path: Path) -> dict:
    """The row of the file at `path`."""
    family = moestat.family("gaussian", gate="softmax", n_experts=3, n_features=2)
    theta = family.typical(0)
    few = moestat.sample(family, theta, 2000, rng=1)
    moestat.fit_blocks(family, Blocks.from_arrays(*few), rng=0)
    with Growth() as growth:
        began, clock = time.process_time(), time.perf_counter()
        rows = np.memmap(path, dtype=np.float32, mode="r", shape=(n, 3))
        result = moestat.fit_blocks(family, Blocks.from_arrays(rows[:, :2], rows[:, 2]), rng=0)
        seconds, clock = time.process_time() - began, time.perf_counter() - clock
    return {
        "rows": n,
        "parameters": family.n_params,
        "seconds": round(seconds, 1),
        "by the clock": round(clock, 1),
        "starts": result.certificate.n_starts,
        "passes of the best": round(result.certificate.passes, 2),
        "log-likelihood": float(result.log_likelihood),
        "certified": bool(result.certificate.certified),
        "memory, MB": round(growth.megabytes),
        "file, MB": round(n * 12 / 1e6),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=float, nargs="+", default=[1e6, 1e7, 1e8])
    parser.add_argument("--folder", type=Path, help="Where the file is made, and removed.")
    options = parser.parse_args()
    rows = {row["rows"]: row for row in rows_of("blocks")}
    for n in map(int, options.rows):
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            rows[n] = measure(n, Path(folder) / "rows")
        print(rows[n], flush=True)
        save("blocks", [rows[each] for each in sorted(rows)])
