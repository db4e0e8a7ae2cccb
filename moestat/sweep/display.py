"""Tables of a sweep for the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from rich import box
from rich.table import Table

from moestat.rates import RateResult
from moestat.sweep.analysis import CurveSummary
from moestat.sweep.spec import Spec

__all__ = ["experiments_table", "rates_table", "status_table"]

_UNCERTIFIED = "\N{DAGGER}"
_HELLINGER = "d_H"


def rates_table(title: str, summaries: Sequence[CurveSummary], details: bool = False) -> Table:
    """Rates with their intervals, and the counts that say how far to trust them.

    Parameters
    ----------
    title : str
        Heading.
    summaries : sequence of CurveSummary
        The curves.
    details : bool
        Add the rate of the Hellinger distance.

    Returns
    -------
    rich.table.Table
        The table; curves whose rate takes uncertified fits too carry a dagger.
    """
    published = any(summary.curve.published is not None for summary in summaries)
    names = ["slope", "95% interval", *(["paper"] if published else []), "theory"]
    names += ["certified", "on bound", "failed", *([_HELLINGER] if details else [])]
    table = _table(title, ["curve"], names)
    for summary in summaries:
        row = [
            summary.curve.name + ("" if summary.curve.require_certificate else f" {_UNCERTIFIED}"),
            _slope(summary.rate),
            _interval(summary.rate),
            *([_stated(summary.curve.published)] if published else []),
            _stated(summary.curve.theory),
            f"{summary.certified}/{summary.done}",
            str(summary.on_bound),
            str(summary.failed),
        ]
        if details:
            row.append(_slope(summary.hellinger))
        table.add_row(*row)
    notes = [f"{_HELLINGER}: slope of the Hellinger distance"] if details else []
    table.caption = "\n".join([*notes, *_notes(summaries)]) or None
    return table


def _notes(summaries: Sequence[CurveSummary]) -> Iterable[str]:
    if any(not summary.curve.require_certificate for summary in summaries):
        yield f"{_UNCERTIFIED} replay of a published procedure: uncertified fits enter the rate"
    for summary in summaries:
        if summary.left_out:
            yield f"{summary.curve.name}: uncertified, left out of the rate: {summary.left_out}"
        if summary.with_empty_cells:
            count = summary.with_empty_cells
            yield f"{summary.curve.name}: fits with an empty Voronoi cell: {count}"
        if summary.note:
            yield f"{summary.curve.name}: no rate: {summary.note}"


def status_table(title: str, summaries: Sequence[CurveSummary]) -> Table:
    """How far each curve has come.

    Parameters
    ----------
    title : str
        Heading.
    summaries : sequence of CurveSummary
        The curves.

    Returns
    -------
    rich.table.Table
        The table.
    """
    table = _table(title, ["curve"], ["cells", "done", "failed", "open", "certified", "on bound"])
    for summary in summaries:
        waiting = summary.planned - summary.done - summary.failed
        counts = (summary.planned, summary.done, summary.failed, waiting, summary.certified)
        table.add_row(summary.curve.name, *map(str, (*counts, summary.on_bound)))
    return table


def experiments_table(specs: Sequence[tuple[str, Spec]]) -> Table:
    """Names, titles and sizes of experiments.

    Parameters
    ----------
    specs : sequence of (str, Spec)
        Names and specs.

    Returns
    -------
    rich.table.Table
        The table.
    """
    table = _table("", ["name", "title"], ["curves", "cells", "n"])
    for name, spec in specs:
        sizes = f"{spec.sizes[0]:,} to {spec.sizes[-1]:,}"
        table.add_row(name, spec.title, str(len(spec.curves)), str(spec.n_cells), sizes)
    return table


def _table(title: str, left: Sequence[str], right: Sequence[str]) -> Table:
    table = Table(
        title=title or None,
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    for name in left:
        table.add_column(name, overflow="fold", min_width=8)
    for name in right:
        table.add_column(name, justify="right", no_wrap=name != "on bound", min_width=5)
    return table


def _stated(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def _slope(rate: RateResult | None) -> str:
    return "none" if rate is None else f"{rate.slope:+.2f}"


def _interval(rate: RateResult | None) -> str:
    if rate is None or math.isnan(rate.interval[0]):
        return ""
    return f"{rate.interval[0]:+.2f}, {rate.interval[1]:+.2f}"
