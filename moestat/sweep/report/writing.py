"""Files of a sweep: figures, and the report with them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from moestat.rates.plots import save_figure
from moestat.sweep.errors import SweepError
from moestat.sweep.kinds.kind import kind_of
from moestat.sweep.report.html import html_report
from moestat.sweep.store.store import Store

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write_figures(figure: Figure, paths: Sequence[Path]) -> None:
    """Write a figure to each path; the suffix, .png, .pdf or .svg, decides the format."""
    for path in paths:
        try:
            save_figure(figure, path)
        except ValueError as error:
            raise SweepError(str(error)) from None
        except OSError as error:
            raise SweepError(f"cannot write {path}: {error.strerror}") from None


def write_report(store: Store, folder: Path | None = None, html: bool = False) -> list[Path]:
    """Write the report of a sweep, which need not be complete.

    It is a Markdown page, a LaTeX table where the kind has one and, once there is a result, a
    figure (PNG, PDF); or one self-contained HTML page.  The files are named like the store, and
    stand in its own folder by default.
    """
    target = store.path.parent if folder is None else Path(folder)
    kind, title = kind_of(store.spec.kind), store.spec.title
    summaries = kind.summarise(store)
    has_figure = any(summary.drawable for summary in summaries)
    figure = kind.draw(title, summaries, "screen") if has_figure else None

    def path_of(end: str) -> Path:
        return target / f"{store.path.stem}{end}"

    pictures = [path_of(".png"), path_of(".pdf")] if has_figure and not html else []
    page = kind.page(store, summaries, pictures[0].name if pictures else None)
    texts = {path_of(".html"): html_report(store, page, figure)} if html else {path_of(".md"): page}
    if kind.latex is not None and not html:
        texts[path_of(".tex")] = kind.latex(summaries)
    try:
        target.mkdir(parents=True, exist_ok=True)
        if figure is not None:
            write_figures(figure, pictures)
        for path, text in texts.items():
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SweepError(f"cannot write the report into {target}: {error.strerror}") from None
    return [*texts, *pictures]
