"""Every notebook runs from a fresh kernel, and is committed without outputs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A folder with the store of a small quickstart, which a notebook finds in place of its own."""
    path = tmp_path_factory.mktemp("notebooks")
    text = (ROOT / "experiments" / "quickstart.toml").read_text()
    (path / "small.toml").write_text(text.replace("replicates = 10", "replicates = 2"))
    command = [sys.executable, "-m", "moestat.sweep", "run", "small.toml"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(
        [*command, "--out", "quickstart.sqlite", "--workers", "1"],
        cwd=path,
        env=environment,
        check=True,
        capture_output=True,
    )
    return path


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_runs_from_a_fresh_kernel(path, folder, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    book = nbformat.read(path, as_version=4)
    if any("import torch" in cell.source for cell in book.cells):
        pytest.importorskip("torch")
    NotebookClient(book, timeout=300, resources={"metadata": {"path": folder}}).execute()
    printed = [cell for cell in book.cells if cell.cell_type == "code" and cell.outputs]
    assert printed


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_is_committed_without_outputs(path):
    book = nbformat.read(path, as_version=4)
    assert not any(cell.outputs for cell in book.cells if cell.cell_type == "code")
