"""Every notebook runs from a fresh kernel, and is committed without outputs."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
EXECUTED = ROOT / "docs" / "generated" / "notebooks"
"""The site shows what the test has run, rather than run it again."""
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_runs_from_a_fresh_kernel(path, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    book = nbformat.read(path, as_version=4)
    if any("import torch" in cell.source for cell in book.cells):
        pytest.importorskip("torch")
    NotebookClient(book, timeout=300, resources={"metadata": {"path": tmp_path}}).execute()
    printed = [cell for cell in book.cells if cell.cell_type == "code" and cell.outputs]
    assert printed
    EXECUTED.mkdir(parents=True, exist_ok=True)
    nbformat.write(book, EXECUTED / path.name)


def test_each_says_first_what_one_learns_and_how_long_it_runs():
    for path in NOTEBOOKS:
        first = nbformat.read(path, as_version=4).cells[0].source
        assert first.startswith("# "), path.name
        assert "What one learns: " in first, path.name
        assert re.search(r"runs in (about|a few) ", first), path.name


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_is_committed_without_outputs(path):
    book = nbformat.read(path, as_version=4)
    assert not any(cell.outputs for cell in book.cells if cell.cell_type == "code")
