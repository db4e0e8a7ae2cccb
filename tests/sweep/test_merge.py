import dataclasses

import pytest

from moestat.sweep import SweepError, create_store, open_cells, open_store, parse_spec, run_cells
from moestat.sweep.store.merging import merge
from moestat.sweep.store.verification import verify
from tests.sweep.cells import always_fails, exact_rate, stored_numbers


@pytest.fixture
def make(tmp_path, spec):
    """A store of every second cell, from the first or the second on."""

    def fill(name, cells=slice(None), cell_function=exact_rate, of=spec):
        path = tmp_path / f"{name}.sqlite"
        with create_store(path, of) as store:
            chosen = open_cells(of, store)[cells]
            list(run_cells(of, store, chosen, executor="serial", cell_function=cell_function))
        return path

    return fill


def numbers(path):
    with open_store(path) as store:
        assert verify(store) == []
        return stored_numbers(store)


def elsewhere(text, cell):
    """The same numbers from another machine, in another time."""
    record = exact_rate(text, cell)
    return dataclasses.replace(record, seconds=9.0, machine={"host": "b"}, versions={"numpy": "0"})


def other_numbers(text, cell):
    record = exact_rate(text, cell)
    return dataclasses.replace(record, loss=record.loss * (1 + 1e-15))


def test_shares_of_a_sweep_make_the_whole(make, tmp_path):
    one, two = make("one", slice(0, None, 2)), make("two", slice(1, None, 2), elsewhere)
    assert merge(tmp_path / "all.sqlite", [one, two]) == 12
    assert numbers(tmp_path / "all.sqlite") == numbers(make("undisturbed"))
    assert merge(tmp_path / "all.sqlite", [one, two]) == 0


def test_a_store_can_take_in_others_and_overlap_with_them(make):
    one, two = make("one", slice(0, 8)), make("two", slice(4, None), elsewhere)
    assert merge(one, [two]) == 4
    assert numbers(one) == numbers(make("undisturbed"))


def test_estimates_come_before_failures_from_either_side(make, tmp_path):
    failed, done = make("failed", cell_function=always_fails), make("done", slice(0, 5))
    for order in ([failed, done], [done, failed]):
        out = tmp_path / f"{order[0].stem}-first.sqlite"
        assert merge(out, order) == 12
        statuses = [value["status"] for value in numbers(out).values()]
        assert (statuses.count("done"), statuses.count("failed")) == (5, 7)


def test_contradictions_are_shown_and_nothing_is_written(make, tmp_path):
    one, two = make("one"), make("two", slice(0, 6), other_numbers)
    out = tmp_path / "all.sqlite"
    with pytest.raises(SweepError, match=r"contradict each other; nothing was written") as error:
        merge(out, [one, two])
    lines = str(error.value).splitlines()
    assert lines[1].startswith("em | n=400 | replicate=0: loss differ between ")
    assert lines[-1] == "and 1 more"
    assert not out.exists()
    before = numbers(one)
    with pytest.raises(SweepError, match=r"contradict"):
        merge(one, [two])
    assert numbers(one) == before


def test_stores_of_different_specs_are_refused(make, text, tmp_path):
    other = make("other", of=parse_spec(text.replace("seed = 7", "seed = 8")))
    with pytest.raises(SweepError, match=r"belong to different specs"):
        merge(tmp_path / "all.sqlite", [make("one"), other])
    assert not (tmp_path / "all.sqlite").exists()


def test_stores_that_are_not_there_are_named(make, tmp_path):
    with pytest.raises(SweepError, match=r"there is no store .*nowhere"):
        merge(tmp_path / "all.sqlite", [make("one"), tmp_path / "nowhere"])
