"""The report of a sweep as one self-contained HTML page, which needs no network."""

from __future__ import annotations

import io
import re
import shlex
from html import escape, unescape
from typing import TYPE_CHECKING

from moestat.sweep.store.store import Store

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLE = """
:root { --ink: #222; --faint: #767676; --line: #ddd; --back: #fff; --band: #f6f6f4; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e6e6; --faint: #9b9b9b; --line: #444; --back: #1b1b1b; --band: #252525; }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--back);
       max-width: 68rem; margin: 0 auto; padding: 1rem; overflow-wrap: anywhere; }
h1 { line-height: 1.2; } h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line); }
figure { margin: 1rem 0; background: #fff; } figure svg { max-width: 100%; height: auto; }
.wide { overflow-x: auto; } table { border-collapse: collapse; margin: 1rem 0; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid var(--line); text-align: left;
         vertical-align: top; overflow-wrap: normal; }
th button { all: unset; cursor: pointer; font-weight: 600; }
th button:focus-visible { outline: 2px solid currentColor; }
th[aria-sort=ascending] button::after { content: " \\2191"; }
th[aria-sort=descending] button::after { content: " \\2193"; }
pre { background: var(--band); padding: .7rem; overflow-x: auto; }
blockquote { margin: .5rem 0; padding-left: 1rem; border-left: 3px solid var(--line); }
summary { cursor: pointer; } .faint { color: var(--faint); }
"""

_SORT = """
document.querySelectorAll("th button").forEach(function (button) {
  button.addEventListener("click", function () {
    var th = button.parentNode, table = th.closest("table"), body = table.tBodies[0];
    var at = Array.prototype.indexOf.call(th.parentNode.children, th);
    var down = th.getAttribute("aria-sort") === "ascending";
    table.querySelectorAll("th").forEach(function (other) { other.removeAttribute("aria-sort"); });
    th.setAttribute("aria-sort", down ? "descending" : "ascending");
    function key(row) {
      var text = row.cells[at].textContent.replace("\\u2212", "-"), number = parseFloat(text);
      return isNaN(number) ? text : number;
    }
    Array.from(body.rows).sort(function (a, b) {
      var x = key(a), y = key(b), kinds = (typeof x > typeof y) - (typeof x < typeof y);
      return (kinds || (x > y) - (x < y)) * (down ? -1 : 1);
    }).forEach(function (row) { body.appendChild(row); });
  });
});
"""


_FOLDED = {
    "evidence": "evidence",
    "error in": "errors within cells",
    "value, by replicate": "single runs",
}
"""Tables that fold away, by a column of theirs."""


def html_report(store: Store, markdown: str, figure: Figure | None = None) -> str:
    """One HTML page with the figure, the tables and the evidence of a report, and the spec.

    `markdown` is the report without the figure, as ``page`` of its kind gives it.  Everything is in
    the page, tables can be sorted, and evidence unfolds.
    """
    title, provenance, sections = markdown.removeprefix("# ").split("\n\n", 2)
    title = escape(unescape(title).replace("\\|", "|"))
    picture = "" if figure is None else f"<figure>{_svg(figure)}</figure>"
    parts = [f"<h1>{title}</h1>", _body(provenance), picture, _body(sections)]
    parts += ["<h2>Commands</h2>", _commands(store), "<h2>Spec</h2>", _spec(store)]
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{_STYLE}</style>"
    )
    body = "\n".join(parts)
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head>\n<body>\n{body}\n'
        f"<script>{_SORT}</script>\n</body></html>\n"
    )


def _body(markdown: str) -> str:
    """A part of a report as HTML: its tables can be sorted, and evidence of a curve folds away."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    text = parser.disable(["autolink", "image", "link", "reference"]).render(markdown)
    text = re.sub(r"<th>(.*)</th>", r'<th scope="col"><button type="button">\1</button></th>', text)
    return re.sub(r"<table>.*?</table>", _fold, text, flags=re.DOTALL)


def _fold(match: re.Match[str]) -> str:
    table = f'<div class="wide">{match[0]}</div>'
    rows = table.count("<tr>") - 1
    names = [name for column, name in _FOLDED.items() if f">{column}</button>" in table]
    if not names:
        return table
    return f"<details><summary>{names[0]} ({rows} rows)</summary>{table}</details>"


def _svg(figure: Figure) -> str:
    """A figure as SVG that stands within a page."""
    from matplotlib import rc_context

    file = io.StringIO()
    with rc_context({"svg.hashsalt": "moestat"}):
        figure.savefig(file, format="svg", bbox_inches="tight", metadata={"Date": None})
    text = file.getvalue()
    return text[text.index("<svg") :]


def _commands(store: Store) -> str:
    """For each kind of number, the command that gives it."""
    name = shlex.quote(store.path.name)
    lines = [
        ("the numbers of every curve", f"rates {name} --json"),
        ("the figure", f"plot {name} --out figure.pdf"),
        ("every cell as a row, with a dictionary of the columns", f"export {name} --out cells.csv"),
        ("failed cells", f"failures {name}"),
        ("that the store is sound", f"verify-store {name}"),
    ]
    program = "python -m moestat.sweep"
    rows = "".join(
        f"<tr><td>{what}</td><td><code>{escape(f'{program} {line}')}</code></td></tr>"
        for what, line in lines
    )
    return f'<div class="wide"><table><tbody>{rows}</tbody></table></div>'


def _spec(store: Store) -> str:
    digest, text = store.spec.digest, escape(store.spec.text)
    return f"<details><summary>The spec, digest {digest[:12]}</summary><pre>{text}</pre></details>"
