"""Which maximum over-specified fits look for, and what stores of an older default mean."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from moestat.sweep import create_store, open_cells, open_store, parse_spec, run_cell, run_cells
from moestat.sweep.errors import SweepError
from moestat.sweep.kinds.fit.parse import NEAR_TRUTH
from moestat.sweep.spec.plan import plan_cells
from moestat.sweep.spec.read import OLDER_DEFAULT
from tests.sweep.specs import classes, curve, sweep

SPEC = sweep(
    "Over-specified",
    classes(),
    curve("over", 3),
    curve("exact", 2),
    seed=3,
    replicates=1,
    n="[300]",
)
NEAR = OLDER_DEFAULT + SPEC


def test_over_specified_fits_look_for_the_maximum_by_default():
    over, exact = parse_spec(SPEC).curves
    assert over.starts == {"maximum": 14}
    assert exact.starts == NEAR_TRUTH
    assert [curve.starts for curve in parse_spec(NEAR).curves] == [NEAR_TRUTH, NEAR_TRUTH]
    one = SPEC.replace("n_experts = 3", 'n_experts = 3\nestimate = "near-truth"')
    assert parse_spec(one).curves[0].starts == NEAR_TRUTH
    back = NEAR.replace("n_experts = 3", 'n_experts = 3\nestimate = "maximum"')
    assert parse_spec(back).curves[0].starts == {"maximum": 14}


def test_a_replay_of_a_published_procedure_seeks_no_maximum():
    replay = SPEC.replace("n_experts = 3", "n_experts = 3\nrequire_certificate = false")
    assert parse_spec(replay).curves[0].starts == NEAR_TRUTH


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ('estimate = "highest"', "estimate: must be one of 'maximum', 'near-truth'"),
        ('estimate = "maximum"\nstarts = { random = 2 }', "estimate: is not used where starts"),
        ("starts = { maximum = -1 }", "starts: maximum"),
        ("starts = { highest = 1 }", "known: 'truth', .*, 'maximum'"),
    ],
)
def test_wrong_words_are_refused(words, said):
    with pytest.raises(SweepError, match=said):
        parse_spec(SPEC.replace("n_experts = 3", f"n_experts = 3\n{words}"))


def test_the_record_says_what_the_search_found():
    cell = next(cell for cell in plan_cells(parse_spec(SPEC)) if cell.curve == "over")
    record = run_cell(SPEC, cell)
    assert record.message == ""
    certificate = record.certificate
    assert certificate["n_starts"] == 17
    assert certificate["above_near_truth"] >= -1e-6
    assert 0.0 < certificate["p_higher"] < 1.0
    assert run_cell(SPEC, cell).numbers == record.numbers


@pytest.fixture
def older(tmp_path):
    """A store as it was written when the text without the key meant starts near the truth."""
    path, spec = tmp_path / "older.sqlite", parse_spec(NEAR)
    with create_store(path, spec) as store:
        cells = open_cells(spec, store)
        list(run_cells(spec, store, cells[:1], executor="serial"))
        head = store.meta("canonical"), store.meta("digest"), store.meta("versions")
    from moestat.sweep.store.schema import head_checksum

    values = dict(zip(("canonical", "digest", "versions"), head, strict=True)) | {"spec": SPEC}
    with closing(sqlite3.connect(path)) as connection, connection:
        entries = {"spec": SPEC, "head": head_checksum(values)}
        connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", entries.items())
    return path


def test_a_store_of_the_older_default_keeps_its_meaning(older):
    with open_store(older) as store:
        spec = store.spec
        assert [curve.starts for curve in spec.curves] == [NEAR_TRUTH, NEAR_TRUTH]
        (record,) = store.records()
        cell = next(cell for cell in plan_cells(spec) if cell.key == record.key)
        assert cell.identity == record.identity
        assert run_cell(spec.text, cell).numbers == record.numbers


def test_a_store_of_the_older_default_goes_on_with_the_key_alone(older):
    words = 'put estimate = "near-truth" at the top of the spec'
    with pytest.raises(SweepError, match=words), create_store(older, parse_spec(SPEC)):
        pass
    with create_store(older, parse_spec(NEAR)) as store:
        assert len(open_cells(store.spec, store)) == 1
