import sqlite3

import pytest

from moestat.sweep import create_store, open_cells, open_store, run_cells
from moestat.sweep.store.verification import verify
from tests.chaos.damage import BEGIN, change_row, flip_field, flipped
from tests.sweep.cells import exact_rate

KEY = "em | n=200 | replicate=1"


@pytest.fixture
def path(tmp_path, spec):
    made = tmp_path / "a.sqlite"
    with create_store(made, spec) as store:
        cells = open_cells(spec, store)
        list(run_cells(spec, store, cells, executor="serial", cell_function=exact_rate))
    return made


def findings(path, *statements):
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
    with open_store(path) as store:
        return verify(store)


def test_a_sound_store(path):
    assert findings(path) == []


@pytest.mark.parametrize(
    "change",
    [
        *(flip_field(name) for name in ("loss", "log_likelihood", "flags", "seconds", "identity")),
        *(lambda row, at=at: flipped(row, at) for at in (BEGIN, BEGIN + 40, -12, -1)),
    ],
)
def test_a_changed_bit_is_found(path, change):
    change_row(path, KEY, lambda row: change(row) if change(row) != row else b"")
    assert findings(path) == [f"{KEY}: its values are not those that were written"]


def test_a_changed_place_is_found(path):
    change_row(path, KEY, flip_field("n"))
    found = findings(path)
    assert found == ["em | n=201 | replicate=1: its values are not those that were written"]


def test_rows_of_another_spec_are_found(path, text):
    head = "UPDATE meta SET value = replace(value, 'seed = 7', 'seed = 8') WHERE key = 'spec'"
    found = findings(path, head)
    assert "head: the canonical text is not that of the spec" in found
    assert f"{KEY}: made for another spec" in found
    assert len(found) == 14


@pytest.mark.parametrize(
    ("old", "new"), [("[200, 400]", "[400]"), ("replicates = 3", "replicates = 1")]
)
def test_rows_that_nobody_asked_for_are_found(path, old, new):
    head = f"UPDATE meta SET value = replace(value, '{old}', '{new}') WHERE key = 'spec'"
    assert f"{KEY}: no cell of the spec" in findings(path, head)


def test_a_wrong_digest_is_found(path):
    change = "UPDATE meta SET value = 'abc' WHERE key = 'digest'"
    assert findings(path, change) == [
        "head: what it says about the spec is not what was written",
        "head: the digest is not that of the canonical text",
    ]


def test_a_damaged_index_is_found(path):
    found = findings(
        path,
        "PRAGMA writable_schema = ON",
        "CREATE INDEX extra ON cells (length(row))",
        "UPDATE sqlite_schema SET sql = 'CREATE INDEX extra ON cells (hex(row))'"
        " WHERE name = 'extra'",
    )
    assert any("extra" in finding for finding in found)
