"""The page on extending: its files, registered as it says, pass the contract tests."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "extending.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
# The members by the modules that the page shows, and its registrations.
FILES = {
    Path(block.splitlines()[0].removeprefix("# ")).stem: block
    for block in BLOCKS
    if block.startswith("# moestat/") and "/__init__.py" not in block
}
LINES = [block.splitlines()[1] for block in BLOCKS if "/__init__.py" in block]
SNIPPETS = [block for block in BLOCKS if not block.startswith("# ")]
(SCRIPT,) = [block for block in BLOCKS if block.startswith("# mysweep.py")]
(KIND,) = [block for block in BLOCKS if block.startswith("# middles.py")]
(KIND_SPEC,) = re.findall(r"```toml\n(# middles.toml\n.*?)```", PAGE, flags=re.DOTALL)


GROUPS = {
    "hyperbolic": "gates",
    "rayleigh": "likelihoods",
    "generalised_poisson": "likelihoods",
    "saturating": "experts",
    "mlmoe_quartic": "losses",
}


def installed(folder, offered):
    """An environment in which Python finds a package that offers members by entry points."""
    facts = folder / "yours-0.1.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: yours\nVersion: 0.1\n")
    lines = [f"[moestat.{group}]\n{name} = {member}\n" for group, name, member in offered]
    (facts / "entry_points.txt").write_text("\n".join(lines))
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}


@pytest.fixture(scope="module")
def extended(tmp_path_factory):
    """An environment in which the page's members are those of an installed package."""
    tmp_path = tmp_path_factory.mktemp("extended")
    for name, block in FILES.items():
        (tmp_path / f"{name}.py").write_text(block)
    members = {line.split("register(")[1].partition(".")[0]: line for line in LINES}
    return installed(
        tmp_path,
        [
            (GROUPS[name], name, f"{name}:{line.rstrip(')').rpartition('.')[2]}")
            for name, line in members.items()
        ],
    )


def run(environment, *arguments, folder=ROOT):
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_the_page_has_a_member_of_each_axis():
    assert list(FILES) == list(GROUPS)
    assert LINES == [
        "GATES.register(hyperbolic.GATE)",
        "LIKELIHOODS.register(rayleigh.LIKELIHOOD)",
        "LIKELIHOODS.register(generalised_poisson.LIKELIHOOD)",
        "EXPERTS.register(saturating.EXPERT)",
        "LOSSES.register(mlmoe_quartic.LOSS)",
    ]


def test_snippets_run_without_a_warning(extended):
    out = run(extended, "-W", "error", "-c", "\n".join(SNIPPETS))
    assert out.split() == ["True", "True", "(1,", "2)", "True", "True", "4", "1.0", "400.0", "[1.]"]


SPEC = """
title = "A gate and a loss of one's own"
seed = 7
replicates = 2
n = [200, 400]

[truth.t]
gate = "hyperbolic"
alpha = [-3.0, 3.0]
beta = [-0.5, 0.5]
a = [[1.0, 0.0], [1.0, 0.0]]
b = [[-3.0, 0.0], [2.5, 0.0]]

[[curve]]
name = "own"
truth = "t"
n_experts = 2
loss = "D1-quartic"
panel = "a"
starts = { truth = 1, noise = 0.1 }
"""


@pytest.mark.thorough
def test_members_of_a_package_work_on_the_command_line(extended, tmp_path):
    path, store = tmp_path / "own.toml", tmp_path / "own.sqlite"
    path.write_text(SPEC)
    command = ["-m", "moestat.sweep", "run", str(path), "--out", str(store), "--workers", "2"]
    told = json.loads(run(extended, *command, "--json"))
    assert told["failed"] == 0
    assert [curve["done"] for curve in told["curves"]] == [4]


@pytest.mark.thorough
def test_a_gate_that_is_not_registered(extended):
    """It is fitted as it is; what needs its name says so."""
    program = """
from dataclasses import replace
import pickle, moestat, hyperbolic
own = moestat.family("gaussian", gate=replace(hyperbolic.GATE, name="own"))
X, y = moestat.sample(own, own.typical(rng=0), 500, rng=1)
print(moestat.fit(own, X, y, rng=2).log_likelihood < 0.0)
try:
    pickle.dumps(own)
except ValueError as error:
    print(error)
"""
    out = run(extended, "-c", program)
    assert out.startswith("True\nunknown gate 'own'")


def test_a_broken_plugin_is_left_out(tmp_path):
    (tmp_path / "broken.py").write_text("import no_such_module")
    environment = installed(tmp_path, [("gates", "broken", "broken:GATE")])
    program = """
import warnings, moestat
from moestat.model.gates import GATES
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    print(len(list(GATES)), "softmax" in GATES, "broken" in GATES)
print([str(w.message) for w in caught])
"""
    n_gates, rest = run(environment, "-c", program).split(" ", 1)
    assert int(n_gates) >= 10
    assert rest.startswith("True False")
    assert rest.count("the plug-in broken = broken:GATE is left out: ModuleNotFoundError") == 1


@pytest.mark.slow  # a kind of sweep of one's own is a script, too
def test_a_script_of_ones_own_runs_sweeps_and_reads_their_stores(tmp_path):
    (tmp_path / "hyperbolic.py").write_text(FILES["hyperbolic"])
    (tmp_path / "mysweep.py").write_text(SCRIPT)
    (tmp_path / "spec.toml").write_text(SPEC.replace("D1-quartic", "D1"))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for arguments in (["run", "spec.toml"], ["status", "spec.sqlite"], ["rates", "spec.sqlite"]):
        assert "own" in run(environment, "mysweep.py", *arguments, folder=tmp_path)


# Further commands, in one process.
PROGRAM = """
import json, middles
from moestat.sweep.cli import app
from typer.testing import CliRunner

def of(*arguments, code=0):
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == code, done.output
    return done

of("run", "middles.toml", "--executor", "serial", "--out", "again.sqlite")
shown = [of("rates", name).stdout for name in ("middles.sqlite", "again.sqlite")]
of("report", "middles.sqlite")
wrong = " ".join(of("run", "wrong.toml", code=2).stderr.split())
print(json.dumps([*shown, wrong]))
"""


@pytest.mark.thorough
def test_a_kind_of_sweep_of_ones_own(tmp_path):
    """Run, shown, written, whatever the workers are; a wrong value is refused by its name."""
    (tmp_path / "middles.py").write_text(KIND)
    (tmp_path / "middles.toml").write_text(KIND_SPEC.replace("replicates = 50", "replicates = 3"))
    (tmp_path / "wrong.toml").write_text(KIND_SPEC.replace('"median"\n', '"middle"\n'))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}

    def of(*arguments):
        return run(environment, "middles.py", *arguments, folder=tmp_path)

    told = json.loads(of("run", "middles.toml", "--workers", "2", "--json"))
    assert [(each["done"], each["failed"]) for each in told["curves"]] == [(9, 0), (9, 0)]
    shown, again, wrong = json.loads(run(environment, "-c", PROGRAM, folder=tmp_path))
    assert "squared error" in shown
    assert shown == again
    assert "| 10 | 3 |" in (tmp_path / "middles.md").read_text()
    assert "estimate must be one of 'mean', 'median', got 'middle'" in wrong


CONTRACTS = ["tests/test_contracts.py", "tests/kernels/test_derivatives.py"]


@pytest.mark.thorough
def test_contract_tests_take_the_members(extended):
    """Declaration, density, score, packing and every check of a loss."""
    chosen = "gate_declares or oracle or inverse or typical or sampler or quartic"
    out = run(
        extended,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-m",
        "not slow",
        *CONTRACTS,
        "tests/metrics/losses/test_every_loss.py",
        "-k",
        f"(hyperbolic or rayleigh or generalised or saturating or quartic) and ({chosen})",
    )
    assert int(re.findall(r"(\d+) passed", out)[0]) >= 40


@pytest.mark.slow
def test_all_contract_tests_take_the_members(extended):
    """The same with Hessians, symmetries and fits by every solver."""
    chosen = ["-k", "hyperbolic or rayleigh or generalised or saturating"]
    run(extended, "-m", "pytest", "-q", "-m", "not slow", *chosen, *CONTRACTS)
