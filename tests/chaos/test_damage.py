"""Damaged, cut, copied and deleted stores: noticed by every command, and mended by a run."""

import contextlib
import random
import shutil
import sqlite3

import pytest
from typer.testing import CliRunner

from moestat.sweep import (
    SweepError,
    create_store,
    load_spec,
    open_cells,
    open_store,
    parse_spec,
    run_cells,
)
from moestat.sweep.cli import app
from moestat.sweep.store.merging import backup
from moestat.sweep.store.rows import Texts
from moestat.sweep.store.scan import scan
from moestat.sweep.store.verification import verify
from tests.chaos.damage import BEGIN, change_row, flip_field, flipped
from tests.chaos.flips import FATES, fates
from tests.sweep.cells import exact_rate, stored_numbers
from tests.sweep.conftest import SPEC

KEY = "em | n=200 | replicate=1"
READERS = ("status", "failures", "rates", "verify-store", "report", "plot")


def fill(path, spec):
    with create_store(path, spec) as store:
        cells = open_cells(spec, store)
        list(run_cells(spec, store, cells, executor="serial", cell_function=exact_rate))


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    made = tmp_path_factory.mktemp("filled") / "a.sqlite"
    fill(made, parse_spec(SPEC))
    return made


@pytest.fixture
def path(tmp_path, filled):
    """A store of its own."""
    return shutil.copy(filled, tmp_path / "a.sqlite")


def change(path, statement):
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


def invoke(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


DAMAGE = {
    "a loss": flip_field("loss"),
    "a byte": lambda row: flipped(row, BEGIN + 3),
    "the end cut off": lambda row: row[:40],
    "the last byte": lambda row: flipped(row, len(row) - 1),
}


# Every command and every damage once in each run; figures and pages take a second each.
@pytest.mark.parametrize(
    ("command", "damage"),
    [
        pytest.param(c, d, marks=[] if c == "status" or d == "a loss" else pytest.mark.slow)
        for c in READERS
        for d in DAMAGE
    ],
)
def test_a_damaged_row_is_named_left_out_and_told_by_the_exit_code(path, command, damage):
    change_row(path, KEY, DAMAGE[damage])
    result = invoke(command, path)
    assert result.exit_code == 3
    assert f"{KEY}: its values are not those that were written" in result.output
    with open_store(path) as store:
        assert len(list(store.records())) == 11


def test_a_run_computes_damaged_rows_again(path, spec_file, monkeypatch):
    with open_store(path) as store:
        before = stored_numbers(store)
    change_row(path, KEY, flip_field("loss"))
    change_row(path, "em | n=400 | replicate=0", flip_field("curve"))
    monkeypatch.setattr("moestat.sweep.run.cell.run_cell", exact_rate)
    result = invoke("run", spec_file, "--out", path, "--executor", "serial")
    assert result.exit_code == 0
    assert "2 of 12 cells to run" in result.stderr
    assert f"damaged: {KEY}" in result.stderr
    with open_store(path) as store:
        assert (verify(store), stored_numbers(store)) == ([], before)


def test_rows_out_of_order_are_damage(path):
    with contextlib.closing(sqlite3.connect(path)) as connection:

        class Backwards:
            def execute(self, query):
                return connection.execute(query.replace("ORDER BY rowid", "ORDER BY rowid DESC"))

        texts = Texts(connection)
        assert scan(connection, texts).damaged == {}
        with pytest.raises(sqlite3.DatabaseError, match="its rows are out of order"):
            scan(Backwards(), texts)


def test_lost_and_doubled_rows_are_noticed(path):
    change(path, "DELETE FROM cells WHERE rowid = 5")
    assert "11 rows are there, 12 were written" in invoke("rates", path).stderr
    with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
        change(path, "INSERT INTO cells SELECT row FROM cells LIMIT 1")
    change(path, "INSERT INTO cells VALUES (x'00')")
    assert "row 13: its values are not" in invoke("rates", path).stderr


@pytest.mark.parametrize("new", ["text = text || ' '", "number = number + 100", "digest = ''"])
def test_rows_whose_shared_texts_are_damaged_are_damaged(path, spec_file, monkeypatch, new):
    with open_store(path) as store:
        before = stored_numbers(store)
    change(path, f"UPDATE texts SET {new} WHERE number = 1")
    with open_store(path) as store:
        assert len(store.damage()) + len(list(store.records())) == 12
        assert len(store.damage()) > 0
    monkeypatch.setattr("moestat.sweep.run.cell.run_cell", exact_rate)
    assert invoke("run", spec_file, "--out", path, "--executor", "serial").exit_code == 0
    with open_store(path) as store:
        assert (verify(store), stored_numbers(store)) == ([], before)


@pytest.mark.parametrize("value", ["'text'", "7", "x''"])
def test_what_is_no_row_is_damaged(path, value):
    change(path, f"UPDATE cells SET row = {value} WHERE rowid = 5")
    result = invoke("status", path)
    assert result.exit_code == 3
    assert "row 5: its values are not those that were written" in result.stderr


def test_a_row_from_an_older_copy_is_noticed(path, tmp_path, spec_file):
    def other(text, cell):
        record = exact_rate(text, cell)
        return type(record)(**{**vars(record), "loss": 2 * record.loss})

    older, spec = tmp_path / "older.sqlite", load_spec(spec_file)
    with create_store(older, spec) as store:
        cells = open_cells(spec, store)
        list(run_cells(spec, store, cells, executor="serial", cell_function=other))
    connection = sqlite3.connect(path)
    connection.execute("ATTACH ? AS older", (str(older),))
    connection.execute("REPLACE INTO cells SELECT row FROM older.cells WHERE rowid = 5")
    connection.commit()
    connection.close()
    assert "the rows are not those that were written last" in invoke("status", path).stderr


def test_a_damaged_head_is_named(path):
    change(path, "UPDATE meta SET value = replace(value, 'seed = 7', 'seed = 8')")
    result = invoke("rates", path)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "the head of the store" in result.stderr
    assert invoke("verify-store", path).exit_code == 3


def test_a_head_that_is_no_text_is_damage(path):
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE", b"CREATE \x8fABLE", 1))
    with pytest.raises(SweepError, match="damaged or truncated"), open_store(path):
        pass


def test_byte_flips_are_found_or_harmless(path, tmp_path):
    found = fates(path, tmp_path / "flipped", flips=60, seed=5)
    assert set(found) <= set(FATES), found


def test_a_store_deleted_under_its_run_is_noticed_and_saved(tmp_path, spec):
    path = tmp_path / "a.sqlite"

    def run():
        with create_store(path, spec) as store:
            cells = open_cells(spec, store)
            given = run_cells(spec, store, cells, executor="serial", cell_function=exact_rate)
            for _ in range(3):
                next(given)
            path.unlink()
            list(given)

    with pytest.raises(SweepError, match=r"was removed or replaced while its sweep ran; its 4 res"):
        run()
    with open_store(tmp_path / "a.saved-1.sqlite") as saved:
        assert (len(saved.statuses()), verify(saved)) == (4, [])


def test_a_store_deleted_after_its_last_row_is_noticed(tmp_path, spec):
    path = tmp_path / "a.sqlite"

    def run():
        with create_store(path, spec) as store:
            cells = open_cells(spec, store)[:5]
            list(run_cells(spec, store, cells, executor="serial", cell_function=exact_rate))
            path.rename(tmp_path / "elsewhere.sqlite")
            path.write_bytes(b"")

    with pytest.raises(SweepError, match="its 5 results are saved as"):
        run()


def test_copies_of_a_live_store_have_its_rows(tmp_path, spec):
    path, copied, saved = (tmp_path / name for name in ("a.sqlite", "b.sqlite", "c.sqlite"))
    with create_store(path, spec) as store:
        cells = open_cells(spec, store)[:10]
        list(run_cells(spec, store, cells, executor="serial", cell_function=exact_rate))
        shutil.copy(path, copied)  # without its log
        assert invoke("backup", path, saved).stdout.startswith("10 rows in")
    for copy in (copied, saved):
        with open_store(copy) as store:
            assert (len(store.statuses()), verify(store)) == (10, [])
    with pytest.raises(SweepError, match="overwrites nothing"):
        backup(path, saved)


def test_a_cut_copy_never_passes_for_a_store(path, tmp_path):
    whole, pick = path.read_bytes(), random.Random(3)
    for _ in range(10):
        cut = tmp_path / "cut.sqlite"
        cut.write_bytes(whole[: pick.randrange(1, len(whole))])
        assert invoke("rates", cut).exit_code == 2
