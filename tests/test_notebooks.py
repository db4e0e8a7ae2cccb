"""Every notebook runs from a fresh kernel and is committed with what it shows, pictures among it.

``python -m tests.test_notebooks`` runs all of them, or those named, and writes their outputs anew.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
import pytest
from nbclient import NotebookClient

from tests.kinds import each_run
from tests.test_readme import pattern

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def executed(path: Path, folder: str | Path) -> nbformat.NotebookNode:
    """The notebook after a run from a fresh kernel in a folder, without times and warnings."""
    book = nbformat.read(path, as_version=4)
    NotebookClient(book, timeout=300, resources={"metadata": {"path": folder}}).execute()
    for cell in book.cells:
        cell.metadata = {}
        if cell.cell_type == "code":
            cell.outputs = [each for each in cell.outputs if each.get("name") != "stderr"]
    return book


def pictures(cell: nbformat.NotebookNode) -> int:
    return sum("image/png" in output.get("data", {}) for output in cell.get("outputs", ()))


def printed(cell: nbformat.NotebookNode) -> list[str]:
    texts = [output.text for output in cell.get("outputs", ()) if output.output_type == "stream"]
    return pattern("".join(texts))


# In each run: a fit and a sweep.  The others call what pages and tests call.
SHORT = {"first_fit", "from_spec_to_rate"}
RUN = each_run(
    NOTEBOOKS,
    [path for path in NOTEBOOKS if path.stem in SHORT],
    lambda path: path.stem,
    ["first_fit"],
)


@pytest.mark.parametrize("path", RUN)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_runs_from_a_fresh_kernel_and_shows_what_is_stored(path, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    stored = nbformat.read(path, as_version=4)
    if any("import torch" in cell.source for cell in stored.cells):
        pytest.importorskip("torch")
    for here, there in zip(executed(path, tmp_path).cells, stored.cells, strict=True):
        assert pictures(here) == pictures(there)
        assert printed(here) == printed(there)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_is_stored_with_pictures_and_in_order(path):
    cells = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    assert sum(map(pictures, cells)) >= 1
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    shown = [output for cell in cells for output in cell.outputs]
    assert not any(output.output_type == "error" for output in shown)
    assert not any(
        "<Figure size" in str(o.get("data", {})) and "image/png" not in o.data for o in shown
    )
    assert path.stat().st_size < 500_000


def test_each_says_first_what_one_learns_and_how_long_it_runs():
    assert len(NOTEBOOKS) == 16
    for path in NOTEBOOKS:
        first = nbformat.read(path, as_version=4).cells[0].source
        assert first.startswith("# "), path.name
        assert "What you learn: " in first, path.name
        assert re.search(r"runs in (about|a few) ", first), path.name


def main() -> None:
    """Run notebooks and write their outputs anew."""
    os.environ["PYTHONPATH"] = str(ROOT)
    for path in NOTEBOOKS:
        if not sys.argv[1:] or path.stem in sys.argv[1:]:
            with TemporaryDirectory() as folder:
                nbformat.write(executed(path, folder), path)


if __name__ == "__main__":
    main()
