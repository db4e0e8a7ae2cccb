"""Fits to blocks of rows agree with fits to the same rows in memory, wherever the blocks are."""

from __future__ import annotations

import re
import tracemalloc

import numpy as np
import pandas as pd
import pytest

import moestat
from moestat import Blocks, fit_blocks
from moestat.base.warnings import AliasedWarning, ConstantColumnWarning, MisfitWarning
from moestat.estimation.search.agreement import search_of
from moestat.estimation.starts import GivenStarts
from moestat.solvers.problem import Problem, Rows

GAUSSIAN = moestat.family("gaussian", gate="softmax", n_experts=2, n_features=2)
THETA = GAUSSIAN.pack(
    {
        "beta0": [0.5, 0.0],
        "beta1": [[2.0, -1.0], [0.0, 0.0]],
        "a": [[2.0, 1.0], [-2.0, 0.0]],
        "b": [1.0, -1.0],
        "nu": [0.5, 1.5],
    }
)


@pytest.fixture(scope="module")
def rows():
    """Inputs far from standard units and responses."""
    X, y = moestat.sample(GAUSSIAN, THETA, 5000, rng=0)
    return 40.0 + 3.0 * X, 100.0 - 7.0 * y


def same(one, other, rel=1e-6):
    """Whether two fits agree; both end within the solver's tolerance of the maximum."""
    assert one.certificate.certified
    assert other.certificate.certified
    assert one.log_likelihood == pytest.approx(other.log_likelihood, rel=1e-12)
    scale = np.where(other.theta_bse > 0, other.theta_bse, 1.0)
    assert np.max(np.abs(one.theta - other.theta) / scale) < 1e-4
    assert np.asarray(one.bse) == pytest.approx(np.asarray(other.bse), rel=rel)
    assert one.bic == pytest.approx(other.bic)


def test_a_fit_to_blocks_is_the_fit_to_all_rows(rows):
    X, y = rows
    blocks = Blocks.from_arrays(X.astype(np.float32), y, rows=1024)
    assert len(blocks) == 5
    with pytest.raises(IndexError, match="block 5 of 5"):
        blocks[5]
    X = X.astype(np.float32).astype(float)
    found = fit_blocks("gaussian", blocks, n_experts=2, rng=0)
    # From the same start: another search may number the experts in another way.
    same(found, moestat.fit("gaussian", X, y, starts=[GivenStarts([found.theta])], n_experts=2))
    whole = moestat.fit("gaussian", X, y, n_experts=2, rng=0)
    assert whole.log_likelihood == pytest.approx(found.log_likelihood, rel=1e-12)


def test_experts_come_in_the_order_of_a_fit_in_memory(rows):
    X, y = rows
    whole = moestat.fit("gaussian", X, y, n_experts=2, rng=0)
    for seed in range(3):
        blocks = Blocks.from_arrays(X, y, rows=1100)
        same(fit_blocks("gaussian", blocks, n_experts=2, rng=seed), whole)


@pytest.mark.parametrize("equal", [{"a": [{"inputs": [1]}]}, {"a": True, "nu": True}])
def test_equal_coefficients(rows, equal):
    X, y = rows
    whole = moestat.fit("gaussian", X, y, n_experts=2, equal=equal, rng=0)
    blocks = Blocks.from_arrays(X, y, rows=1100)
    same(fit_blocks("gaussian", blocks, n_experts=2, equal=equal, rng=1), whole)


def test_misfits_are_looked_for_in_the_sample(rows):
    """Rows are called by their number among all, those without weight included."""
    X, y = rows
    y = y.copy()
    y[[5, 3210]] += [600.0, 400.0]
    weight = np.ones(5000)
    weight[:5] = 0.0
    whole = moestat.fit("gaussian", X, y, n_experts=1, sample_weight=weight, rng=0)
    blocks = Blocks.from_arrays(X, y, weight, rows=900)
    with pytest.warns(MisfitWarning, match="rows 5, 3210 of 4995 lie"):
        found = fit_blocks("gaussian", blocks, n_experts=1, rng=0)
    assert found.notes == whole.notes
    assert found.kinds == whole.kinds


def test_experts_of_few_rows_are_counted_on_all_rows(rows, monkeypatch):
    monkeypatch.setattr("moestat.estimation.rows.block_rows.SAMPLED", 800)
    X, y = rows
    found = fit_blocks("gaussian", Blocks.from_arrays(X, y, rows=900), n_experts=2, rng=0)
    assert "FewRowsWarning" not in found.kinds


def test_weights_are_counts(rows):
    X, y = rows
    weight = np.arange(5000) % 3
    whole = moestat.fit("gaussian", X, y, n_experts=2, sample_weight=weight, rng=0)
    starts = [GivenStarts([whole.theta])]
    blocks = Blocks.from_arrays(X, y, weight, rows=2000)
    same(fit_blocks("gaussian", blocks, n_experts=2, starts=starts, rng=0), whole)


def test_the_result_depends_on_neither_threads_nor_the_sample(rows, monkeypatch):
    X, y = rows
    monkeypatch.setattr("moestat.estimation.rows.block_rows.SAMPLED", 800)
    blocks = Blocks.from_arrays(X, y, rows=700)
    found = [fit_blocks("gaussian", blocks, n_experts=2, rng=3, threads=t) for t in (1, 3)]
    assert np.array_equal(found[0].theta, found[1].theta)
    assert found[0].log_likelihood == found[1].log_likelihood
    whole = moestat.fit("gaussian", X, y, n_experts=2, rng=0)
    assert found[0].log_likelihood == pytest.approx(whole.log_likelihood, rel=1e-12)
    # The climb is on the sample: few passes are over all rows.
    assert found[0].certificate.passes < 8


def test_starts_of_ones_own_are_in_the_units_of_the_data(rows):
    X, y = rows
    whole = moestat.fit("gaussian", X, y, n_experts=2, rng=0)
    starts = [GivenStarts([whole.theta])]
    found = fit_blocks(whole.family, Blocks.from_arrays(X, y), starts=starts, rng=0)
    same(found, whole)
    assert found.certificate.n_starts == 1
    assert found.certificate.iterations <= 3


def test_row_groups_of_a_parquet_file_with_names_and_classes(tmp_path):
    rng = np.random.default_rng(1)
    age, vote = rng.uniform(20, 80, 4000), rng.random(4000)
    words = np.where(vote < 1 / (1 + np.exp(-0.1 * (age - 50))), "yes", "no")
    frame = pd.DataFrame({"vote": words, "age": age, "id": np.arange(4000)})
    path = tmp_path / "votes.parquet"
    frame.to_parquet(path, row_group_size=900)
    blocks = Blocks.from_parquet(path, X=["age"], y="vote")
    assert len(blocks) == 5
    found = fit_blocks("multinomial", blocks, n_experts=1, rng=0)
    whole = moestat.fit("multinomial", frame[["age"]], frame["vote"], n_experts=1, rng=0)
    same(found, whole)
    assert list(found.params.index) == list(whole.params.index)
    assert found.predict(frame[["age"]][:5]).tolist() == whole.predict(frame[["age"]][:5]).tolist()
    with pytest.raises(ValueError, match="has no column 'height'; it has vote, age, id"):
        Blocks.from_parquet(path, X=["height"], y="vote")


@pytest.mark.parametrize("processes", [False, True])
def test_partitions_on_dask_workers(rows, processes):
    da, distributed = pytest.importorskip("dask.array"), pytest.importorskip("distributed")
    X, y = rows
    starts = [GivenStarts([moestat.fit("gaussian", X, y, n_experts=2, rng=0).theta])]
    family = moestat.family("gaussian", gate="softmax", n_experts=2, n_features=2)
    local = fit_blocks(family, Blocks.from_arrays(X, y, rows=1250), starts=starts, rng=0)
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=processes, dashboard_address="127.0.0.1:0"
    )
    with cluster, distributed.Client(cluster):
        blocks = Blocks.from_dask(da.from_array(X, chunks=(1250, 2)), da.from_array(y, chunks=1250))
        assert len(blocks) == 4
        found = fit_blocks(family, blocks, starts=starts, rng=0)
        with pytest.raises(ValueError, match=r"y must have the same|the same partitions"):
            Blocks.from_dask(da.from_array(X, chunks=(1250, 2)), da.from_array(y, chunks=5000))
    assert np.array_equal(found.theta, local.theta)
    assert found.log_likelihood == local.log_likelihood


def test_what_needs_the_rows_says_that_they_are_not_there(rows):
    X, y = rows
    result = fit_blocks("gaussian", Blocks.from_arrays(X, y), n_experts=2, rng=0)
    assert "5000" in str(result.summary())
    assert np.isfinite(result.predict(X[:3])).all()
    for call in (
        lambda: result.simulate(),
        lambda: result.profile("b[1]"),
    ):
        with pytest.raises(ValueError, match="without the data"):
            call()


def test_doubts_are_those_of_all_rows(rows):
    X, y = rows
    twice = np.column_stack([X[:, 0], 2.0 * X[:, 0] + 1.0])
    with pytest.warns(AliasedWarning, match="columns 0, 1"):
        fit_blocks("gaussian", Blocks.from_arrays(twice, y), n_experts=1, rng=0)


def test_a_constant_column_is_held_at_0_and_rows_without_weight_do_not_count(rows):
    X, y = rows
    flat = np.column_stack([X[:, 0], np.full(5000, 3.0)])
    weight = np.ones(5000)
    flat[:100, 1], y, weight[:100] = 7.0, y.copy(), 0.0
    y[:100] = 1e30
    with pytest.warns(ConstantColumnWarning, match="column 1 is constant"):
        whole = moestat.fit("gaussian", flat, y, n_experts=1, sample_weight=weight, rng=0)
    with pytest.warns(ConstantColumnWarning, match="column 1 is constant"):
        found = fit_blocks("gaussian", Blocks.from_arrays(flat, y, weight), n_experts=1, rng=0)
    same(found, whole)


def test_few_starts_climb_on_all_rows():
    """A search counts all of its runs; passes over all rows are for the best."""
    family = moestat.family("multinomial", gate="softmax", n_experts=2, n_classes=2)
    theta = np.random.default_rng(4).normal(size=family.n_params)
    X, y = moestat.sample(family, theta, 4000, rng=0, design=moestat.Uniform(-2, 2))
    problem = Problem(family, Rows(np.ascontiguousarray(X.T), y, np.ones(len(y))))
    starts, counts = search_of().find_starts(problem, np.random.default_rng(0))
    assert 1 <= len(starts) <= 3
    assert sum(counts) > 3


def bad(X, y, change):
    """Blocks of 1000 rows of which the third is another."""

    def read(number):
        own = X[1000 * number : 1000 * (number + 1)], y[1000 * number : 1000 * (number + 1)]
        return change(*own) if number == 2 else own

    return Blocks(read, 5)


def broken(X, y):
    X = X.copy()
    X[5, 0] = np.nan
    return X, y


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (broken, "block 2: X holds 1 NaN or infinite values"),
        (lambda X, y: (X[:-1], y), "block 2: X has 999 samples but y has 1000"),
        (lambda X, y: (X[:, :1], y), "X has another number of columns"),
        (lambda X, y: (X, np.full(1000, "a")), "block 2: y"),
        (lambda X, y: (X, np.array([None] * 1000)), "block 2: y has 1000 missing values"),
        (
            lambda X, y: (X, y, -np.ones(1000)),
            "block 2: sample_weight must be >= 0, got a minimum of -1",
        ),
    ],
)
def test_a_block_that_cannot_be_read_is_named(rows, change, message):
    with pytest.raises(ValueError, match=message):
        fit_blocks("gaussian", bad(*rows, change), n_experts=2, rng=0)


@pytest.mark.parametrize(
    ("model", "options", "change", "message"),
    [
        (
            "least-squares",
            {"gate": "softmax"},
            None,
            "without jumps and kinks, because they use Newton's method; got least-squares",
        ),
        (
            "gaussian",
            {"gate": "softmax-top"},
            None,
            "without jumps and kinks, because they use Newton's method; got gaussian",
        ),
        ("gaussian", {}, lambda X, y: (X, 0 * y), "y is constant"),
        ("gaussian", {}, lambda X, y: (X[:5], y[:5]), "n = 5 samples cannot determine"),
        ("multinomial", {}, lambda X, y: (X, y > 1e9), "at least two classes"),
        ("multinomial", {}, lambda X, y: (X, y), "y must hold class labels"),
        ("poisson", {}, lambda X, y: (X, 0 * y), "y is 0 everywhere"),
    ],
)
def test_what_no_fit_can_be_made_of_is_refused(rows, model, options, change, message):
    X, y = rows if change is None else change(*rows)
    with pytest.raises(ValueError, match=message):
        fit_blocks(model, Blocks.from_arrays(X, y), n_experts=2, rng=0, **options)


@pytest.mark.parametrize(
    "change",
    [
        lambda X, y, w: (1e200 * X, y, w),
        lambda X, y, w: (X, 1e-200 * y, w),
        lambda X, y, w: (X, np.ones_like(y), w),
        lambda X, y, w: (X[:5], y[:5], w[:5]),
        lambda X, y, w: (X, y, w / w.size),
    ],
    ids=["large", "tiny", "constant", "few", "shares"],
)
def test_rows_in_memory_and_in_blocks_are_refused_in_one_sentence(rows, change):
    X, y, weight = change(*rows, np.ones(len(rows[1])))
    with pytest.raises(ValueError, match=r"^[Xyn] ") as in_memory:
        moestat.fit("gaussian", X, y, n_experts=2, sample_weight=weight, rng=0)
    with pytest.raises(ValueError, match=f"^{re.escape(str(in_memory.value))}$"):
        fit_blocks("gaussian", Blocks.from_arrays(X, y, weight, rows=900), n_experts=2, rng=0)


def test_labels_that_the_first_pass_has_not_seen_are_refused(rows):
    X, y = rows
    passes = []

    def read(number):
        passes.append(number)
        words = np.where(y > np.median(y), "high", "low").astype("U7")
        words[:3] = "neither" if len(passes) > 2 else "low"
        return X[number::2], words[number::2]

    with pytest.raises(ValueError, match="'neither', which is not in the data of the fit"):
        fit_blocks("multinomial", Blocks(read, 2), n_experts=1, rng=0)


def test_words_and_numbers_are_not_labels_of_one_response(rows):
    X, y = rows
    change = lambda X, y: (X, np.full(1000, "1"))  # noqa: E731
    with pytest.raises(ValueError, match="y has words in one block and numbers in another"):
        fit_blocks("multinomial", bad(X, (y > 100).astype(int), change), n_experts=1, rng=0)


def test_blocks_are_made_of_what_has_rows():
    with pytest.raises(ValueError, match=r"same length, got \[3, 2\]"):
        Blocks.from_arrays(np.zeros(3), np.zeros(2))
    with pytest.raises(ValueError, match="X must be an array"):
        Blocks.from_arrays([1.0], np.zeros(1))
    with pytest.raises(ValueError, match=r"blocks must be a moestat\.Blocks"):
        fit_blocks("gaussian", np.zeros(3), n_experts=1)


def test_memory_is_that_of_some_blocks(tmp_path, rows):
    """Mostly that of the sample that starts are searched on, whatever the number of rows."""
    X, y = rows
    store = np.memmap(tmp_path / "rows", dtype=np.float32, mode="w+", shape=(1_000_000, 3))
    store[:] = np.tile(np.column_stack([X, y]), (200, 1))
    store.flush()
    file = np.memmap(tmp_path / "rows", dtype=np.float32, mode="r", shape=(1_000_000, 3))
    start = [GivenStarts([moestat.fit("gaussian", X, y, n_experts=2, rng=0).theta])]
    blocks = Blocks.from_arrays(file[:, :2], file[:, 2], rows=20_000)
    tracemalloc.start()
    try:
        found = fit_blocks(GAUSSIAN, blocks, starts=start, rng=0, threads=2)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.nobs == 1_000_000
    assert found.certificate.certified
    assert peak < 25e6  # the rows in float64 are 24 MB, and a fit in memory takes some copies
