"""Python in the pages under docs runs, page by page."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import moestat

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"```python\n(.*?)```", flags=re.DOTALL)
PAGES = [
    path
    for path in sorted(DOCS.rglob("*.md"))
    if not {"_build", "generated"} & set(path.parts)
    and BLOCK.search(path.read_text())
    and path.name != "extending.md"  # tests/test_extending.py runs it
]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(DOCS).as_posix())
def test_code_of_the_page_runs(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for block in BLOCK.findall(path.read_text()):
        exec(compile(block, path.name, "exec"), names)


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
