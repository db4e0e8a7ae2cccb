"""Compiled kernels are kept where an edit of what they inline is never missed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import moestat
from moestat.compiler.cache import kernel_sources

PROGRAM = """
from moestat.compiler.jit import compile_loop
from moestat.model.activations import tanh

@compile_loop
def loop(s):
    return tanh(s)[0]

print(loop(0.5))
"""


def test_every_file_that_is_inlined_names_the_folder_of_the_compiled_code():
    known, root = set(kernel_sources()), Path(moestat.__file__).parent
    inlined = [p for p in root.rglob("*.py") if "\n@device" in p.read_text()]
    assert len(inlined) > 30
    assert not [str(path.relative_to(root)) for path in inlined if path not in known]


def test_an_edit_is_seen_where_no_cache_can_be_written(tmp_path):
    # numba would put the code beside the sources, and look only at the outermost function's file.
    package, scratch, script = tmp_path / "moestat", tmp_path / "scratch", tmp_path / "program.py"
    source = Path(moestat.__file__).parent
    shutil.copytree(source, package, ignore=shutil.ignore_patterns("__pycache__"))
    scratch.mkdir()
    script.write_text(PROGRAM)
    environment = {
        **os.environ,
        "MOESTAT_CACHE_DIR": str(script / "not a folder"),
        "PYTHONPATH": str(tmp_path),
        "TMPDIR": str(scratch),
    }

    def value():
        command = [sys.executable, str(script)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return float(done.stdout)

    before = value()
    edited = package / "model" / "activations.py"
    text = edited.read_text()
    assert "t = t if s >= 0.0 else -t" in text
    edited.write_text(text.replace("t = t if s >= 0.0 else -t", "t = 2.0 * t if s >= 0.0 else -t"))
    assert value() == 2.0 * before
    kept = list(tmp_path.rglob("*.nbi"))
    assert len(kept) == len({path.parents[1].name for path in kept}) == 2
    assert all(scratch in path.parents for path in kept)
