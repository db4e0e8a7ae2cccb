"""The law of sources: a formula has the same fit on every kind of source as on a table in memory.

Kinds of sources and formulas are registers; a new member of either is tested with all of the other.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import moestat
from moestat import Blocks, fit_formula
from moestat.base.warnings import MoEWarning
from tests.kinds import each_run, pairs

pytest.importorskip("pyarrow")
import pyarrow.dataset as pads

GROUPS = 300


@pytest.fixture(autouse=True)
def lazy_frames_are_sources(monkeypatch):
    """Lazy frames of any size are read in parts, as long ones are, and slices are short."""
    monkeypatch.setattr("moestat.estimation.rows.sources.SAMPLED", 0)
    monkeypatch.setattr("moestat.estimation.rows.sources._SLICE", 211)


@pytest.fixture(scope="module")
def frame():
    """Visits of persons of two kinds, sorted by person."""
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(GROUPS), rng.integers(2, 8, GROUPS))
    n = who.size
    sex = rng.choice(["f", "m"], GROUPS)[who]
    first = rng.random(GROUPS)[who] < np.where(sex == "f", 0.3, 0.7)
    t, own = rng.uniform(0, 4, n), rng.normal(size=GROUPS)[who]
    y = np.where(first, 1 + 2 * t, 4 - t) + 0.3 * own + 0.5 * rng.normal(size=n)
    trials = rng.integers(1, 9, n)
    s = rng.binomial(trials, np.where(first, 0.2, 0.7))
    low = np.where(rng.random(n) < 0.2, -np.inf, y)
    return pd.DataFrame(
        {
            "y": y,
            "other": 0.5 * y + rng.normal(size=n),
            "t": t,
            "sex": sex,
            "id": who,
            "name": [f"person {i:03d}" for i in who],
            "weight": rng.integers(1, 4, GROUPS)[who],
            "count": rng.poisson(np.exp(np.where(first, 0.2 + 0.3 * t, 1.5 - 0.2 * t))),
            "s": s,
            "f": trials - s,
            "time": np.exp(0.3 * y),
            "event": (rng.random(n) < 0.7).astype(int),
            "yes": np.where(rng.random(n) < 0.3 + 0.4 * first, "yes", "no"),
            "low": low,
            "high": np.where((rng.random(n) < 0.2) & np.isfinite(low), np.inf, y),
        }
    )


@pytest.fixture(scope="module")
def folder(frame, tmp_path_factory):
    """Two files whose row groups end within persons."""
    path = tmp_path_factory.mktemp("visits")
    frame[:700].to_parquet(path / "a.parquet", row_group_size=251)
    frame[700:].to_parquet(path / "b.parquet", row_group_size=400)
    return path


def of_blocks(folder):
    rows = pd.read_parquet(folder)
    features = tuple(name for name in rows.columns if name != "y")
    ends = [*range(0, len(rows), 333), len(rows)]

    def read(i):
        part = slice(ends[i], ends[i + 1])
        return rows[[*features]][part], rows["y"][part]

    return Blocks(read, len(ends) - 1, features, "y")


SOURCES = {
    "Parquet": lambda folder: folder,
    "pyarrow": lambda folder: pads.dataset(folder),
    "polars": lambda folder: pytest.importorskip("polars").scan_parquet(folder / "*.parquet"),
    "dask": lambda folder: pytest.importorskip("dask.dataframe").read_parquet(
        folder, split_row_groups=True
    ),
    "blocks": of_blocks,
}

FORMULAS = {
    "rows": ("y ~ t + sex | sex", {}),
    "groups": ("y ~ t | sex | id", {}),
    "groups by words, weights": ("y ~ t | 1 | name", {"weights": "weight"}),
    "groups of counts": ("count ~ t | 1 | id", {"family": "poisson"}),
    "random effects": ("y ~ t + (1 | id) | sex", {}),
    "trials": ("cbind(s, f) ~ t | sex", {"family": "binomial"}),
    "survival": ("Surv(time, event) ~ t | 1", {"family": "weibull"}),
    "bounds": ("cbind(low, high) ~ t | sex", {}),
    "several responses": ("cbind(y, count) ~ t | sex", {"family": ["gaussian", "poisson"]}),
    "several with classes": ("cbind(y, yes) ~ t | sex", {"family": ["gaussian", "multinomial"]}),
    "several in groups": ("cbind(y, count) ~ t | sex | id", {"family": ["gaussian", "poisson"]}),
    "correlated responses": ("cbind(y, other) ~ t | sex", {"family": "multivariate-gaussian"}),
    "prior": ("y ~ t + sex | t", {"prior": "weak"}),
    "step of the response": ("y ~ t | sex", {"resolution": 0.01}),
    "formulas by expert": ({"1": "y ~ t | sex", "2": "y ~ t + sex | sex"}, {}),
    "likelihoods by expert": ("y ~ t | sex", {"family": {"experts": ["gaussian", "uniform"]}}),
}


def fitted(formula, data, options):
    how = {"rng": 0, "n_starts": 8, **options}
    if isinstance(formula, str) and not isinstance(how.get("family"), dict):
        how["n_experts"] = 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoEWarning)
        return fit_formula(formula, data, **how)


def same(found, whole):
    """Whether two fits are the same in every number and word."""
    assert found.log_likelihood == pytest.approx(whole.log_likelihood, rel=1e-10)
    assert np.max(np.abs(found.theta - whole.theta)) < 1e-8
    assert np.nanmax(np.abs(found.theta_bse - whole.theta_bse)) < 1e-6
    assert list(found.params.index) == list(whole.params.index)
    assert found.certificate.certified == whole.certificate.certified
    assert (found.kinds, found.notes) == (whole.kinds, whole.notes)
    assert found.bic == pytest.approx(whole.bic, rel=1e-10)
    assert found.n_groups == whole.n_groups
    assert found.data.resolution == whole.data.resolution


@pytest.fixture(scope="module")
def in_memory(frame):
    """Fits to the table, each made once."""
    kept = {}

    def fit_of(name):
        if name not in kept:
            kept[name] = fitted(FORMULAS[name][0], frame, FORMULAS[name][1])
        return kept[name]

    return fit_of


@pytest.mark.parametrize(("name", "kind"), pairs(FORMULAS, SOURCES))
def test_a_formula_has_the_same_fit_on_every_source(name, kind, folder, in_memory):
    formula, options = FORMULAS[name]
    same(fitted(formula, SOURCES[kind](folder), options), in_memory(name))


def test_the_solver_of_many_parameters_ends_at_the_same_estimate(folder, frame, monkeypatch):
    monkeypatch.setattr("moestat.estimation.search.runs.MANY", 1)
    for formula, options in (FORMULAS["rows"], ("y ~ t + sex | sex", {"equal": {"a": [["sex"]]}})):
        same(fitted(formula, folder, options), fitted(formula, frame, options))


@pytest.fixture
def small_samples(monkeypatch):
    """Samples and pieces smaller than the rows."""
    monkeypatch.setattr("moestat.estimation.rows.block_rows.SAMPLED", 500)
    for place in ("fitting.fit_source", "rows.first_pass"):
        monkeypatch.setattr(f"moestat.estimation.{place}.SAMPLED", 500)
    monkeypatch.setattr("moestat.estimation.rows.designs._PIECE", 37)


@pytest.mark.parametrize(
    "name",
    each_run(["groups", "random effects", "several in groups", "prior"], ["random effects"]),
)
def test_the_fit_does_not_depend_on_the_sample_or_on_pieces(name, folder, in_memory, small_samples):
    formula, options = FORMULAS[name]
    starts = [moestat.starts.GivenStarts([in_memory(name).theta])]
    found = fitted(formula, folder, {**options, "starts": starts, "n_starts": None})
    assert found.log_likelihood == pytest.approx(in_memory(name).log_likelihood, rel=1e-10)
    assert np.max(np.abs(found.theta - in_memory(name).theta)) < 1e-8


def test_groups_in_the_sample_are_whole(folder, in_memory, small_samples):
    found = fitted("y ~ t | sex | id", folder, {})
    drawn = found.source.totals.sample
    assert 300 < drawn.keys.size <= 500
    sizes = pd.read_parquet(folder).groupby("id").size()
    labels, counts = np.unique(drawn.groups, return_counts=True)
    assert np.array_equal(counts, sizes[labels])


def test_groups_by_partition_are_not_sorted(frame, tmp_path, in_memory):
    """No group lies in two files, and labels of each file are spread over all labels."""
    mixed = frame.sample(frac=1.0, random_state=0)
    for part in range(3):
        mixed[mixed["id"] % 3 == part].to_parquet(tmp_path / f"{part}.parquet")
    same(fitted("y ~ t | sex | id", tmp_path, {}), in_memory("groups"))


def test_groups_with_missing_rows_at_the_border_of_parts(frame, tmp_path):
    rows = frame.copy()
    rows.loc[248:253, "t"] = np.nan
    rows.loc[500, "sex"] = None
    rows.to_parquet(tmp_path / "rows.parquet", row_group_size=251)
    options = {"missing": "drop"}
    same(fitted("y ~ t | sex | id", tmp_path, options), fitted("y ~ t | sex | id", rows, options))


def test_groups_that_are_split_over_parts_are_refused_by_name(frame, tmp_path, monkeypatch):
    monkeypatch.setattr("moestat.estimation.rows.source_groups._MOST_MOVED", 100)
    mixed = frame.sample(frac=1.0, random_state=0)
    mixed.to_parquet(tmp_path / "rows.parquet", row_group_size=400)
    message = (
        r"groups: \d+ groups are split over parts of the source, such as \d+"
        r" \(rows.parquet, row group 0, .*sort the source by 'id', or partition it"
    )
    with pytest.raises(ValueError, match=message):
        fit_formula("y ~ t | sex | id", tmp_path, n_experts=2, rng=0)


def test_few_rows_of_split_groups_are_read_with_the_first_part(frame, tmp_path, in_memory):
    """Any order is right as long as the rows that move fit into memory."""
    mixed = frame.sample(frac=1.0, random_state=0)
    mixed.to_parquet(tmp_path / "rows.parquet", row_group_size=400)
    same(fitted("y ~ t | sex | id", tmp_path, {}), in_memory("groups"))
