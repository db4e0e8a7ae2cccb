"""Pages of sweeps without rates: a figure and a Markdown page, named like the store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from moestat.sweep.errors import SweepError
from moestat.sweep.escape import markdown_text
from moestat.sweep.kinds.fit.figure import write_figures
from moestat.sweep.kinds.runs.outcomes import Outcomes
from moestat.sweep.kinds.runs.spec import RunsSpec
from moestat.sweep.store.store import Store


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown.

    Examples
    --------
    >>> print(markdown_table(["k", "runs"], [["2", "10"]]))
    | k | runs |
    | --- | --- |
    | 2 | 10 |
    """
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def page_head(
    spec: RunsSpec[Any], summaries: Sequence[Outcomes], planned: str, numbers: str
) -> list[str]:
    """Title and provenance of a page, by paragraph.

    `planned` says how many runs there are of what, and `numbers` what the numbers are.
    """
    settled = sum(summary.done + summary.failed for summary in summaries)
    return [
        f"# {markdown_text(spec.title)}",
        f"{planned}, seed {spec.seed}.  Spec {spec.digest[:12]}; {settled} of {spec.n_cells} cells"
        f" have results.  Numbers are {numbers}.",
    ]


def page_writer(
    summarise: Callable[[Store], Sequence[Any]],
    draw: Callable[..., Any],
    page: Callable[[Store, Sequence[Any], str | None], str],
) -> Callable[[Store, Path | None], list[Path]]:
    """``write(store, folder)`` of a kind without rates: figure (PNG, PDF) and Markdown page.

    The files are named like the store, which need not be complete, and stand in its own folder by
    default: the page, then the figure's, once there is a result.  A `SweepError` says that one
    cannot be written.
    """

    def write(store: Store, folder: Path | None = None) -> list[Path]:
        summaries = summarise(store)
        target = store.path.parent if folder is None else Path(folder)
        base = target / store.path.stem
        text, figures = base.with_name(base.name + ".md"), []
        try:
            target.mkdir(parents=True, exist_ok=True)
            if any(summary.drawable for summary in summaries):
                figures = [base.with_name(base.name + end) for end in (".png", ".pdf")]
                write_figures(draw(store.spec.title, summaries), figures)
            picture = figures[0].name if figures else None
            text.write_text(page(store, summaries, picture), encoding="utf-8")
        except OSError as error:
            raise SweepError(f"cannot write the report into {target}: {error.strerror}") from None
        return [text, *figures]

    return write
