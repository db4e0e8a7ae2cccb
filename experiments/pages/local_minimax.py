"""Truths that merge as n grows: the worst error over them, against the theorem's exponent.

    python -m experiments.pages.local_minimax [FOLDER]

writes local_minimax.md into `figures`, or FOLDER.  The truth at a sample size n has two lines at
intercepts 0.5 +- d and variances 0.25 - d^2, which agree with one line in their first three
moments, with d = c n^(-1/8) or c n^(-1/4); two atoms are fitted, with floored masses.  At a fixed
truth both are estimated at n^(-1/2).  Over all truths no estimator does better than n^(-1/8), by
Le Cam's two points at d = c n^(-1/8), whose densities are d^4 = n^(-1/2) away from those of one
line.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from experiments.folders import FIGURES
from experiments.pages.floors import quantile_slope
from moestat.base.types import FloatArray
from moestat.sweep.kinds.fit.spec import as_fits
from moestat.sweep.run.cell import run_cell
from moestat.sweep.spec.plan import plan_cells
from moestat.sweep.spec.read import parse_spec
from moestat.sweep.store.record import DONE

__all__ = ["intercept_errors", "spec_text"]

SIZES = (10**8, 10**10, 10**12, 10**14)
RATES, FACTORS, REPLICATES = (1 / 8, 1 / 4), (1.0, 2.0), 25
_BOOTSTRAP = 1000
_EXPONENT = -1 / 8


def spec_text(n: int, distance: float, replicates: int = REPLICATES) -> str:
    """The spec of fits at one sample size to two lines that lie close.

    Parameters
    ----------
    n : int
        Sample size.
    distance : float
        Half of the distance d of the intercepts, below 0.4.
    replicates : int
        Data sets.

    Returns
    -------
    str
        TOML text.
    """
    nu = 0.25 - distance**2
    return f"""
title = "Two lines that lie close"
seed = 20261204
replicates = {replicates}
n = [{n}]
design = {{ law = "lattice", low = -2, high = 2, nodes = 32 }}

[truth.close]
likelihood = "gaussian"
gate = "softmax"
beta0 = [0.0, 0.0]
beta1 = [0.0, 0.0]
a = [1.0, 1.0]
b = [{0.5 + distance!r}, {0.5 - distance!r}]
nu = [{nu!r}, {nu!r}]

[truth.close.bounds]
nu = [{0.3 * nu!r}, 10]
beta0 = [-1.2, 1.2]
beta1 = [-1.5, 1.5]
a = [-2, 2]
b = [-2, 2]

[[curve]]
name = "two"
truth = "close"
n_experts = 2
loss = "gaussian-softmax-D"
require_certificate = false
solver = {{ name = "moment-newton" }}
starts = {{ measure = 4, noise = [0.1, 1.0] }}
"""


def intercept_errors(n: int, distance: float, replicates: int = REPLICATES) -> FloatArray:
    """The larger error of the two intercepts, at the better of both orders, of each data set.

    Parameters
    ----------
    n : int
        Sample size.
    distance : float
        Half of the distance of the intercepts.
    replicates : int
        Data sets.

    Returns
    -------
    ndarray of shape (R,)
        Errors of the fits that are done.
    """
    text = spec_text(n, distance, replicates)
    spec = as_fits(parse_spec(text))
    fitted = spec.fitted_family(spec.curves[0])
    place = [j for j, name in enumerate(fitted.param_names) if name.startswith("b[")]
    truth = 0.5 + distance * np.array([1.0, -1.0])
    out = []
    for cell in plan_cells(spec):
        record = run_cell(text, cell)
        if record.status == DONE:
            found = np.array(record.params)[place]
            out.append(min(np.abs(each - truth).max() for each in (found, found[::-1])))
    return np.array(out)


def page(sizes: tuple[int, ...] = SIZES, replicates: int = REPLICATES) -> str:
    """The page, computed.

    Parameters
    ----------
    sizes : tuple of int
        Sample sizes.
    replicates : int
        Data sets per size and truth.

    Returns
    -------
    str
        Markdown.
    """
    slower: list[str] = []
    lines = [
        "# Truths that merge as n grows",
        "",
        "Two lines at intercepts 0.5 +- d, variances 0.25 - d^2, two atoms fitted with floored"
        " masses;"
        f" {replicates} data sets each.  Errors are the larger one of the two intercepts.  The"
        f" minimax"
        " rate over all such truths is n^(-1/8).",
        "",
        "| d | " + " | ".join(f"median at {n:.0e}" for n in sizes) + " | slope of the 90%"
        " quantile |",
        "|---|" + "---|" * (len(sizes) + 1),
    ]
    rng = np.random.default_rng(0)
    families = []
    for rate in RATES:
        for factor in FACTORS:
            errors = [intercept_errors(n, factor * n**-rate, replicates) for n in sizes]
            families.append(errors)
            slope = quantile_slope(
                np.repeat(np.array(sizes, float), [each.size for each in errors]),
                np.concatenate(errors),
                *(0.9, rng, 0.0),
            )
            told = (
                "too few"
                if slope is None
                else f"{slope.slope:.3f} [{slope.low:.3f}, {slope.high:.3f}]"
            )
            medians = " | ".join(f"{np.median(each):.2g}" for each in errors)
            lines.append(f"| {factor:g} n^(-1/{1 / rate:g}) | {medians} | {told} |")
            if slope is not None and slope.low > _EXPONENT:
                slower.append(f"{factor:g} n^(-1/{1 / rate:g})")
    if len(sizes) < 2:
        return "\n".join(lines) + "\n"
    worst = [max(np.quantile(each, 0.9) for each in at) for at in zip(*families, strict=True)]
    falls = np.polyfit(np.log(sizes), np.log(worst), 1)[0]
    low, high = _interval(sizes, families, rng)
    lines += [
        "",
        "The worst of these 90% quantiles is "
        + ", ".join(f"{value:.2g} at {n:.0e}" for n, value in zip(sizes, worst, strict=True))
        + f": it falls like n^({falls:.3f}), with a 95% interval of [{low:.3f}, {high:.3f}] of a"
        " bootstrap over data sets, where the theorem's exponent is -0.125.",
        "",
        ("The interval holds it" if low <= _EXPONENT <= high else "The interval excludes it")
        + ": that is the statement on the worst truth at each n.  Single rows need not fall so;"
        f" slower, with an interval that excludes -0.125: {', '.join(slower) or 'none'}.",
    ]
    return "\n".join(lines) + "\n"


def _interval(
    sizes: tuple[int, ...], families: list[list[FloatArray]], rng: np.random.Generator
) -> FloatArray:
    """The 95% percentile interval of the slope of the worst 90% quantile."""
    worst = np.zeros((len(sizes), _BOOTSTRAP))
    for errors in families:
        for j, each in enumerate(errors):
            drawn = rng.choice(each, (_BOOTSTRAP, each.size))
            worst[j] = np.maximum(worst[j], np.quantile(drawn, 0.9, axis=1))
    slopes = np.polyfit(np.log(sizes), np.log(worst), 1)[0]
    return np.quantile(slopes, [0.025, 0.975])


def main() -> None:
    """Compute and write the page."""
    out = (Path(sys.argv[1]) if len(sys.argv) > 1 else FIGURES) / "local_minimax.md"
    out.write_text(page(), encoding="utf-8")
    print(out)


if __name__ == "__main__":
    main()
