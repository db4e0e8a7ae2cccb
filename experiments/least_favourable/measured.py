"""What sweeps measured at the truths of the pairs, read off their committed pages.

Stores are not committed.  The pages of the microscopes have, for each kind of Voronoi cell and each
block, the geometric mean of the errors at the smallest and at the largest sample size.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from experiments.explorer.cases import Case
from moestat.metrics.losses import make_loss
from moestat.sweep.kinds.fit.spec import Spec, as_fits
from moestat.sweep.spec.experiments import find_spec
from moestat.sweep.spec.read import load_spec

__all__ = ["SWEEPS", "Measured", "measured"]

SWEEPS = (
    *("microscope_mlmoe", "microscope_gaussian", "microscope_attention", "microscope_neurons"),
    *("microscope_published", "gaussian_exact_v1"),
)
"""Sweeps whose pages are read, in this order; the first with a case's truth counts."""
_NUMBERS = ("none", "one", "two", "three", "four")


@dataclass(frozen=True)
class Measured:
    """Errors of a block that a sweep measured at a truth.

    Parameters
    ----------
    sweep, curve : str
        Where.
    n : tuple of two floats
        Smallest and largest sample size.
    error : tuple of two floats
        Geometric means of the errors there.
    cell : str
        Kind of Voronoi cell, ``one`` to ``four``.
    """

    sweep: str
    curve: str
    n: tuple[float, float]
    error: tuple[float, float]
    cell: str


def measured(case: Case, block: str, folder: Path) -> Measured | None:
    """The errors of a block at a case's truth, in the largest cells that the case has.

    Parameters
    ----------
    case : Case
        Truth and number of atoms.
    block : str
        A block of the atoms, such as ``b``.
    folder : Path
        Where the pages are.

    Returns
    -------
    Measured or None
        None where no sweep has this truth, or its page has no such row.
    """
    fitted, true_family, _ = case.families()
    largest = fitted.n_experts - true_family.n_experts + 1
    cell = _NUMBERS[max(case.cells[0]) if case.cells else largest]
    for sweep, spec, curve in _curves(case):
        page = folder / f"{sweep}.md"
        text = page.read_text(encoding="utf-8") if page.exists() else ""
        error = _row(text, curve, block, cell)
        if error is not None:
            sizes = float(min(spec.sizes)), float(max(spec.sizes))
            return Measured(sweep, curve, sizes, error, cell)
    return None


def _curves(case: Case) -> Iterator[tuple[str, Spec, str]]:
    """Curves with the truth, the number of atoms and the loss of a case."""
    fitted, true_family, truth = case.families()
    for sweep in SWEEPS:
        spec = as_fits(load_spec(find_spec(sweep)))
        for curve in spec.curves:
            own = spec.truths[curve.truth]
            axes = [
                (each.likelihood.name, each.gate.name, each.expert.name, each.n_experts)
                for each in (own.family, true_family, spec.fitted_family(curve), fitted)
            ]
            same = axes[0] == axes[1] and axes[2] == axes[3]
            if not same or make_loss(curve.loss).name != make_loss(case.loss).name:
                continue
            if own.theta.shape == truth.shape and np.allclose(own.theta, truth):
                yield sweep, spec, curve.name


def _row(page: str, curve: str, block: str, cell: str) -> tuple[float, float] | None:
    """First and last error of a block in a curve's table."""
    section = page.partition(f"\n## {curve}\n")[2].partition("\n## ")[0]
    pattern = rf"^\| {re.escape(block)}, cells of {cell} \| ([^|]+) \| ([^|]+) \|"
    row = re.search(pattern, section, re.MULTILINE)
    return None if row is None else (float(row[1]), float(row[2]))
