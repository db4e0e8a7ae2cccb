"""Two normal effects of groups: random slopes of counts, and nested groups, beside brute force."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import gammaln, logsumexp

import moestat
from moestat.base.warnings import ExtrapolationWarning, IdentificationWarning
from moestat.estimation.data.groups import arranged, encoded_rows
from moestat.kernels.atom import WORK_ROWS
from moestat.solvers.groups import group_sums

H = 0.02
V = np.arange(-9.0, 9.0 + H, H)
"""Nodes: with loadings up to 40 the sums of both kinds below are exact to 1e-10."""


def log_mass(name, y, eta):
    if name == "poisson":
        return y * eta - np.exp(np.minimum(eta, 700.0)) - gammaln(y + 1.0)
    return y * eta - np.logaddexp(0.0, eta)


def log_of_parts(name, y, eta, load, common, part):
    """log f(y | w) + log phi(w) at all nodes of the common effect w, others integrated out."""
    total = -0.5 * V**2 - 0.5 * np.log(2.0 * np.pi)
    for own in np.unique(part):
        inner = np.zeros((V.size, V.size)) - 0.5 * V**2 - 0.5 * np.log(2.0 * np.pi)
        for r in np.flatnonzero(part == own):
            inner += log_mass(name, y[r], eta[r] + common[r] * V[:, None] + load[r] * V)
        total += logsumexp(inner, axis=1) + np.log(H)
    return total


def rows_of(name, seed=0, n=4, m=4):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2 if name == "binomial" else 6, (n, m)).astype(float)
    y[0], y[1] = y.max(), 0.0
    return rng.uniform(-1.0, 1.0, n * m), y.ravel(), np.repeat(np.arange(n), m)


SCALES = [(0.01, 0.0, 0.01), (0.5, 0.3, 0.7), (3.0, -1.0, 0.2), (10.0, 3.0, 4.0), (30.0, 0.0, 30.0)]


@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize("name", ["poisson", "binomial"])
@pytest.mark.parametrize("nested", [False, True])
def test_sums_of_two_effects_equal_brute_force(name, scales, nested):
    """Log-densities, moments of the effects, and derivatives by differences."""
    slope, along, other = (s if name == "binomial" else s / 4.0 for s in scales)
    x, y, owner = rows_of(name)
    half = np.tile([0.1, 0.1, 0.7, 0.7], 4)
    table = {"name": name, "random": ["1"], "within": 1} if nested else {"name": name}
    table |= {} if nested else {"random": ["1", 0]}
    options = {"n_features": 2, "expert_inputs": [0], "gate_inputs": [0]}
    family = moestat.family(table, gate="softmax", n_experts=1, **options)
    at = {key: j for j, key in enumerate(family.param_names)}
    theta = np.clip(np.zeros(family.n_params), family.lower, family.upper)
    theta[at["b[1]"]], theta[at["a[1,0]"]], theta[at["l[1,1]"]] = 0.3, 0.5, other
    names = ["b[1]", "a[1,0]", "l[1,0]", "l[1,1]"]
    if nested:
        theta[at["l[1,0]"]] = slope
    else:
        theta[at["l[1,0]"]], theta[at["L[1,0,0]"]] = along, slope
        names.append("L[1,0,0]")
    X = np.stack([x, half])
    sample = arranged(X, family.likelihood.encode(y, 1), np.ones(16), owner)
    found = group_sums(family, theta, sample, 2)
    for g in range(4):
        rows = slice(4 * g, 4 * g + 4)
        load = np.full(4, slope) if nested else along + slope * x[rows]
        part = half[rows] if nested else np.zeros(4)
        eta = 0.3 + 0.5 * x[rows]
        log = log_of_parts(name, y[rows], eta, load, np.full(4, other), part)
        value = logsumexp(log) + np.log(H)
        assert found.log_density[g] == pytest.approx(value, abs=1e-8)
        share = np.exp(log - logsumexp(log))
        assert found.moments[0, g, 0] == pytest.approx(share @ V, abs=1e-7)
        variance = share @ V**2 - (share @ V) ** 2
        assert found.moments[0, g, 1] == pytest.approx(variance, rel=1e-6, abs=1e-9)
    free = [at[key] for key in names]
    for j in free:
        step = np.zeros(theta.size)
        step[j] = 1e-4 * max(abs(theta[j]), 0.1)
        up, down = (group_sums(family, theta + s * step, sample, 1) for s in (1.0, -1.0))
        slope_of_value = (up.value - down.value) / (2.0 * step[j])
        assert slope_of_value == pytest.approx(found.score[j], rel=1e-5, abs=1e-5)
        bend = (up.score - down.score)[free] / (2.0 * step[j])
        assert np.allclose(bend, found.hessian[j, free], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("loadings", [(0.7, -0.4), (0.0, 0.0), (1e-9, 2.0), (1.3, 0.0)])
def test_a_row_by_itself_depends_on_the_sum_of_squares_of_its_loadings(loadings):
    one = moestat.family({"name": "poisson", "random": ["1"]}, n_experts=1).likelihood
    two = moestat.family({"name": "poisson", "random": ["1", 0]}, n_experts=1).likelihood

    def at(law, eta):
        n = len(eta)
        value, d1, d2 = np.empty(1), np.empty((n, 1)), np.empty((n * (n + 1) // 2, 1))
        law.block(eta, np.ones(1), 1, 2, value, d1, d2, np.empty((WORK_ROWS[law.block], 1)))
        return value[0], d1[:, 0], d2[:, 0]

    a, b = loadings
    value, d1, d2 = at(two, np.array([[0.3], [a], [b]]))
    assert value == pytest.approx(at(one, np.array([[0.3], [np.hypot(a, b)]]))[0], abs=1e-13)
    for c in range(3):
        step = np.zeros((3, 1))
        step[c] = 1e-5
        up, down = (at(two, np.array([[0.3], [a], [b]]) + s * step) for s in (1.0, -1.0))
        assert (up[0] - down[0]) / 2e-5 == pytest.approx(d1[c], abs=1e-8)
        for e in range(c + 1):
            bend = (up[1][e] - down[1][e]) / 2e-5
            assert bend == pytest.approx(d2[c * (c + 1) // 2 + e], abs=1e-6)


@pytest.fixture(scope="module")
def schools():
    """Scores, counts and outcomes of classes in schools, the rows in no order."""
    rng = np.random.default_rng(3)
    school, level = np.repeat(np.arange(25), 12), np.tile(np.repeat([0, 1, 2], 4), 25)
    table = pd.DataFrame({"school": [f"s{i:02d}" for i in school], "class": level})
    table["x"] = rng.normal(size=300)
    u, w = 0.8 * rng.normal(size=25), 0.5 * rng.normal(size=(25, 3))
    eta = 0.3 + 0.5 * table.x + u[school] + w[school, level]
    table["y"] = eta + 0.6 * rng.normal(size=300)
    table["c"] = rng.poisson(np.exp(eta))
    table["s"] = rng.normal(size=300)
    table["school/class"] = table.s
    return table.sample(frac=1.0, random_state=0)


def fitted(formula, table, name="gaussian", k=1, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return moestat.fit_formula(formula, table, name, n_experts=k, rng=0, **options)


def covariance_of(rows, school, part, nu):
    same = rows["class"].to_numpy()[:, None] == rows["class"].to_numpy()
    return school**2 + part**2 * same + nu * np.eye(len(rows))


def test_nested_groups_of_normal_rows_equal_dense_matrices(schools):
    fit = fitted("y ~ x + (1 | school/class)", schools)
    assert fit.certificate.certified
    b, a, log_nu, part, school = (
        fit.params[key] for key in ("b[1]", "a[1,x]", "log nu[1]", "l[1,0]", "l[1,1]")
    )
    nu, total = np.exp(log_nu), 0.0
    effects, new = fit.random_effects(), schools.assign(x=0.5)
    means = fit.predict(new, groups=new.school)
    for name, rows in schools.groupby("school"):
        r = (rows.y - b - a * rows.x).to_numpy()
        C = covariance_of(rows, school, part, nu)
        sign, log_det = np.linalg.slogdet(2.0 * np.pi * C)
        total -= 0.5 * (sign * log_det + r @ np.linalg.solve(C, r))
        whole = school**2 * np.sum(np.linalg.solve(C, r))
        assert effects.loc[(name, 0), "school"] == pytest.approx(whole, abs=1e-9)
        variance = school**2 - school**4 * np.sum(np.linalg.inv(C))
        spread = effects.loc[(name, 0), "sd(school)"]
        assert spread == pytest.approx(np.sqrt(variance), abs=1e-9)
        for level in range(3):
            inside = rows["class"].to_numpy() == level
            own = part**2 * np.sum(np.linalg.solve(C, r)[inside])
            assert effects.loc[(name, level), "school/class"] == pytest.approx(own, abs=1e-9)
            at = rows.index[inside][0]
            assert means[at] == pytest.approx(b + 0.5 * a + whole + own, abs=1e-9)
    assert fit.llf == pytest.approx(total, abs=1e-9)
    told = fit.variance_components().estimate
    assert told[1, "sd(school)"] == pytest.approx(school)
    share = school**2 / (school**2 + part**2 + nu)
    assert told[1, "ICC(school)"] == pytest.approx(share)
    # Rows of unknown schools and classes: the population, and the school alone.
    some = pd.DataFrame({"school": ["s00", "new"], "class": [9, 0], "x": 0.0})
    with pytest.warns(ExtrapolationWarning):
        known = fit.predict(some, groups=some.school)
    assert known.tolist() == pytest.approx([b + effects.loc[("s00", 0), "school"], b])


def test_score_and_curvature_of_nested_normal_groups_are_those_of_the_value(schools):
    fit = fitted("y ~ x + (1 | school/class)", schools)
    family, theta = fit.family, fit.theta + 0.05
    theta = np.clip(theta, family.lower, family.upper)
    rows, free = encoded_rows(family, fit.rows), np.flatnonzero(family.lower < family.upper)
    found = group_sums(family, theta, rows, 2)
    for j in free:
        step = np.zeros(theta.size)
        step[j] = 1e-5
        up, down = (group_sums(family, theta + s * step, rows, 1) for s in (1.0, -1.0))
        assert (up.value - down.value) / 2e-5 == pytest.approx(found.score[j], abs=1e-5)
        bend = (up.score - down.score)[free] / 2e-5
        assert np.allclose(bend, found.hessian[j, free], rtol=1e-6, atol=1e-4)


def test_means_of_known_groups_with_slopes_equal_brute_force(schools):
    fit = fitted("c ~ x + (1 + x | school)", schools, "poisson")
    value = fit.params
    rows = schools[schools.school == "s03"]
    eta = (value["b[1]"] + value["a[1,x]"] * rows.x).to_numpy()
    log = np.zeros((V[::4].size, V[::4].size)) - 0.5 * V[::4, None] ** 2 - 0.5 * V[::4] ** 2
    for y, at, x in zip(rows.c, eta, rows.x, strict=True):
        load = value["l[1,0]"] + value["L[1,0,x]"] * x
        log += log_mass("poisson", y, at + load * V[::4, None] + value["l[1,1]"] * V[::4])
    share = np.exp(log - logsumexp(log))
    for x in (0.5, -2.0):
        load = value["l[1,0]"] + value["L[1,0,x]"] * x
        mean = value["b[1]"] + value["a[1,x]"] * x
        mean = np.exp(mean + load * V[::4, None] + value["l[1,1]"] * V[::4])
        new = pd.DataFrame({"x": [x], "school": ["s03"]})
        found = fit.predict(new, groups=new.school)
        assert found.iloc[0] == pytest.approx(np.sum(share * mean), rel=1e-8)
    slope = np.sum(share * value["L[1,0,x]"] * V[::4, None])
    assert fit.random_effects().loc["s03", "x"] == pytest.approx(slope, abs=1e-8)
    small = fitted("c ~ x + (1 | school)", schools, "poisson")
    assert (fit.compare_lr_test(small).other_df, fit.compare_lr_test(small).df) == (1, 2)


def test_nested_groups_are_read_by_labels_and_stay_in_files(schools, tmp_path):
    formula = "y ~ x + (1 | school/class)"
    fit = fitted(formula, schools)
    # Other names, words for numbers, another order, and an input for the column of a formula.
    words = schools.rename(columns={"school": "a b", "class": "d/e"})
    words["d/e"] = words["d/e"].map({0: "z", 1: "a", 2: "k"})
    assert fitted("y ~ x + (1 | `a b`/`d/e`)", words).llf == pytest.approx(fit.llf, abs=1e-9)
    X = schools[["x", "class"]].to_numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        random = {"terms": "1", "within": 1}
        options = {"groups": schools.school.to_numpy(), "random": random, "n_experts": 1, "rng": 0}
        arrays = moestat.fit("gaussian", X, schools.y.to_numpy(), **options)
    assert arrays.llf == pytest.approx(fit.llf, abs=1e-9)
    assert fit.log_likelihood(schools.sort_index()) == pytest.approx(fit.llf, abs=1e-9)
    fit.save(tmp_path / "fit")
    again = moestat.load(tmp_path / "fit")
    assert again.random_effects().equals(fit.random_effects())
    assert "(1 | school/class)" in str(again.summary())
    gaps = schools.copy()
    gaps.iloc[[3, 50], 2] = np.nan
    dropped = fitted(formula, gaps, missing="drop")
    full = fitted(formula, gaps.dropna())
    assert dropped.llf == pytest.approx(full.llf, abs=1e-9)
    assert dropped.random_effects().equals(full.random_effects())
    with pytest.raises(ValueError, match="parts of groups from column 'class'"):
        fit.predict(schools.drop(columns="class"), groups=schools.school)


def test_simulated_rows_of_a_class_are_more_alike_than_those_of_a_school(schools):
    fit = fitted("y ~ x + (1 | school/class)", schools)
    left = [fit.simulate(rng=s) - fit.predict() for s in range(40)]
    of_class = [r.groupby([schools.school, schools["class"]]).mean().var() for r in left]
    of_school = [r.groupby(schools.school).mean().var() for r in left]
    part, school, nu = fit.params["l[1,0]"], fit.params["l[1,1]"], np.exp(fit.params["log nu[1]"])
    assert np.mean(of_class) == pytest.approx(school**2 + part**2 + nu / 4, rel=0.15)
    assert np.mean(of_school) == pytest.approx(school**2 + part**2 / 3 + nu / 12, rel=0.2)


def test_a_likelihood_ratio_of_the_variance_of_parts(schools):
    large, small = (fitted(f"y ~ x + (1 | school{part})", schools) for part in ("/class", ""))
    test = large.compare_lr_test(small)
    assert (test.other_df, test.df) == (0, 1)
    assert test.statistic == pytest.approx(2.0 * (large.llf - small.llf))
    frame = large.get_prediction(groups=large.rows.groups).summary_frame()
    assert np.allclose(frame["mean"], large.predict(schools, groups=schools.school))


@pytest.mark.parametrize(
    ("formula", "match"),
    [
        ("y ~ x + `school/class` + (1 | school/class)", "rename the column"),
        ("y ~ x + (1 + x | school/class)", "and no random slopes"),
        ("y ~ x + (1 | school/class/x)", "crossed groups are not available"),
        ("y ~ x + (1 | school) + (1 | class)", "C\\(item\\)"),
        ("c ~ x + s + (1 + x + s | school)", "at most 2 random effects"),
    ],
)
def test_other_effects_are_refused(formula, match, schools):
    name = "poisson" if formula[0] == "c" else "gaussian"
    with pytest.raises(ValueError, match=match):
        moestat.fit_formula(formula, schools, name, n_experts=1)


def test_parts_that_are_single_rows_or_whole_groups_are_said(schools):
    for part, lost in ((np.arange(300), True), (0, True), (schools["class"], False)):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            table = schools.assign(part=part)
            moestat.fit_formula("y ~ x + (1 | school/part)", table, n_experts=1, rng=0)
        assert (IdentificationWarning in {w.category for w in told}) == lost


NAMES = ["1", "0", "3.5", "a|b", "a || b", "a/b", "a:b", "f(x)", "it's", "if", "None", "a + b"]
NAMES += ["`", "a`b", "", ".", "Q('x')", "(1 | id)", "y ~ x"]
UNWRITABLE = "cannot be (written in a formula|told from the)"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("old", "form"),
    [
        ("x", "y ~ {0} + (1 + {0} | school)"),
        ("school", "y ~ x + (1 | {0})"),
        ("school", "y ~ x + (1 | {0}/class)"),
        ("class", "y ~ x + (1 | school/{0})"),
    ],
)
def test_names_between_back_ticks_are_read_or_refused(name, old, form, schools):
    """A column between back-ticks is that column, whatever its name, or the name is refused."""
    table = schools[schools.school < "s08"].drop(columns="school/class")
    plain = fitted(form.format(old), table)
    odd, given = form.format(f"`{name}`"), table.rename(columns={old: name})
    if "`" in name or not name or (old == "x" and name in ("1", ".")):
        with pytest.raises(ValueError, match=UNWRITABLE):
            fitted(odd, given)
        return
    found = fitted(odd, given)
    assert found.llf == pytest.approx(plain.llf, abs=1e-7)
    assert found.random_effects().shape == plain.random_effects().shape
