"""Fits by formula to sources agree with fits to the same rows in memory."""

from __future__ import annotations

import os
import re
import signal
import warnings

import numpy as np
import pandas as pd
import pytest

import moestat
from moestat import Blocks, fit_formula
from moestat.base.warnings import InterruptedWarning, MoEWarning
from moestat.estimation.starts import GivenStarts
from tests.kinds import each_run

pytest.importorskip("pyarrow")
import pyarrow.dataset as pads
import pyarrow.parquet as pq

N = 3000


@pytest.fixture(autouse=True)
def lazy_frames_are_sources(monkeypatch):
    """Lazy frames of any size are read in parts here, as long ones are."""
    monkeypatch.setattr("moestat.estimation.rows.sources.SAMPLED", 0)


@pytest.fixture(scope="module")
def frame():
    """Prices of flats in two segments."""
    rng = np.random.default_rng(0)
    area, year = rng.uniform(20, 200, N), rng.integers(2018, 2022, N)
    region = rng.choice(list("NESW"), N)
    cheap = rng.random(N) < 1 / (1 + np.exp(0.05 * (area - 90)))
    level = np.where(cheap, 1 + 0.01 * area, 3 + 0.004 * area) + 0.2 * (region == "S")
    noise = 0.3 * rng.normal(size=N)
    return pd.DataFrame(
        {
            "price": np.exp(level + 0.05 * (year - 2020) + noise),
            "area": area,
            "region": region,
            "kind": pd.Categorical(rng.choice(["old", "new"], N), categories=["old", "new"]),
            "year": year,
            "sales": rng.poisson(np.where(cheap, 1.0, 6.0) * (1 + (region == "S"))),
            "months": rng.uniform(1, 3, N),
            "count": rng.integers(0, 3, N),
            "sold": np.where(rng.random(N) < 1 / (1 + np.exp(-0.04 * (area - 90))), "yes", "no"),
        }
    )


@pytest.fixture(scope="module")
def folder(frame, tmp_path_factory):
    """The rows in two files of several row groups."""
    path = tmp_path_factory.mktemp("flats")
    frame[:1100].to_parquet(path / "a.parquet", row_group_size=400)
    frame[1100:].to_parquet(path / "b.parquet", row_group_size=1000)
    return path


def of_polars(folder):
    return pytest.importorskip("polars").scan_parquet(folder / "*.parquet")


def of_dask(folder):
    return pytest.importorskip("dask.dataframe").read_parquet(folder)


def of_blocks(folder):
    rows = pd.read_parquet(folder)
    features = tuple(name for name in rows.columns if name != "price")
    cut = [slice(700 * i, 700 * (i + 1)) for i in range(5)]
    read = lambda i: (rows[[*features]][cut[i]], rows["price"][cut[i]])  # noqa: E731
    return Blocks(read, 5, features, "price")


KINDS = {
    "folder": lambda folder: folder,
    "file pattern": lambda folder: str(folder / "*.parquet"),
    "pyarrow": lambda folder: pads.dataset(folder),
    "polars": of_polars,
    "dask": of_dask,
    "blocks": of_blocks,
}


def same(found, whole):
    """Whether two fits agree; both end within the solver's tolerance of the maximum."""
    assert found.certificate.certified == whole.certificate.certified
    assert found.log_likelihood == pytest.approx(whole.log_likelihood, rel=1e-10)
    assert list(found.params.index) == list(whole.params.index)
    scale = np.where(whole.theta_bse > 0, whole.theta_bse, 1.0)
    assert np.max(np.abs(found.theta - whole.theta) / scale) < 1e-4
    assert found.bic == pytest.approx(whole.bic)
    assert [*map(_without_counts, found.notes)] == [*map(_without_counts, whole.notes)]
    assert found.kinds == whole.kinds


def _without_counts(note):
    """A note without how many runs came to the best height, which rounding decides."""
    return re.sub(r"\d+ of \d+ runs|about \d+%", "", note)


@pytest.mark.parametrize("kind", each_run(KINDS, ["folder", "dask"]))
def test_the_fit_is_that_of_a_table_in_memory(kind, folder, frame):
    formula = "log(price) ~ area + region + C(year) | area"
    whole = fit_formula(formula, frame, n_experts=2, rng=0)
    found = fit_formula(formula, KINDS[kind](folder), n_experts=2, rng=0)
    same(found, whole)
    new = frame[["area", "region", "year"]][:9]
    assert np.asarray(found.predict(new)) == pytest.approx(np.asarray(whole.predict(new)))
    assert found.data.responses == ("price",)
    assert str(found.summary()).count("region[S]") == str(whole.summary()).count("region[S]")


CASES = {
    "declared levels": ("log(price) ~ area + kind | area", {}),
    "weights": ("log(price) ~ area | area", {"weights": "count"}),
    "offset": ("sales ~ region | 1", {"family": "poisson", "offset": "log(months)"}),
    "offset in the formula": ("sales ~ area + offset(log(months)) | 1", {"family": "poisson"}),
    "no intercept": ("log(price) ~ 0 + area + region | area", {}),
    "equal": ("log(price) ~ area + region | area", {"equal": {"a": [["region"]], "nu": True}}),
    "fixed": ("log(price) ~ area | 1", {"fixed": {"a": {(1, "area"): 0.004}}}),
    "classes": ("sold ~ area + region", {"family": "multinomial", "n_experts": 1}),
    "order of classes": (
        "sold ~ area",
        {"family": "multinomial", "n_experts": 1, "classes": ["yes", "no"]},
    ),
    "transforms": ("log(price) ~ bs(area, df=4) + scale(year) | poly(area, 2)", {}),
    "a constant gate by a dot": ("sales ~ . - price - sold | 1", {"family": "poisson"}),
    "bounds": ("log(price) ~ area | 1", {"bounds": {"nu": (0.05, 1.0)}, "n_starts": 6}),
}


@pytest.mark.parametrize("case", CASES)
def test_arguments_and_terms_are_those_of_a_table(case, folder, frame):
    formula, options = CASES[case]
    options = {"n_experts": 2, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoEWarning)
        whole = fit_formula(formula, frame, rng=0, **options)
        found = fit_formula(formula, folder, rng=0, **options)
    same(found, whole)
    assert found.data.weights_column == whole.data.weights_column
    if whole.data.class_labels is not None:
        assert found.data.class_labels.tolist() == whole.data.class_labels.tolist()


@pytest.fixture
def gaps(frame, tmp_path):
    """A file with missing numbers and words, and the same rows."""
    rows = frame.copy()
    rows.loc[[5, 1700, 1701], "area"] = np.nan
    rows.loc[[1701, 2999], "region"] = None
    path = tmp_path / "gaps.parquet"
    rows.to_parquet(path, row_group_size=900)
    return path, rows


def test_missing_rows_are_dropped_and_counted_or_refused_as_in_memory(gaps):
    path, rows = gaps
    formula = "log(price) ~ area + region | area"
    whole = fit_formula(formula, rows, missing="drop", n_experts=2, rng=0)
    found = fit_formula(formula, path, missing="drop", n_experts=2, rng=0)
    same(found, whole)
    assert found.data.dropped == whole.data.dropped == 4
    with pytest.raises(ValueError, match="missing") as refused:
        fit_formula(formula, rows, n_experts=2, rng=0)
    with pytest.raises(ValueError, match="missing") as also:
        fit_formula(formula, path, n_experts=2, rng=0)
    assert str(also.value) == str(refused.value)


@pytest.fixture
def small_samples(monkeypatch):
    """Samples and pieces smaller than the rows."""
    monkeypatch.setattr("moestat.estimation.rows.block_rows.SAMPLED", 800)
    for place in ("fitting.fit_source", "rows.first_pass"):
        monkeypatch.setattr(f"moestat.estimation.{place}.SAMPLED", 800)
    monkeypatch.setattr("moestat.estimation.rows.designs._PIECE", 170)


@pytest.mark.parametrize("kind", each_run(["folder", "polars", "dask"], ["folder"]))
def test_levels_and_ends_are_those_of_all_rows(kind, folder, frame, small_samples, tmp_path):
    """A level that a sample of 800 rows would miss, in a part of many pieces."""
    rows = frame.copy()
    rows.loc[2345:2354, "region"] = "rare"
    rows.loc[100:109, "year"] = 1999
    rows.to_parquet(tmp_path / "rare.parquet")
    formula = "log(price) ~ region + C(year) + area"
    whole = fit_formula(formula, rows, n_experts=1, rng=0)
    same(fit_formula(formula, KINDS[kind](tmp_path), n_experts=1, rng=0), whole)


def test_centres_of_a_sample_are_another_name_of_the_same_model(folder, frame, small_samples):
    formula = "log(price) ~ scale(area) + poly(year, 2) | area"
    whole = fit_formula(formula, frame, n_experts=2, rng=0)
    found = fit_formula(formula, folder, n_experts=2, rng=0)
    assert found.log_likelihood == pytest.approx(whole.log_likelihood, rel=1e-10)
    (note,) = found.notes
    assert note.startswith("poly(year, 2), scale(area): ")
    assert "random sample of 800 of 3,000 rows" in note
    assert "random sample" in str(found.summary())
    assert "random sample" in str(found.explain())


def test_knots_of_a_sample_reach_the_ends_of_all_rows(folder, frame, small_samples):
    found = fit_formula("log(price) ~ bs(area, df=5) | 1", folder, n_experts=1, rng=0)
    assert np.isfinite(found.predict(frame.sort_values("area").iloc[[0, -1]])).all()
    assert "bs(area, df=5)" in found.notes[-1]


@pytest.mark.parametrize("processes", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_partitions_on_dask_workers(processes, folder, frame):
    distributed = pytest.importorskip("distributed")
    dd = pytest.importorskip("dask.dataframe")
    formula = "log(price) ~ area + region | area"
    whole = fit_formula(formula, frame, n_experts=2, rng=0)
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=processes, dashboard_address="127.0.0.1:0"
    )
    with cluster, distributed.Client(cluster):
        same(fit_formula(formula, dd.from_pandas(frame, npartitions=4), n_experts=2, rng=0), whole)
        with pytest.raises(ValueError, match=r"partition \d: formula: 'log\(area - 50\)'"):
            fit_formula("price ~ log(area - 50) | 1", dd.from_pandas(frame, 4), rng=0)


@pytest.mark.slow
def test_a_worker_that_is_killed_during_a_pass_is_replaced(folder, frame, tmp_path):
    """Its partitions are computed again by others, and the fit is the same."""
    distributed = pytest.importorskip("distributed")
    dd = pytest.importorskip("dask.dataframe")
    flag, client_of_fit = tmp_path / "killed", os.getpid()

    def mortal(x):
        if os.getpid() != client_of_fit and not flag.exists():
            flag.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return x

    formula = "log(price) ~ mortal(area) + region | area"
    whole = fit_formula(formula, frame, n_experts=2, rng=0)
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=50
    )
    with cluster, distributed.Client(cluster):
        same(fit_formula(formula, dd.read_parquet(folder), n_experts=2, rng=0), whole)
    assert flag.exists()


CENTRED = {"centred": lambda x: x - np.mean(x)}


@pytest.mark.parametrize(
    ("formula", "options", "message"),
    [
        ("price ~ area", {"solver": None}, "solver: is for data in memory; a fit to a so"),
        ("price ~ area", {"time_limit": -1.0}, "time_limit must be a number"),
        ("price ~ area", {"risk": 2.0}, "risk must be a number"),
        ("price ~ area", {"solver": moestat.solvers.Newton()}, "solver: is for data in memory"),
        ("price ~ area", {"compress": "auto"}, "compress: is for data in memory"),
        ("price ~ area | area | region", {}, "differs within a group, as 'area' does"),
        ("price ~ area | 1 | region", {"weights": "months"}, "sample_weight differs within group"),
        ("price ~ area + (1 | region)", {"prior": "weak"}, "random effects have no prior density"),
        ("cbind(price, area, year) ~ kind", {}, "has 3 responses; give a list of as many"),
        (
            "cbind(price, area) ~ year",
            {"family": "poisson"},
            r"row group \d: y: row \d+ \(from 0\) has the bounds",
        ),
        ("price ~ centred(area)", {"scope": CENTRED}, "in one row depends on other rows"),
        ("scale(price) ~ area", {}, r"'scale\(price\)' in one row depends on other rows"),
        ("price ~ lag(area)", {}, "depends on other rows|missing"),
        ("price ~ area", {"starts": [GivenStarts([[0.0]])], "n_starts": 3}, "apply to the default"),
        ("price ~ height", {}, "data has no column 'height'"),
        ("price ~ area", {"weights": "height"}, "data has no column 'height'"),
        ("price ~ area", {"missing": "keep"}, "missing must be one of"),
        ("price ~ area", {"n_expert": 3}, "n_expert"),
        ("price ~ area", {"classes": ["a", "b"]}, "the gaussian likelihood has no classes"),
    ],
)
def test_what_cannot_be_had_is_refused_by_name(formula, options, message, folder):
    with pytest.raises(ValueError, match=message):
        fit_formula(formula, folder, rng=0, **options)


@pytest.mark.parametrize("formula", ["log(area - 50) ~ year", "price ~ log(area - 50)"])
def test_what_is_infinite_is_said_as_in_memory(formula, frame, folder):
    with pytest.raises(ValueError, match="infinite or undefined") as refused:
        fit_formula(formula, frame, rng=0)
    with pytest.raises(ValueError, match="infinite or undefined") as also:
        fit_formula(formula, folder, rng=0)
    assert str(refused.value) in str(also.value)


def test_sources_that_are_none(tmp_path, folder):
    with pytest.raises(ValueError, match=r"data: no Parquet file is found at '.*none\*'"):
        fit_formula("y ~ x", tmp_path / "none*", rng=0)
    (tmp_path / "text.parquet").write_text("price,area\n1,2\n")
    with pytest.raises(ValueError, match=r"text.parquet' cannot be read as Parquet: "):
        fit_formula("price ~ area", tmp_path / "text.parquet", rng=0)
    filtered = pads.dataset(folder).filter(pads.field("area") > 50)
    with pytest.raises(ValueError, match="a data set of pyarrow with a filter"):
        fit_formula("price ~ area", filtered, rng=0)
    with pytest.raises(ValueError, match="a formula needs names of the columns of blocks"):
        fit_formula("price ~ area", Blocks.from_arrays(np.ones(3), np.ones(3)), rng=0)


def test_weights_of_blocks_are_theirs(frame):
    arrays = frame[["area"]], np.log(frame["price"]), frame["count"]
    found = fit_formula("price ~ area", Blocks.from_arrays(*arrays, rows=800), n_experts=2, rng=0)
    own = frame.assign(price=np.log(frame["price"]))
    same(found, fit_formula("price ~ area", own, weights="count", n_experts=2, rng=0))
    with pytest.raises(ValueError, match="weights: the blocks already contain weights"):
        fit_formula("price ~ area", Blocks.from_arrays(*arrays), weights="area", rng=0)


def test_partitions_in_folders_are_columns(frame, tmp_path):
    for region, rows in frame.groupby("region"):
        path = tmp_path / f"region={region}"
        path.mkdir()
        rows.drop(columns="region").to_parquet(path / "rows.parquet")
    formula = "log(price) ~ area + region | area"
    whole = fit_formula(formula, frame, n_experts=2, rng=0)
    found = fit_formula(formula, tmp_path, n_experts=2, rng=0)
    assert found.log_likelihood == pytest.approx(whole.log_likelihood, rel=1e-10)
    assert list(found.params.index) == list(whole.params.index)


def corrupt(path, column, group):
    """Overwrite the pages of one column in one row group."""
    with pq.ParquetFile(path) as file:
        chunk = file.metadata.row_group(group).column(file.schema_arrow.names.index(column))
        begin = chunk.dictionary_page_offset or chunk.data_page_offset
        size = chunk.total_compressed_size
    data = bytearray(path.read_bytes())
    data[begin : begin + size] = b"\xff" * size
    path.write_bytes(bytes(data))


def test_a_corrupt_row_group_is_named_and_columns_that_are_not_named_are_not_read(frame, tmp_path):
    path = tmp_path / "rows.parquet"
    frame.to_parquet(path, row_group_size=1000)
    corrupt(path, "months", 1)
    whole = fit_formula("log(price) ~ area", frame, n_experts=1, rng=0)
    same(fit_formula("log(price) ~ area", path, n_experts=1, rng=0), whole)
    corrupt(path, "area", 2)
    with pytest.raises(ValueError, match=r"rows.parquet, row group 2 cannot be read: "):
        fit_formula("log(price) ~ area", path, n_experts=1, rng=0)


@pytest.mark.parametrize("how", ["time", "rows"])
def test_a_file_that_changes_between_passes_is_refused(how, frame, tmp_path, monkeypatch):
    path = tmp_path / "rows.parquet"
    frame.to_parquet(path)
    from moestat.estimation.fitting import fit_source as source_fits

    survey = source_fits.first_pass

    def then_changed(*arguments):
        seen = survey(*arguments)
        (frame if how == "time" else frame[:2000]).to_parquet(path)
        os.utime(path, ns=(1, 1))
        return seen

    monkeypatch.setattr(source_fits, "first_pass", then_changed)
    with pytest.raises(ValueError, match=r"rows.parquet' has changed since the first pass"):
        fit_formula("log(price) ~ area", path, n_experts=1, rng=0)


@pytest.mark.parametrize("column", ["area", "region"])
def test_rows_that_change_between_passes_are_refused(column, frame):
    """A source without a time of its last change."""
    passes = []

    def read(number):
        passes.append(number)
        own = frame.copy()
        if len(passes) > 3:  # weights are looked for, rows are counted, levels are found
            own.loc[17, column] = own.loc[18, column]
        return own[["area", "region"]], own["price"]

    assert frame.loc[17, column] != frame.loc[18, column]
    with pytest.raises(ValueError, match="block 0: data: the rows have changed since the first"):
        fit_formula("price ~ area + region", Blocks(read, 1, ("area", "region"), "price"), rng=0)


def test_words_in_one_part_and_numbers_in_another_are_refused(frame):
    def read(number):
        own = frame[["area"]] if number else frame[["area"]].astype(int).astype(str)
        return own, frame["price"]

    with pytest.raises(ValueError, match="column 'area' has words in one part and numbers in"):
        fit_formula("price ~ area", Blocks(read, 2, ("area",), "price"), rng=0)


def test_a_factor_of_too_many_levels_is_refused(frame):
    rows = frame.assign(name=[f"flat {i}" for i in range(N)])
    blocks = Blocks.from_arrays(rows[["name"]], rows["price"])
    with pytest.raises(ValueError, match="column 'name' has more than 1000 levels"):
        fit_formula("price ~ name", blocks, rng=0)


def test_results_are_stored_without_rows(folder, tmp_path, frame):
    found = fit_formula("log(price) ~ area + region", folder, n_experts=2, rng=0)
    found.save(tmp_path / "fit.moe")
    again = moestat.load(tmp_path / "fit.moe")
    new = frame[["area", "region"]][:5]
    assert np.array_equal(again.predict(new), found.predict(new))
    with pytest.raises(ValueError, match="without the data"):
        again.get_robustcov_results("HC0")


def test_a_short_lazy_frame_is_a_table_in_memory(frame, monkeypatch):
    pl = pytest.importorskip("polars")
    lazy = pl.from_pandas(frame.assign(id=np.arange(N) // 6)).lazy()
    formula, how = "sales ~ area | 1 | id", {"family": "poisson", "rng": 0, "n_starts": 2}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoEWarning)
        assert not fit_formula(formula, lazy, **how).has_rows
    monkeypatch.setattr("moestat.estimation.rows.sources.SAMPLED", N)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoEWarning)
        result = fit_formula(formula, lazy, **how)
        other = fit_formula(formula, lazy.collect(), **how)
    assert result.has_rows
    assert np.array_equal(result.theta, other.theta)


def test_a_time_limit_ends_the_fit_between_two_passes(folder):
    with pytest.warns(InterruptedWarning, match="reached its time_limit"):
        found = fit_formula("price ~ area", folder, rng=0, time_limit=0.0)
    assert found.certificate.status == "time limit"
    assert found.source is not None
    late = fit_formula("price ~ area", folder, rng=0, time_limit=600.0)
    assert late.certificate.certified
    assert late.llf >= found.llf


def test_the_risk_says_how_long_the_search_goes_on(folder, frame):
    """A search that accepts no risk runs more starts than one that accepts any."""
    formula = "log(price) ~ area + year | area"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoEWarning)
        runs = [
            fit_formula(formula, folder, rng=0, n_experts=3, risk=risk).certificate.n_starts
            for risk in (0.0, 1.0)
        ]
    assert runs[0] > runs[1]
