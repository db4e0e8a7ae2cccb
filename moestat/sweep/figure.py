"""The figure of a sweep: one panel per group of curves, laid out as Pham et al. (2026), Fig. 1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from moestat.rates.plots import RateCurve, plot_rates, save_figure
from moestat.sweep.analysis import CurveSummary
from moestat.sweep.errors import SweepError
from moestat.sweep.escape import figure_text

__all__ = ["draw", "panel_label", "write_figures", "write_page"]

_ERROR = "regression error"


def draw(title: str, summaries: Sequence[CurveSummary]) -> Any:
    """Losses against sample sizes with their fitted rates.

    Parameters
    ----------
    title : str
        Heading.
    summaries : sequence of CurveSummary
        The curves; those of one panel share axes.  Panels stand in the order of their names, in
        one row if there are three or fewer, else in two.  Next to the losses of regression
        functions stand the regression errors of the same fits, one row per panel.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Raises
    ------
    SweepError
        If no curve has an estimate yet.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    panels: dict[tuple[str, str], list[RateCurve]] = {}
    for summary in summaries:
        if summary.n.size:
            panels.setdefault((summary.curve.panel, ""), []).append(_rate_curve(summary))
        if summary.errors.size:
            key = summary.curve.panel, _ERROR
            panels.setdefault(key, []).append(_error_curve(summary))
    if not panels:
        raise SweepError("there is nothing to plot: no estimate enters a rate yet")
    rows = 1 if len(panels) <= 3 else 2
    if any(what for _, what in panels):
        rows = len({name for name, _ in panels})
    columns = -(-len(panels) // rows)
    tallest = max(len(curves) for curves in panels.values())
    size = (6.4 * columns, (4.4 + 0.2 * tallest) * rows)
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(figure_text(title))
    for position, ((name, what), curves) in enumerate(sorted(panels.items()), 1):
        axes = figure.add_subplot(rows, columns, position)
        plot_rates(curves, ax=axes)
        axes.set_ylabel(what or axes.get_ylabel())
        # The legend stands above the axes: a title there hides no data and no other label.
        legend: Any = axes.get_legend()
        title = ": ".join(part for part in (panel_label(name), what) if part)
        legend.set_title(figure_text(title) or None, prop={"weight": "bold"})
        legend.set_alignment("left")
    return figure


def panel_label(name: str) -> str:
    """What a panel is called: ``(a)`` for a letter, else its name.

    Examples
    --------
    >>> panel_label("a"), panel_label("softmax")
    ('(a)', 'softmax')
    """
    return f"({name})" if len(name) == 1 else name


def write_figures(figure: Any, paths: Sequence[Path]) -> None:
    """Write a figure to each path; the suffix, .png, .pdf or .svg, decides the format.

    Raises
    ------
    SweepError
        If a path cannot be written or has another suffix.
    """
    for path in paths:
        try:
            save_figure(figure, path)
        except ValueError as error:
            raise SweepError(str(error)) from None
        except OSError as error:
            raise SweepError(f"cannot write {path}: {error.strerror}") from None


def _error_curve(summary: CurveSummary) -> RateCurve:
    return RateCurve(
        label=figure_text(summary.curve.name),
        n=summary.n,
        loss=summary.errors,
        rate=summary.regression_error,
    )


def _rate_curve(summary: CurveSummary) -> RateCurve:
    left_out = f" ({summary.left_out} uncertified)" if summary.left_out else ""
    return RateCurve(
        label=figure_text(summary.curve.name) + left_out,
        n=summary.n,
        loss=summary.loss,
        rate=summary.rate,
        n_failed=summary.failed,
    )


def write_page(
    store: Path,
    folder: str | Path | None,
    draw: Callable[[], Any] | None,
    page: Callable[[list[Path]], str],
) -> list[Path]:
    """Write a figure (PNG, PDF) and a Markdown page, named like the store.

    Parameters
    ----------
    store : Path
        The store's file.
    folder : str or Path or None
        Where to; the store's own folder for None.  It is made if it is not there.
    draw : callable or None
        ``draw()``: the figure; None where there is nothing to draw.
    page : callable
        ``page(figures)``: the text, given the files of the figure.

    Returns
    -------
    list of Path
        The page, then the figure's files.

    Raises
    ------
    SweepError
        If a file cannot be written.
    """
    target = store.parent if folder is None else Path(folder)
    base = target / store.stem
    text, figures = base.with_name(base.name + ".md"), []
    try:
        target.mkdir(parents=True, exist_ok=True)
        if draw is not None:
            figures = [base.with_name(base.name + end) for end in (".png", ".pdf")]
            write_figures(draw(), figures)
        text.write_text(page(figures), encoding="utf-8")
    except OSError as error:
        raise SweepError(f"cannot write the report into {target}: {error.strerror}") from None
    return [text, *figures]
