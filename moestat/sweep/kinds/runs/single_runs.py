"""Single runs of a sweep of networks: a section of its report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from moestat.sweep.escape import markdown_text
from moestat.sweep.store.record import DONE, Record

_HEADING = "## Single runs"

Runs = Mapping[tuple[str, float, str], Mapping[int, float]]
"""Values by replicate, of a curve at a place and a metric."""


def runs_of_records(records: Iterable[Record], metrics: Sequence[str]) -> Runs:
    """The metrics, names under `losses`, of every run that is done and has them."""
    runs: dict[tuple[str, float, str], dict[int, float]] = {}
    for record in records:
        for metric in metrics:
            value = record.losses.get(metric) if record.status == DONE else None
            if isinstance(value, (int, float)):
                at = runs.setdefault((record.curve, float(record.n), metric), {})
                at[record.replicate] = float(value)
    return runs


def runs_section(runs: Runs, axis: str) -> str:
    """The section of a report with the values of single runs, for paired comparisons."""
    lines = [f"| curve | {axis} | metric | value, by replicate |", "| --- | --- | --- | --- |"]
    for (curve, x, metric), values in sorted(runs.items()):
        each = ", ".join(f"{r}: {value:.7g}" for r, value in sorted(values.items()))
        lines.append(f"| {markdown_text(curve)} | {x:g} | {metric} | {each} |")
    return "\n\n".join(
        [
            _HEADING,
            "Runs of one replicate have the same data, so that they are compared in pairs.",
            "\n".join(lines),
        ]
    )
