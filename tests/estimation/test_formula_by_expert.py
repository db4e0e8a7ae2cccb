"""A formula for each expert: terms of one are no parameters of the others."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp

import moestat


@pytest.fixture(scope="module")
def table():
    """Two lines, of which the second reads z and a factor, too."""
    rng = np.random.default_rng(0)
    d = pd.DataFrame({"x": rng.uniform(-1, 1, 400), "z": rng.normal(size=400)})
    d["g"], d["w"] = rng.choice(["a", "b", "c"], 400), rng.normal(size=400)
    d["id"], d["t"] = np.repeat(np.arange(100), 4), rng.uniform(1, 2, 400)
    second = -1 - d.x + 0.8 * d.z + (d.g == "b")
    first = rng.random(400) < 1 / (1 + np.exp(-d.w))
    d["y"] = np.where(first, 1 + d.x, second) + 0.5 * rng.normal(size=400)
    return d.assign(n=rng.poisson(np.exp(np.where(first, 0.5 * d.x, 1 + 0.5 * d.z)) * d.t))


FORMULAS = {"1": "y ~ x | 1", "2": "y ~ x + z + g"}


def em(table, starts, rng):
    """The highest log-likelihood of EM by hand, with a design for each expert."""
    y, one = table.y.to_numpy(), np.ones(len(table))
    levels = [(table.g == level) * 1.0 for level in "bc"]
    designs = [
        np.column_stack([one, table.x]),
        np.column_stack([one, table.x, table.z, *levels]),
    ]
    best = -np.inf
    for _ in range(starts):
        tau, before = rng.dirichlet([0.3, 0.3], len(table)).T, -np.inf
        for _ in range(500):
            log = np.empty((2, len(table)))
            for k, Z in enumerate(designs):
                W = Z * tau[k][:, None]
                r = y - Z @ np.linalg.solve(W.T @ Z + 1e-10 * np.eye(Z.shape[1]), W.T @ y)
                s2 = max(tau[k] @ r**2 / tau[k].sum(), 1e-3)
                log[k] = np.log(tau[k].mean()) - 0.5 * (np.log(2 * np.pi * s2) + r**2 / s2)
            each = logsumexp(log, axis=0)
            if each.sum() < before + 1e-9:
                break
            before, tau = each.sum(), np.exp(log - each)
        best = max(best, before)
    return best


def test_it_is_the_fit_with_coefficients_that_are_0_and_that_of_em_by_hand(table):
    fit = moestat.fit_formula(FORMULAS, table, rng=0)
    assert fit.certificate.certified
    assert fit.llf == pytest.approx(em(table, 40, np.random.default_rng(0)), abs=1e-5)
    zero = {(1, name): 0.0 for name in ("z", "g")}
    fixed = moestat.fit_formula("y ~ x + z + g | 1", table, fixed={"a": zero}, rng=0)
    assert fit.llf == pytest.approx(fixed.llf, abs=1e-7)
    assert fit.identified.rank == fixed.identified.rank == 10
    other = {"2": "y ~ x | 1", "1": "y ~ x + z + g"}
    assert moestat.fit_formula(other, table, rng=1).llf == pytest.approx(fit.llf, abs=1e-7)


def test_names_summary_predictions_and_files_have_the_terms_of_each_expert(table, tmp_path):
    fit = moestat.fit_formula(FORMULAS, table, rng=0)
    own = [(e.term.expert, e.term.label) for e in fit.summary().estimates if e.term.symbol == "a"]
    assert own == [(1, "x"), (2, "x"), (2, "z"), (2, "g[T.b]"), (2, "g[T.c]")]
    assert "(fixed)" not in str(fit.summary())
    value = fit.params
    first = value["b[1]"] + value["a[1,x]"] * table.x
    second = value["b[2]"] + value["a[2,x]"] * table.x + value["a[2,z]"] * table.z
    second += sum(value[f"a[2,g[T.{level}]]"] * (table.g == level) for level in "bc")
    pi = 1 / (1 + np.exp(-value["beta0[1]"]))
    assert np.allclose(fit.predict(table), pi * first + (1 - pi) * second)
    fit.save(tmp_path / "fit.npz")
    again = moestat.load(tmp_path / "fit.npz")
    assert again.family == fit.family
    assert np.array_equal(again.predict(table), fit.predict(table))
    drawn = fit.bootstrap(6, rng=0).replicates
    assert not drawn[:, fit.family.unread_positions].any()


def test_without_a_bar_the_gate_reads_the_terms_of_all_experts(table):
    fit = moestat.fit_formula({"1": "y ~ 0 + x", 2: "y ~ z"}, table, rng=0)
    shown = [e for e in fit.summary().estimates if e.status != "reference"]
    assert [e.term.label for e in shown if e.term.symbol == "beta1"] == ["x", "z"]
    assert fit.blocks["b"][0] == pytest.approx(0.0, abs=1e-15)
    assert fit.blocks["b"][1] != 0.0


def test_counts_offsets_groups_and_likelihoods_by_expert(table):
    counts = {"1": "n ~ x + offset(log(t)) | 1 | id", "2": "n ~ z + offset(log(t))"}
    fit = moestat.fit_formula(counts, table, "poisson", rng=0)
    fixed = {"a": {(1, "z"): 0.0, (2, "x"): 0.0}}
    one = "n ~ x + z + offset(log(t)) | 1 | id"
    other = moestat.fit_formula(one, table, "poisson", fixed=fixed, rng=0)
    assert fit.llf == pytest.approx(other.llf, abs=1e-6)
    assert fit.n_groups == 100
    three = {**FORMULAS, "3": "y ~ 1"}
    noise = moestat.fit_formula(
        three, table, {"experts": ["gaussian", "gaussian", "uniform"]}, rng=0
    )
    assert noise.identified.rank == 11


def test_arrays_have_a_list_of_inputs_for_each_expert(table):
    X = table[["x", "z"]]
    named = moestat.fit("gaussian", X, table.y, expert_inputs=[["x"], ["x", "z"]], rng=0)
    places = moestat.fit("gaussian", X, table.y, expert_inputs=[[0], [0, 1]], rng=0)
    assert named.llf == pytest.approx(places.llf, abs=1e-9)
    assert named.family.unread_positions.tolist() == [named.param_names.index("a[1,z]")]
    with pytest.raises(ValueError, match="there are 2 experts, and lists of inputs for 3"):
        moestat.fit("gaussian", X, table.y, expert_inputs=[[0], [0], [1]])


@pytest.mark.parametrize("part", ["offset", "gate", "groups"])
@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("elsewhere", [False, True])
def test_what_all_experts_share_may_be_written_once(table, tmp_path, part, which, elsewhere):
    """The fit of formulas that all have it, in memory and on a source."""
    family = "poisson" if part == "offset" else "gaussian"
    plain = {"1": "n ~ x", "2": "n ~ z"} if part == "offset" else {"1": "y ~ x", "2": "y ~ z"}
    more = {"offset": " + offset(log(t)) | 1", "gate": " | w", "groups": " | 1 | id"}[part]
    data = table
    if elsewhere:
        data = str(tmp_path / "rows.parquet")
        table.to_parquet(data)
    both = {key: text + more for key, text in plain.items()}
    once = {k: t + more * (i == which) for i, (k, t) in enumerate(plain.items())}
    how = {"n_starts": 4, "risk": 1.0, "rng": 0}
    one, other = (moestat.fit_formula(f, data, family, **how) for f in (both, once))
    assert other.llf == pytest.approx(one.llf, abs=1e-8)
    assert other.param_names == one.param_names


@pytest.mark.parametrize(
    ("formula", "more", "match"),
    [
        ({"1": "y ~ x", "3": "y ~ z"}, {}, "a formula for each expert"),
        ({}, {}, "a formula for each expert"),
        ({"1": "y ~ x", "2": "n ~ z"}, {}, "the response of all experts must be the same"),
        ({"1": "y ~ x | w", "2": "y ~ z | 1"}, {}, "the part of the gate of all experts"),
        ({"1": "y ~ x + offset(t)", "2": "y ~ z + offset(w)"}, {}, "the offset of all experts"),
        ({"1": "y ~ x | 1 | id", "2": "y ~ z | 1 | g"}, {}, "the groups of all experts"),
        ({"1": "y ~ x", "2": "y ~ 0 + g"}, {}, "has another coding than in the formulas"),
        ({"1": "y ~ x", "2": "y ~ z"}, {"n_experts": 3}, "there are formulas of 2 experts"),
        ({"1": "y ~ x", "2": "y ~ z + q"}, {}, "no column 'q'"),
        (
            {"1": "y ~ x | 1", "2": "y ~ z"},
            {"random": "1", "groups": "id"},
            "random effects need experts with the same inputs",
        ),
    ],
)
def test_what_cannot_be_had_is_refused(table, formula, more, match):
    with pytest.raises(ValueError, match=match):
        moestat.fit_formula(formula, table, **more)


def test_other_entry_points_refuse(table):
    X, own = table[["x", "z"]], {"expert_inputs": [[0], [0, 1]]}
    with pytest.raises(ValueError, match="there are 1 experts, and lists of inputs for 2"):
        moestat.select("gaussian", X, table.y, k=[1, 2], **own)
    with pytest.raises(ValueError, match="lasso_path needs experts with the same inputs"):
        moestat.lasso_path("gaussian", X, table.y, n_experts=2, **own)
    with pytest.raises(ValueError, match="their order is fixed"):
        moestat.fit_formula(FORMULAS, table, rng=0).relabel([2, 1])
    model = moestat.family("gaussian", n_features=2, **own)
    assert model.with_experts(1).n_features == 2
    with pytest.raises(ValueError, match="there are inputs of 2 experts"):
        model.with_experts(3)
