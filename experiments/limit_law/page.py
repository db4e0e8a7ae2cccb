"""The page of the limit law: quantiles of fits over those of the limit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from experiments.limit_law.law import errors_in_the_limit, quantiles_in_the_limit
from moestat.base.types import FloatArray
from moestat.rates.style import caption, marks, plain_axes, style

__all__ = ["RESULT", "slope_of_quantile", "write"]

RESULT, _PAGE, _PICTURE = "limit_law.json", "limit_law.md", "limit_law.png"
LEVELS = np.array([0.25, 0.5, 0.75, 0.9])
_PREDICTED = {0.25: "-1/4", 0.5: "none: on the border", 0.75: "-1/8", 0.9: "-1/8"}
_BOOTSTRAP = 1000
_CAPTION = (
    "Left: quantiles over data sets of the larger error of a mean (markers) and of the limit law"
    " (lines); the median is on the border between both regimes and has no slope.  Right: each"
    " data set at the largest n by its fourth score, and the limit law's error there."
)


def slope_of_quantile(
    n: FloatArray, errors: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    """Slope of a log quantile on log n, and its curvature, each with a 95% bootstrap interval.

    Parameters
    ----------
    n : ndarray of shape (S,)
        Sizes.
    errors : ndarray of shape (S, R)
        Errors of R data sets at each.
    level : float
        Of the quantile.

    Returns
    -------
    slope, curvature : ndarray of shape (3,)
        Estimate and ends of the interval; the curvature is the change of the slope a decade.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> n = 10.0 ** np.arange(6, 13)
    >>> errors = n[:, None] ** -0.125 * rng.exponential(size=(7, 300))
    >>> slope, curvature = slope_of_quantile(n, errors, 0.9)
    >>> bool(slope[1] < -0.125 < slope[2]), bool(curvature[1] < 0.0 < curvature[2])
    (True, True)
    """
    rng = np.random.default_rng(29)
    picks = rng.integers(errors.shape[1], size=(_BOOTSTRAP, *errors.shape))
    drawn = np.take_along_axis(errors[None], picks, axis=2)
    x = np.log10(n)

    def fitted(values: FloatArray) -> FloatArray:
        logs = np.log10(np.quantile(values, level, axis=-1)).reshape(-1, x.size)
        slope = np.polyfit(x, logs.T, 1)[0]
        return np.stack([slope, 2.0 * np.polyfit(x - x.mean(), logs.T, 2)[0]])

    point, ends = fitted(errors)[:, 0], np.quantile(fitted(drawn), [0.025, 0.975], axis=1)
    slope, curvature = ([value, *end] for value, end in zip(point, ends.T, strict=True))
    return np.array(slope), np.array(curvature)


def write(result: Mapping[str, Any], folder: Path) -> None:
    """Write the page and its picture.

    Parameters
    ----------
    result : mapping
        What ``python -m experiments.limit_law fit`` keeps.
    folder : Path
        Where.
    """
    sizes = result["sizes"]
    n = np.array([float(size) for size in sizes])
    errors = np.array([each["error"] for each in sizes.values()])
    limit = quantiles_in_the_limit(n, LEVELS)
    with style():
        _draw(n, errors, limit, list(sizes.values())[-1]).savefig(folder / _PICTURE, dpi=120)
    (folder / _PAGE).write_text(_markdown(result, n, errors, limit), encoding="utf-8")


def _draw(n: FloatArray, errors: FloatArray, limit: FloatArray, last: Mapping[str, Any]) -> Figure:
    figure = Figure(figsize=(9.6, 4.8), layout="constrained")
    figure.suptitle("Two atoms on one normal law: the error and its limit law")
    left, right = figure.subplots(1, 2)
    for index, level in enumerate(LEVELS):
        drawing = {k: v for k, v in marks(index).items() if k not in ("elinewidth", "capsize")}
        slope = slope_of_quantile(n, errors, level)[0]
        told = f"{level:.0%}: {slope[0]:.3f} [{slope[1]:.3f}, {slope[2]:.3f}]"
        points = {**drawing, "linestyle": "none"}
        left.plot(n, np.quantile(errors, level, axis=1), label=told, **points)
        left.plot(n, limit[:, index], color=drawing["color"], linewidth=1.0)
    for power, level in ((-0.125, 3), (-0.25, 0)):
        side = 1.6 if level else 0.6
        line = side * limit[0, level] * (n / n[0]) ** power
        left.plot(n, line, "--", color="#666666", linewidth=0.9)
        left.annotate(f"{power:g}", (n[-1], line[-1]), fontsize="small", color="#666666")
    left.set(xscale="log", yscale="log", xlabel="sample size $n$", ylabel="larger error of a mean")
    left.legend(title="quantile: slope over all sizes", fontsize="small", frameon=False)
    plain_axes(left)
    fourth, size = np.array(last["fourth"]), n[-1]
    right.plot(fourth, errors[-1] * size**0.125, ".", markersize=3, label="fits")
    grid = np.linspace(fourth.min(), fourth.max(), 400)
    typical = np.stack([np.full_like(grid, 0.674), grid], axis=1)
    right.plot(
        grid, errors_in_the_limit(size, typical) * size**0.125, color="#444444", linewidth=1.0,
        label="limit law (third score at its median size)",
    )  # fmt: skip
    right.set(xlabel="standardised fourth score", ylabel="error times $n^{1/8}$")
    right.set_title(f"n = {size:.0e}", fontsize="medium")
    right.legend(fontsize="small", frameon=False)
    plain_axes(right)
    caption(figure, _CAPTION)
    return figure


def _markdown(
    result: Mapping[str, Any], n: FloatArray, errors: FloatArray, limit: FloatArray
) -> str:
    sizes = result["sizes"]
    rows = []
    for index, level in enumerate(LEVELS):
        slope, curvature = slope_of_quantile(n, errors, level)
        own = np.polyfit(np.log10(n), np.log10(limit[:, index]), 1)[0]
        rows.append(
            f"| {level:.0%} | {_PREDICTED[level]} | {own:.3f} | {_told(slope)} |"
            f" {_told(curvature, 4)} |"
        )
    variance = np.array([each["variance_error"] for each in sizes.values()])
    slope, curvature = slope_of_quantile(n, variance, 0.9)
    rows.append(f"| 90%, variances | -1/4 | | {_told(slope)} | {_told(curvature, 4)} |")
    details = []
    for size, each in zip(n, sizes.values(), strict=True):
        row, error = np.quantile(each["error"], LEVELS), np.array(each["error"])
        negative = np.array(each["fourth"]) < 0.0
        large = error > _border(size)
        ours = quantiles_in_the_limit(np.array([size]), LEVELS)[0]
        details.append(
            f"| {size:.0e} | {' | '.join(f'{value:.3g}' for value in row)} |"
            f" {' | '.join(f'{value:.3g}' for value in ours)} |"
            f" {np.mean(large == negative):.0%} | {_share_at_floor(each, result['floor']):.0%} |"
            f" {each['agree']:.0%} | {each['doubling']:.0e} |"
        )
    head = " | ".join(f"{level:.0%}" for level in LEVELS)
    head += " | " + " | ".join(f"limit {level:.0%}" for level in LEVELS)
    return "\n".join(
        [
            "# The law of the error of an over-specified estimate: two atoms",
            "",
            f"Made by `python -m experiments.limit_law page` from limit_law.json:"
            f" {result['replicates']} data sets at each of {len(n)} sizes, maximum likelihood of"
            f" two normal atoms with masses of at least {result['floor']:g} on a standard normal"
            " sample.  The theorem and its proof: docs/theory/limit_law.md.",
            "",
            "Where the fourth score is negative, which has probability 1/2, the atoms part by"
            " n^(-1/8); else by n^(-1/4).  So quantiles above one half fall like n^(-1/8), those"
            " below like n^(-1/4), and the median, on the border, has no slope.",
            "",
            f"![Quantiles of fits and of the limit]({_PICTURE})",
            "",
            "| quantile | theorem | slope of the limit | slope of the fits | change a decade |",
            "|---|---|---|---|---|",
            *rows,
            "",
            "Slopes are over all sizes, with 95% bootstrap intervals; a change a decade whose"
            " interval holds 0 shows no curvature.",
            "",
            "Border: share of the data sets whose error is on the side of n^(-3/16), between both"
            " rates, that their fourth score says.  Floor: share of the fits with a mass at its"
            " floor, where the theorem has all of them in the limit.  Agree: mean share of twelve"
            " starts that end within 0.01 of the best log-likelihood; doubling: the most that the"
            " second six added to it.",
            "",
            f"| n | {head} | border | floor | agree | doubling |",
            "|" + "---|" * (5 + 2 * LEVELS.size),
            *details,
        ]
    ) + "\n"  # fmt: skip


def _border(size: float) -> float:
    return size ** (-3 / 16)


def _share_at_floor(each: Mapping[str, Any], floor: float) -> float:
    return float(np.mean(np.array(each["mass"]) < floor + 1e-3))


def _told(values: FloatArray, digits: int = 3) -> str:
    point, low, high = (f"{value:.{digits}f}" for value in values)
    return f"{point} [{low}, {high}]"
