"""Marginal effects: central differences of densities written out here, and the delta method."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import moestat

FORMULA = "y ~ x + C(s) | z"
STEP = 1e-4


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    x, z, s = rng.uniform(-2, 2, 300), rng.normal(size=300), rng.choice(["n", "p", "q"], 300)
    first = rng.random(300) < expit(1.2 * z + 0.3)
    y = np.where(first, 1 + 2 * x + 0.5 * (s == "p"), -1 - x) + 0.5 * rng.normal(size=300)
    return pd.DataFrame({"y": y, "x": x, "z": z, "s": s, "w": rng.integers(1, 4, 300)})


@pytest.fixture(scope="module")
def fit(table):
    return moestat.fit_formula(FORMULA, table, rng=0, weights="w")


def gate(p, t):
    return expit(p["beta0[1]"] + p["beta1[1,z]"] * t["z"].to_numpy())


def expert(p, t, k):
    levels = sum(p[f"a[{k},C(s)[T.{level}]]"] * (t["s"] == level).to_numpy() for level in "pq")
    return p[f"b[{k}]"] + p[f"a[{k},x]"] * t["x"].to_numpy() + levels


def mean(p, t):
    share = gate(p, t)
    return share * expert(p, t, 1) + (1 - share) * expert(p, t, 2)


def slope(what, p, t, name, weight=None):
    ends = [what(p, t.assign(**{name: t[name] + side})) for side in (STEP, -STEP)]
    return np.average(ends[0] - ends[1], weights=weight) / (2 * STEP)


def change(what, p, t, name, low, high, weight=None):
    ends = [what(p, t.assign(**{name: value})) for value in (low, high)]
    return np.average(ends[1] - ends[0], weights=weight)


def check(found, wanted, fit):
    """Estimates, and errors by central differences in the parameters."""
    p, h = fit.params, 1e-5
    np.testing.assert_allclose(found.effect, wanted(p), rtol=1e-6, atol=1e-8)
    ends = [
        np.array([wanted(p + side * h * (p.index == name)) for name in p.index]) for side in (1, -1)
    ]
    jacobian = (ends[0] - ends[1]).T / (2 * h)
    variance = np.diag(jacobian @ fit.cov_params().to_numpy() @ jacobian.T)
    np.testing.assert_allclose(found.sd, np.sqrt(variance), rtol=1e-4, atol=1e-8)


def test_effects_on_the_mean_are_central_differences(fit, table):
    def wanted(p):
        factor = [change(mean, p, table, "s", "n", level, table["w"]) for level in "pq"]
        return [
            slope(mean, p, table, "x", table["w"]),
            *factor,
            slope(mean, p, table, "z", table["w"]),
        ]

    found = fit.get_margeff()
    assert found.names == ["x", "s: p - n", "s: q - n", "z"]
    check(found, wanted, fit)


def test_effects_on_the_gate_and_within_experts_are_those_of_what_they_read(fit, table):
    found = fit.get_margeff(which="gate")
    assert set(found.tidy()["term"]) == {"z"}
    of_gate = lambda p: slope(gate, p, table, "z", table["w"])  # noqa: E731
    check(found, lambda p: [of_gate(p), -of_gate(p)], fit)
    found = fit.get_margeff(which="experts")
    assert list(dict.fromkeys(found.tidy()["term"])) == ["x", "s"]
    names = [f"a[{k},{term}]" for term in ("x", "C(s)[T.p]", "C(s)[T.q]") for k in (1, 2)]
    check(found, lambda p: p[names].to_numpy(), fit)
    assert (fit.get_margeff(which="gate", variables="x").effect == 0.0).all()


def test_effects_for_new_rows_at_values_and_by_groups(fit, table):
    new = table[20:60]
    found = fit.get_margeff(variables="x", newdata=new, by="s")
    check(found, lambda p: [slope(mean, p, new[new["s"] == one], "x") for one in "npq"], fit)
    found = fit.get_margeff(variables="x", at={"z": [-1.0, 1.0]})
    at = [table.assign(z=value) for value in (-1.0, 1.0)]
    check(found, lambda p: [slope(mean, p, one, "x", table["w"]) for one in at], fit)
    row = pd.DataFrame(
        {name: [np.average(table[name], weights=table["w"])] for name in "xz"}
        | {"s": [table.groupby("s")["w"].sum().idxmax()]}
    )
    found = fit.get_margeff(variables="z", at="mean")
    check(found, lambda p: [slope(mean, p, row, "z")], fit)


def test_comparisons_are_differences_and_ratios_of_averages(fit, table):
    found = fit.comparisons({"x": -1.0}, {"x": 1.0}, by="s")
    parts = [table[table["s"] == one] for one in "npq"]
    check(found, lambda p: [change(mean, p, t, "x", -1.0, 1.0, t["w"]) for t in parts], fit)

    def ratio(p):
        ends = [np.average(mean(p, table.assign(x=x)), weights=table["w"]) for x in (0.0, 2.0)]
        return [ends[1] / ends[0]]

    check(fit.comparisons({"x": 0.0}, {"x": 2.0}, ratio=True), ratio, fit)


def test_weights_are_copies_and_the_order_of_rows_is_nothing(fit, table):
    copies = table.loc[table.index.repeat(table["w"])].sample(frac=1.0, random_state=1)
    other = moestat.fit_formula(FORMULA, copies, rng=0)
    if abs(other.params["a[1,x]"] - fit.params["a[1,x]"]) > 1.0:
        other = other.relabel([2, 1])
    for asked in ({}, {"which": "gate"}, {"by": "s"}, {"at": "mean"}, {"at": {"x": [0.0, 1.0]}}):
        one, two = fit.get_margeff(**asked), other.get_margeff(**asked)
        assert one.names == two.names
        np.testing.assert_allclose(one.effect, two.effect, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(one.sd, two.sd, rtol=1e-5, atol=1e-7)


def test_effects_on_counts_with_an_exposure(table):
    rng = np.random.default_rng(1)
    days = rng.uniform(0.5, 4.0, 300)
    counts = table.assign(days=days, c=rng.poisson(days * np.exp(0.3 + 0.5 * table["x"])))
    fit = moestat.fit_formula("c ~ x", counts, "poisson", n_experts=1, exposure="days", rng=0)

    def count(p, t):
        return t["days"].to_numpy() * np.exp(p["b[1]"] + p["a[1,x]"] * t["x"].to_numpy())

    found = fit.get_margeff(variables="x", at={"days": [1.0, 2.0]})
    at = [counts.assign(days=value) for value in (1.0, 2.0)]
    check(found, lambda p: [slope(count, p, one, "x") for one in at], fit)
    ratio = fit.comparisons({"x": 0.0}, {"x": 1.0}, ratio=True)
    assert ratio.effect[0] == pytest.approx(np.exp(fit.params["a[1,x]"]))


def test_ratios_of_a_gate_stand_beside_one_expert_without_them(fit, table):
    one = moestat.fit_formula("y ~ x", table, n_experts=1, rng=0)
    text = str(moestat.compare([one, fit], exponentiate=True))
    assert f"{np.exp(fit.params['beta1[1,z]']):.3g}"[:4] in text
    assert f"{one.params['a[1,x]']:.3g}"[:4] in text
    counts = table.assign(c=np.arange(300) % 4)
    other = moestat.fit_formula("c ~ x", counts, "poisson", n_experts=1, rng=0)
    for fits in ([one, other], [one]):
        with pytest.raises(ValueError, match="no coefficient of this model is on a log"):
            moestat.compare(fits, exponentiate=True)


@pytest.fixture(scope="module")
def of_file(table, tmp_path_factory):
    pytest.importorskip("pyarrow")
    path = tmp_path_factory.mktemp("effects") / "table.parquet"
    table.to_parquet(path, row_group_size=100)
    return path, moestat.fit_formula(FORMULA, path, rng=0, weights="w")


def test_effects_of_a_fit_to_a_file_at_new_rows_are_those_of_the_fit_in_memory(fit, table, of_file):
    _, other = of_file
    for new in (table, table[:1], table[table["s"] == "p"]):
        for asked in ({}, {"which": "experts"}, {"by": "s"}, {"at": {"z": [0.0, 1.0]}}):
            one, two = (each.get_margeff(newdata=new, **asked) for each in (fit, other))
            assert one.names == two.names
            np.testing.assert_allclose(one.effect, two.effect, rtol=1e-4, atol=1e-6)
            np.testing.assert_allclose(one.sd, two.sd, rtol=1e-4, atol=1e-6)
        settings = {"x": 0.0, "s": "n"}, {"x": 1.0, "s": "p"}
        one, two = (each.comparisons(*settings, newdata=new) for each in (fit, other))
        np.testing.assert_allclose([one.effect, one.sd], [two.effect, two.sd], rtol=1e-4)


@pytest.mark.parametrize("ask", ["get_margeff", "comparisons"])
def test_a_fit_to_a_file_names_the_rows_that_effects_need(ask, fit, of_file):
    path, other = of_file
    settings = () if ask == "get_margeff" else ({"x": 0.0}, {"x": 1.0})
    with pytest.raises(ValueError, match=r"give newdata=, a table .*, or use result\.at_sample"):
        getattr(other, ask)(*settings)
    with pytest.raises(ValueError, match=r"give newdata=, a table of rows to average over$"):
        getattr(other.at_sample(), ask)(*settings)  # levels of s are no columns of its own
    for each in (fit, other):
        with pytest.raises(ValueError, match="reads a table in memory"):
            getattr(each, ask)(*settings, newdata=path)
