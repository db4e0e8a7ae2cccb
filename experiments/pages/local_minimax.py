"""Truths that merge as n grows: the worst error over them, against the theorem's exponent.

    python -m experiments.pages.local_minimax [--redraw] [FOLDER]

writes local_minimax.json and its page local_minimax.md into `figures`, or FOLDER; with --redraw
the page alone, from the kept result.  The truth at a sample size n has two lines at
intercepts 0.5 +- d and variances 0.25 - d^2, which agree with one line in their first three
moments, with d = c n^(-1/8) or c n^(-1/4); two atoms are fitted, with floored masses.  At a fixed
truth both are estimated at n^(-1/2).  Over all truths no estimator does better than n^(-1/8), by
Le Cam's two points at d = c n^(-1/8), whose densities are d^4 = n^(-1/2) away from those of one
line.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from experiments.folders import FIGURES
from experiments.pages.quantiles import QuantileSlope, quantile_slope
from moestat.base.types import FloatArray
from moestat.sweep.kinds.fit.spec import as_fits
from moestat.sweep.run.cell import run_cell
from moestat.sweep.spec.plan import plan_cells
from moestat.sweep.spec.read import parse_spec
from moestat.sweep.store.record import DONE

__all__ = ["compute", "intercept_errors", "page", "spec_text"]

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


Errors = dict[str, dict[int, list[float]]]
"""Path d -> sample size -> errors, one per data set."""


def _distance(path: str, n: int) -> float:
    """D at a sample size, of a path by name."""
    return {_path(f, r): f * n**-r for r in RATES for f in FACTORS}[path]


def _path(factor: float, rate: float) -> str:
    return f"{factor:g} n^(-1/{1 / rate:g})"


def compute(sizes: Sequence[int] = SIZES, replicates: int = REPLICATES) -> Errors:
    """The errors along every path: the larger one of the two intercepts of each data set."""
    return {
        _path(factor, rate): {
            n: intercept_errors(n, factor * n**-rate, replicates).tolist() for n in sizes
        }
        for rate in RATES
        for factor in FACTORS
    }


def page(found: Errors) -> str:
    """The page of computed errors.

    Parameters
    ----------
    found : dict
        As `compute` gives it.

    Returns
    -------
    str
        Markdown.
    """
    rng = np.random.default_rng(0)
    families = {path: {n: np.array(each) for n, each in at.items()} for path, at in found.items()}
    sizes = list(next(iter(families.values())))
    slopes = {
        path: quantile_slope(
            np.repeat(np.array(sizes, float), [each.size for each in at.values()]),
            np.concatenate(list(at.values())),
            0.9,
            rng,
            0.0,
        )
        for path, at in families.items()
    }
    rows = [
        f"| {path} | {' | '.join(f'{np.median(each):.2g}' for each in at.values())} |"
        f" {_told(slopes[path])} |"
        for path, at in families.items()
    ]
    count = max(each.size for at in families.values() for each in at.values())
    return (
        "\n".join(
            [
                *("# Truths that merge as n grows", ""),
                *_conclusion(sizes, families, slopes, rng),
                "Two lines at intercepts 0.5 +- d, variances 0.25 - d^2, two atoms fitted with"
                f" floored masses; {count} data sets each.  Errors are the larger one of the two"
                " intercepts.  The minimax rate over all such truths is n^(-1/8).  Slopes are over"
                " all sizes, with 95% intervals of a bootstrap over data sets.",
                "",
                "| d | " + " | ".join(f"median at {n:.0e}" for n in sizes) + " | slope of the 90%"
                " quantile |",
                "|---|" + "---|" * (len(sizes) + 1),
                *rows,
            ]
        )
        + "\n"
    )


def _told(slope: QuantileSlope | None) -> str:
    if slope is None:
        return "too few"
    return f"{slope.slope:.3f} [{slope.low:.3f}, {slope.high:.3f}]"


def _conclusion(
    sizes: Sequence[int],
    families: Mapping[str, Mapping[int, FloatArray]],
    slopes: Mapping[str, QuantileSlope | None],
    rng: np.random.Generator,
) -> list[str]:
    """What the errors say about the theorem, and which paths differ from it by themselves."""
    if len(sizes) < 2:
        return []
    paths = [list(at.values()) for at in families.values()]
    worst = [max(np.quantile(each, 0.9) for each in at) for at in zip(*paths, strict=True)]
    falls = np.polyfit(np.log(sizes), np.log(worst), 1)[0]
    low, high = _interval(sizes, paths, rng)
    holds = low <= _EXPONENT <= high
    slower = {path: at.slope for path, at in slopes.items() if at and at.low > _EXPONENT}
    faster = [path for path, slope in slopes.items() if slope and slope.high < _EXPONENT]
    latest = max(slower, key=lambda path: slower[path], default="")
    at = families.get(latest, {})
    shares = [np.median(at[n]) / _distance(latest, n) for n in at]
    return [
        f"**{'In agreement with the theorem' if holds else 'Against the theorem at these sizes'}:"
        f" the worst error over these truths falls like n^({falls:.3f}), 95% interval [{low:.3f},"
        f" {high:.3f}], where the theorem's exponent is -0.125.**  The worst 90% quantile is "
        + ", ".join(f"{value:.2g} at {n:.0e}" for n, value in zip(sizes, worst, strict=True))
        + ".  The theorem is about this worst truth at each n, which is not on one path d.",
        "",
        "The upper quantiles on each of these paths fall like n^(-1/8) in the limit: with d = c"
        " n^(-1/8) the experiment is the same at every n in the limit, and lines n^(-1/4) apart are"
        " one line to it.  A path whose interval excludes -0.125 is not there yet at these sizes:"
        f" slower are {', '.join(slower) or 'none'}; faster {', '.join(faster) or 'none'}.  "
        + (
            f"The slowest, {latest}, has errors of {shares[0]:.0%} of d at {sizes[0]:.0e} and"
            f" {shares[-1]:.0%} at {sizes[-1]:.0e}."
            if slower
            else ""
        ),
        "",
    ]


def _interval(
    sizes: Sequence[int], families: Sequence[Sequence[FloatArray]], rng: np.random.Generator
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
    """Compute the errors, or take the kept ones, and write result and page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--redraw", action="store_true", help="write the page of kept errors")
    parser.add_argument("folder", type=Path, nargs="?", default=FIGURES)
    given = parser.parse_args()
    kept = given.folder / "local_minimax.json"
    if not given.redraw:
        rounded = {
            path: {n: [float(f"{error:.6g}") for error in each] for n, each in at.items()}
            for path, at in compute().items()
        }
        kept.write_text(json.dumps(rounded) + "\n", encoding="utf-8")
    read = json.loads(kept.read_text(encoding="utf-8"))
    found = {path: {int(n): each for n, each in at.items()} for path, at in read.items()}
    out = kept.with_suffix(".md")
    out.write_text(page(found), encoding="utf-8")
    print(out)


if __name__ == "__main__":
    main()
