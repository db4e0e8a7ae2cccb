"""Slopes from the pages of experiments, where the store itself is not at hand.

A page states slope and interval of every quantity over the last four decades, so a clean clone has
them.  Evidence from a page carries the page's digest.
"""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path

from experiments.claims.checks import Floored, Replayed, Slope
from experiments.claims.evidence import Missing, QuantileEvidence, ReplayEvidence, SlopeEvidence
from moestat.sweep.kinds.fit.spec import loss_label
from moestat.sweep.spec.experiments import find_spec
from moestat.sweep.spec.read import load_spec

__all__ = ["command", "floored_slope", "page_digest", "page_slope", "replayed_slope"]

_CELLS = {1: "cells of one", 2: "cells of two", 3: "cells of three"}
_COUNTS = re.compile(r"^(\d+) of (\d+) estimates are certified", re.MULTILINE)
_GAUSSIAN = ("gaussian_competition", "gaussian_exact_v1")
"""Experiments whose slopes stand on the page gaussian_theorems."""
_MEASURED = re.compile(
    r"slope (\S+) \[(\S+), (\S+)\], n (\S+) to (\S+), (\d+) fits(?:, (\d+) certified)?"
    r"(?:, (\d+) left out)?(?:, (\d+) failed)?"
)
_FITS = re.compile(r"^\| fits \| (\d+) of \d+ cells, (\d+) left out", re.MULTILINE)
_LATE = 1e-4


def command(experiment: str) -> str:
    """The command that makes an experiment's store."""
    return (
        f"python -m moestat.sweep run {experiment} --out figures/{experiment}.sqlite,"
        " then python -m experiments.verify"
    )


def page_digest(path: Path) -> str:
    """Twelve digits of the SHA-256 of a page."""
    return sha256(path.read_bytes()).hexdigest()[:12]


def page_slope(check: Slope, folder: Path) -> tuple[SlopeEvidence | Missing, str]:
    """The slope of a check from its experiment's page, and where it was read.

    Parameters
    ----------
    check : Slope
        The check.
    folder : Path
        Where the pages are.

    Returns
    -------
    evidence : SlopeEvidence or Missing
        The slope; missing where there is no page or no such row, with the command that makes it.
    source : str
        Page and digest; empty where it is missing.
    """
    if check.experiment in _GAUSSIAN:
        return _gaussian_slope(check, folder)
    path = folder / f"{check.experiment}.md"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    spec = load_spec(find_spec(check.experiment))
    section = _section(text, check.curve)
    if not section:
        return _report_slope(check, path, text)
    counts = _COUNTS.search(section)
    row = _row(section, _label(check, loss_label(spec.curve(check.curve).loss)))
    if counts is None or row is None:
        return Missing(f"no store, and no slope on a page: {command(check.experiment)}"), ""
    slope, low, high = row
    largest = float(max(spec.sizes_of(spec.curve(check.curve))))
    evidence = SlopeEvidence(
        slope=slope,
        interval=(low, high),
        n=(_LATE * largest, largest),
        n_fits=int(counts[2]),
        n_certified=int(counts[1]),
        n_left_out=0,
        n_failed=0,
    )
    return evidence, f"{path.name}, digest {page_digest(path)}"


def _report_slope(check: Slope, path: Path, text: str) -> tuple[SlopeEvidence | Missing, str]:
    """The slope from a report of the sweep, over all its sizes, if they span no more decades."""
    _, _, rest = text.partition(f"\n### {check.curve}\n")
    section = rest.partition("\n### ")[0].partition("\n## ")[0]
    fits = _FITS.search(section)
    row = _report_row(section, "slope of the regression error")
    spec = load_spec(find_spec(check.experiment))
    sizes = spec.sizes_of(spec.curve(check.curve))
    wrong = check.quantity != "regression-error" or sizes[0] < _LATE * sizes[-1]
    if fits is None or row is None or wrong:
        return Missing(f"no store, and no slope on a page: {command(check.experiment)}"), ""
    done, left_out = int(fits[1]), int(fits[2])
    evidence = SlopeEvidence(
        slope=row[0],
        interval=row[1:],
        n=(float(sizes[0]), float(sizes[-1])),
        n_fits=done - left_out,
        n_certified=done - left_out if spec.curve(check.curve).require_certificate else 0,
        n_left_out=left_out,
        n_failed=0,
    )
    return evidence, f"{path.name}, digest {page_digest(path)}"


def replayed_slope(check: Replayed, folder: Path) -> tuple[ReplayEvidence | Missing, str]:
    """The slope of a check from the report of a replay.

    Parameters
    ----------
    check : Replayed
        The check.
    folder : Path
        Where the pages are.

    Returns
    -------
    evidence : ReplayEvidence or Missing
        The slope; missing where there is no page or no such row, with the command that makes it.
    source : str
        Page and digest; empty where it is missing.
    """
    path = folder / f"{check.experiment}.md"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0].rstrip(" \N{DAGGER}") == check.curve and len(cells) > 2:
            slope, low, high = _measured(cells[2])
            return (
                ReplayEvidence(slope, (low, high)),
                f"{path.name}, digest {page_digest(path)}",
            )
    return Missing(f"no such row on {path.name}: {command(check.experiment)}"), ""


def _report_row(section: str, label: str) -> tuple[float, float, float] | None:
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0] == label:
            return _measured(cells[1])
    return None


def _measured(text: str) -> tuple[float, float, float]:
    """Slope and interval of ``-0.49 [-0.55, -0.43]``."""
    slope, _, ends = text.partition(" ")
    low, high = (float(end) for end in ends.strip("[]").split(","))
    return float(slope), low, high


def _gaussian_slope(check: Slope, folder: Path) -> tuple[SlopeEvidence | Missing, str]:
    path = folder / "gaussian_theorems.md"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    error = check.quantity
    label = error if isinstance(error, str) else f"{error[1]} in cells of {error[0]}"
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        told = _MEASURED.match(cells[3]) if len(cells) == 5 else None
        if told is None or cells[:2] != [check.curve, label.replace("_", " ")]:
            continue
        slope, low, high, first, last = map(float, told.groups()[:5])
        fits = int(told[6])
        evidence = SlopeEvidence(
            slope=slope,
            interval=(low, high),
            n=(first, last),
            n_fits=fits,
            n_certified=int(told[7] or fits),
            n_left_out=int(told[8] or 0),
            n_failed=int(told[9] or 0),
        )
        return evidence, f"{path.name}, digest {page_digest(path)}"
    return Missing(f"no store, and no slope on a page: {command(check.experiment)}"), ""


def floored_slope(check: Floored, folder: Path) -> tuple[QuantileEvidence | Missing, str]:
    """The slope of a check from the page of the microscopes with floored masses.

    Parameters
    ----------
    check : Floored
        The check.
    folder : Path
        Where the pages are.

    Returns
    -------
    evidence : QuantileEvidence or Missing
        The slope; missing where there is no page or no such row.
    source : str
        Page and digest; empty where it is missing.
    """
    path = folder / "microscope_floors.md"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[:3] == [check.curve, str(check.size), check.block] and len(cells) == 7:
            slope, _, ends = cells[5].partition(" ")
            low, high = (float(end) for end in ends.strip("[]").split(","))
            return (
                QuantileEvidence(float(slope), (low, high)),
                f"{path.name}, digest {page_digest(path)}",
            )
    return Missing("no such row on microscope_floors.md: python -m experiments.pages.floors"), ""


def _section(text: str, curve: str) -> str:
    _, found, rest = text.partition(f"\n## {curve}\n")
    return rest.partition("\n## ")[0] if found else ""


def _label(check: Slope, loss: str) -> str:
    if isinstance(check.quantity, tuple):
        size, block = check.quantity
        return f"{block}, {_CELLS.get(size, '')}"
    return {"loss": loss, "hellinger": "Hellinger"}.get(check.quantity, check.quantity)


def _row(section: str, label: str) -> tuple[float, float, float] | None:
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0] == label and len(cells) >= 5:
            low, high = (float(end) for end in cells[4].strip("[]").split(","))
            return float(cells[3]), low, high
    return None
