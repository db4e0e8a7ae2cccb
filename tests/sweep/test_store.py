import dataclasses
import errno
import os
import sqlite3

import pytest

from moestat.sweep import SweepError, create_store, open_cells, open_store, parse_spec, run_cells
from moestat.sweep.store.lock import exclusive, holder_of
from moestat.sweep.store.schema import SCHEMA_VERSION
from moestat.sweep.store.verification import verify
from tests.sweep.cells import always_fails, exact_rate, stored_numbers


def fill(path, spec, cell_function=exact_rate, limit=None, retry_failed=False, extend=False):
    """Run what is open, and again what results ask for; or no more than `limit` cells."""
    done = []
    with create_store(path, spec, extend=extend) as store:
        cells = open_cells(spec, store, retry_failed)[:limit]
        while cells:
            run = run_cells(spec, store, cells, executor="serial", cell_function=cell_function)
            done += run
            cells = open_cells(spec, store) if limit is None else []
    return done


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
        assert verify(store) == []
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
    assert "it only adds cells: allow that with --extend" in lines[0]
    with open_store(path) as store:
        assert len(store.statuses()) == 2


THIRD = """
[[curve]]
name = "newton, k = 3"
truth = "t"
n_experts = 3
loss = "softmax-D1"
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("replicates = 3", "replicates = 5"),
        ("[200, 400]", "[100, 200, 400, 800]"),
        ("require_certificate = false", "require_certificate = false" + THIRD),
        ("replicates = 3", "replicates = 3\ntarget_slope_halfwidth = 0.1\nmax_replicates = 9"),
    ],
)
def test_a_spec_that_only_adds_cells_extends_a_store_on_request(path, spec, text, old, new):
    fill(path, spec)
    with open_store(path) as store:
        before = stored_numbers(store)
    longer = parse_spec(text.replace(old, new))
    with pytest.raises(SweepError, match=r"allow that with --extend"):
        fill(path, longer)
    added = fill(path, longer, extend=True)
    assert added
    with open_store(path) as store:
        after = stored_numbers(store)
        assert store.spec == longer
        assert verify(store) == []
    assert before.items() <= after.items()
    assert len(after) == len(before) + len(added) >= longer.n_cells
    alone = path.with_name("alone.sqlite")
    fill(alone, longer)
    with open_store(alone) as store:
        assert stored_numbers(store) == after


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("seed = 7", "seed = 8"),
        ("replicates = 3", "replicates = 2"),
        ("[200, 400]", "[200]"),
        ("[200, 400]", "[200, 500]"),
        ("low = -4", "low = -3"),
        ("max_iterations = 20", "max_iterations = 30"),
        ('name = "em"\n', 'name = "EM"\n'),
    ],
)
def test_a_spec_that_changes_cells_never_extends_a_store(path, spec, text, old, new):
    fill(path, spec, limit=3)
    before = path.read_bytes()
    with pytest.raises(SweepError, match=r"belongs to another spec; run into another file, or"):
        fill(path, parse_spec(text.replace(old, new)), extend=True)
    with open_store(path) as store:
        assert (store.spec, len(store.statuses())) == (spec, 3)
    assert path.read_bytes() == before


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
        with pytest.raises(SweepError, match=r"it is not an SQLite file"):
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
        (SCHEMA_VERSION + 1, r"written by a newer moestat \(schema 6; this one reads 5\): update"),
        (
            SCHEMA_VERSION - 1,
            r"before its first release \(schema 4; this one reads 5\): run its spec",
        ),
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


def test_a_full_disk_is_named_and_keeps_earlier_results(path, spec):
    with create_store(path, spec) as store:
        cells = open_cells(spec, store)
        run = run_cells(spec, store, cells, executor="serial", cell_function=exact_rate)
        first = next(run)
        # No room beyond the pages that are there.
        pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
        store._connection.execute(f"PRAGMA max_page_count = {pages}")
        many = [
            dataclasses.replace(
                first,
                key=f"newton | n=400 | replicate={i}",
                replicate=i,
                message="long" * 1000,
            )
            for i in range(99)
        ]
        with pytest.raises(SweepError, match=r"cannot write to the store .*: .* is full"):
            store.put(many)
        run.close()
    with open_store(path) as store:
        assert store.statuses() == {first.key: "done"}
        assert store.integrity() == []
    assert len(fill(path, spec)) == spec.n_cells - 1


@pytest.fixture
def nobody():
    """Act as a user without rights, if the tests run as one who may write everywhere."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    yield
    os.seteuid(0)


def test_a_read_only_store_can_be_read_but_not_run(path, spec, request):
    fill(path, spec, limit=4)
    folders = [path.parent, *list(path.parent.parents)[:-2]]
    modes = [(folder, folder.stat().st_mode) for folder in folders]
    for folder in folders:
        folder.chmod(0o755)
    path.chmod(0o444)
    path.parent.chmod(0o555)
    request.getfixturevalue("nobody")
    try:
        assert len(read_all(path)) == 4
        with pytest.raises(SweepError, match=r"cannot write beside the store .*: Permission den"):
            fill(path, spec)
        assert len(read_all(path)) == 4
    finally:
        os.seteuid(os.getuid())
        for folder, mode in modes:
            folder.chmod(mode)


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
    held = rf"another runner \(process {os.getpid()} on .*\) is at work"
    with exclusive(path):
        with pytest.raises(SweepError, match=held), exclusive(path):
            pass
        with pytest.raises(SweepError, match=held), exclusive(path):
            pass
    with exclusive(path):
        pass
    assert list(path.parent.iterdir()) == []


def test_without_file_locks_stores_can_be_read_but_not_written(path, spec, monkeypatch):
    fill(path, spec, limit=2)
    monkeypatch.setattr("moestat.sweep.store.lock.fcntl", None)
    with pytest.raises(SweepError, match=r"needs the file locks of a POSIX system: on Windows"):
        fill(path, spec)
    assert len(read_all(path)) == 2


MOUNTS = """\
1 0 8:1 / / rw - ext4 /dev/root rw
2 1 0:40 / {folder} rw,relatime shared:7 - {kind} server:/export rw
"""


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "lustre", "fuse.sshfs"])
def test_stores_on_network_disks_are_read_but_not_written(path, spec, monkeypatch, kind):
    fill(path, spec, limit=2)
    table = path.parent / "mountinfo"
    monkeypatch.setattr("moestat.sweep.store.disks._MOUNTS", table)
    table.write_text(MOUNTS.format(folder=path.parent, kind=kind))
    message = rf"on a network disk \({kind}\), .*: run into a file on a local disk, and copy it"
    with pytest.raises(SweepError, match=message):
        fill(path, spec)
    assert len(read_all(path)) == 2
    assert holder_of(path) is None
    table.write_text(MOUNTS.format(folder=path.parent, kind="xfs"))
    assert len(fill(path, spec)) > 2


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EIO, errno.ESTALE])
def test_a_disk_whose_locks_fail_is_refused_in_a_sentence(path, spec, monkeypatch, number):
    fill(path, spec, limit=2)

    def fails(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("moestat.sweep.store.lock.fcntl.flock", fails)
    with pytest.raises(SweepError, match=f"cannot lock the store .*: {os.strerror(number)}"):
        fill(path, spec)
    assert len(read_all(path)) == 2
    monkeypatch.undo()
    assert len(fill(path, spec)) > 2


def test_a_disk_without_shared_memory_is_refused(path, spec, monkeypatch):
    connect = sqlite3.connect
    monkeypatch.setattr(
        "moestat.sweep.store.store.sqlite3.connect",
        lambda *args, **options: connect(":memory:", **options),  # has no log either
    )
    with pytest.raises(SweepError, match="its disk has no shared memory for the log of SQLite"):
        fill(path, spec)


def test_a_lock_left_behind_is_taken_over(path):
    lock = path.with_name(path.name + ".lock")
    lock.write_text("999999999\n")
    with exclusive(path):
        assert holder_of(path)["process"] == os.getpid()
    assert not lock.exists()
    assert holder_of(path) is None


def test_a_store_that_cannot_be_written_is_named(path, spec):
    (record,) = fill(path, spec, limit=1)
    with create_store(path, spec) as store:
        store._connection.execute("PRAGMA query_only = ON")
        with pytest.raises(SweepError, match=r"cannot write to the store .*a.sqlite: .*readonly"):
            store.put([record])
