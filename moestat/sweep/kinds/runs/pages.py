"""Pages of sweeps without rates: a figure and a Markdown page, named like the store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from moestat.sweep.errors import SweepError
from moestat.sweep.kinds.fit.figure import write_figures
from moestat.sweep.kinds.runs.outcomes import Outcomes
from moestat.sweep.report.escape import markdown_text
from moestat.sweep.spec.kinds import part_of
from moestat.sweep.store.store import Store

__all__ = ["markdown_table", "page_head", "write_page"]


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


def page_head(spec: Any, summaries: Sequence[Outcomes], planned: str, numbers: str) -> list[str]:
    """Title and provenance of a page, by paragraph.

    Parameters
    ----------
    spec : spec of a sweep
        The spec.
    summaries : sequence of Outcomes
        Its curves.
    planned : str
        How many runs there are of what.
    numbers : str
        What the numbers are.

    Returns
    -------
    list of str
        Paragraphs in Markdown.
    """
    settled = sum(summary.done + summary.failed for summary in summaries)
    return [
        f"# {markdown_text(spec.title)}",
        f"{planned}, seed {spec.seed}.  Spec {spec.digest[:12]}; {settled} of {spec.n_cells} cells"
        f" have results.  Numbers are {numbers}.",
    ]


def write_page(store: Store, folder: str | Path | None = None) -> list[Path]:
    """Write the report of a sweep without rates: figure (PNG, PDF) and Markdown page.

    Parameters
    ----------
    store : Store
        An open store; its sweep need not be complete.
    folder : str or Path, optional
        Where to; the store's own folder by default.  It is made if it is not there.

    Returns
    -------
    list of Path
        The files, named like the store: the page, then the figure's, once there is a result.

    Raises
    ------
    SweepError
        If a file cannot be written.
    """
    summarise, draw, page = (
        part_of(store.spec.kind, part) for part in ("summarise", "draw", "page")
    )
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
