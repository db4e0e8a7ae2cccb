"""What holds of every likelihood, scale, column and start of fits with random effects."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import expit, log_expit, log_ndtr, logsumexp

import moestat
from moestat.base.warnings import IdentificationWarning, SeparationWarning
from moestat.estimation.data.groups import arranged
from moestat.estimation.search.runs import climb_all
from moestat.estimation.starts import GivenStarts
from moestat.model.random_intercept import Averaged
from moestat.solvers import Newton
from moestat.solvers.groups import group_sums
from tests.kinds import each_run

V = np.linspace(-24.0, 24.0, 480_001)
"""Nodes of the brute-force sum: their distance is .1 units of the predictor at scale 1000."""


def log_cloglog(eta):
    with np.errstate(divide="ignore", over="ignore"):
        return np.log(-np.expm1(-np.exp(eta))), -np.exp(np.minimum(eta, 700.0))


LOGS = {
    "logit": lambda eta: (log_expit(eta), log_expit(-eta)),
    "probit": lambda eta: (log_ndtr(eta), log_ndtr(-eta)),
    "cloglog": log_cloglog,
}


def log_of_binomial(link, trials):
    def log_mass(y, eta):
        one, other = LOGS[link](eta)
        choices = np.log(stats.binom.pmf(y, trials, 0.5)) + trials * np.log(2.0)
        first = y * one if y else 0.0
        return choices + first + ((trials - y) * other if y < trials else 0.0)

    return log_mass


def log_of_poisson(y, eta):
    return stats.poisson.logpmf(y, 1.0) + 1.0 + y * eta - np.exp(np.minimum(eta, 700.0))


MEMBERS = {
    "poisson": ({"name": "poisson"}, log_of_poisson, 4),
    "binary": ({"name": "binomial"}, log_of_binomial("logit", 1), 1),
    "twenty trials": ({"name": "binomial", "trials": 20}, log_of_binomial("logit", 20), 20),
    "probit": ({"name": "binomial", "link": "probit"}, log_of_binomial("probit", 1), 1),
    "cloglog": ({"name": "binomial", "link": "cloglog"}, log_of_binomial("cloglog", 1), 1),
}
SCALES = (1e-3, 0.1, 1.0, 5.0, 20.0, 50.0, 200.0, 1000.0)


def brute_force(log_mass, groups, scale):
    """Log-densities of groups (y, eta), and means and variances of their standardised effects."""
    found = []
    for y, eta in groups:
        log = sum(log_mass(one, at + scale * V) for one, at in zip(y, eta, strict=True))
        log = log - 0.5 * V**2
        top = logsumexp(log)
        share = np.exp(log - top)
        mean = share @ V
        value = top + np.log(V[1] - V[0]) - 0.5 * np.log(2.0 * np.pi)
        found.append((value, mean, share @ (V - mean) ** 2))
    return np.array(found)


def sample_of(groups, family):
    y = np.concatenate([y for y, _ in groups])
    eta = np.concatenate([eta for _, eta in groups])
    owner = np.repeat(np.arange(len(groups)), [len(y) for y, _ in groups])
    encoded = family.likelihood.encode(y, 1)
    return arranged(eta[None], encoded, np.ones(y.size), owner)


@pytest.mark.parametrize("scale", each_run(SCALES, SCALES, first=["1.0", "200.0"]))
@pytest.mark.parametrize("member", MEMBERS)
def test_a_quadrature_equals_brute_force(member, scale):
    """Of groups whose responses are the same, mixed, and far from their predictors."""
    table, log_mass, most = MEMBERS[member]
    family = moestat.family({**table, "random": ["1"]}, gate="softmax", n_experts=1, n_features=1)
    spread = np.array([-0.7, 0.1, 0.4, 1.3])
    edges = [np.full(4, most), np.zeros(4), np.array([0, most, 0, most]), np.array([most, 0, 0, 0])]
    shift = (0.0, -8.0) if member == "poisson" else (0.0, 3.0, -8.0)
    groups = [(y.astype(float), at + spread) for y in edges for at in shift]
    groups += [(y[:1].astype(float), np.array([0.5])) for y in edges]
    if member == "poisson" and scale < 0.05:  # else modes are beyond the nodes of the brute force
        groups = [(y, eta) for y, eta in groups if np.all(eta > -5.0)]
    theta = np.clip(np.zeros(family.n_params), family.lower, family.upper)
    names = family.param_names
    theta[names.index("a[1,0]")], theta[names.index("l[1,0]")] = 1.0, scale
    sums = group_sums(family, theta, sample_of(groups, family), 2)
    exact = brute_force(log_mass, groups, scale)
    assert np.allclose(sums.log_density, exact[:, 0], rtol=0, atol=1e-10)
    assert np.allclose(sums.moments[0, :, 0], exact[:, 1], rtol=0, atol=1e-9)
    assert np.allclose(sums.moments[0, :, 1], exact[:, 2], rtol=1e-7, atol=1e-12)
    # Derivatives in b and lambda, by differences along which the likelihood changes.
    for name in ("b[1]", "l[1,0]"):
        at, step = names.index(name), 1e-4 * (max(1.0, scale) if name == "b[1]" else scale)
        moved = np.zeros(theta.size)
        moved[at] = step
        sample = sample_of(groups, family)
        up, down = (group_sums(family, theta + s * moved, sample, 1) for s in (1.0, -1.0))
        slope = (up.value - down.value) / (2.0 * step)
        assert slope == pytest.approx(sums.score[at], rel=1e-5, abs=1e-6)
        bend = (up.score[at] - down.score[at]) / (2.0 * step)
        assert bend == pytest.approx(sums.hessian[at, at], rel=1e-5, abs=1e-6)


@pytest.mark.thorough
@pytest.mark.parametrize("scale", [0.5, 12.0, 150.0])
@pytest.mark.parametrize(("name", "most"), [("binomial", 1), ("poisson", 3)])
def test_means_of_known_groups_and_of_the_population_equal_brute_force(name, most, scale):
    if name == "poisson":
        scale = min(scale, 12.0) / 4.0
    rng = np.random.default_rng(4)
    owner = np.repeat(np.arange(12), 4)
    table = pd.DataFrame({"id": owner, "x": rng.normal(size=48)})
    table["y"] = np.where(rng.random(48) < 0.1, 1, np.repeat(most * rng.integers(0, 2, 12), 4))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = moestat.fit_formula(
            "y ~ x + (1 | id)", table, name, n_experts=1, rng=0,
            fixed={"a": {"x": 0.5}, "b": {1: 0.3}, "l": {1: scale}}, bounds={"l": (-400, 400)},
        )  # fmt: skip
    inverse = expit if name == "binomial" else np.exp
    log_mass = MEMBERS["binary" if name == "binomial" else name][1]
    known, whole = fit.predict(table, groups=table["id"]), np.asarray(fit.predict(table))
    normal = stats.norm.pdf(V) / stats.norm.pdf(V).sum()
    for row in (0, 17, 40):
        rows = table[table.id == table.id[row]]
        log = sum(
            log_mass(y, 0.3 + 0.5 * x + scale * V) for x, y in zip(rows.x, rows.y, strict=True)
        )
        log = log - 0.5 * V**2
        share = np.exp(log - logsumexp(log))
        means = inverse(0.3 + 0.5 * table.x[row] + scale * V)
        assert known.iloc[row] == pytest.approx(share @ means, rel=1e-9, abs=1e-12)
        if name == "binomial":
            assert whole[row] == pytest.approx(normal @ means, abs=1e-11)
        else:
            exact = np.exp(0.3 + 0.5 * table.x[row] + 0.5 * scale**2)
            assert whole[row] == pytest.approx(exact, rel=1e-12)


def test_probabilities_of_large_counts_are_integrals():
    """Peaks that are narrower than the distance of the first nodes."""
    law = moestat.family({"name": "poisson", "random": ["1"]}, n_features=1).likelihood.law
    eta, scale = np.log(2000.0), 0.8
    averaged = law(np.array([[[eta], [scale]]]))
    assert isinstance(averaged, Averaged)
    for y in (10.0, 500.0, 2000.0, 6000.0):
        log = stats.poisson.logpmf(y, np.exp(eta + scale * V)) - 0.5 * V**2
        exact = np.exp(logsumexp(log)) * (V[1] - V[0]) / np.sqrt(2.0 * np.pi)
        assert averaged.pmf(y).item() == pytest.approx(exact, rel=1e-8, abs=1e-13)


COLUMNS = [
    "x 1",
    "dose+1",
    "a/b",
    "f(x)",
    "a|b",
    "a:b",
    "p*q",
    "a~b",
    "it's",
    "x[0]",
    "class",
    "1x",
]


@pytest.fixture(scope="module")
def rows():
    """Rows of 30 groups with random intercepts and slopes."""
    rng = np.random.default_rng(0)
    owner = np.repeat(np.arange(30), 6)
    u, x = rng.normal(size=(2, 30)), rng.uniform(0.0, 2.0, 180)
    table = pd.DataFrame({"id": owner, "x": x, "h": rng.normal(size=180)})
    table["c"] = np.tile(["a", "b", "b"], 60)
    table["y"] = 1 + 0.5 * x + u[0, owner] + u[1, owner] * x + 0.5 * rng.normal(size=180)
    return table


def height(formula, table, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return moestat.fit_formula(formula, table, n_experts=1, rng=0, n_starts=1, **options).llf


@pytest.mark.parametrize("name", COLUMNS)
def test_random_terms_are_by_any_column_that_a_formula_accepts(name, rows):
    # A column whose name is the same but for a character is not taken for it.
    decoy = re.sub(r"\W", "", name)
    right = height("y ~ x + h + (1 + x | id)", rows)
    renamed = rows.rename(columns={"x": name, "h": decoy if decoy != name else "h"})
    other = f"`{decoy}`" if decoy != name else "h"
    slope = height(f"y ~ `{name}` + {other} + (1 + `{name}` | id)", renamed)
    assert slope == pytest.approx(right, abs=1e-8)
    given = height(
        f"y ~ `{name}` + {other}", renamed, groups="id", random={"terms": f"1 + `{name}`"}
    )
    assert given == pytest.approx(right, abs=1e-8)
    of_groups = rows.rename(columns={"id": name})
    assert height(f"y ~ x + h + (1 + x | `{name}`)", of_groups) == pytest.approx(right, abs=1e-8)


TERMS = {
    "log(x + 1)": lambda d: np.log(d.x + 1),
    "I(x + 1)": lambda d: d.x + 1,
    "np.sqrt(2*(x + 1) - 1)": lambda d: np.sqrt(2 * d.x + 1),
    "x:h": lambda d: d.x * d.h,
    "I((x > 1) | (h > 0))": lambda d: ((d.x > 1) | (d.h > 0)).astype(float),
    "Q('x')": lambda d: d.x,
    "c": lambda d: (d.c == "b").astype(float),
    "scale(x)": lambda d: (d.x - d.x.mean()) / d.x.std(),
}


@pytest.mark.parametrize("term", TERMS)
def test_random_terms_are_by_any_term_of_the_experts(term, rows):
    table = rows.assign(value=TERMS[term](rows))
    right = height("y ~ value + (1 + value | id)", table)
    assert height(f"y ~ {term} + (1 + {term} | id)", rows) == pytest.approx(right, abs=1e-7)
    argument = height(f"y ~ {term}", rows, groups="id", random=f"1 + {term}")
    assert argument == pytest.approx(right, abs=1e-7)


@pytest.mark.parametrize(
    ("formula", "match"),
    [
        ("y ~ x + (1 + h | id)", "'h' is not an input"),
        ("y ~ x + (1 | id/c/h)", "crossed groups"),
        ("y ~ x + (1 | id) + (1 | c)", "lme4"),
        ("y ~ x + c + (0 + c | id)", "another coding"),
        ("y ~ x (1 | id)", "is added to the experts' terms"),
    ],
)
def test_other_random_terms_are_refused(formula, match, rows):
    with pytest.raises(ValueError, match=match):
        moestat.fit_formula(formula, rows, n_experts=1)


@pytest.mark.parametrize("random", [None, "1"])
@pytest.mark.parametrize("name", ["poisson", "binomial", "gaussian"])
def test_one_start_out_of_range_does_not_end_a_fit(name, random):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(100, 1)), rng.integers(0, 2, 100).astype(float)
    y += 0.3 * rng.normal(size=100) * (name == "gaussian")
    options = {"groups": np.repeat(np.arange(20), 5), "gate_inputs": [], "random": random}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = moestat.fit(name, x, y, n_experts=2, rng=0, n_starts=1, **options)
        starts = [GivenStarts([np.full(fit.theta.size, s), fit.theta]) for s in (1e3, -1e300)]
        for start in starts:
            again = moestat.fit(name, x, y, n_experts=2, rng=0, starts=[start], **options)
            assert again.llf >= fit.llf - 1e-6
            assert again.certificate.n_starts == 2


def test_failed_runs_count_as_starts_and_all_of_them_are_an_error(monkeypatch):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(80, 1)), rng.normal(size=80)
    steps, calls = Newton.steps, [0]

    def failing(every):
        def run(self, problem, start):
            calls[0] += 1
            if every or calls[0] % 2:
                raise np.linalg.LinAlgError("out of range")
            return (yield from steps(self, problem, start))

        return run

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = moestat.fit("gaussian", x, y, n_experts=2, rng=0, n_starts=2)
        starts = [GivenStarts([fit.theta] * 4)]
        monkeypatch.setattr(Newton, "steps", failing(False))
        half = moestat.fit("gaussian", x, y, n_experts=2, rng=0, starts=starts)
        assert half.certificate.n_starts == 4
        assert half.certificate.agreement == pytest.approx(0.5)
        monkeypatch.setattr(Newton, "steps", failing(True))
        with pytest.raises(ValueError, match="out of range"):
            moestat.fit("gaussian", x, y, n_experts=2, rng=0, starts=starts)


def test_a_failed_climb_ends_where_it_began(monkeypatch):
    def climb(self, problem, start):
        raise np.linalg.LinAlgError
        yield

    monkeypatch.setattr(Newton, "climb", climb)
    problem = moestat.family("gaussian", n_features=1)

    class Stub:
        family = problem

    points = np.zeros((2, problem.n_params))
    ends = climb_all([Stub(), Stub()], points, 3)
    assert [h for _, h in ends] == [-np.inf, -np.inf]


def told_of(formula, table, name="gaussian", k=1, **options):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        fit = moestat.fit_formula(formula, table, name, n_experts=k, rng=0, n_starts=2, **options)
    return fit, {warning.category for warning in told}


def groups_of(size, seed=0, n=30):
    """Groups of a size, with an input that is the same in all groups and one that differs."""
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(n), size)
    table = pd.DataFrame({"id": owner, "t": np.tile(np.arange(float(size)), n)})
    table["x"], table["s"] = rng.normal(size=n * size), rng.integers(0, 2, n)[owner]
    table["y"] = table.x + rng.normal(size=n)[owner] + rng.normal(size=n * size)
    table["b"] = (table.y > 0).astype(int)
    table["same"] = np.repeat(rng.integers(0, 2, n), size)
    return table


@pytest.mark.parametrize(
    ("formula", "size", "name", "lost"),
    [
        ("y ~ x + (1 | id)", 1, "gaussian", True),
        ("y ~ t + (1 + t | id)", 2, "gaussian", True),
        ("y ~ s + (1 + s | id)", 4, "gaussian", True),
        ("b ~ x + (1 | id)", 1, "binomial", True),
        ("y ~ x + (1 | s)", 1, "gaussian", False),
        ("y ~ t + (1 + t || id)", 2, "gaussian", False),
        ("y ~ x + (1 + x | id)", 2, "gaussian", False),
        ("y ~ x + (1 | id)", 2, "gaussian", False),
        ("b ~ x + (1 | id)", 2, "binomial", False),
    ],
)
def test_components_that_groups_do_not_determine_are_said(formula, size, name, lost):
    fit, told = told_of(formula, groups_of(size), name)
    assert (IdentificationWarning in told) == lost
    if lost:
        assert "do not determine" in " ".join(fit.notes)
    elif fit.certificate.certified:
        assert SeparationWarning not in told


def test_given_components_determine_the_others_and_one_group_does_not():
    _, told = told_of("y ~ x + (1 | id)", groups_of(1), fixed={"nu": 0.5})
    assert IdentificationWarning not in told
    _, told = told_of("y ~ x + (1 | one)", groups_of(3).assign(one=1))
    assert IdentificationWarning in told


@pytest.mark.parametrize("link", ["logit", "probit"])
def test_answers_that_are_constant_within_groups_are_said(link):
    table = groups_of(4)
    fit, told = told_of("same ~ x + (1 | id)", table, {"name": "binomial", "link": link})
    assert SeparationWarning in told
    (note,) = [each for each in fit.notes if "no finite maximum" in each]
    assert "same within nearly every group" in note
    assert "prior" not in note


def test_likelihood_ratios_of_a_variance_are_mixtures(rows):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        none, one, diagonal, two = (
            moestat.fit_formula(f"y ~ x{term}", rows, n_experts=1, rng=0)
            for term in ("", " + (1 | id)", " + (1 + x || id)", " + (1 + x | id)")
        )
    for small, large, dfs in ((none, one, (0, 1)), (one, two, (1, 2)), (one, diagonal, (0, 1))):
        test = large.compare_lr_test(small)
        gain = 2.0 * (large.llf - small.llf)
        halves = [stats.chi2.sf(gain, df) if df else 0.0 for df in dfs]
        assert (test.other_df, test.df) == dfs
        assert test.pvalue == pytest.approx(np.mean(halves))
        assert "half chi2" in str(test)
    plain = two.compare_lr_test(diagonal)
    assert (plain.df, plain.other_df) == (1, None)
    with pytest.raises(ValueError, match="2 variances"):
        two.compare_lr_test(none)
