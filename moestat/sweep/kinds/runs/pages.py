"""Parts that the pages of sweeps without rates have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from moestat.sweep.escape import markdown_table, markdown_text
from moestat.sweep.kinds.runs.outcomes import Outcomes
from moestat.sweep.kinds.runs.spec import RunsSpec
from moestat.sweep.store.record import DONE, Record

Runs = Mapping[tuple[str, float, str], Mapping[int, float]]
"""Values by replicate, of a curve at a place and a metric."""


def page_head(
    spec: RunsSpec[Any],
    summaries: Sequence[Outcomes],
    planned: str,
    numbers: str,
    figure: str | None,
    content: str = "",
) -> list[str]:
    """Title, provenance and picture of a page, by paragraph.

    `planned` says how many runs there are of what, `numbers` what the numbers are, `content`
    what is in the picture, by default the title.
    """
    settled = sum(summary.done + summary.failed for summary in summaries)
    return [
        f"# {markdown_text(spec.title)}",
        f"{planned}, seed {spec.seed}.  Spec {spec.digest[:12]}; {settled} of {spec.n_cells} cells"
        f" have results.  Numbers are {numbers}.",
        *([f"![{content or markdown_text(spec.title)}](<{figure}>)"] if figure else []),
    ]


def remarks(summary: Outcomes) -> list[str]:
    """Paragraphs with the note of a curve and the number of its cells that failed."""
    note, failed = summary.curve.note, summary.failed
    paragraphs = [f"> {markdown_text(note)}"] if note else []
    return paragraphs + ([f"{failed} of {summary.planned} cells failed."] if failed else [])


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


def runs_section(runs: Runs, axis: str) -> list[str]:
    """The section of a report with the values of single runs, by paragraph."""
    rows = [
        (curve, f"{x:g}", metric, ", ".join(f"{r}: {v:.7g}" for r, v in sorted(values.items())))
        for (curve, x, metric), values in sorted(runs.items())
    ]
    return [
        "## Single runs",
        "Runs of one replicate have the same data, so that they are compared in pairs.",
        markdown_table(("curve", axis, "metric", "value, by replicate"), rows),
    ]
