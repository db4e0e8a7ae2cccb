"""Costs, batches and the time left."""

import io

import pytest
from rich.console import Console

from moestat.sweep import create_store, open_cells, plan_cells, run_cells
from moestat.sweep.run.batches import batches
from moestat.sweep.run.cost import CostModel
from moestat.sweep.run.executors import EXECUTORS, Executor
from moestat.sweep.run.progress import reporter, time_left
from moestat.sweep.run.status import status_of
from tests.sweep.cells import exact_rate


def test_costs_of_a_curve_come_before_those_of_others():
    costs = CostModel([("a", 100, 1.0), ("b", 100, 9.0), ("b", 1000, 50.0)])
    assert costs.seconds("a", 100) == 1.0
    assert costs.seconds("a", 1000) == 10.0  # its own, in proportion to n
    assert costs.seconds("b", 2000) == 100.0  # the nearest size
    assert costs.seconds("c", 100) == 5.0  # the mean over curves
    costs.add("c", 100, 2.0)
    assert costs.seconds("c", 100) == 2.0


def test_a_total_needs_a_measurement():
    assert CostModel().total({("a", 100): 3}) is None
    assert CostModel().total({}) == 0.0
    assert CostModel([("a", 100, 2.0)]).total({("a", 100): 3, ("b", 200): 1}) == 10.0


def test_batches_hold_every_cell_once_in_order(spec):
    cells = plan_cells(spec)
    for costs in (CostModel(), CostModel([("em", 200, 1e-4)])):
        drawn = list(batches(cells, costs, 1.0, workers=1))
        assert [cell for batch in drawn for cell in batch] == list(cells)


def test_batches_grow_once_costs_are_known_and_shrink_to_the_end(spec):
    cells, costs = list(plan_cells(spec)[:6]) * 40, CostModel()
    drawn = batches(cells, costs, 0.5, workers=2)
    assert [len(next(drawn)) for _ in range(3)] == [1, 1, 1]
    for cell in cells[:3]:
        costs.add(cell.curve, cell.n, 0.06)
    sizes = [len(batch) for batch in drawn]
    assert sizes[0] == 9
    assert sizes[-4:] == [1, 1, 1, 1]
    assert max(sizes) == 9


def test_long_cells_travel_alone(spec):
    drawn = batches(list(plan_cells(spec)) * 20, CostModel([("em", 200, 60.0)]), 0.5, workers=2)
    assert {len(batch) for batch in drawn} == {1}


@pytest.mark.parametrize("name", ["serial", "process"])
def test_executors_draw_tasks_only_as_workers_become_free(name):
    drawn = []

    def tasks():
        for task in range(100):
            drawn.append(task)
            yield task

    results = EXECUTORS[name].run(abs, tasks(), 2)
    next(results)
    assert len(drawn) <= 5
    results.close()


def test_time_left():
    assert time_left(100.0, busy=20.0, seconds=10.0) == 50.0  # two workers at work
    assert time_left(None, 1.0, 1.0) is None
    assert time_left(100.0, 0.0, 1.0) is None


def test_progress_knows_what_cells_have_cost(spec, monkeypatch):
    cells, now = plan_cells(spec), [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    file = io.StringIO()
    with reporter(Console(file=file, width=100), cells, CostModel()) as report:
        for cell in cells[:6]:  # those with n = 400, by two workers
            now[0] += 10.0
            record = exact_rate(spec.text, cell)
            report(type(record)(**{**vars(record), "seconds": 20.0}))
    # Six cells with n = 200 are left, half as long each: 60 s of work at two workers.
    assert file.getvalue().splitlines()[-1] == "6/12 cells, 0.1/s, 0:00:30 left"


def test_status_tells_what_is_in_flight(tmp_path, spec):
    seen = []

    def watching(function, tasks, workers):
        drawn = [next(tasks), next(tasks)]
        seen.append(status_of(store))
        yield function(drawn[0])
        seen.append(status_of(store))
        yield function(drawn[1])

    executor = Executor("watching", watching, task_seconds=0.0)
    path = tmp_path / "a.sqlite"
    with create_store(path, spec) as store:
        cells = open_cells(spec, store)
        list(run_cells(spec, store, cells, executor=executor, cell_function=exact_rate))
        before, after = seen
        assert before.runner["cells"] == [cells[0].key, cells[1].key]
        assert [curve.in_flight for curve in before.curves] == [1, 1]
        assert (before.work, before.left) == (None, None)
        assert after.runner["cells"] == [cells[1].key]
        assert [curve.open for curve in after.curves] == [5, 6]
        # Eleven cells are open; exact_rate says 0.01 s at n = 400.
        assert after.work == pytest.approx(5 * 0.01 + 6 * 0.005)
        assert after.left > 0
