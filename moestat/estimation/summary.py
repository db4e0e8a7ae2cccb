"""The summary of a fit: facts, coefficients and notes, as text and as HTML."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

__all__ = ["Summary"]

_HEAD = ("", "coef", "std err", "z", "P>|z|", "[0.025", "0.975]")


@dataclass(frozen=True, repr=False)
class Summary:
    """Tables of a fit; ``print`` shows them as text, a notebook as HTML.

    Parameters
    ----------
    title : str
        Heading.
    facts : tuple of tuple
        Rows of two labels with their values.
    coefficients : tuple of tuple of str
        Rows of name, value, standard error, z, p-value and interval; in place of the last five
        the first may hold a note.
    notes : tuple of str
        Sentences below the tables.

    Examples
    --------
    >>> summary = Summary("A fit", (("n", 4, "AIC", 1.5),), (("a", "1.0", "(held)"),), ("Done.",))
    >>> "(held)" in str(summary), "<td>(held)</td>" in summary.as_html()
    (True, True)
    """

    title: str
    facts: tuple[tuple[Any, ...], ...]
    coefficients: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    @property
    def _rows(self) -> list[list[str]]:
        return [[*row, *[""] * (len(_HEAD) - len(row))] for row in self.coefficients]

    def as_text(self) -> str:
        """The tables as text, in the layout of statsmodels."""
        from statsmodels.iolib.table import SimpleTable

        facts = SimpleTable([list(row) for row in self.facts], title=self.title)
        tables = [str(facts), str(SimpleTable(self._rows, headers=list(_HEAD)))]
        return "\n".join([*tables, *self.notes])

    def as_html(self) -> str:
        """The tables as HTML; names are text in it, whatever characters they have."""

        def line(cells: Any, tag: str = "td") -> str:
            return f"<tr>{''.join(f'<{tag}>{escape(str(c))}</{tag}>' for c in cells)}</tr>"

        facts = "".join(map(line, self.facts))
        rows = "".join(map(line, self._rows))
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return (
            f"<table><caption>{escape(self.title)}</caption>{facts}</table>"
            f"<table><thead>{line(_HEAD, 'th')}</thead><tbody>{rows}</tbody></table>{notes}"
        )

    def __str__(self) -> str:
        return self.as_text()

    def __repr__(self) -> str:
        return self.as_text()

    def _repr_html_(self) -> str:
        return self.as_html()
