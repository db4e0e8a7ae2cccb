"""Tables for readers: one sheet as text of 80 columns, LaTeX, HTML and CSV."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from moestat.base.types import FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TERMINAL", "Row", "Sheet", "as_percent", "labelled", "significant"]

TERMINAL = 80
"""Columns of a terminal."""

_WIDTH = TERMINAL - 2
"""Columns of text that a terminal shows without a break."""


@dataclass(frozen=True)
class Row:
    """Cells of a line; of a `heading` the only cell spans all columns.

    A row with fewer cells ends in a cell that spans the missing ones, such as a word in place of
    numbers.
    """

    cells: tuple[str, ...]
    heading: bool = False


@dataclass(frozen=True, repr=False)
class Sheet:
    """A title, facts in pairs, a table with headings of sections, and notes."""

    title: str
    """Heading, its lines one below the other."""
    facts: tuple[tuple[object, ...], ...]
    """Rows of labels and values in turn."""
    head: tuple[str, ...]
    """Heads of the columns."""
    rows: tuple[Row, ...]
    """Lines of the table."""
    notes: tuple[str, ...] = ()
    """Sentences below it."""

    @property
    def frame(self) -> pd.DataFrame:
        """The same numbers as a data frame, unrounded."""
        raise NotImplementedError

    def as_text(self) -> str:
        """The sheet as text, as wide as its table, at most 80 columns where its words allow."""
        cells = [self.head, *(row.cells for row in self.rows if not row.heading)]
        table = _aligned(cells, "  ")
        if max(map(len, table)) > _WIDTH:
            table = _aligned(cells, " ")
        body = iter(table[1:])
        lines = [f"  {next(body)}" if not row.heading else row.cells[0] for row in self.rows]
        head = f"  {table[0]}"
        facts = _justified(self.facts, max(map(len, [head, *lines])))
        width = max(map(len, [head, *lines, *facts]))
        thick, thin = "=" * width, "-" * width
        title = [line.center(width) for line in self.title.splitlines()]
        notes = [line for note in self.notes for line in textwrap.wrap(note, max(width, _WIDTH))]
        parts = [*title, thick, *facts, *([thick] if facts else []), head, thin, *lines, thick]
        return "\n".join(line.rstrip() for line in [*parts, *notes])

    def as_html(self) -> str:
        """The sheet as HTML; names are text in it, whatever characters they have."""
        span = len(self.head)

        def line(cells: Sequence[str], tag: str = "td") -> str:
            html: list[str] = []
            for c, cell in enumerate(cells):
                wide = span - c if len(cells) < span and c == len(cells) - 1 else 1
                side = "right" if self.head[c] and wide == 1 else "left"
                over = f' colspan="{wide}"' if wide > 1 else ""
                style = f"text-align:{side};padding:0 0.5em"
                html.append(f'<{tag}{over} style="{style}">{escape(str(cell))}</{tag}>')
            return f"<tr>{''.join(html)}</tr>"

        facts = "".join(
            "<tr>"
            + "".join(f'<td style="padding:0 0.5em">{escape(str(cell))}</td>' for cell in row)
            + "</tr>"
            for row in self.facts
        )
        rows = "".join(line(row.cells, "th" if row.heading else "td") for row in self.rows)
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        title = "<br>".join(map(escape, self.title.splitlines()))
        above = f"<table><caption>{title}</caption><tbody>{facts}</tbody></table>"
        return (
            f"{above if title or facts else ''}<table><thead>{line(self.head, 'th')}</thead>"
            f"<tbody>{rows}</tbody></table>{notes}"
        )

    def as_latex(self) -> str:
        r"""The sheet as LaTeX, for ``\usepackage{booktabs}``."""
        span = len(self.head)

        def line(row: Row) -> str:
            cells = [_tex(cell) for cell in row.cells]
            if row.heading:
                return rf"\multicolumn{{{span}}}{{l}}{{\textit{{{cells[0]}}}}} \\"
            if len(cells) < span:
                cells[-1] = rf"\multicolumn{{{span - len(cells) + 1}}}{{l}}{{{cells[-1]}}}"
            return " & ".join(cells) + r" \\"

        facts = [" & ".join(_tex(str(cell)) for cell in row) + r" \\" for row in self.facts]
        pairs = "lr" * (len(self.facts[0]) // 2) if self.facts else ""
        above = [rf"\begin{{tabular}}{{{pairs}}}", r"\toprule", *facts, r"\bottomrule"]
        text_columns = "l" * sum(not name for name in self.head)
        table = [
            rf"\begin{{tabular}}{{{text_columns}{'r' * (span - len(text_columns))}}}",
            r"\toprule",
            line(Row(self.head)),
            r"\midrule",
            *map(line, self.rows),
            r"\bottomrule",
            r"\end{tabular}",
        ]
        parts = [
            r"\begin{table}",
            r"\centering",
            *([rf"\caption{{{_tex('; '.join(self.title.splitlines()))}}}"] if self.title else []),
            *([*above, r"\end{tabular}", "", r"\medskip"] if self.facts else []),
            *table,
            *(("", r"\smallskip", *map(_tex, self.notes)) if self.notes else ()),
            r"\end{table}",
        ]
        return "\n".join(parts)

    def as_csv(self) -> str:
        """The numbers of the sheet as CSV, unrounded."""
        return self.frame.to_csv(index=False)

    def __str__(self) -> str:
        return self.as_text()

    def __repr__(self) -> str:
        return self.as_text()

    def _repr_html_(self) -> str:
        return self.as_html()

    def _repr_latex_(self) -> str:
        return self.as_latex()


def as_percent(p: float) -> str:
    """A probability in whole percents; "< 1%" in place of 0%."""
    text = f"{p:.0%}"
    return "< 1%" if text == f"{0.0:.0%}" else text


def significant(value: float, digits: int) -> str:
    """A number with `digits` significant digits, without an exponent between 1e-4 and 1e7."""
    if value == 0.0 or not math.isfinite(value):
        return f"{value:.0f}"
    exponent = int(f"{value:.{digits - 1}e}".partition("e")[2])
    if -5 < exponent < 7:
        return f"{value:.{max(digits - 1 - exponent, 0)}f}"
    return f"{value:.{digits - 1}e}"


def labelled(
    values: FloatArray,
    reported: IntArray | None,
    names: list[str],
    columns: Any = None,
) -> Any:
    """Values (P,), (P, m) with columns, or (P, P) without, at reported parameters, by name.

    They are returned unchanged if `reported` is None.
    """
    if reported is None:
        return values
    from moestat.estimation.columns import EstimateSeries, EstimateTable

    index: list[str] = [names[j] for j in reported]
    if values.ndim == 1:
        return EstimateSeries(values[reported], index=index)
    if columns is None:
        return EstimateTable(values[np.ix_(reported, reported)], index=index, columns=index)
    return EstimateTable(values[reported], index=index, columns=columns)


def _aligned(rows: Sequence[Sequence[str]], gap: str) -> list[str]:
    """Lines of columns: those without a head to the left, numbers to the right.

    The last cell of a shorter row stands in the place of all that follow.
    """
    head = rows[0]
    size = len(head)
    inside = [row if len(row) == size else row[:-1] for row in rows]
    width = [max(len(row[c]) for row in inside if c < len(row)) for c in range(size)]
    lines: list[str] = []
    for row, row_cells in zip(rows, inside, strict=True):
        cells = [
            cell.rjust(wide) if name else cell.ljust(wide)
            for cell, wide, name in zip(row_cells, width, head, strict=False)
        ]
        lines.append(gap.join([*cells, *([f"({row[-1]})"] if len(row) < size else [])]))
    return lines


def _justified(facts: Sequence[Sequence[object]], width: int) -> list[str]:
    """Lines of labels to the left and values to the right, over the width of the table."""
    rows = [[str(cell) for cell in row] for row in facts]
    size = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))] if rows else []
    n_pairs = len(size) // 2
    spare = max(width - sum(size) - 2 * n_pairs - 3 * (n_pairs - 1), 0) // max(n_pairs, 1)
    lines: list[str] = []
    for row in rows:
        pairs = [
            f"{row[c].ljust(size[c])}  {row[c + 1].rjust(size[c + 1] + spare)}"
            for c in range(0, len(row), 2)
        ]
        lines.append("   ".join(pairs))
    return lines


_TEX: dict[str, str] = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": "$|$",
    "`": r"\textasciigrave{}",
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
}


def _tex(text: str) -> str:
    """Text with the marks that LaTeX reads as commands written out; minus signs as such."""
    plain = re.sub(r"[\\~^<>|&%$#_{}]", lambda match: _TEX[match[0]], text)
    plain = re.sub(r"(?<![\w.])-(?=\d)", "$-$", plain)
    return re.sub(r"(?<=\d)e([+-])0?(\d+)\b", _power, plain)


def _power(match: re.Match[str]) -> str:
    return rf"$\times 10^{{{match[1].replace('+', '')}{match[2]}}}$"
