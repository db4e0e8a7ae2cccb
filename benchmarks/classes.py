"""Default fits to classes against fits that start at the truth.

    python benchmarks/classes.py [--first 0] [--last 56]

40 data sets of 4000 samples: all pairs of 3 or 5 classes with 2 to 4 experts and 1 to 4 inputs, and
a second truth for 3 and 4 experts; and 16 of 20,000 samples: the truths of 3 and 4 experts with 3
and 4 inputs. Inputs are uniform on [-2, 2], intercepts of gate and experts standard normal, slopes
normal with standard deviation 2. The fit that starts at the truth is the reference; a default fit
reaches it when its log-likelihood is not lower by more than .01. Times are processor times. The
rows that were run are written into results/classes.md, in place of the old rows of these data sets.
"""

from __future__ import annotations

import argparse
import time
import warnings
from itertools import product
from pathlib import Path

import numpy as np

import moestat
from moestat.base.warnings import MoEWarning
from moestat.estimation.starts import GivenStarts
from moestat.model.designs import Uniform
from moestat.model.family import Family

HERE = Path(__file__).parent
DESIGNS = [
    *product((4000,), (3, 5), (2, 3, 4), (1, 2, 3, 4), (0,)),
    *product((4000,), (3, 5), (3, 4), (1, 2, 3, 4), (1,)),
    *product((20_000,), (3, 5), (3, 4), (3, 4), (0, 1)),
]
"""Samples, classes, experts, inputs, and the number of the truth."""


def data_set(
    n: int, K: int, k: int, d: int, number: int
) -> tuple[Family, np.ndarray, np.ndarray, np.ndarray]:
    """Family, parameters of the truth, inputs (n, d) and labels (n,)."""
    rng = np.random.default_rng([K, k, d, number])
    F = moestat.family("multinomial", gate="softmax", n_experts=k, n_features=d, n_classes=K)
    theta = rng.standard_normal(F.n_params)
    for name in ("beta1", "a"):
        theta[F.blocks[name]] *= 2.0
    return F, theta, *moestat.sample(F, theta, n, rng, design=Uniform(-2.0, 2.0))


def main() -> None:
    """Fit the data sets, print a row of each, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--last", type=int, default=len(DESIGNS))
    given = parser.parse_args()
    warnings.simplefilter("ignore", MoEWarning)
    for design in DESIGNS[given.first : given.last]:
        F, truth, X, y = data_set(*design)
        reference = moestat.fit(F, X, y, starts=[GivenStarts([truth])]).log_likelihood
        began = time.process_time()
        found = moestat.fit(F, X, y, rng=0)
        seconds = time.process_time() - began
        numbers = f"{reference:.3f}", f"{found.log_likelihood - reference:+.3f}", f"{seconds:.2f}"
        write([*map(str, design), *numbers])


def write(row: list[str]) -> None:
    """Put a row into the table, and count again."""
    path = HERE / "results" / "classes.md"
    lines = path.read_text().splitlines() if path.exists() else []
    table = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line[:1] == "|"]
    table = [*(kept for kept in table[2:] if kept[:5] != row[:5]), row]
    table.sort(key=lambda line: [int(cell) for cell in line[:5]])
    counts = []
    for n in dict.fromkeys(line[0] for line in table):
        own = [line for line in table if line[0] == n]
        reached = sum(float(line[6]) >= -0.01 for line in own)
        seconds = [float(line[7]) for line in own]
        counts.append(
            f"With {n} samples the default call is not lower than the fit that starts at the"
            f" truth, to .01, in {reached} of {len(own)} data sets; it takes"
            f" {np.median(seconds):.2f} s of processor time in the median, {max(seconds):.2f} at"
            " most."
        )
    head = f"""# Default fits to classes against fits that start at the truth

{" ".join(counts)} (`benchmarks/classes.py`)

| samples | classes | experts | inputs | truth | from the truth | default, difference | seconds |
|---|---|---|---|---|---|---|---|
"""
    lines = [f"| {' | '.join(line)} |" for line in table]
    path.write_text(head + "\n".join(lines) + "\n")
    print(lines[table.index(row)], flush=True)


if __name__ == "__main__":
    main()
