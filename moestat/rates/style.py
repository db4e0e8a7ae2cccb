"""The style of all figures: sizes, fonts, colours and markers that print, also in grey."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from moestat.base.validate import short

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
"""Okabe and Ito's colours, told apart under every common colour blindness; the darkest first."""
MARKERS = ("o", "s", "D", "^", "v", "P", "X")
"""One marker per colour, so that curves are told apart in grey, too."""
INK = "#333333"

WIDTHS = {"screen": None, "single": 3.5, "double": 7.2}
"""Width of a whole figure in inches: a journal's one or two columns; None: as many as it needs."""

_FONT_SIZE = {"screen": 10.0, "single": 7.0, "double": 8.0}
_LATEX = {
    # The fonts that LaTeX sets in, which come with matplotlib; STIX has the signs they lack.
    "font.family": ["cmr10", "STIXGeneral"],
    "mathtext.fontset": "cm",
    "axes.formatter.use_mathtext": True,
}


@contextmanager
def style(size: str = "screen", latex_fonts: bool = False) -> Iterator[None]:
    """Settings of matplotlib under which a figure is drawn and saved, for one of `WIDTHS`.

    `latex_fonts` are Computer Modern, as LaTeX sets text in; LaTeX itself is not needed.
    """
    from matplotlib import rc_context

    if size not in WIDTHS:
        raise ValueError(f"size must be one of {', '.join(WIDTHS)}, got {short(size)}")
    fonts = _LATEX if latex_fonts else {}
    settings: dict[Any, Any] = {"font.size": _FONT_SIZE[size], "figure.titlesize": "large", **fonts}
    with rc_context(settings):
        yield


def plain_axes(ax: Axes) -> None:
    """Axes with a light grid and without a box, so that data stand out."""
    ax.grid(True, which="major", color="#dddddd", linewidth=0.7)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color("#888888")
    ax.tick_params(which="both", color="#888888", labelcolor=INK)


def new_figure(width: float, height: float, title: str) -> Figure:
    """A figure with a heading, drawn without a display; sizes are in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title)
    return figure


def legend_above(ax: Axes, handles: Sequence[Artist], labels: Sequence[str]) -> Legend:
    """A legend above the axes, where it hides no data."""
    return ax.legend(
        handles,
        labels,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.01),
        borderaxespad=0.0,
        fontsize="small",
        frameon=False,
        labelcolor=INK,
    )


def legend_beside(ax: Axes, inches: float) -> Legend:
    """The legend of axes moved to their right, on lines of so many inches."""
    from matplotlib import rcParams

    handles, labels = ax.get_legend_handles_labels()
    legend = ax.get_legend()
    assert legend is not None
    texts = [text.get_text() for text in legend.get_texts()]
    handles = [handles[labels.index(text)] for text in texts]
    points = 0.83 * rcParams["font.size"]
    return ax.legend(
        handles,
        [wrapped(text.replace("\n", " "), inches, points) for text in texts],
        loc="upper left",
        bbox_to_anchor=(1.02, 1.0),
        borderaxespad=0.0,
        fontsize="small",
        frameon=False,
        labelcolor=INK,
    )


def marks(index: int) -> dict[str, Any]:
    """Colour, marker and line of the curve of a number, as `matplotlib` takes them.

    Colours repeat after seven curves, with open markers and dashed lines.

    Examples
    --------
    >>> marks(0)["color"] == marks(7)["color"], marks(0)["linestyle"], marks(7)["linestyle"]
    (True, '-', '--')
    """
    colour, again = COLOURS[index % len(COLOURS)], index >= len(COLOURS)
    return {
        "color": colour,
        "marker": MARKERS[index % len(MARKERS)],
        "linestyle": "--" if again else "-",
        "markersize": 4.5,
        "markerfacecolor": "white" if again else colour,
        "markeredgecolor": colour if again else "white",
        "markeredgewidth": 0.9 if again else 0.6,
        "linewidth": 1.2,
        "elinewidth": 1.0,
        "capsize": 2.0,
    }


def caption(figure: Figure, text: str) -> None:
    """Say at the foot of a figure what its marks are, on as many lines as it takes."""
    from matplotlib import rcParams

    lines = wrapped(text, figure.get_size_inches()[0], 0.83 * rcParams["font.size"])
    figure.supxlabel(lines, fontsize="small", color=INK, x=0.01, ha="left")


def wrapped(text: str, inches: float, points: float) -> str:
    """Text on as many lines as fit a width in inches; formulas stay whole.

    Letters are taken to be half as wide as the size of the font, in points.

    Examples
    --------
    >>> wrapped("softmax, k = 2: $n^{-0.49}$ [-0.55, -0.43]", 1.5, 8.0).split(chr(10))
    ['softmax, k = 2: $n^{-0.49}$', '[-0.55, -0.43]']
    """
    lines = [[]]
    length = 0
    limit = max(12, int(inches * 72 / (0.52 * points)))
    for word in text.split(" "):
        letters = len(word.replace("$", "").replace("^{", "").replace("}", ""))
        if lines[-1] and length + letters + 1 > limit:
            lines.append([])
            length = 0
        lines[-1].append(word)
        length += letters + 1
    return "\n".join(" ".join(line) for line in lines)
