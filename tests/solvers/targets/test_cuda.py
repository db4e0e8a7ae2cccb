"""Kernels and fits on a CUDA device, or in numba's simulator, agree with the CPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import moestat
from moestat.kernels.cuda.mixture import units_of
from moestat.solvers.problem import Problem, Rows
from moestat.solvers.targets import CudaTarget, missing, plan_memory
from moestat.sweep import SweepError, open_store
from moestat.sweep.cli import app
from moestat.sweep.run.executors import EXECUTORS
from tests.solvers.targets import comparison

ROOT = Path(__file__).parents[3]
TOLERANCE = 1e-12
KINDS = comparison.NAMES[: comparison.NAMES.index("given responsibilities")]
# A kind takes some seconds in the simulator, fits a quarter or half of a minute; `pytest -m slow`
# has all of them.
LONG = ["fits of a density", "fits of a regression function"]
SIMULATED = KINDS[:1] + [name for name in comparison.NAMES[len(KINDS) :] if name not in LONG]


def run_simulated(*arguments):
    """What Python prints in a process with numba's simulator."""
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [sys.executable, *arguments],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def simulated(*arguments):
    """Results of the comparisons, by name."""
    printed = run_simulated("-m", "tests.solvers.targets.comparison", *arguments)
    lines = map(json.loads, printed.splitlines())
    return {line["name"]: line["result"] for line in lines}


@pytest.fixture(scope="module")
def simulator():
    """One process for all comparisons: starting one takes longer than most of them."""
    return simulated(*SIMULATED)


def check(name, result):
    """What must hold, in the simulator and on a device."""
    if name in KINDS or name == "given responsibilities":
        assert result <= TOLERANCE
    elif name == "orders":
        values, scores, hessians, informations = zip(*result["lengths"], strict=True)
        assert (values, scores) == ((1, 1, 1, 1), (0, 1, 1, 1))
        assert (hessians, informations) == ((0, 0, 1, 1), (0, 0, 0, 1))
        assert result["difference"] <= TOLERANCE
    elif name == "sweep":
        assert result["cells"] == 2
        assert result["statuses"] == ["done", "failed"]
        assert len(result["devices"]) == 1
        assert "problems in 1 group, " in result["memory"]
        assert result["same data"]
        assert result["difference"] <= 1e-8
    elif name == "batching":
        assert result["groups"] == [1, 1, 1]
        assert result["summary"].startswith("3 problems in 3 groups of 1 at most, ")
        assert result["split"]
        assert result["alone"]
    else:
        assert result["difference"] <= 1e-9
        assert all(one == other for one, other in result["certified"])
        # Solvers that take their own time end certified.
        assert name != "fits of a density" or [True, True] in result["certified"]


@pytest.mark.thorough
@pytest.mark.parametrize("name", SIMULATED)
def test_simulator(name, simulator):
    check(name, simulator[name])


def test_the_information_leaves_the_derivatives_as_they_are():
    result = simulated("orders")["orders"]
    check("orders", result)
    assert result["same"]


def test_units_of_an_order_come_before_those_of_the_next():
    sizes = 3, np.array([1, 3, 3, 1]), 2
    scores, curvature, information = (units_of(*sizes, order) for order in (1, 2, 3))
    assert units_of(*sizes, 0).tolist() == scores.tolist()
    assert curvature[: len(scores)].tolist() == scores.tolist()
    assert information[: len(curvature)].tolist() == curvature.tolist()
    # The information has the curvature's pairs, raised by the number of channels.
    rest = information[len(curvature) :] - [0, 12, 0]
    assert rest.tolist() == curvature[len(scores) :].tolist()


@pytest.mark.slow
def test_simulator_of_every_kind():
    for name, result in simulated(*KINDS, *LONG).items():
        check(name, result)


@pytest.mark.slow
def test_simulator_with_more_atoms_inputs_and_classes():
    found = simulated("--large")
    assert {name: value for name, value in found.items() if not value <= TOLERANCE} == {}
    assert len(found) == len(KINDS) - 1


needs_device = pytest.mark.skipif(
    bool(missing()) or os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in ("", "0"),
    reason=f"no CUDA device: {missing() or 'numba runs its simulator'}",
)


@pytest.mark.cuda
@needs_device
@pytest.mark.parametrize("name", comparison.NAMES)
def test_device(name):
    check(name, comparison.comparisons()[name]())


@pytest.mark.cuda
@needs_device
@pytest.mark.parametrize("name", KINDS[:-1])
def test_device_with_more_atoms_inputs_and_samples(name):
    assert comparison.comparisons(4, 3, 4, (5000, 1234))[name]() <= TOLERANCE


@pytest.mark.cuda
@needs_device
@pytest.mark.parametrize("name", ["multinomial", "regression"])
def test_fits_of_many_samples_on_a_device(name):
    result = comparison.fits(name, n=20_000, replicates=8, count=3, most=200)
    assert result["difference"] <= 2e-4  # two certified maxima are this close
    assert any(one for one, _ in result["certified"])


@pytest.mark.skipif(not missing(), reason="there is a device")
def test_without_a_device_the_target_says_why():
    with pytest.raises(RuntimeError, match=r"^no CUDA device: ."):
        CudaTarget()


@pytest.mark.skipif(not missing(), reason="there is a device")
def test_without_a_device_the_executor_refuses_and_the_command_falls_back(tmp_path):
    with pytest.raises(SweepError, match=r"^no CUDA device: .*; the executor 'process' runs on"):
        list(EXECUTORS["cuda"].run(abs, [1], 1))
    spec = tmp_path / "small.toml"
    spec.write_text(comparison.SPEC)
    options = ["--out", str(tmp_path / "small.sqlite"), "--limit-cells", "1", "--workers", "1"]
    run = CliRunner().invoke(app, ["run", str(spec), "--executor", "cuda", *options])
    assert run.exit_code == 0, run.output
    assert f"--executor cuda: no CUDA device: {missing()}; " in run.stderr
    assert "running on the processor's cores instead, with --executor process" in run.stderr
    with open_store(tmp_path / "small.sqlite") as store:
        assert ["device" in record.machine for record in store.records()] == [False]


@pytest.mark.parametrize(
    ("options", "message"),
    [({"memory": 0}, "memory must be a positive number"), ({"share": 1.5}, "share must lie in")],
)
def test_the_memory_is_checked(options, message, monkeypatch):
    monkeypatch.setattr("moestat.solvers.targets.cuda.missing", lambda: "")
    with pytest.raises(ValueError, match=message):
        CudaTarget(**options)


def test_memory_is_planned_in_groups_that_fit():
    family = moestat.family("gaussian", gate="softmax", n_experts=3)
    one, other = (Rows(np.zeros((1, n)), np.zeros(n), np.ones(n)) for n in (100, 50))
    problems = [Problem(family, one)] * 3 + [Problem(family, other)] * 2
    data, tau = 8 * 3 * 100, 8 * 3 * 100
    # Data are held once, responsibilities once a problem.
    plan = plan_memory(problems, 10 + data + 2 * tau, workspace=10)
    assert plan.groups == (range(0, 2), range(2, 4), range(4, 5))
    assert plan.largest == plan.budget
    whole = plan_memory(problems, 10**6, workspace=10)
    assert whole.groups == (range(0, 5),)
    assert whole.largest == 10 + data + 3 * tau + data // 2 + tau
    with pytest.raises(ValueError, match=r"problem 0 with 100 samples needs .* GB"):
        plan_memory(problems, data, workspace=10)


def test_a_family_that_is_too_large_for_a_tile_is_refused():
    tiles = "from moestat.kernels.cuda.launch import tile_for as t\n"
    assert run_simulated("-c", tiles + "print([t(47), t(48), t(600)])") == "[128, 64, 8]\n"
    attempt = tiles + "try:\n t(700)\nexcept ValueError as error:\n print(error)"
    refusal = "keeps 700 numbers per sample in shared memory, at most 682 fit"
    assert refusal in run_simulated("-c", attempt)


def ptx_report(*arguments):
    """Rows of benchmarks/ptx.py; skips without the tools that it needs."""
    run = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "ptx.py"), "--json", *arguments],
        env={**os.environ, "NUMBA_ENABLE_CUDASIM": "0", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    if run.returncode == 3:
        pytest.skip(run.stderr.strip())
    assert run.returncode in (0, 1), run.stderr
    return [json.loads(line) for line in run.stdout.splitlines()]


def check_no_local_memory(rows):
    assert {row["arch"] for row in rows} == {80, 90}
    local = ("stack", "spill_stores", "spill_loads")
    assert [row for row in rows if any(row[name] for name in local)] == []


@pytest.mark.parametrize("only", ["multinomial, sigmoid, linear", "Gram matrix"])
def test_kernels_use_no_local_memory(only):
    check_no_local_memory(ptx_report("--only", only))


@pytest.mark.slow
def test_no_kernel_uses_local_memory():
    rows = ptx_report()
    check_no_local_memory(rows)
    assert len(rows) > 2 * len(moestat.model.gates.GATES)


def test_the_report_says_which_tool_is_missing():
    run = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "ptx.py")],
        env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 3
    assert "numba-cuda is not installed, or numba runs its simulator" in run.stderr


@pytest.mark.parametrize("simulated", ["0", "1"])
def test_the_benchmark_measures_nothing_without_a_device(simulated):
    if simulated == "0" and not missing():
        pytest.skip("there is a device")
    run = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "cuda.py")],
        env={**os.environ, "NUMBA_ENABLE_CUDASIM": simulated, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 3, run.stderr
    assert "no CUDA device: " in run.stderr
    assert run.stderr.endswith("; nothing was measured\n")
