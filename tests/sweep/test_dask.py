"""The dask executor: a scheduler by address, a cluster of its own, deaths, TLS, clear errors."""

import contextlib
import functools
import os
import socket
import subprocess
import sys
import threading
import time

import pytest

from moestat.sweep import SweepError, create_store, open_cells, run_cells
from moestat.sweep.run.executors import EXECUTORS, Lost, dask, dask_executor
from tests.sweep.cells import stored_numbers

distributed = pytest.importorskip("distributed")


def describe(task):
    return task, os.getpid(), os.environ.get("OPENBLAS_NUM_THREADS")


def deadly(folder, task):
    """Dies at task 3, always, and at task 1 once; notes every attempt."""
    attempt = folder / f"{task}-{time.monotonic_ns()}"
    attempt.touch()
    if task == 3 or (task == 1 and len(list(folder.glob("1-*"))) == 1):
        os._exit(1)
    return task


def cannot(task):
    raise ImportError("no module named moestat")


@pytest.fixture(scope="module")
def address():
    """A scheduler with two workers, as another program would have started it."""
    import dask as dask_itself

    options = {"processes": True, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with (
        dask_itself.config.set({"distributed.scheduler.allowed-failures": 1}),
        distributed.LocalCluster(n_workers=2, silence_logs=50, **options) as cluster,
    ):
        yield cluster.scheduler_address


def test_a_scheduler_by_address_runs_everything_elsewhere(address):
    results = list(dask_executor(address).run(describe, range(20), 1))
    assert sorted(task for task, *_ in results) == list(range(20))
    processes = {process for _, process, _ in results}
    assert os.getpid() not in processes
    assert len(processes) == 2  # the scheduler's workers, whatever our own number


def test_tasks_are_drawn_as_workers_become_free(address):
    drawn = []

    def tasks():
        for task in range(200):
            drawn.append(task)
            yield task

    results = dask_executor(address).run(describe, tasks(), 1)
    next(results)
    assert len(drawn) <= 10
    results.close()
    assert len(drawn) <= 10


@pytest.mark.slow
def test_a_deadly_task_is_given_up_and_the_others_run_again(address, tmp_path):
    results = list(dask_executor(address).run(functools.partial(deadly, tmp_path), range(6), 2))
    (lost,) = [result for result in results if isinstance(result, Lost)]
    assert lost.task == 3
    assert lost.message == "dask workers died at this cell, every time it was tried"
    assert sorted(r for r in results if not isinstance(r, Lost)) == [0, 1, 2, 4, 5]
    assert len(list(tmp_path.glob("3-*"))) > 1


@pytest.mark.thorough
def test_workers_that_cannot_run_cells_are_reported(address):
    with pytest.raises(SweepError, match=r"cannot run cells \(ImportError: no module named moe"):
        list(dask_executor(address).run(cannot, range(3), 1))


@pytest.mark.thorough
def test_a_cluster_of_its_own_gives_the_numbers_of_any_executor(tmp_path, spec):
    stores = []
    for name in ("serial", "dask"):
        with create_store(tmp_path / f"{name}.sqlite", spec) as store:
            cells = open_cells(spec, store)
            assert len(list(run_cells(spec, store, cells, executor=name, workers=2))) == 12
            stores.append(stored_numbers(store))
    assert {value["status"] for value in stores[0].values()} == {"done"}
    assert stores[0] == stores[1]


def test_tls_follows_the_configuration_of_dask(tmp_path):
    pytest.importorskip("cryptography")
    import dask as dask_itself

    certificates = distributed.Security.temporary().get_tls_config_for_role("client")
    paths = {}
    for name, text in certificates.items():
        if name in ("ca_file", "cert", "key"):
            paths[name] = tmp_path / name
            paths[name].write_text(text)
    tls = {"distributed.comm.tls.ca-file": str(paths["ca_file"])}
    for role in ("client", "worker", "scheduler"):
        for name in ("cert", "key"):
            tls[f"distributed.comm.tls.{role}.{name}"] = str(paths[name])
    with dask_itself.config.set(tls):
        cluster = distributed.LocalCluster(
            n_workers=1,
            processes=False,
            threads_per_worker=1,
            protocol="tls://",
            security=distributed.Security(require_encryption=True),
            dashboard_address="127.0.0.1:0",
            silence_logs=50,
        )
        with cluster:
            assert cluster.scheduler_address.startswith("tls://")
            results = dask_executor(cluster.scheduler_address).run(describe, range(4), 1)
            assert sorted(task for task, *_ in results) == [0, 1, 2, 3]


def test_a_scheduler_that_is_not_there(monkeypatch):
    monkeypatch.setattr(dask, "_SECONDS_TO_CONNECT", 0.2)
    with pytest.raises(SweepError, match=r"no dask scheduler answers at tcp://127.0.0.1:9"):
        list(dask_executor("tcp://127.0.0.1:9").run(describe, range(3), 1))
    with pytest.raises(SweepError, match=r"no dask scheduler answers at nowhere at all"):
        list(dask_executor("nowhere at all").run(describe, range(3), 1))


@pytest.mark.parametrize("answer", ["nothing", "noise", "the end"])
def test_garbage_in_place_of_a_scheduler_is_told_within_the_limit(monkeypatch, answer):
    monkeypatch.setattr(dask, "_SECONDS_TO_CONNECT", 0.5)
    held = []

    def serve(listening):
        with contextlib.suppress(OSError):
            while True:
                held.append(listening.accept()[0])
                if answer == "noise":
                    held[-1].sendall(b"HTTP/1.1 400 Bad Request\r\n" * 50)
                elif answer == "the end":
                    held[-1].close()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=serve, args=(listening,), daemon=True).start()
        address = f"tcp://127.0.0.1:{listening.getsockname()[1]}"
        began = time.monotonic()
        with pytest.raises(SweepError, match=f"no dask scheduler answers at {address}: ") as raised:
            list(dask_executor(address).run(describe, range(3), 1))
        assert time.monotonic() - began < 5.0
        assert "\n" not in str(raised.value)
    for connection in held:
        connection.close()


@pytest.mark.parametrize("text", ["", "{}", "[]", "garbage", '{"address": 3}'])
def test_a_scheduler_file_without_an_address(tmp_path, text):
    path = tmp_path / "scheduler.json"
    path.write_text(text)
    with pytest.raises(
        SweepError, match=r"is not a file of a dask scheduler|no dask scheduler ans"
    ):
        list(dask_executor(str(path)).run(describe, range(3), 1))


def test_without_dask_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(SweepError, match=r"pip install 'moestat\[dask\]'"):
        list(EXECUTORS["dask"].run(describe, range(3), 1))


@pytest.mark.thorough
def test_the_other_executors_need_no_dask():
    code = (
        "import sys; sys.modules['distributed'] = None; sys.modules['dask'] = None;"
        "from moestat.sweep.run.executors import EXECUTORS;"
        "print(*EXECUTORS['serial'].run(abs, [-1], 1))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "1\n"
