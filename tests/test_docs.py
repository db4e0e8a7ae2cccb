"""Python in the pages under docs runs, page by page, and prints and draws what the page shows.

``python -m tests.test_docs`` runs all pages, or those named, and writes what they show anew.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from matplotlib import pyplot

import moestat
from moestat.estimation.inference.bootstrap import BootstrapResult
from moestat.estimation.inference.prediction import Prediction
from moestat.estimation.inference.profile import Profile
from moestat.estimation.results.results import MoEResults
from moestat.estimation.results.summary import Summary
from moestat.model.experts import EXPERTS
from moestat.model.gates import GATES
from moestat.model.likelihoods import LIKELIHOODS
from moestat.rates.rate import RateResult
from tests.kinds import each_run
from tests.test_readme import lines, pattern, run

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(
    r"```python\n(?P<code>.*?)```(?:\n\n```text\n(?P<text>.*?)```)?"
    r"(?:\n\n!\[(?P<words>[^\]]*)\]\((?P<picture>[^)]+)\))?",
    flags=re.DOTALL,
)
PAGES = [
    path
    for path in sorted(DOCS.rglob("*.md"))
    if not {"_build", "generated"} & set(path.parts)
    and BLOCK.search(path.read_text())
    and path.name != "extending.md"  # tests/test_extending.py runs it
]
LONG = ("guide/required_rows.md",)
"""Pages that take a quarter of a minute and are slow."""

FIRST = ("start.md",)
"""The page of each run; a page takes seconds, and has no code that a test does not have."""

HOME = DOCS / "index.md"  # the build draws its picture


def _name(path: Path) -> str:
    return path.relative_to(DOCS).as_posix()


@pytest.mark.parametrize(
    "path",
    each_run(PAGES, [path for path in PAGES if _name(path) not in LONG], _name, FIRST),
)
def test_code_of_the_page_runs_and_shows_what_is_written(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for block in BLOCK.finditer(path.read_text()):
        assert pattern(run(names, block["code"])) == pattern(block["text"] or ""), block["code"]
        assert path == HOME or len(pyplot.get_fignums()) == bool(block["picture"]), block["code"]
        assert not block["picture"] or (path.parent / block["picture"]).exists()
        pyplot.close("all")


def test_every_public_name_has_a_reference_with_an_example():
    for name in moestat.__all__:
        thing = getattr(moestat, name)
        if inspect.ismodule(thing):
            continue
        sections = ["Parameters", "Examples"] + ([] if inspect.isclass(thing) else ["Returns"])
        page = inspect.getdoc(thing) or ""
        assert [each for each in sections if f"{each}\n---" not in page] == [], name


def test_the_gallery_has_minutes_of_shipped_experiments_only(monkeypatch):
    pytest.importorskip("nbformat")
    monkeypatch.syspath_prepend(DOCS)
    from pages import MINUTES

    assert set(MINUTES) <= {path.stem for path in (DOCS.parent / "experiments").glob("*.toml")}


def test_formulas_need_neither_script_nor_network():
    pytest.importorskip("latex2mathml")
    from latex2mathml.converter import convert

    formula = re.compile(r"(?<![\\$`])\$([^$`\n]+)\$")
    pages = [path for path in sorted(DOCS.rglob("*.md")) if not {"_build"} & set(path.parts)]
    for path in pages:
        text = re.sub(r"```.*?```|`[^`]*`", "", path.read_text(), flags=re.DOTALL)
        for each in formula.findall(text):
            assert convert(each).startswith("<math"), (path.name, each)


def test_rows_of_tables_have_the_cells_of_their_heads():
    """A bar in code ends a cell, unless it is escaped."""
    for path in [path for path in sorted(DOCS.rglob("*.md")) if "_build" not in path.parts]:
        head = 0
        for line in re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL).splitlines():
            cells = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
            assert not head or not cells or cells == head, (path.name, line)
            head = cells


def test_the_cheat_sheet_names_what_exists(monkeypatch):
    sheet = (DOCS / "cheat_sheet.md").read_text()
    for name in re.findall(r"moestat\.(\w+)", re.sub(r"moestat\.sweep", "", sheet)):
        assert hasattr(moestat, name), name
    places = (MoEResults, Summary, Prediction, Profile, BootstrapResult, RateResult)
    known = {name for place in places for name in (*dir(place), *place.__dataclass_fields__)}
    for name in re.findall(r"(?:result|[`)])\.(\w+)", sheet):
        assert name in known, name
    for registry in (GATES, EXPERTS, LIKELIHOODS):
        assert [name for name in registry if f"`{name}`" not in sheet] == []


def test_versions_of_the_site_stand_side_by_side(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(DOCS)
    from versions import add

    (built := tmp_path / "built").mkdir()
    (pages := tmp_path / "pages").mkdir()
    (built / "index.html").write_text("here")
    for version in ("main", "v0.9", "v0.10", "main"):
        add(built, pages, version)
    assert (pages / "stable" / "index.html").read_text() == "here"
    menu = json.loads((pages / "switcher.json").read_text())
    assert [each["version"] for each in menu] == ["dev", "0.10", "0.9"]


def test_the_api_has_a_page_for_every_public_name(monkeypatch):
    pytest.importorskip("nbformat")
    monkeypatch.syspath_prepend(DOCS)
    from pages import topics

    found = {name: thing for things in topics().values() for name, thing in things.items()}
    named = {n for n in moestat.__all__ if not inspect.ismodule(getattr(moestat, n))}
    assert {f"moestat.{name}" for name in named} <= set(found)
    classes = {thing.__name__ for thing in found.values() if inspect.isclass(thing)}
    assert {
        *("MoEResults", "Selection", "Prediction", "Certificate", "Summary", "Comparison"),
        *("Newton", "ClusterStarts", "OrderTest", "RestrictedFit"),
    } <= classes
    assert [name for name, thing in found.items() if not inspect.getdoc(thing)] == []


def main() -> None:
    """Run pages and write what they print and draw anew."""
    for path in PAGES:
        if sys.argv[1:] and path.stem not in sys.argv[1:]:
            continue
        names: dict = {}
        count = 0

        def renewed(block: re.Match[str], path: Path = path, names: dict = names) -> str:
            nonlocal count
            shown = f"```python\n{block['code']}```"
            if printed := "\n".join(lines(run(names, block["code"]))):
                shown += f"\n\n```text\n{printed}\n```"
            if pyplot.get_fignums() and path != HOME:
                count += 1
                new = os.path.relpath(DOCS / "pictures" / f"{path.stem}_{count}.png", path.parent)
                picture = block["picture"] or new
                pyplot.gcf().savefig(path.parent / picture, dpi=110)
                shown += f"\n\n![{block['words'] or ''}]({picture})"
            elif block["picture"]:
                shown += f"\n\n![{block['words']}]({block['picture']})"
            pyplot.close("all")
            return shown

        source = path.read_text()
        with TemporaryDirectory() as folder:
            os.chdir(folder)
            source = BLOCK.sub(renewed, source)
        path.write_text(source)


if __name__ == "__main__":
    main()
