import functools
import gc
import os
import time

import pytest

from moestat.base.registry import UnknownNameError
from moestat.sweep import SweepError, create_store, open_cells, open_store, run_cells
from moestat.sweep.run.executors import EXECUTORS, Executor, Lost
from tests.sweep.cells import exact_rate, stored_numbers


def describe(task):
    """What a worker sees: the task, its process and its thread settings."""
    return task, os.getpid(), os.environ.get("OPENBLAS_NUM_THREADS")


def count_frozen(task):
    return gc.get_freeze_count()


def deadly(folder, task):
    """Dies at task 3, always, and notes every attempt."""
    (folder / f"{task}-{time.monotonic_ns()}").touch()
    if task == 3:
        os._exit(1)
    return task


def dies_once(folder, task):
    mark = folder / "died"
    if task == 2 and not mark.exists():
        mark.touch()
        os._exit(1)
    return task


def test_names():
    assert sorted(EXECUTORS) == ["cuda", "dask", "process", "serial"]
    with pytest.raises(UnknownNameError, match=r"unknown executor 'slurm'; known: 'cuda', "):
        EXECUTORS["slurm"]


def test_serial_runs_here_and_in_order():
    results = list(EXECUTORS["serial"].run(describe, range(3), 4))
    assert [task for task, *_ in results] == [0, 1, 2]
    assert {process for _, process, _ in results} == {os.getpid()}


def test_process_runs_everything_elsewhere_on_one_thread(monkeypatch):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "7")
    results = list(EXECUTORS["process"].run(describe, range(20), 2))
    assert sorted(task for task, *_ in results) == list(range(20))
    assert os.getpid() not in {process for _, process, _ in results}
    assert {threads for *_, threads in results} == {"1"}
    assert os.environ["OPENBLAS_NUM_THREADS"] == "7"


def test_the_collector_of_a_worker_passes_over_what_the_first_task_loaded():
    before = gc.get_freeze_count()
    frozen = list(EXECUTORS["process"].run(count_frozen, range(3), 1))
    assert frozen[0] < 1000 < frozen[1] == frozen[2]
    assert gc.get_freeze_count() == before  # not in the caller's process


@pytest.mark.thorough
def test_a_deadly_task_is_tried_three_times_and_blamed_alone(tmp_path):
    results = list(EXECUTORS["process"].run(functools.partial(deadly, tmp_path), range(8), 2))
    lost = [result for result in results if isinstance(result, Lost)]
    assert [result.task for result in lost] == [3]
    assert "died 3 times" in lost[0].message
    assert sorted(r for r in results if not isinstance(r, Lost)) == [0, 1, 2, 4, 5, 6, 7]
    assert len(list(tmp_path.glob("3-*"))) == 3


@pytest.mark.thorough
def test_a_worker_that_dies_once_costs_nothing(tmp_path):
    results = list(EXECUTORS["process"].run(functools.partial(dies_once, tmp_path), range(6), 2))
    assert sorted(results) == list(range(6))
    assert (tmp_path / "died").exists()


def test_workers_that_cannot_start_are_reported(monkeypatch, tmp_path):
    monkeypatch.setenv("PYTHONHOME", str(tmp_path))
    with pytest.raises(SweepError, match=r"worker processes end as they start"):
        list(EXECUTORS["process"].run(describe, range(3), 1))


def test_lost_cells_are_stored_as_failed(tmp_path, spec):
    def lose(function, tasks, workers):
        for task in tasks:
            lost = any(cell.replicate == 0 for cell in task)
            yield Lost(task, "lost") if lost else function(task)

    losing = Executor("losing", lose, task_seconds=10.0)
    with create_store(tmp_path / "a.sqlite", spec) as store:
        cells = open_cells(spec, store)
        seen = list(run_cells(spec, store, cells, executor=losing, cell_function=exact_rate))
        failed = [r for r in store.records() if r.status == "failed"]
        assert {(r.replicate, r.message) for r in failed} == {(0, "lost")}
        assert len(failed) == spec.n_cells / spec.replicates
        assert len(seen) == len(store.statuses()) == spec.n_cells


@pytest.mark.thorough
def test_numbers_do_not_depend_on_executor_workers_or_order(tmp_path, spec):
    stores = []
    for name, workers, order in (("serial", 1, 1), ("process", 1, 1), ("process", 2, -1)):
        path = tmp_path / f"{name}{workers}.sqlite"
        with create_store(path, spec) as store:
            cells = open_cells(spec, store)[::order]
            assert len(list(run_cells(spec, store, cells, executor=name, workers=workers))) == 12
        with open_store(path) as store:
            stores.append(stored_numbers(store))
    assert {value["status"] for value in stores[0].values()} == {"done"}
    assert stores[0] == stores[1] == stores[2]


def _drops(function, tasks, workers):
    yield from (function(task) for place, task in enumerate(tasks) if place % 2)


def _twice(function, tasks, workers):
    for task in tasks:
        yield from [function(task)] * 2


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (_drops, r"'own': no result of 6 cells, such as .*one result for each task"),
        (_twice, r"'own': a second result of cell .*one result for each task"),
    ],
)
def test_an_executor_has_one_result_for_each_task(tmp_path, spec, run, message):
    """A sweep without some results began again, without end."""
    own = Executor("own", run, task_seconds=0.0)
    with create_store(tmp_path / "a.sqlite", spec) as store:
        cells = open_cells(spec, store)
        with pytest.raises(ValueError, match=message):
            list(run_cells(spec, store, cells, executor=own, cell_function=exact_rate))


def test_an_executor_may_return_a_list(tmp_path, spec):
    own = Executor("own", lambda function, tasks, workers: [*map(function, tasks)], 0.0)
    with create_store(tmp_path / "a.sqlite", spec) as store:
        cells = open_cells(spec, store)
        list(run_cells(spec, store, cells, executor=own, cell_function=exact_rate))
        assert len(store.statuses()) == spec.n_cells
