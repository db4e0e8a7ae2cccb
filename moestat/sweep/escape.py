"""Words of users as text, whatever the medium makes of them: one function for each medium.

The terminal needs none: `moestat.sweep.cli` prints without markup.  LaTeX is escaped where its
tables are made, in `moestat.sweep.kinds.fit.report`, and CSV in `moestat.sweep.store.export`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_TAG = re.compile(r"<(?=[A-Za-z/!?])")


def figure_text(text: str) -> str:
    r"""Text of a figure, in which a dollar is a dollar.

    Examples
    --------
    >>> figure_text(r"costs $\frac{$")
    'costs \\$\\frac{\\$'
    """
    return text.replace("$", r"\$")


def markdown_text(text: str) -> str:
    r"""Text of a Markdown page or of a cell of its tables, without HTML.

    Examples
    --------
    >>> markdown_text("<b>D1</b> | n < 5")
    '&lt;b>D1&lt;/b> \\| n < 5'
    """
    return _TAG.sub("&lt;", text).replace("|", "\\|")


def markdown_code(text: str) -> str:
    """A name as code on a Markdown page, whatever backquotes are in it.

    Examples
    --------
    >>> print(markdown_code("lines"), markdown_code("the `first`"))
    `lines` `` the `first` ``
    """
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence, gap = "`" * (longest + 1), " " if longest else ""
    return f"{fence}{gap}{text}{gap}{fence}"


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown, of plain text.

    Examples
    --------
    >>> print(markdown_table(["k", "runs"], [["2", "10"]]))
    | k | runs |
    | --- | --- |
    | 2 | 10 |
    """
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(markdown_text, line)) + " |" for line in lines)


def panel_label(name: str) -> str:
    """What a panel is called: ``(a)`` for a letter, else its name.

    Examples
    --------
    >>> panel_label("a"), panel_label("softmax")
    ('(a)', 'softmax')
    """
    return f"({name})" if len(name) == 1 else name
