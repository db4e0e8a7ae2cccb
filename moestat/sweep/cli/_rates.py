"""The commands that read rates off stores: tables, comparisons, figures, reports."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from moestat.sweep.cli._app import AsJson, StorePath, answer, command, console, reading, show_json
from moestat.sweep.errors import SweepError


@command("rates quickstart.sqlite --json")
def rates(store: StorePath, as_json: AsJson = False) -> None:
    """Show the fitted rates; --json adds the rates by loss, block and kind of Voronoi cell."""
    from moestat.sweep.kinds.kind import kind_of

    with reading(store) as opened:
        kind = kind_of(opened.spec.kind)
        summaries = kind.summarise(opened)
        if as_json:
            show_json([summary.as_dict() for summary in summaries])
        else:
            console().print(kind.table(opened.spec.title, summaries, True))


@command('compare quickstart.sqlite "softmax, k = 2" "softmax, k = 3"')
def compare(
    store: StorePath,
    first: Annotated[str, typer.Argument(help="A curve.")],
    second: Annotated[str, typer.Argument(help="Another curve.")],
    other: Annotated[
        Path | None, typer.Option(help="The store of the second curve, if it differs from STORE.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare the slopes of two curves; replicates on the same data are compared in pairs."""
    from moestat.sweep.kinds.fit.comparison import compare_curves

    with reading(store) as one, reading(other or store) as two:
        difference = compare_curves(one, first, two, second)
    data = {"first": first, "second": second, **difference.as_dict()}
    answer(as_json, data, f"{first}  against  {second}\n{difference.summary()}")


@command("plot quickstart.sqlite --out figure.pdf --size double --latex-fonts")
def plot(
    store: StorePath,
    out: Annotated[
        Path | None,
        typer.Option(help="A .png, .pdf or .svg file; .png and .pdf beside the store by default."),
    ] = None,
    size: Annotated[
        str, typer.Option(help="screen, or single or double for one or two columns of a journal.")
    ] = "screen",
    latex_fonts: Annotated[
        bool, typer.Option("--latex-fonts", help="Computer Modern, as LaTeX sets text in.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Draw losses against sample sizes with their fitted rates."""
    from moestat.base.validate import unknown
    from moestat.rates.style import WIDTHS, style
    from moestat.sweep.kinds.kind import kind_of
    from moestat.sweep.report.writing import write_figures

    if size not in WIDTHS:
        raise SweepError(f"--size: {unknown('size', size, WIDTHS)}")
    paths = [out] if out else [store.with_suffix(suffix) for suffix in (".png", ".pdf")]
    with reading(store) as opened, style(size, latex_fonts):
        spec = opened.spec
        kind = kind_of(spec.kind)
        if size not in kind.sizes:
            raise SweepError(f"--size {size} is for fits; this store is of kind {spec.kind!r}")
        write_figures(kind.draw(spec.title, kind.summarise(opened), size), paths)
    _show_files("figures", paths, as_json)


@command("report quickstart.sqlite --out figures")
def report(
    store: StorePath,
    out: Annotated[
        Path | None, typer.Option(help="A directory; the store's own by default.", metavar="DIR")
    ] = None,
    html: Annotated[
        bool,
        typer.Option("--html", help="Write one self-contained HTML page instead of these files."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write a report: figure (PNG, PDF), Markdown page with the evidence, LaTeX table."""
    from moestat.sweep.report.writing import write_report

    with reading(store) as opened:
        _show_files("report", write_report(opened, out, html), as_json)


@command("score quickstart estimates.npz")
def score(
    spec: Annotated[str, typer.Argument(help="A TOML file, or a shipped experiment.")],
    estimates: Annotated[
        Path,
        typer.Argument(
            help="An .npz file: for a curve the arrays CURVE/n (N,) and CURVE/BLOCK (N, k, ...)."
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Compute the losses of SPEC for estimates that another program made."""
    from moestat.sweep.kinds.fit.display import scores_table
    from moestat.sweep.kinds.fit.scoring import score as scored
    from moestat.sweep.spec.experiments import find_spec
    from moestat.sweep.spec.read import load_spec

    scores = scored(load_spec(find_spec(spec)), estimates)
    if as_json:
        show_json([each.as_dict() for each in scores])
    else:
        console().print(scores_table(scores))


def _show_files(what: str, paths: list[Path], as_json: bool) -> None:
    names = [str(path) for path in paths]
    answer(as_json, {what: names}, f"{what}: " + ", ".join(names))
