"""The cheat sheet as one page of PDF, of its page's source; ``python docs/sheet.py FILE``."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import typst
from markdown_it import MarkdownIt
from markdown_it.token import Token

__all__ = ["write_sheet"]

SOURCE = Path(__file__).parent / "cheat_sheet.md"
HEAD = """
#set page(paper: "a4", flipped: true, margin: 9mm, columns: 2)
#set columns(gutter: 7mm)
#set text(size: 8.4pt)
#set par(leading: 0.5em)
#show heading.where(level: 1): set text(size: 15pt)
#show heading.where(level: 2): set text(size: 10.5pt, fill: rgb("#0a5a6b"))
#show raw: set text(size: 7.6pt)
#set table(columns: (27%, 1fr), stroke: none, inset: (x: 3pt, y: 2pt))
#show table: set block(breakable: false)
#set table(fill: (_, row) => if calc.even(row) { rgb("#eef3f4") })
"""


def write_sheet(path: Path, version: str) -> None:
    """Set the page's headings, paragraphs and tables of two columns on one page."""
    tokens = MarkdownIt().enable("table").parse(SOURCE.read_text(encoding="utf-8"))
    text, in_head = HEAD, False
    for token, inner in zip(tokens, [*tokens[1:], tokens[-1]], strict=True):
        if token.type == "heading_open":
            title = _inline(inner) + (f" of moestat {version}" if token.tag == "h1" else "")
            text += f"\n{'=' * int(token.tag[1])} {title}\n"
        elif token.type == "paragraph_open" and not _is_link(inner):
            text += f"\n{_inline(inner)}\n"
        elif token.type in ("table_open", "table_close"):
            text += "\n#table(" if token.type == "table_open" else ")\n"
        elif token.type in ("thead_open", "thead_close"):
            in_head = token.type == "thead_open"
        elif token.type == "td_open" and not in_head:
            text += f"[{_inline(inner)}], "
    if not isinstance(typst.compile(text.encode(), format="svg"), bytes):
        raise ValueError("the cheat sheet has more than one page")
    path.write_bytes(typst.compile(text.encode()))


def _is_link(token: Token) -> bool:
    """Whether a paragraph is nothing but a link, which paper does not have."""
    parts: Sequence[Token] = token.children or ()
    return len(parts) > 1 and parts[0].type == "link_open" and parts[-1].type == "link_close"


def _inline(token: Token) -> str:
    """Text and code as strings of typst, in which nothing else has a meaning."""
    words = {"text": "#{}", "code_inline": '#"\u200b"#raw({})'}  # lines may break before code
    parts = [(words.get(each.type), each.content) for each in token.children or ()]
    return "".join(how.format(json.dumps(text, ensure_ascii=False)) for how, text in parts if how)


if __name__ == "__main__":
    import moestat

    write_sheet(Path(sys.argv[1]), moestat.__version__)
