"""Real runs, killed and interrupted: nothing is lost, nothing is left, no number changes."""

import contextlib
import os
import platform
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from moestat.sweep import SweepError, create_store, load_spec, open_cells, open_store, run_cells
from tests.sweep.cells import stored_numbers

pytestmark = pytest.mark.skipif(not Path("/proc").is_dir(), reason="reads /proc")


@pytest.fixture
def longer_spec(tmp_path, text):
    path = tmp_path / "longer.toml"
    path.write_text(text.replace("[200, 400]", "[3000, 6000]").replace("= 3\n", "= 40\n", 1))
    assert load_spec(path).n_cells == 160
    return path


@pytest.fixture
def start(longer_spec, tmp_path):
    """Start the command line in its own process group, as a shell does."""
    started = []

    def run(out):
        command = [sys.executable, "-W", "error", "-m", "moestat.sweep", "run", longer_spec]
        process = subprocess.Popen(
            [*command, "--out", out, "--workers", "2"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


def wait_until(condition, seconds=60.0):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("timed out")


def count(path):
    with contextlib.suppress(SweepError), open_store(path) as store:
        return len(store.statuses())
    return 0


def children(process):
    """Process ids of the children of `process`."""
    return {
        int(child)
        for task in Path(f"/proc/{process.pid}/task").iterdir()
        for child in (task / "children").read_text().split()
    }


def alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def test_kill_9_and_again_gives_the_numbers_of_an_undisturbed_run(start, longer_spec, tmp_path):
    killed, undisturbed = tmp_path / "killed.sqlite", tmp_path / "undisturbed.sqlite"
    process = start(killed)
    wait_until(lambda: count(killed) >= 10)
    workers = children(process)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait(10) == -signal.SIGKILL
    assert len(workers) >= 2
    wait_until(lambda: not any(alive(pid) for pid in workers), 10)
    kept = count(killed)
    assert 10 <= kept < 160

    resumed = start(killed)
    _, errors = resumed.communicate(timeout=120)
    assert resumed.returncode == 0, errors
    assert f"{160 - kept} of 160 cells to run" in errors

    spec = load_spec(longer_spec)
    with create_store(undisturbed, spec) as store:
        cells = open_cells(spec, store)
        list(run_cells(spec, store, cells, executor="serial"))
        expected = stored_numbers(store)
    with open_store(killed) as store:
        assert stored_numbers(store) == expected
    assert {value["status"] for value in expected.values()} == {"done"}


def test_ctrl_c_keeps_results_and_says_how_to_go_on(start, tmp_path):
    out = tmp_path / "stopped.sqlite"
    process = start(out)
    wait_until(lambda: count(out) >= 3)
    workers = children(process)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130, errors
    kept = count(out)
    assert 3 <= kept < 160
    line = f"interrupted: {kept} of 160 cells have results in {out}; run the same command again"
    assert line in errors
    assert "Traceback" not in errors
    wait_until(lambda: not any(alive(pid) for pid in workers), 10)
    assert not out.with_name(out.name + ".lock").exists()


def test_a_second_runner_is_refused_while_the_first_works(start, tmp_path):
    out = tmp_path / "busy.sqlite"
    first = start(out)
    wait_until(lambda: count(out) >= 1)
    second = start(out)
    _, errors = second.communicate(timeout=30)
    assert second.returncode == 2
    assert f"error: another runner (process {first.pid} on {platform.node()}) is at work" in errors
    assert first.poll() is None
