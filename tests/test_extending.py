"""The page on extending: its files, registered as it says, pass the contract tests."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCKS = re.findall(
    r"```python\n(.*?)```", (ROOT / "docs" / "extending.md").read_text(), flags=re.DOTALL
)
# The members by the modules that the page shows, and its registrations.
FILES = {
    Path(block.splitlines()[0].removeprefix("# ")).stem: block
    for block in BLOCKS
    if block.startswith("# moestat/") and "/__init__.py" not in block
}
LINES = [block.splitlines()[1] for block in BLOCKS if "/__init__.py" in block]
SNIPPETS = [block for block in BLOCKS if not block.startswith("# ")]
(SCRIPT,) = [block for block in BLOCKS if block.startswith("# mysweep.py")]


@pytest.fixture
def extended(tmp_path):
    """An environment in which Python has the page's members registered."""
    for name, block in FILES.items():
        (tmp_path / f"{name}.py").write_text(block)
    (tmp_path / "page.py").write_text(
        "from moestat.metrics.losses import LOSSES\n"
        "from moestat.model.gates import GATES\n"
        f"import {', '.join(FILES)}\n" + "\n".join(LINES) + "\n"
    )
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}


def run(environment, *arguments):
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_the_page_has_a_gate_and_a_loss():
    assert list(FILES) == ["hyperbolic", "mlmoe_quartic"]
    assert LINES == ["GATES.register(hyperbolic.GATE)", "LOSSES.register(mlmoe_quartic.LOSS)"]


def test_snippets_run(extended):
    out = run(extended, "-c", "import page\n" + "\n".join(SNIPPETS))
    assert out.split() == ["True", "True", "True"]


SPEC = """
title = "Hyperbolic"
seed = 1
replicates = 1
n = [400]
[truth.t]
gate = "hyperbolic"
n_classes = 2
gamma = [0.3, 0.0]
alpha = [0.9, -1.3]
beta = [0.8, 1.4]
a = [[-1.5, 0.0], [1.4, 0.0]]
b = [[-1.0, 0.0], [0.7, 0.0]]
[[curve]]
name = "k = 2"
truth = "t"
n_experts = 2
loss = "D1"
"""


def test_a_script_of_ones_own_runs_sweeps_and_reads_their_stores(tmp_path):
    (tmp_path / "hyperbolic.py").write_text(FILES["hyperbolic"])
    (tmp_path / "mysweep.py").write_text(SCRIPT)
    (tmp_path / "spec.toml").write_text(SPEC)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for arguments in (["run", "spec.toml"], ["status", "spec.sqlite"], ["rates", "spec.sqlite"]):
        done = subprocess.run(
            [sys.executable, "mysweep.py", *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "k = 2" in done.stdout


CONTRACTS = ["tests/test_contracts.py", "tests/kernels/test_derivatives.py"]


def test_contract_tests_take_the_members(extended):
    """Declaration, density, score, packing and every check of a loss."""
    chosen = "gate_declares or oracle or inverse or typical or sampler or quartic"
    out = run(
        extended,
        *["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "page"],
        *(*CONTRACTS, "tests/metrics/losses/test_every_loss.py"),
        "-k",
        f"(hyperbolic or quartic) and ({chosen})",
    )
    assert int(re.findall(r"(\d+) passed", out)[0]) >= 20


@pytest.mark.slow
def test_all_contract_tests_take_the_members(extended):
    """The same with Hessians, symmetries and fits by every solver."""
    arguments = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "page", "-k", "hyperbolic"]
    run(extended, *arguments, *CONTRACTS)
