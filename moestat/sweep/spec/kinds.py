"""Kinds of sweeps: what a cell is, and how its spec is read, run, summarised and shown.

One engine (plans, executors, stores, the command line) serves all kinds.  What differs is a few
functions, imported when they are first needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["KINDS", "part_of"]

KINDS: Mapping[str, Mapping[str, str]] = {
    "fit": {
        "parse": "fit.spec.parse_fits",
        "run_cell": "fit.cell.run_fit",
        "summarise": "fit.analysis.summarise",
        "table": "fit.display.rates_table",
        "draw": "fit.figure.draw",
        "page": "fit.report.markdown_report",
        "write_report": "fit.report.write_report",
    },
    "network": {
        "parse": "network.spec.parse_networks",
        "run_cell": "network.cell.run_network",
        "summarise": "network.analysis.summarise_networks",
        "table": "network.display.networks_table",
        "draw": "network.display.draw_networks",
        "page": "network.display.network_page",
        "write_report": "runs.pages.write_page",
    },
    "training": {
        "parse": "training.spec.parse_trainings",
        "run_cell": "training.cell.run_training",
        "summarise": "training.analysis.summarise_trainings",
        "table": "training.display.trainings_table",
        "draw": "training.display.draw_trainings",
        "page": "training.display.training_page",
        "write_report": "runs.pages.write_page",
    },
    "inference": {
        "parse": "inference.spec.parse_inference",
        "run_cell": "inference.cell.run_inference",
        "summarise": "inference.analysis.summarise_inference",
        "table": "inference.display.inference_table",
        "draw": "inference.display.draw_inference",
        "page": "inference.display.inference_page",
        "write_report": "runs.pages.write_page",
    },
}
"""For each kind, where its functions are.

``parse(top, text)`` gives a spec; ``run_cell(text, cell)`` the record of a cell;
``summarise(store)`` one summary per curve, with ``failed`` and ``drawable``, the number of records
that a figure has a use for; ``table(title, summaries, details)`` a table for the terminal;
``draw(title, summaries)`` a figure; ``page(store, summaries, figure)`` the report in Markdown, with
the picture of that name if there is one; ``write_report(store, folder)`` the paths of a report.
"""


def part_of(kind: str, part: str) -> Callable[..., Any]:
    """A function of a kind of sweep.

    Parameters
    ----------
    kind : str
        Name in `KINDS`.
    part : str
        Which one.

    Returns
    -------
    callable
        The function.

    Examples
    --------
    >>> part_of("fit", "parse").__name__
    'parse_fits'
    """
    module, _, name = KINDS[kind][part].rpartition(".")
    return getattr(import_module(f"moestat.sweep.kinds.{module}"), name)
