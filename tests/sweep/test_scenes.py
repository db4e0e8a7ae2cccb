"""Scenes in which a store is replaced, removed, restored or reached by two names while it runs."""

import shutil
import sqlite3
from contextlib import closing

import numpy as np
import pytest

from moestat.sweep import SweepError, create_store, open_cells, open_store, run_cells
from moestat.sweep.kinds.kind import kind_of
from moestat.sweep.run.status import status_of
from moestat.sweep.spec.experiments import find_spec
from moestat.sweep.spec.read import load_spec
from moestat.sweep.store.export import export
from moestat.sweep.store.lock import holder_of
from moestat.sweep.store.record import FAILED, record_of, versions
from moestat.sweep.store.verification import verify
from tests.sweep.cells import exact_rate, stored_numbers

KINDS = {
    "fit": "quickstart",
    "network": "expert_count_figure1",
    "training": "compete_clusters",
    "inference": "coverage_order",
}


def filled(path, spec, limit=None):
    """A store with results of the first cells."""
    with create_store(path, spec) as store:
        cells = open_cells(spec, store)[:limit]
        list(run_cells(spec, store, cells, executor="serial", cell_function=exact_rate))
    return path


def interrupted(path, spec, change):
    """Run two cells, let `change` happen to the file, and try the next one."""
    with create_store(path, spec) as store:
        cells = open_cells(spec, store)
        records = [exact_rate(spec.text, cell) for cell in cells[:4]]
        store.put(records[:2])
        change()
        store.put(records[2:])


@pytest.fixture
def other(tmp_path, spec):
    """A sound store of the same spec with all of its cells."""
    return filled(tmp_path / "other.sqlite", spec)


def assert_sound(path, count):
    with open_store(path) as store:
        assert verify(store) == []
        assert store.n_sound == count


@pytest.mark.parametrize("scene", ["removed", "moved in its place", "removed, then restored"])
def test_a_file_that_goes_away_is_saved_with_all_its_results(tmp_path, spec, other, scene):
    path = tmp_path / "run.sqlite"
    with open_store(other) as store:
        whole = store.n_sound

    def change():
        if scene == "removed":
            path.unlink()
        elif scene == "moved in its place":
            shutil.copy(other, tmp_path / "copy")
            (tmp_path / "copy").rename(path)
        else:
            path.rename(tmp_path / "away")
            shutil.copy(other, path)

    with pytest.raises(SweepError, match=r"removed or replaced .* its 4 results are saved as"):
        interrupted(path, spec, change)
    assert_sound(tmp_path / "run.saved-1.sqlite", 4)
    if scene != "removed":  # nothing of the run was replayed into what stands there now
        assert_sound(path, whole)
    assert not list(tmp_path.glob("run.sqlite-*"))


@pytest.mark.parametrize("scene", ["other store", "older copy", "no store"])
def test_a_file_that_is_overwritten_is_left_alone(tmp_path, spec, other, scene):
    path = tmp_path / "run.sqlite"
    source = other
    if scene == "older copy":
        source = filled(tmp_path / "older.sqlite", spec, limit=1)
    elif scene == "no store":
        source = tmp_path / "text"
        source.write_text("nothing")

    with pytest.raises(SweepError, match=r"overwritten .* the last 2 results are saved as"):
        interrupted(path, spec, lambda: shutil.copyfile(source, path))
    assert path.read_bytes() == source.read_bytes()
    assert_sound(tmp_path / "run.saved-1.sqlite", 2)
    if scene == "other store":
        with open_store(other) as one, open_store(path) as two:
            assert stored_numbers(one) == stored_numbers(two)


def test_a_file_that_is_only_touched_goes_on(tmp_path, spec):
    path = tmp_path / "run.sqlite"
    interrupted(path, spec, path.touch)
    assert_sound(path, 4)


def test_a_log_has_nothing_to_replay_once_results_are_written(tmp_path, spec, other):
    path = tmp_path / "run.sqlite"
    with create_store(path, spec) as store:
        store.put([exact_rate(spec.text, cell) for cell in open_cells(spec, store)[:3]])
        log = path.with_name("run.sqlite-wal")
        assert not log.exists() or log.stat().st_size == 0


def test_a_symbolic_link_lets_no_second_runner_in(tmp_path, spec):
    path, link = tmp_path / "run.sqlite", tmp_path / "elsewhere" / "link.sqlite"
    link.parent.mkdir()
    with create_store(path, spec):
        link.symlink_to(path)
        assert holder_of(link) is not None
        with pytest.raises(SweepError, match="another runner"), create_store(link, spec):
            pass
    with create_store(link, spec):
        pass


def test_a_writer_waits_for_what_it_reads(tmp_path, spec):
    """Two connections, which no lock of ours kept apart, lose no count of rows."""
    path = filled(tmp_path / "run.sqlite", spec, limit=2)
    with create_store(path, spec) as store:
        cells = open_cells(spec, store)
        with store._writing() as connection:
            with (
                closing(sqlite3.connect(path, timeout=0)) as second,
                pytest.raises(sqlite3.OperationalError, match="locked"),
            ):
                second.execute("BEGIN IMMEDIATE")
            connection.execute("SELECT 1")
        store.put([exact_rate(spec.text, cells[0])])
    assert_sound(path, 3)


def test_a_row_that_is_there_twice_is_found_and_its_copy_removed(tmp_path, spec):
    path = filled(tmp_path / "run.sqlite", spec, limit=4)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP INDEX place")
        connection.execute("INSERT INTO cells (row) SELECT row FROM cells LIMIT 1")
        rows = connection.execute("SELECT count(*) FROM cells").fetchone()[0]
        connection.execute("UPDATE meta SET value = ? WHERE key = 'rows'", (str(rows),))
    with open_store(path) as store:
        assert any("is there more than once" in line for line in verify(store))
        assert store.n_sound == 4
    with create_store(path, spec) as store:
        store.drop_damaged()
    assert_sound(path, 4)


# Every kind and every way once in each run.
@pytest.mark.parametrize(
    ("how", "kind"),
    [
        pytest.param(how, kind, marks=() if kind == "fit" or how == "rows" else pytest.mark.slow)
        for how in ("bytes", "words", "rows")
        for kind in KINDS
    ],
)
def test_swapped_bytes_end_in_one_line(tmp_path, kind, how):
    spec = load_spec(find_spec(KINDS[kind]))
    source, path = tmp_path / "a.sqlite", tmp_path / "b.sqlite"
    with create_store(source, spec) as store:
        cells = open_cells(spec, store)[:60]
        store.put([record_of(cell, FAILED, message="x" * 40) for cell in cells])
    whole, rng = source.read_bytes(), np.random.default_rng(7)
    found = set()
    for _ in range(40):
        changed = bytearray(whole)
        width = {"bytes": 1, "words": 2, "rows": 2}[how]
        high = len(whole) - width
        if how == "rows":  # pointers to rows, at the head of a page of rows
            page = whole.index(b"\x0d", 16384) // 16384 * 16384
            one, two = page + 8 + 2 * rng.choice(12, 2, replace=False)
        else:
            one, two = (int(at) for at in rng.integers(100, high, 2))
        changed[one : one + width], changed[two : two + width] = (
            whole[two : two + width],
            whole[one : one + width],
        )
        path.write_bytes(changed)
        found.add(_fate(path, tmp_path))
    assert found <= {"refused", "found", "harmless"}


def _fate(path, folder):
    try:
        with open_store(path) as store:
            wrong = verify(store)
            status_of(store)
            kind_of(store.spec.kind).summarise(store)
            export(store, folder / "out.csv")
    except SweepError as error:
        return "refused" if "\n" not in str(error) else "many lines"
    return "found" if wrong else "harmless"


def test_the_versions_name_the_sources():
    version, _, digest = versions()["moestat"].partition("+")
    assert version
    assert len(bytes.fromhex(digest)) == 6
