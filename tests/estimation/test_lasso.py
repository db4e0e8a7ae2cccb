"""Lasso and elastic-net paths: against other libraries, against NumPy, and with n < p."""

import numpy as np
import pandas as pd
import pytest

import moestat


def _columns(n, d, seed):
    rng = np.random.default_rng(seed)
    return rng, rng.normal(size=(n, d)) * rng.uniform(0.5, 3.0, d) + rng.normal(size=d)


def _standard(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


@pytest.fixture(scope="module")
def mixture():
    rng, X = _columns(150, 6, 4)
    first = X[:, 0] + 0.5 * rng.normal(size=150) > X[:, 0].mean()
    y = np.where(first, 2.0 * X[:, 1], 3.0 - 2.0 * X[:, 1] + X[:, 2]) + 0.5 * rng.normal(size=150)
    return X, y


@pytest.fixture(scope="module")
def path(mixture):
    return moestat.lasso_path("gaussian", *mixture, n_experts=2, n_penalties=12, rng=0)


@pytest.mark.parametrize("ratio", [1.0, 0.4])
def test_one_normal_expert_is_sklearn(ratio):
    linear_model = pytest.importorskip("sklearn.linear_model")
    rng, X = _columns(60, 80, 0)
    y = 2.0 * X[:, 0] - X[:, 3] + rng.normal(size=60)
    found = moestat.lasso_path("gaussian", X, y, n_experts=1, l1_ratio=ratio, n_penalties=6, rng=0)
    for penalty, end in zip(found.penalties, found.theta, strict=True):
        blocks = moestat.family("gaussian", gate="softmax", n_experts=1, n_features=80).unpack(end)
        sigma = np.sqrt(blocks["nu"][0]) / y.std()
        own = penalty * ratio * sigma, penalty * (1.0 - ratio)
        other = linear_model.ElasticNet(
            alpha=sum(own), l1_ratio=own[0] / sum(own), tol=1e-13, max_iter=100_000
        ).fit(_standard(X), (y - y.mean()) / y.std())
        np.testing.assert_allclose(blocks["a"][0] * X.std(axis=0) / y.std(), other.coef_, atol=1e-8)


def test_one_count_is_statsmodels():
    api = pytest.importorskip("statsmodels.api")
    rng, X = _columns(100, 8, 1)
    y = rng.poisson(np.exp(0.3 * _standard(X)[:, 0] - 0.2 * _standard(X)[:, 1]))
    found = moestat.lasso_path("poisson", X, y, n_experts=1, penalties=[0.05], rng=0)
    model = api.GLM(y, api.add_constant(_standard(X)), family=api.families.Poisson())
    other = model.fit_regularized(
        alpha=np.append(0.0, np.full(8, 0.05)), L1_wt=1.0, maxiter=1000, cnvrg_tol=1e-12
    )
    np.testing.assert_allclose(
        found.coefficients.to_numpy()[0] * X.std(axis=0), other.params[1:], atol=1e-6
    )


def test_one_class_is_sklearn():
    linear_model = pytest.importorskip("sklearn.linear_model")
    rng, X = _columns(120, 6, 2)
    y = np.where(rng.random(120) < 1.0 / (1.0 + np.exp(-2.0 * _standard(X)[:, 0])), "a", "b")
    found = moestat.lasso_path("multinomial", X, y, n_experts=1, penalties=[0.03], rng=0)
    other = linear_model.LogisticRegression(
        l1_ratio=1.0, C=1.0 / (0.03 * 120), solver="saga", tol=1e-10, max_iter=100_000
    ).fit(_standard(X), y == "a")
    own = found.coefficients.to_numpy()[0] * X.std(axis=0)
    np.testing.assert_allclose(own, other.coef_[0], atol=1e-5)


def _objective(u, Z, w, penalty):
    """Penalised minus mean log-likelihood of two lines, in NumPy; slopes in deviations."""
    d = Z.shape[1]
    gate, slopes, level, log_nu = u[: d + 1], u[d + 1 : 3 * d + 1].reshape(2, d), u[-4:-2], u[-2:]
    sigma = np.exp(log_nu / 2.0)
    score = np.stack([gate[0] + Z @ gate[1:], np.zeros(len(w))])
    prior = score - np.logaddexp(*score)
    z = (w - level[:, None]) / sigma[:, None] - slopes @ Z.T
    law = -0.5 * z**2 - 0.5 * (log_nu + np.log(2.0 * np.pi))[:, None]
    variance = np.sum(2.5 * log_nu + 0.5 * 0.25 * np.exp(-log_nu))  # Prior(variance=3), k = 2
    smooth = (variance - np.logaddexp(*(prior + law)).sum()) / len(w)
    return smooth + penalty * (np.abs(gate[1:]).sum() + np.abs(slopes).sum())


def test_two_experts_are_stationary_by_other_means(mixture, path):
    """One-sided derivatives of an objective in NumPy are not negative in any coordinate."""
    X, y = mixture
    Z, w = _standard(X), (y - y.mean()) / y.std()
    place = 7
    blocks = moestat.family("gaussian", gate="softmax", n_experts=2, n_features=6).unpack(
        path.theta[place]
    )
    sigma = np.sqrt(blocks["nu"]) / y.std()
    a = blocks["a"] * X.std(axis=0) / y.std()
    level = (blocks["b"] + blocks["a"] @ X.mean(axis=0) - y.mean()) / y.std()
    slope = blocks["beta1"][0] * X.std(axis=0)
    gate = np.append(blocks["beta0"][0] + blocks["beta1"][0] @ X.mean(axis=0), slope)
    u = np.concatenate([gate, (a / sigma[:, None]).ravel(), level, 2.0 * np.log(sigma)])
    penalty = path.penalties[place]
    here = _objective(u, Z, w, penalty)
    for j in range(u.size):
        for step in (1e-5, -1e-5):
            moved = u.copy()
            moved[j] += step
            assert _objective(moved, Z, w, penalty) > here - 1e-11
    assert path.table["residual"].max() < 1e-8
    assert path.table["certified"].all()
    assert 0 < path.table["nonzero"][place] < u.size - 5


def test_units_do_not_matter(mixture, path):
    X, y = mixture
    other = moestat.lasso_path(
        "gaussian", 1e3 * X - 7.0, 1e-2 * y + 5.0, n_experts=2, n_penalties=12, rng=0
    )
    np.testing.assert_allclose(other.penalties, path.penalties, rtol=1e-6)
    assert other.selected() == path.selected()


def test_a_fit_of_the_path_is_stored(path, tmp_path):
    best = path.best()
    best.save(tmp_path / "best.npz")
    again = moestat.load(tmp_path / "best.npz")
    assert again.bic == pytest.approx(best.bic, abs=1e-9)
    assert str(again.summary()) == str(best.summary())
    np.testing.assert_array_equal(again.bse, best.bse)


def test_a_fit_of_the_path(mixture):
    X, y = mixture
    table = pd.DataFrame(X, columns=list("abcdef")).assign(y=y)
    before = table.copy()
    path = moestat.lasso_path(
        "gaussian", "y ~ a + b + c + d | a + e", data=table, n_penalties=8, folds=3, rng=0
    )
    pd.testing.assert_frame_equal(table, before)
    assert {"beta1[1,a]", "a[1,b]", "a[2,b]", "a[2,c]"} <= set(path.selected())
    assert path.best("cv").certificate.certified
    result = path.best()
    np.testing.assert_allclose(result.bic, path.table["bic"][path.chosen()])
    np.testing.assert_allclose(result.llf, result.log_likelihood)
    shown = str(result.summary())
    assert (result.params == 0.0).any()
    assert "coefficients are 0 by the penalty" in shown
    assert "on a bound" not in shown
    assert path.to_frame()["penalty"].is_monotonic_decreasing
    assert "* chosen" in str(path)
    assert np.isfinite(result.predict(table)).all()
    with pytest.raises(ValueError, match="lasso_path"):
        result.bootstrap(5, rng=0)


@pytest.mark.parametrize("together", ["experts", "inputs"])
def test_groups_are_zero_together(mixture, together):
    X, y = mixture
    path = moestat.lasso_path(
        "gaussian", X, y, n_experts=2, together=together, n_penalties=8, rng=0
    )
    assert path.table["residual"].max() < 1e-8
    F = moestat.family("gaussian", gate="softmax", n_experts=2, n_features=6)
    a = path.theta[2][F.blocks["a"]] != 0.0
    assert np.array_equal(a[0], a[1])
    assert 0 < a[0].sum() < 6
    if together == "inputs":
        assert np.array_equal(a[0], path.theta[2][F.blocks["beta1"]][0] != 0.0)


def test_more_inputs_than_rows():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 120))
    y = np.where(X[:, 5] > 0, 3.0 * X[:, 0], 3.0 * X[:, 2] - 4.0) + 0.3 * rng.normal(size=80)
    path = moestat.lasso_path("gaussian", X, y, n_experts=2, n_penalties=15, rng=0)
    assert {"beta1[1,5]", "a[1,0]", "a[2,2]"} & set(path.selected())
    assert path.table["certified"].all()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"gate": "sigmoid-inner"}, "gate"),
        ({"gate": "softmax-top"}, "jumps"),
        ({"together": "all"}, "together"),
        ({"l1_ratio": 2.0}, "l1_ratio"),
        ({"penalties": [-1.0]}, "penalties"),
        ({"criterion": "icl"}, "criterion"),
        ({"bounds": {"a": (-1.0, 1.0)}}, "bounds"),
    ],
)
def test_refusals_name_the_argument(mixture, given, said):
    with pytest.raises(ValueError, match=said):
        moestat.lasso_path("gaussian", *mixture, **{"n_experts": 2, **given})


def test_a_constant_column_changes_nothing(mixture):
    X, y = mixture
    frame = pd.DataFrame(X, columns=list("abcdef"))
    options = {"n_experts": 2, "n_penalties": 4, "rng": 0}
    alone = moestat.lasso_path("gaussian", frame, y, **options)
    with pytest.warns(moestat.base.warnings.ConstantColumnWarning):
        beside = moestat.lasso_path("gaussian", frame.assign(one=1.0), y, **options)
    assert beside.table["llf"] == pytest.approx(alone.table["llf"], abs=1e-6)
    assert beside.selected() == alone.selected()


def test_squares_count_as_much_as_they_leave():
    """Of one expert about those of ridge regression, the trace of its hat matrix."""
    rng, X = _columns(200, 4, 0)
    y = 2.0 * _standard(X)[:, 0] + rng.normal(size=200)
    path = moestat.lasso_path("gaussian", X, y, n_experts=1, n_penalties=3, l1_ratio=0, rng=0)
    gram = _standard(X).T @ _standard(X) / 200
    for penalty, df in zip(path.penalties, path.table["df"], strict=True):
        hat = np.trace(np.linalg.solve(gram + penalty * np.eye(4), gram))
        # The variance of the residuals is estimated with them, and slopes are in its root.
        assert df - 2.0 == pytest.approx(hat, rel=0.2)
    half = moestat.lasso_path("gaussian", X, y, n_experts=1, n_penalties=3, l1_ratio=0.5, rng=0)
    assert np.all(half.table["df"] <= half.table["nonzero"] + 2.0)


@pytest.mark.parametrize(
    "options", [{"offset": "off"}, {"equal": {"a": [["x"]]}}, {"gate_factor": 0.0}]
)
def test_the_table_counts_inputs_that_a_penalty_has_let_in(options):
    """An offset, and what has no penalty, is in every model and not chosen by the path."""
    rng, X = _columns(120, 3, 5)
    frame = pd.DataFrame(X, columns=["x", "z", "off"])
    frame["y"] = np.where(rng.random(120) < 0.5, X[:, 0], 3.0) + rng.normal(size=120)
    path = moestat.lasso_path(
        "gaussian", "y ~ x + z", data=frame, n_penalties=6, n_experts=2, rng=0, **options
    )
    columns = path.coefficients.columns.str.extract(r",(\w+)\]")[0]
    for place, values in enumerate(path.coefficients.to_numpy()):
        assert path.table["inputs"][place] == columns[values != 0.0].nunique()
