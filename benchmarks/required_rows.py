"""Mean squared errors at the numbers of rows of `moestat.required_n`, by simulation.

``python benchmarks/required_rows.py`` prints, for each of twenty random truths of two experts, the
mean squared error of 40 fits, started at the truth, over the one that was asked for.
"""

from __future__ import annotations

import warnings

import numpy as np

import moestat


def ratio(seed: int, fits: int = 40) -> tuple[str, int, float]:
    """Likelihood, rows and the ratio of mean squared errors at one truth."""
    rng, name = np.random.default_rng(seed), ("gaussian", "poisson")[seed % 2]
    family = moestat.family(name, gate="softmax", n_experts=2)
    slope = rng.uniform(1, 3)
    blocks = {
        "beta0": [rng.normal() * 0.5, 0],
        "beta1": [rng.uniform(2, 4), 0],
        "a": [slope, -slope],
        "b": [rng.normal() * 0.3, 1.0],
    }
    if name == "gaussian":
        blocks["nu"] = [0.1, 0.2]
    truth, design = family.pack(blocks), moestat.Uniform(-1, 1)
    error = 0.08 if name == "gaussian" else 0.12
    need = moestat.required_n(family, truth, design, error=error, what="a[0,0]")
    found = []
    for k in range(fits):
        X, y = moestat.sample(family, truth, n=need.n, rng=1000 * seed + k, design=design)
        start = [moestat.starts.GivenStarts([truth])]
        slopes = moestat.fit(family, X, y, starts=start, rng=0).blocks["a"][:, 0]
        found.append(slopes[np.argmin(np.abs(slopes - slope))] - slope)
    return name, need.n, float(np.mean(np.square(found)) / error**2)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    ratios = []
    for seed in range(20):
        name, n, found = ratio(seed)
        ratios.append(found)
        print(f"{seed:2d} {name:9s} n = {n:5d}: {found:.2f}", flush=True)
    print(f"{len(ratios)} truths, median {np.median(ratios):.2f}")
