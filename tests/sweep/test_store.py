import os
import sqlite3

import pytest

from moestat.sweep import SweepError, create_store, open_cells, open_store, parse_spec, run_cells
from moestat.sweep.lock import exclusive
from moestat.sweep.store import SCHEMA_VERSION
from tests.sweep.cells import always_fails, exact_rate, stored_numbers


def fill(path, spec, cell_function=exact_rate, limit=None, retry_failed=False):
    with create_store(path, spec) as store:
        cells = open_cells(spec, store, retry_failed)[:limit]
        return list(run_cells(spec, store, cells, executor="serial", cell_function=cell_function))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.sqlite"


def test_records_come_back_exactly(path, spec):
    written = {record.key: record for record in fill(path, spec)}
    with open_store(path) as store:
        read = {record.key: record for record in store.records()}
        assert store.spec == spec
    assert read == written
    assert len(read) == spec.n_cells


def test_resume_runs_only_what_is_open(path, spec):
    first, second = fill(path, spec, limit=5), fill(path, spec)
    assert (len(first), len(second)) == (5, spec.n_cells - 5)
    assert not {r.key for r in first} & {r.key for r in second}
    assert fill(path, spec) == []


def test_failed_cells_run_again_only_on_request(path, spec):
    assert len(fill(path, spec, always_fails)) == spec.n_cells
    assert fill(path, spec) == []
    assert len(fill(path, spec, retry_failed=True)) == spec.n_cells
    with open_store(path) as store:
        assert set(store.statuses().values()) == {"done"}


def test_a_record_is_on_disk_before_it_is_handed_on(path, spec):
    with create_store(path, spec) as store:
        cells = open_cells(spec, store)
        records = run_cells(spec, store, cells, executor="serial", cell_function=exact_rate)
        first = next(records)
        with open_store(path) as reader:
            assert reader.statuses() == {first.key: "done"}
        records.close()


def test_an_interrupted_cell_leaves_no_trace(path, spec):
    def interrupted(text, cell):
        if cell.replicate == 1:
            raise KeyboardInterrupt
        return exact_rate(text, cell)

    with pytest.raises(KeyboardInterrupt):
        fill(path, spec, interrupted)
    with open_store(path) as store:
        before = stored_numbers(store)
    assert 0 < len(before) < spec.n_cells
    fill(path, spec)
    with open_store(path) as store:
        after = stored_numbers(store)
    assert before.items() <= after.items()
    assert len(after) == spec.n_cells


def test_another_spec_is_refused_with_the_difference(path, spec, text):
    fill(path, spec, limit=2)
    other = parse_spec(text.replace("replicates = 3", "replicates = 4"))
    with pytest.raises(SweepError, match=r"belongs to another spec") as error:
        fill(path, other)
    lines = str(error.value).splitlines()
    assert '- "replicates": 3,' in lines
    assert '+ "replicates": 4,' in lines
    with open_store(path) as store:
        assert len(store.statuses()) == 2


def test_the_same_spec_in_another_layout_is_accepted(path, spec, text):
    fill(path, spec, limit=2)
    assert len(fill(path, parse_spec("# comment\n" + text))) == spec.n_cells - 2


def test_words_may_change_when_a_sweep_has_begun(path, spec, text):
    fill(path, spec, limit=2)
    words = 'theory = -0.3\npublished = -0.2\nnote = "So it is."'
    other = parse_spec(text.replace("theory = -0.5", words).replace("A small", "Another small"))
    assert len(fill(path, other, limit=1)) == 1
    with open_store(path) as store:
        assert store.spec == other
        assert store.spec != spec
        assert len(store.statuses()) == 3


def test_another_further_loss_is_another_sweep(path, spec, text):
    fill(path, spec, limit=2)
    other = parse_spec(text.replace("theory = -0.5", 'also = ["softmax-D2r"]'))
    with pytest.raises(SweepError, match=r'"softmax-D2r"'):
        fill(path, other)


@pytest.mark.parametrize("size", [20, 100, 4096, 3 * 4096, -4096, -1])
def test_truncated_files_are_refused_and_left_alone(path, spec, size):
    fill(path, spec)
    whole = path.read_bytes()
    broken = whole[:size]
    assert 0 < len(broken) < len(whole)
    path.write_bytes(broken)
    for attempt in (lambda: fill(path, spec), lambda: read_all(path)):
        with pytest.raises(SweepError, match=r"is damaged or truncated"):
            attempt()
        assert path.read_bytes() == broken


def read_all(path):
    with open_store(path) as store:
        return list(store.records())


def test_other_files_are_refused_and_left_alone(path, spec):
    path.write_text("my thesis, the only copy")
    for attempt in (lambda: fill(path, spec), lambda: read_all(path)):
        with pytest.raises(SweepError, match=r"it is no SQLite file"):
            attempt()
    assert path.read_text() == "my thesis, the only copy"


def test_other_databases_are_refused_and_left_alone(path, spec):
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE thesis (chapter TEXT)")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    for attempt in (lambda: fill(path, spec), lambda: read_all(path)):
        with pytest.raises(SweepError, match=r"not a store of moestat.sweep"):
            attempt()
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (SCHEMA_VERSION + 1, r"written by a newer moestat \(schema 3; this one reads 2\): update"),
        (1, r"an older moestat \(schema 1; this one reads 2\), .*: run into another file"),
    ],
)
def test_another_schema_is_refused_and_left_alone(path, spec, schema, message):
    fill(path, spec)
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {schema}")
    connection.close()
    before = path.read_bytes()
    for attempt in (lambda: fill(path, spec), lambda: read_all(path)):
        with pytest.raises(SweepError, match=message):
            attempt()
    assert path.read_bytes() == before


def test_nothing_to_read(path, tmp_path):
    with pytest.raises(SweepError, match=r"there is no store"):
        read_all(path)
    path.touch()
    with pytest.raises(SweepError, match=r"is empty: its sweep has not started"):
        read_all(path)
    with pytest.raises(SweepError, match=r"there is no store"):
        read_all(tmp_path)


def test_an_empty_file_becomes_a_store(path, spec):
    path.touch()
    assert len(fill(path, spec, limit=1)) == 1


def test_a_missing_directory_is_named(tmp_path, spec):
    with pytest.raises(SweepError, match=r"there is no directory .*nowhere"):
        fill(tmp_path / "nowhere" / "a.sqlite", spec)


def test_a_second_runner_is_refused_and_told_who_holds_the_store(path):
    held = rf"another runner \(process {os.getpid()}\) is at work"
    with exclusive(path):
        with pytest.raises(SweepError, match=held), exclusive(path):
            pass
        with pytest.raises(SweepError, match=held), exclusive(path):
            pass
    with exclusive(path):
        pass
    assert list(path.parent.iterdir()) == []


def test_a_lock_left_behind_is_taken_over(path):
    lock = path.with_name(path.name + ".lock")
    lock.write_text("999999999\n")
    with exclusive(path):
        assert lock.read_text() == f"{os.getpid()}\n"
    assert not lock.exists()


def test_a_store_that_cannot_be_written_is_named(path, spec):
    (record,) = fill(path, spec, limit=1)
    with create_store(path, spec) as store:
        store._connection.execute("PRAGMA query_only = ON")
        with pytest.raises(SweepError, match=r"cannot write to the store .*a.sqlite: .*readonly"):
            store.put(record)
