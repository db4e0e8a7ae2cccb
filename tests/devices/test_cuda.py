"""Kernels and fits on a CUDA device, or in numba's simulator, agree with the CPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from moestat.devices import CudaTarget, device_name, missing
from tests.devices import comparison

ROOT = Path(__file__).parents[2]
TOLERANCE = 1e-12
KINDS = comparison.NAMES[: comparison.NAMES.index("given responsibilities")]


def simulated(*arguments):
    """Results of the comparisons, by name, in a process of its own."""
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [sys.executable, "-m", "tests.devices.comparison", *arguments],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    lines = map(json.loads, run.stdout.splitlines())
    return {line["name"]: line["result"] for line in lines}


@pytest.fixture(scope="module")
def simulator():
    return simulated()


def check(name, result):
    """What must hold, in the simulator and on a device."""
    if name in KINDS or name == "given responsibilities":
        assert result <= TOLERANCE
    elif name == "batching":
        assert result["groups"] == [1, 1, 1]
        assert result["summary"].startswith("3 problems in 3 groups of 1 at most, ")
        assert result["split"]
        assert result["alone"]
    else:
        assert result["difference"] <= 1e-9
        assert all(one == other for one, other in result["certified"])
        assert any(one for one, _ in result["certified"])


@pytest.mark.parametrize("name", comparison.NAMES)
def test_simulator(name, simulator):
    check(name, simulator[name])


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
    result = comparison.fits(name, n=20_000, replicates=8, count=3)
    assert result["difference"] <= 2e-4  # two certified maxima are this close
    assert any(one for one, _ in result["certified"])


@pytest.mark.skipif(not missing(), reason=f"there is a device: {device_name() if not missing() else ''}")
def test_without_a_device_the_target_says_why():
    with pytest.raises(RuntimeError, match=r"^no CUDA device: ."):
        CudaTarget()
