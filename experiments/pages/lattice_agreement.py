"""Do lattice designs say what random ones say?  Slopes, mean losses at n = 1e5, and m doubled.

    python -m experiments.pages.lattice_agreement [REPLICATES]

fits the exactly specified curves of the microscopes on classes and on Gaussian experts to random
inputs, to the lattice of the experiment, and to one of twice as many nodes, at n = 1e4, 3e4 and
1e5, prints a table and writes it to lattice_agreement.md beside this script.  Every difference is
given with its Monte Carlo error.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

import moestat
from experiments.folders import EXPERIMENTS, FIGURES
from moestat.estimation.data.data import Data
from moestat.estimation.fit.batches import fit_jobs
from moestat.estimation.fit.job import FitJob
from moestat.estimation.starts import TruthStarts
from moestat.metrics.losses import make_loss
from moestat.model.designs import Design
from moestat.solvers.driver import Cores, succeeded
from moestat.sweep import load_spec
from moestat.sweep.kinds.fit.spec import as_fits

SIZES = (10_000, 31_623, 100_000)
CURVES = (
    ("microscope_mlmoe", "softmax, k = 2"),
    ("microscope_mlmoe", "sigmoid, k = 2"),
    ("microscope_gaussian", "softmax, k = 2"),
    ("microscope_gaussian", "competition, free masses, k = 2"),
)


def log_losses(
    experiment: str, name: str, design: Design, stream: int, replicates: int
) -> np.ndarray:
    """Log losses (sizes, replicates), NaN for fits without a certificate, with a seed for each."""
    spec = as_fits(load_spec(EXPERIMENTS / f"{experiment}.toml"))
    curve = spec.curve(name)
    truth, family = spec.truths[curve.truth], spec.fitted_family(curve)
    target, loss = spec.target(curve), make_loss(curve.loss)
    starts = [TruthStarts(family, family.embed(truth.family, truth.theta), 1, 0.1)]
    out = np.empty((len(SIZES), replicates))
    for i, n in enumerate(SIZES):
        for r in range(replicates):
            seed = [n, r, stream]
            X, y, weight = moestat.sample_weighted(
                truth.family, truth.theta, n, rng=seed, design=design
            )
            rng = np.random.default_rng(r).spawn(1)[0]
            job = FitJob(family, Data.of(family, X, y, weight), starts=starts, rng=rng)
            (result,) = succeeded(fit_jobs([job], Cores(1)))
            value = np.log(moestat.voronoi_loss(result.measure, target, loss))
            out[i, r] = value if result.certificate.certified else np.nan
    return out


def slope(logs: np.ndarray) -> tuple[float, float]:
    """Least-squares slope of the mean log loss on log n, and its standard error."""
    x = np.log(SIZES) - np.mean(np.log(SIZES))
    pull = x / (x @ x)
    variance = np.nanvar(logs, axis=1, ddof=1) / np.sum(np.isfinite(logs), axis=1)
    return float(pull @ np.nanmean(logs, axis=1)), float(np.sqrt(pull**2 @ variance))


def rows(experiment: str, name: str, replicates: int) -> list[str]:
    """The three designs of one curve, and how far each is from the random one."""
    spec = as_fits(load_spec(EXPERIMENTS / f"{experiment}.toml"))
    grid = spec.design
    assert isinstance(grid, moestat.Lattice)
    designs = {
        "random": moestat.Uniform(grid.low, grid.high),
        f"{grid.nodes} nodes": grid,
        f"{2 * grid.nodes} nodes": replace(grid, nodes=2 * grid.nodes),
    }
    out, base = [], None
    for stream, (label, design) in enumerate(designs.items()):
        logs = log_losses(experiment, name, design, stream, replicates)
        last = logs[-1][np.isfinite(logs[-1])]
        mean, error = float(last.mean()), float(last.std(ddof=1) / np.sqrt(last.size))
        steep, wide = slope(logs)
        base = base or (mean, error, steep, wide)
        apart = (mean - base[0]) / np.hypot(error, base[1])
        turned = (steep - base[2]) / np.hypot(wide, base[3])
        differences = "| |" if stream == 0 else f"{apart:+.1f} | {turned:+.1f} |"
        certified = f"{np.isfinite(logs).sum()}/{logs.size}"
        out.append(
            f"| {name} ({experiment}) | {label} | {mean:.3f} ± {error:.3f} |"
            f" {steep:.3f} ± {wide:.3f} | {certified} | {differences}"
        )
        print(out[-1], flush=True)
    return out


def result(found: Sequence[str]) -> str:
    """What the table says, in a sentence before it."""
    cells = [row.rstrip(" |").split(" | ")[-2:] for row in found if not row.endswith("| |")]
    off = [float(cell) for pair in cells for cell in pair]
    far = sum(abs(each) > 2.0 for each in off)
    return (
        f"**Of {len(off)} differences between lattice and random designs {far} are beyond 2"
        f" standard errors, the largest {max(off, key=abs):+.1f}; by chance"
        f" {0.05 * len(off):.1f} would be.**"
    )


def main() -> None:
    """Run all curves and write the table."""
    replicates = int(sys.argv[1]) if len(sys.argv) > 1 else 150
    lines = [
        "# Lattice designs against random ones",
        "",
        f"Mean log loss at n = 1e5 and slope over n = 1e4 to 1e5, {replicates} replicates, with"
        " standard errors; the last two columns are differences from the random design in standard"
        " errors.  Fits without a certificate are left out.",
        "",
        "| curve | design | mean log loss at 1e5 | slope | certified | mean | slope |",
        "|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines[-2:]))
    found = [row for curve in CURVES for row in rows(*curve, replicates)]
    lines = [*lines[:2], result(found), "", *lines[2:], *found]
    (FIGURES / "lattice_agreement.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
