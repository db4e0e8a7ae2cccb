"""Questions that a fit to a source answers by reading its rows once more."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest

import moestat
from moestat import Blocks, fit_blocks, fit_formula
from moestat.base.warnings import MoEWarning
from moestat.estimation.inference import resampling
from moestat.estimation.studies import cross_validation, selection

pytest.importorskip("pyarrow")

N = 2400

CASES = {
    "weights": ("y ~ t + sex | sex", {"weights": "w"}),
    "groups": ("y ~ t | sex | id", {}),
    "trials": ("cbind(s, f) ~ t | sex", {"family": "binomial"}),
    "prior": ("y ~ t | t", {"prior": "weak"}),
    "several": ("cbind(y, s) ~ t | sex", {"family": ["gaussian", "poisson"]}),
}


CLINICS = {"groups": "clinic", "strata": "zone"}

NO_EXPECTED = {
    "groups": "'expected': not available with groups",
    "several": "expected information are integrals over one response",
}
"""What has no expected information in memory either."""


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(1)
    who = np.arange(N) // 4
    sex, first = rng.choice(["f", "m"], N // 4)[who], rng.random(N // 4)[who] < 0.5
    t, trials = rng.uniform(0, 4, N), rng.integers(1, 9, N)
    s = rng.binomial(trials, np.where(first, 0.2, 0.7))
    return pd.DataFrame(
        {
            "y": np.where(first, 1 + 2 * t, 4 - t) + 0.5 * rng.normal(size=N),
            "t": t,
            "sex": sex,
            "id": who,
            "w": rng.integers(0, 4, N // 4)[who],
            "s": s,
            "f": trials - s,
            "town": [f"town {i}" for i in rng.integers(0, 40, N)],
            "clinic": [f"clinic {i % 37}" for i in who],
            "zone": [f"zone {i % 37 % 3}" for i in who],
            "land": rng.choice(["east", "west"], N),
        }
    )


@pytest.fixture(scope="module")
def path(frame, tmp_path_factory):
    where = tmp_path_factory.mktemp("rows") / "rows.parquet"
    frame.to_parquet(where, row_group_size=517)
    return where


@pytest.fixture(scope="module")
def fits(frame, path):
    """The fit in memory and the one to the file, each made once."""
    kept = {}

    def fits_of(name):
        if name not in kept:
            formula, options = CASES[name]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", MoEWarning)
                kept[name] = [
                    fit_formula(formula, data, n_experts=2, rng=0, n_starts=4, **options)
                    for data in (frame, path)
                ]
        return kept[name]

    return fits_of


def close(found, whole):
    np.testing.assert_allclose(found, whole, rtol=1e-5, atol=1e-12)


@pytest.mark.parametrize("kind", ["HC0", "HC1", "expected"])
@pytest.mark.parametrize("name", CASES)
def test_robust_covariances_are_those_in_memory(name, kind, fits):
    whole, found = fits(name)
    if kind == "expected" and (message := NO_EXPECTED.get(name)) is not None:
        for each in (whole, found):
            with pytest.raises(ValueError, match=message):
                each.get_robustcov_results(kind)
        return
    close(found.get_robustcov_results(kind).theta_bse, whole.get_robustcov_results(kind).theta_bse)


def test_clusters_and_strata_are_columns_of_the_source(fits, frame):
    whole, found = fits("weights")
    for given in ({"groups": "town"}, {"groups": "town", "strata": "land"}, {"strata": "land"}):
        kind = "survey" if "strata" in given else "cluster"
        labels = {name: frame[column] for name, column in given.items()}
        nested = (
            {**labels, "groups": labels["groups"] + frame["land"]} if len(given) > 1 else labels
        )
        wanted = whole.get_robustcov_results(kind, **nested)
        close(found.get_robustcov_results(kind, **given).theta_bse, wanted.theta_bse)
    close(
        found.get_robustcov_results("survey").theta_bse,
        whole.get_robustcov_results("survey").theta_bse,
    )


def test_groups_of_the_fit_are_its_clusters(fits):
    whole, found = fits("groups")
    close(
        found.get_robustcov_results("cluster").theta_bse,
        whole.get_robustcov_results("cluster").theta_bse,
    )


@pytest.mark.parametrize("given", [{"groups": "clinic"}, {"strata": "zone"}, CLINICS, {}], ids=str)
def test_clusters_of_groups_are_columns_too(fits, frame, given):
    """Rows of groups that begin in one row group and end in the next have their labels there."""
    whole, found = fits("groups")
    assert found.source.blocks.plan.moves.received
    for kind in ["survey"] if "strata" in given else ["cluster", "survey"]:
        labels = {name: frame[column] for name, column in given.items()}
        wanted = whole.get_robustcov_results(kind, **labels)
        close(found.get_robustcov_results(kind, **given).theta_bse, wanted.theta_bse)


def test_groups_that_lie_in_several_clusters_are_refused_by_name(fits, frame):
    whole, found = fits("groups")
    for fit, labels in ((whole, frame["town"]), (found, "town")):
        with pytest.raises(ValueError, match=r"rows of group \d+ of the fit have several labels"):
            fit.get_robustcov_results("cluster", groups=labels)


@pytest.mark.parametrize("name", ["weights", "groups", "trials"])
def test_the_most_influential_rows_are_found(name, fits, frame):
    whole, found = fits(name)
    every, top = whole.influence(), found.influence(top=7)
    order = np.argsort(-every.displacement)[:7]
    names = np.arange(len(every.displacement))
    if name == "weights":  # rows of weight 0 are in memory, and move nothing
        assert frame["w"].iloc[order].min() > 0
    assert top.rows.tolist() == names[order].tolist()
    close(top.displacement, every.displacement[order])
    np.testing.assert_allclose(top.moves, every.moves[order], rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize("name", ["weights", "groups"])
def test_entropy_and_criteria_are_those_in_memory(name, fits):
    whole, found = fits(name)
    assert found.entropy == pytest.approx(whole.entropy, rel=1e-8)
    assert found.icl == pytest.approx(whole.icl, rel=1e-10)


def test_resamples_share_passes(fits, monkeypatch):
    """Weights do not depend on the batches in which resamples are fitted, or on threads."""
    _, found = fits("weights")
    some = moestat.bootstrap(found, 12, rng=5, threads=2)
    monkeypatch.setattr(resampling, "RESAMPLES", resampling.RESAMPLES._replace(hessians=1))
    again = moestat.bootstrap(found, 12, rng=5, threads=1)
    assert np.array_equal(some.replicates, again.replicates)
    assert (some.n_failed, some.n_uncertified) == (0, 0)


@pytest.mark.parametrize("kind", ["pairs", pytest.param("bayesian", marks=pytest.mark.slow)])
def test_standard_errors_of_the_bootstrap_are_those_of_the_sandwich(kind, fits):
    _, found = fits("groups")
    moves = found.bootstrap(200, kind, rng=0)
    robust = found.get_robustcov_results("HC0").theta_bse
    ratio = moves.theta_bse[robust > 0] / robust[robust > 0]
    # The standard deviation of a standard error of 200 resamples is 5 percent.
    assert np.all((ratio > 0.8) & (ratio < 1.3)), ratio
    assert moves.conf_int().shape[1] == 2
    errors = found.get_robustcov_results("bootstrap", n_resamples=20, rng=0)
    assert errors.cov_type == "bootstrap"


def test_what_a_source_cannot_answer_is_refused_by_name(fits, frame):
    _, found = fits("weights")
    with pytest.raises(ValueError, match="kind 'parametric': needs the table in memory"):
        found.bootstrap(5, "parametric")
    with pytest.raises(ValueError, match="groups: a bootstrap on a source resamples rows"):
        found.bootstrap(5, "cluster", groups="town")
    with pytest.raises(ValueError, match="method 'bca' is not available for a source"):
        found.bootstrap(5, rng=0).conf_int(method="bca")
    with pytest.raises(
        ValueError, match="groups: for a fit to a source, give the name of a column"
    ):
        found.get_robustcov_results("cluster", groups=frame["town"])
    with pytest.raises(ValueError, match="groups: the source has no column 'city'; it has y, t"):
        found.get_robustcov_results("cluster", groups="city")
    with pytest.raises(ValueError, match="groups: 'cluster' needs the name of a column"):
        found.get_robustcov_results("cluster")
    with pytest.raises(ValueError, match="top must be"):
        found.influence(top=0)
    with pytest.raises(ValueError, match=r"from blocks or a source\. .*at_sample\(\)"):
        found.profile("a[1,t]")


ROWS = {
    "fittedvalues": lambda fit: fit.fittedvalues,
    "resid": lambda fit: fit.resid,
    "quantile_residuals": lambda fit: fit.quantile_residuals(0),
    "responsibilities": lambda fit: fit.responsibilities,
    "score_samples": lambda fit: fit.score_samples(),
}
SUMS = ("rsquared", "icl_map")


@pytest.mark.parametrize("ask", ROWS)
@pytest.mark.parametrize("name", CASES)
def test_values_of_all_rows_are_those_in_memory(name, ask, fits):
    """By one pass, in the order of the source, whatever parts the rows of a group are in."""
    whole, found = fits(name)
    if name == "groups" and ask == "score_samples":
        with pytest.raises(ValueError, match="a fit with groups to a source has no table of all"):
            ROWS[ask](found)
        return
    here, there = np.asarray(ROWS[ask](found)), np.asarray(ROWS[ask](whole))
    assert here.shape == there.shape
    if ask == "quantile_residuals" and name in ("trials", "several"):  # counts draw at random
        assert here.std(axis=0) == pytest.approx(there.std(axis=0), rel=0.05)
        close(ROWS[ask](found), here)
        here, there = (each[:, 0] if name == "several" else each * 0 for each in (here, there))
    np.testing.assert_allclose(here, there, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("ask", SUMS)
def test_sums_over_all_rows_are_those_in_memory(name, ask, fits):
    whole, found = fits(name)
    if ask == "rsquared" and name in ("trials", "several"):
        for each in (whole, found):
            with pytest.raises(ValueError, match="have no R-squared"):
                each.rsquared  # noqa: B018
        return
    assert getattr(found, ask) == pytest.approx(getattr(whole, ask), rel=1e-8)


def test_residuals_of_a_generalised_linear_model(frame, path):
    how = {"n_experts": 1, "rng": 0, "family": "poisson", "weights": "w"}
    whole, found = (fit_formula("s ~ t + sex", data, **how) for data in (frame, path))
    for ask in ("resid_pearson", "resid_deviance", "deviance", "pearson_chi2"):
        np.testing.assert_allclose(getattr(found, ask), getattr(whole, ask), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_the_sample_has_what_rows_in_memory_have(name, fits):
    """It is all rows with a weight here."""
    whole, found = fits(name)
    small = found.at_sample()
    assert small.nobs == pytest.approx(whole.nobs)
    rows = small.data.kept
    order = np.argsort(rows, kind="stable")
    for ask in ("resid", "responsibilities"):
        here, there = (np.asarray(ROWS[ask](fit)) for fit in (small, whole))
        np.testing.assert_allclose(here[order], there[rows[order]], rtol=1e-6, atol=1e-7)
    assert np.shape(small.quantile_residuals(0))[0] == rows.size
    for ask in (small.get_robustcov_results, small.bootstrap, small.influence):
        with pytest.raises(ValueError, match="ask the fit itself for covariances, tests and ref"):
            ask(*["HC0"] * (ask == small.get_robustcov_results))
    with pytest.raises(ValueError, match="at_sample: is for fits to blocks or a source"):
        whole.at_sample()


def test_values_that_do_not_fit_into_memory_are_refused(fits, monkeypatch):
    _, found = fits("weights")
    monkeypatch.setattr("moestat.base.memory.available_memory", lambda: 1000)
    with pytest.raises(ValueError, match=r"resid: values of 2,400 rows .* at_sample\(\).resid"):
        found.resid  # noqa: B018


@pytest.mark.parametrize("name", ["weights", "groups", "trials", "several"])
def test_score_tests_are_those_in_memory(name, fits):
    whole, found = fits(name)
    j = int(np.flatnonzero(whole.theta_bse > 0.0)[-1])
    theta = whole.theta.copy()
    theta[j] += 2.0 * whole.theta_bse[j]
    one, other = (moestat.score_test(fit, theta, df=1) for fit in (whole, found))
    assert other.statistic == pytest.approx(one.statistic, rel=1e-6)


def test_clusters_with_missing_labels_are_refused(frame, tmp_path):
    rows = frame.copy()
    rows.loc[7, "town"] = None
    rows.to_parquet(tmp_path / "rows.parquet")
    found = fit_formula("y ~ t | 1", tmp_path, n_experts=1, rng=0)
    with pytest.raises(ValueError, match="column 'town' has 1 missing values"):
        found.get_robustcov_results("cluster", groups="town")


def test_blocks_without_names_have_robust_covariances_too(frame):
    X, y = frame[["t"]].to_numpy(), frame["y"].to_numpy()
    whole = moestat.fit("gaussian", X, y, n_experts=2, rng=0, n_starts=4)
    found = fit_blocks("gaussian", Blocks.from_arrays(X, y, rows=700), n_experts=2, rng=0)
    close(
        found.get_robustcov_results("HC1").theta_bse, whole.get_robustcov_results("HC1").theta_bse
    )
    with pytest.raises(ValueError, match="groups: blocks have columns only for inputs"):
        found.get_robustcov_results("cluster", groups="town")


def test_stored_results_have_no_source(fits, tmp_path):
    _, found = fits("groups")
    found.save(tmp_path / "fit.npz")
    again = moestat.load(tmp_path / "fit.npz")
    assert again.bic == found.bic
    assert again.n_groups == found.n_groups == N // 4
    for other in (again, pickle.loads(pickle.dumps(found))):
        assert other.source is None
        with pytest.raises(ValueError, match="without the data"):
            other.get_robustcov_results("HC0")


def passes_of(path, frame):
    """Blocks that count how often a block is read."""
    rows = pd.read_parquet(path)
    features = tuple(name for name in rows.columns if name != "y")
    read = []

    def block(i):
        read.append(i)
        own = rows[i * 800 : (i + 1) * 800]
        return own[[*features]], own["y"]

    return Blocks(block, 3, features, "y"), read


FORMULAS = ["y ~ t | sex", "y ~ t + sex | sex"]


def test_select_on_a_source_chooses_as_in_memory(frame, path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoEWarning)
        whole = moestat.select("gaussian", FORMULAS, data=frame, k=(1, 2), rng=0, n_starts=4)
        found = moestat.select("gaussian", FORMULAS, data=path, k=(1, 2), rng=0, n_starts=4)
    assert found.chosen() == whole.chosen()
    for name in ("llf", "df", "aic", "bic", "hqic", "icl", "certified"):
        np.testing.assert_allclose(found.table[name], whole.table[name], rtol=1e-9)
    with pytest.raises(ValueError, match="folds must be an integer >= 2"):
        moestat.select("gaussian", FORMULAS, data=path, k=(1,), folds=1, rng=0, n_starts=2)


@pytest.mark.parametrize(
    ("formula", "options"),
    [("y ~ t | sex", {"weights": "w"}), ("y ~ t | sex | id", {}), ("y ~ t | t", {"prior": "weak"})],
)
def test_folds_of_a_source_are_those_in_memory(formula, options, frame, tmp_path, monkeypatch):
    """The same rows, or groups, are held out in both; the fits to the others end at one maximum."""
    frame = frame.assign(w=frame["w"] + 1)
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=N // 3)
    seeds, held_out, folds = [], selection.held_out_on_source, 3

    def noted(result, count, seed):
        seeds.append(seed)
        return held_out(result, count, seed)

    def labels(rows, count, rng):
        each = N // 3 // (4 if rows.groups is not None else 1)
        draws = [np.random.default_rng([seeds[0], i]).integers(count, size=each) for i in range(3)]
        return np.concatenate(draws)[np.arange(N) // (N // 3 // each)]

    monkeypatch.setattr(selection, "held_out_on_source", noted)
    monkeypatch.setattr(cross_validation, "fold_labels", labels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoEWarning)
        found, whole = (
            moestat.select("gaussian", formula, data=data, k=(1, 2), folds=folds, rng=0, **options)
            for data in (tmp_path / "rows.parquet", frame)
        )
    assert len(seeds) == 2
    # In memory a weak prior is in units of the rows of each fit, here in those of all rows.
    rtol = 1e-5 if "prior" in options else 1e-7
    np.testing.assert_allclose(found.table["cv"], whole.table["cv"], rtol=rtol)


def test_fits_of_a_selection_share_their_first_passes(frame, path):
    """One pass over the columns, and one over the design: two passes over three blocks less."""
    (apart, alone), (together, shared) = passes_of(path, frame), passes_of(path, frame)
    how = {"rng": 0, "n_starts": 2}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoEWarning)
        for k in (1, 2):
            fit_formula("y ~ t | sex", apart, n_experts=k, **how)
        moestat.select("gaussian", "y ~ t | sex", data=together, k=(1, 2), **how)
    # The criterion icl of two experts takes one more pass.
    assert len(shared) <= len(alone) - 3 * 2 + 3


def test_the_sample_of_a_source_changes_no_column_apart_from_its_terms(frame, tmp_path):
    """Its marginal effects moved a factor and held the product; those in memory move both."""
    frame.to_parquet(tmp_path / "rows.parquet")
    path = str(tmp_path / "rows.parquet")
    plain = moestat.fit_formula("y ~ t | t", path, n_experts=1, rng=0).at_sample()
    assert plain.plot().get_xlabel() == "t"
    whole = moestat.fit_formula("y ~ t | t", frame, n_experts=1, rng=0)
    np.testing.assert_allclose(plain.get_margeff().effect, whole.get_margeff().effect, rtol=1e-5)
    mixed = moestat.fit_formula("y ~ t + sex | 1", path, n_experts=1, rng=0).at_sample()
    assert mixed.plot(feature="t").get_xlabel() == "t"
    bent = moestat.fit_formula("y ~ t * sex | 1", path, n_experts=1, rng=0).at_sample()
    lacks = "whose columns the sample of a source lacks"
    rows = "not in memory; give newdata="
    for question, why in ((mixed.get_margeff, rows), (bent.get_margeff, rows), (bent.plot, lacks)):
        with pytest.raises(ValueError, match=why):
            question()
