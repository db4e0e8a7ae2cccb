"""Words of users as text, whatever the medium makes of them: one function for each medium.

The terminal needs none: `moestat.sweep.cli` prints without markup.  LaTeX is escaped where its
tables are made, in `moestat.sweep.kinds.fit.report`, and CSV in `moestat.sweep.store.export`.
"""

from __future__ import annotations

import re

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
