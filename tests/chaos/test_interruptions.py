"""Real runs, killed and interrupted: nothing is lost, nothing is left, no number changes."""

import math
import os
import platform
import signal
from pathlib import Path

import pytest

from moestat.sweep import create_store, load_spec, open_cells, open_store, run_cells
from moestat.sweep.run.status import status_of
from moestat.sweep.store.lock import holder_of
from moestat.sweep.store.verification import verify
from tests.chaos.processes import alive, children, count, start_run, wait_until
from tests.sweep.cells import stored_numbers

pytestmark = pytest.mark.skipif(not Path("/proc").is_dir(), reason="reads /proc")


CELLS = 80


@pytest.fixture
def longer_spec(tmp_path, text):
    path = tmp_path / "longer.toml"
    path.write_text(text.replace("[200, 400]", "[3000, 6000]").replace("= 3\n", "= 20\n", 1))
    assert load_spec(path).n_cells == CELLS
    return path


@pytest.fixture
def start(longer_spec):
    started = []

    def run(out, *options):
        started.append(start_run(longer_spec, out, *options))
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.communicate()


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
    assert 10 <= kept < CELLS

    resumed = start(killed)
    _, errors = resumed.communicate(timeout=120)
    assert resumed.returncode == 0, errors
    assert f"{CELLS - kept} of {CELLS} cells to run" in errors

    spec = load_spec(longer_spec)
    with create_store(undisturbed, spec) as store:
        cells = open_cells(spec, store)
        list(run_cells(spec, store, cells, executor="serial"))
        expected = stored_numbers(store)
    with open_store(killed) as store:
        assert stored_numbers(store) == expected
    assert {value["status"] for value in expected.values()} == {"done"}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("executor", "number", "code"),
    [
        ("process", signal.SIGINT, 130),
        pytest.param("dask", signal.SIGTERM, 143, marks=pytest.mark.slow),
        pytest.param("dask", signal.SIGINT, 130, marks=pytest.mark.slow),
        pytest.param("process", signal.SIGTERM, 143, marks=pytest.mark.slow),
    ],
)
def test_ctrl_c_and_sigterm_keep_results_and_say_how_to_go_on(
    start, tmp_path, executor, number, code
):
    if executor == "dask":
        pytest.importorskip("distributed")
    out = tmp_path / "stopped.sqlite"
    process = start(out, "--executor", executor)
    wait_until(lambda: count(out) >= 3)
    workers = children(process)
    os.killpg(process.pid, number)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == code, errors
    kept = count(out)
    assert 3 <= kept < CELLS
    line = f"interrupted: {kept} of {CELLS} cells have results in {out}; run the same command again"
    assert line in errors
    assert "Traceback" not in errors
    assert "resource_tracker" not in errors
    wait_until(lambda: not any(alive(pid) for pid in workers), 10)
    assert not out.with_name(out.name + ".lock").exists()
    assert not out.with_name(out.name + "-wal").exists()


@pytest.mark.slow
def test_the_third_ctrl_c_ends_it_at_once(start, tmp_path):
    out = tmp_path / "stopped.sqlite"
    process = start(out)
    wait_until(lambda: count(out) >= 1)
    for _ in range(3):
        os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in errors


@pytest.mark.thorough
def test_a_second_runner_is_refused_and_status_tells_of_the_first(start, tmp_path):
    out = tmp_path / "busy.sqlite"
    first = start(out)

    def flying():
        return (holder_of(out) or {}).get("in_flight", {})

    def busy():
        return (holder_of(out) or {}).get("busy", 0.0)

    # Held still with results and with cells at its workers, however fast the machine is.
    wait_until(lambda: count(out) >= 1 and sum(flying().values()) >= 1 and busy() > 0.0)
    os.kill(first.pid, signal.SIGSTOP)
    second = start(out)
    _, errors = second.communicate(timeout=60)
    assert second.returncode == 2
    assert f"error: another runner (process {first.pid} on {platform.node()}) is at work" in errors
    with open_store(out) as store:
        found = status_of(store)
    assert found.runner["process"] == first.pid
    assert {curve.curve: curve.in_flight for curve in found.curves if curve.in_flight} == {
        name: number for name, number in flying().items() if number
    }
    assert 1 <= len(found.runner["cells"]) == min(sum(flying().values()), 100)
    assert found.work > 0
    assert 0 < found.left < math.inf
    os.kill(first.pid, signal.SIGCONT)
    wait_until(lambda: count(out) == CELLS, 120)


@pytest.mark.thorough
def test_a_disk_that_fills_up_stops_the_run_and_keeps_its_results(start, longer_spec, tmp_path):
    import resource

    # Far more cells than are done before the limit is set, however late that is.
    longer_spec.write_text(longer_spec.read_text().replace("= 20\n", "= 1000\n", 1))
    out = tmp_path / "full.sqlite"
    process = start(out)
    wait_until(lambda: count(out) >= 5)
    # From now on no file of this process may grow much further.
    size = out.with_name(out.name + "-wal").stat().st_size
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (size + 50_000, size + 50_000))
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2, errors
    assert f"error: cannot write to the store {out}: " in errors
    assert "Traceback" not in errors
    assert count(out) >= 5
    with open_store(out) as store:
        assert verify(store) == []
