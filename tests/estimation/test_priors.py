"""Posterior modes against closed forms, scipy and a plain-NumPy prior density."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize
from statsmodels.tools.numdiff import approx_hess

import moestat
from moestat import Prior
from moestat.base.warnings import IdentificationWarning, SeparationWarning
from moestat.estimation.data.priors import as_prior, has_prior
from moestat.estimation.fitting.estimators import MoEClassifier, MoERegressor
from moestat.model.constraints import Constraint, along, averaged
from moestat.model.gates import GATES
from moestat.model.likelihoods import LIKELIHOODS
from moestat.model.units import DataUnits
from moestat.solvers import EM
from moestat.solvers.newton import Newton
from tests import oracle
from tests.kinds import goes_with

SEPARATED = np.arange(8.0), np.repeat([1, 2], 4)
UNITS = DataUnits(np.array([3.0, -1.0]), np.array([2.0, 0.5]), 4.0, 10.0)


def minus_log_prior(family, theta, units, prior):
    """The density as the documentation states it, by loops over atoms, classes and inputs."""
    blocks, k = family.unpack(theta), family.n_experts
    total = 0.0

    def normal(intercepts, slopes, deviation):
        """Predictors, one in each row: squares about the mean over rows."""
        at_centre = intercepts + slopes @ units.centre
        moves = slopes * units.scale
        squares = np.sum((at_centre - at_centre.mean()) ** 2) / (4.0 * deviation) ** 2
        return 0.5 * (squares + np.sum((moves - moves.mean(axis=0)) ** 2) / deviation**2)

    total += normal(blocks["beta0"], blocks["beta1"], prior.gate)
    for i in range(k):
        if family.likelihood.support is None:
            # One predictor, not a contrast: its squares are about the mean of the response.
            at_centre = blocks["b"][i] + blocks["a"][i] @ units.centre - units.level
            moves = blocks["a"][i] * units.scale
            deviation = prior.experts * units.unit
            total += 0.5 * (at_centre / (4.0 * deviation)) ** 2
            total += 0.5 * np.sum((moves / deviation) ** 2)
            variance = blocks["nu"][i]
            total += (prior.variance / 2 + 1) * np.log(variance)
            total += (units.unit / k) ** 2 / (2 * variance)
        else:
            intercepts = np.append(blocks["b"][i], 0.0)
            slopes = np.vstack([blocks["a"][i], np.zeros(family.n_features)])
            total += normal(intercepts, slopes, prior.experts)
    return total


FAMILIES = [
    moestat.family("gaussian", gate="softmax", n_experts=3, n_features=2),
    moestat.family("multinomial", gate="softmax", n_experts=2, n_features=2, n_classes=3),
]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.likelihood.name)
def test_penalty_is_minus_the_log_density_and_its_derivatives(family):
    prior = Prior(gate=1.5, experts=0.7, variance=4.0)
    penalty = prior.penalty(family, UNITS)
    rng = np.random.default_rng(0)
    here, there = (family.pin(rng.normal(size=family.n_params)) for _ in range(2))
    expected = minus_log_prior(family, here, UNITS, prior) - minus_log_prior(
        family, there, UNITS, prior
    )
    assert penalty.value(here) - penalty.value(there) == pytest.approx(expected, rel=1e-10)
    free = np.flatnonzero(family.lower < family.upper)
    step = 1e-5
    moves = step * np.eye(family.n_params)[free]
    slopes = [(penalty.value(here + m) - penalty.value(here - m)) / (2 * step) for m in moves]
    np.testing.assert_allclose(penalty.gradient(here)[free], slopes, rtol=1e-6, atol=1e-7)
    bends = [(penalty.gradient(here + m) - penalty.gradient(here - m)) / (2 * step) for m in moves]
    np.testing.assert_allclose(penalty.hessian(here)[free], bends, rtol=1e-6, atol=1e-7)


def weak(family):
    """The weak prior of a family, for data in odd units."""
    d, n_responses = family.n_features, len(family.likelihood.laws)
    each = np.arange(1.0, n_responses + 1.0)
    level, unit = (4.0, 10.0) if n_responses == 1 else (each, 2.0 * each)
    units = DataUnits(UNITS.centre[:d], UNITS.scale[:d], level, unit)
    return as_prior("weak", family).penalty(family, units)


def form_of(family):
    """The form of the weak prior (P, P), and the places of the experts' coefficients in it."""
    form = weak(family).quadratic
    first = len(family.gate.channels(family.n_features))
    channels = range(first, len(family.channels))
    own = [family.index[:, c, None] + np.arange(int(family.width[c])) for c in channels]
    return form, np.concatenate([places.ravel() for places in own])


@pytest.mark.parametrize("likelihood", [name for name, one in LIKELIHOODS.items() if one.block])
def test_the_prior_of_every_gate_is_a_density_and_that_of_experts_knows_no_gate(likelihood):
    """Its form is symmetric and positive semidefinite, with the experts as under a softmax gate."""
    sizes = {"n_experts": 3, "n_features": 2}
    sizes |= {"n_classes": 4} if likelihood in ("multinomial", "ordinal") else {}
    plain, places = form_of(moestat.family(likelihood, gate="softmax", **sizes))
    for gate in GATES:
        if not goes_with(likelihood, gate, "linear"):
            continue
        family = moestat.family(likelihood, gate=gate, **sizes)
        if not has_prior(family):
            continue
        form, own = form_of(family)
        np.testing.assert_allclose(form, form.T, atol=1e-14)
        assert np.linalg.eigvalsh(form)[0] >= -1e-12, gate
        np.testing.assert_allclose(
            form[np.ix_(own, own)], plain[np.ix_(places, places)], err_msg=gate
        )
        rest = np.setdiff1d(np.arange(len(form)), own)
        assert not form[np.ix_(own, rest)].any(), gate


def test_experts_are_independent_where_some_do_not_have_a_coefficient():
    """Lines through the origin, and a uniform law beside a line, which has none."""
    x = np.linspace(-1.0, 1.0, 80)
    y = np.where(x > 0.0, 2.0 * x, -x) + 0.1 * np.cos(40.0 * x)
    table, through_0 = {"y": y, "x": x}, {"n_experts": 2, "rng": 0, "prior": "weak"}
    lines = moestat.fit_formula("y ~ 0 + x | x", table, **through_0).family
    noise = {"name": "uniform", "low": -6.0, "high": 7.0}
    beside = moestat.family({"experts": ["gaussian", "student-t", noise]}, gate="softmax")
    for family in (lines, beside):
        form, own = form_of(family)
        atom = np.searchsorted(family.index[1:, 0], own, side="right")
        apart = atom[:, None] != atom
        assert not form[np.ix_(own, own)][apart].any()


@pytest.mark.parametrize("gate", [name for name in GATES if goes_with("gaussian", name, "linear")])
def test_the_prior_does_not_depend_on_what_is_fixed(gate):
    """A coefficient that is fixed at the mode's value leaves the posterior density as it was."""
    for likelihood in ("gaussian", "multinomial"):
        if not goes_with(likelihood, gate, "linear"):
            continue
        family = moestat.family(likelihood, gate=gate, n_experts=3, n_features=2)
        if not has_prior(family):
            continue
        for name, places in family.blocks.items():
            if places.ndim == 0 or family.lower[places.flat[0]] == family.upper[places.flat[0]]:
                continue
            one = Constraint(name, experts=(0,), value=1.0)
            fixed = replace(family, constraints=(*family.constraints, one))
            rng = np.random.default_rng(0)
            a, b = fixed.feasible(rng.normal(size=(2, family.n_params)))
            rise = [weak(each).value(a) - weak(each).value(b) for each in (fixed, family)]
            assert rise[0] == pytest.approx(rise[1], rel=1e-9), name


LAWS = [name for name, one in LIKELIHOODS.items() if one.block and not one.parts]


@pytest.mark.parametrize("likelihood", LAWS)
def test_what_is_equal_stays_equal_and_counts_once(likelihood):
    """The form keeps ties, and a block is the same parameter however its equality is written."""
    sizes = {"n_experts": 3, "n_features": 2}
    sizes |= {"n_classes": 4} if likelihood in ("multinomial", "ordinal") else {}
    family, rng = moestat.family(likelihood, gate="softmax", **sizes), np.random.default_rng(0)
    for name, places in family.blocks.items():
        if places.ndim == 0:
            continue
        tied = replace(family, constraints=(*family.constraints, Constraint(name)))
        prior, theta = weak(tied), tied.feasible(rng.normal(size=tied.n_params))
        gradient = prior.gradient(theta)
        np.testing.assert_allclose(averaged(gradient, tied.ties), gradient, atol=1e-12)
        hessian = prior.hessian(theta)
        np.testing.assert_allclose(along(hessian, tied.ties) @ theta, hessian @ theta, atol=1e-11)
        shareable = name not in family.gate.bounds and name in [
            channel.intercept for channel in family.channels if channel.slope is None
        ]
        if not shareable or likelihood == "ordinal":
            continue
        shared = replace(family, likelihood=family.likelihood.with_equal([name]))
        values = []
        for _ in range(2):
            theta = tied.feasible(rng.normal(size=tied.n_params))
            blocks = tied.unpack(theta)
            one = shared.pack({**blocks, name: np.ravel(blocks[name])[0]})
            values.append((prior.value(theta), weak(shared).value(one)))
        assert np.diff(values, axis=0)[0, 0] == pytest.approx(np.diff(values, axis=0)[0, 1]), name


def rises(first, second, thetas):
    """How the priors of two families rise between parameters of the same densities."""
    values = [
        [weak(F).value(theta) for F, theta in zip((first, second), pair, strict=True)]
        for pair in thetas
    ]
    return np.diff(values, axis=0)[0]


def test_gates_that_are_the_softmax_gate_have_its_prior():
    """The dense-to-sparse gate without an activation, and a tree of one node."""
    sizes = {"n_experts": 3, "n_features": 2}
    softmax = moestat.family("gaussian", gate="softmax", **sizes)
    dense = moestat.family("gaussian", gate="dense-to-sparse", **sizes)
    tree = moestat.family("gaussian", gate={"name": "hierarchical", "tree": [1, 2, 3]}, **sizes)
    turned = moestat.family("gaussian", gate={"name": "hierarchical", "tree": [3, 1, 2]}, **sizes)
    rng, pairs = np.random.default_rng(0), {"dense": [], "tree": [], "turned": []}
    for _ in range(2):
        theta = softmax.pin(rng.normal(size=softmax.n_params))
        blocks = softmax.unpack(theta)
        score, slope = blocks.pop("beta0"), blocks.pop("beta1")
        other = {"gamma": score, "alpha": slope, "beta": np.zeros(3), "tau": 1.0}
        pairs["dense"].append((theta, dense.pack({**other, **blocks})))
        for name, family, order in (("tree", tree, [0, 1, 2]), ("turned", turned, [2, 0, 1])):
            node = family.unpack(family.typical(0))
            for j, expert in enumerate(order[:-1], start=1):
                node[f"c1_{j}"] = np.full(3, score[expert] - score[order[-1]])
                node[f"v1_{j}"] = np.tile(slope[expert] - slope[order[-1]], (3, 1))
            pairs[name].append((theta, family.pack({**node, **blocks})))
    for name, family in (("dense", dense), ("tree", tree), ("turned", turned)):
        own, other = rises(softmax, family, pairs[name])
        assert own == pytest.approx(other, rel=1e-9), name


@pytest.mark.parametrize("tree", [[[1, 2], 3], [3, [1, 2]]])
def test_what_a_tree_does_not_have_counts_for_nothing(tree):
    """Its prior is 0 at scores of 0, whatever its codes of sides and of absent children are."""
    gate = {"name": "hierarchical", "tree": tree}
    family = moestat.family("poisson", gate=gate, n_experts=3)
    blocks = family.unpack(family.typical(0))
    for name, block in blocks.items():
        known = np.isin(family.blocks[name], list(family.known_values))
        blocks[name] = np.where(known, block, 0.0)
    assert weak(family).value(family.pack(blocks)) == 0.0


def test_the_order_of_likelihoods_does_not_matter():
    rng = np.random.default_rng(0)
    x = rng.normal(size=120)
    y = np.where(rng.random(120) < 0.5, 2.0 + x, -2.0 - x) + 0.5 * rng.normal(size=120)
    noise, heights = {"name": "uniform", "low": -9.0, "high": 9.0}, []
    for experts in (["gaussian", "gaussian", noise], [noise, "gaussian", "gaussian"]):
        how = {"prior": Prior(gate=0.3, experts=0.3), "rng": 0}
        heights.append(moestat.fit({"experts": experts}, x, y, **how).log_posterior)
    assert heights[0] == pytest.approx(heights[1], abs=1e-6)


def test_a_response_of_classes_beside_others_has_no_unit():
    rng = np.random.default_rng(0)
    x = rng.normal(size=150)
    classes = 1 + (x + rng.logistic(size=150) > 1.5) + (x + rng.logistic(size=150) > 3)
    counts, how = rng.poisson(2, size=150), {"n_experts": 1, "prior": Prior(experts=0.3), "rng": 0}
    alone = moestat.fit("ordinal", x, classes, **how)
    beside = moestat.fit(["ordinal", "poisson"], x, np.column_stack([classes, counts]), **how)
    assert beside.blocks["a_y1"].ravel() == pytest.approx(alone.blocks["a"].ravel(), abs=1e-6)


@pytest.mark.filterwarnings("ignore::moestat.base.warnings.MoEWarning")
def test_all_levels_of_a_factor_follow_the_origin_of_the_response():
    """Without an intercept its levels have the mean of the response, far from 0 as well."""
    rng, n = np.random.default_rng(0), 240
    level = np.arange(n) % 4
    table = {"f": np.array(list("abcd"))[level], "x": rng.normal(size=n)}
    side = np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-2.0 * table["x"])), 1.0, -1.0)
    y = 0.5 * side * (2 + level) + 1.5 * rng.normal(size=n)
    for prior in (None, "weak"):
        how = {"n_experts": 2, "rng": 0, "prior": prior}
        known = moestat.fit_formula("y ~ f | x", {**table, "y": y}, **how).llf
        for far in (0.0, 100.0, 10_000.0):
            result = moestat.fit_formula("y ~ 0 + f | x", {**table, "y": y + far}, **how)
            assert result.llf == pytest.approx(known, abs=1e-2), (prior, far)


def test_only_inputs_whose_sum_is_constant_take_the_place_of_the_intercept():
    """Slopes of lines through the origin have mean 0; parts of a constant have its level, and one
    may be a multiple of another."""
    family = moestat.family("gaussian", gate="softmax", n_features=3)
    family = replace(family, constraints=(Constraint("b", value=0.0),))
    x = np.random.default_rng(0).normal([3.0, -1.0, 0.5], [2.0, 0.5, 1.0], (50, 3))
    parts = np.column_stack([x[:, 0], 1.0 - x[:, 0], x[:, 0] / 7.0])
    for inputs, expected in ((x, 0.0), (parts, 4.0)):
        squares = inputs.T @ inputs / len(inputs)
        units = DataUnits(inputs.mean(axis=0), inputs.std(axis=0), 4.0, 10.0, squares=squares)
        centre = family.unpack(Prior().penalty(family, units).centre)
        np.testing.assert_allclose(inputs @ centre["a"].T, expected, atol=1e-6)


@pytest.mark.filterwarnings("ignore::moestat.base.warnings.MoEWarning")
def test_levels_of_a_factor_have_what_known_coefficients_and_inputs_leave():
    """An offset, a known slope, and an input far from 0, beside all levels of a factor."""
    rng, n = np.random.default_rng(0), 200
    table = {"f": np.array(list("abc"))[rng.integers(3, size=n)]}
    table |= {name: rng.normal(size=n) for name in "xoz"}
    left = rng.random(n) < 1.0 / (1.0 + np.exp(-2.0 * table["x"]))
    y = np.where(left, 3.0, -3.0) + 0.5 * rng.normal(size=n)
    how = {"n_experts": 2, "rng": 0, "prior": "weak"}
    for plain, whole, more, name in (
        ("y ~ f | x", "y ~ 0 + f | x", {"offset": "o"}, "o"),
        ("y ~ f + z | x", "y ~ 0 + f + z | x", {"fixed": {"a": {"z": 1.0}}}, "z"),
        ("y ~ f + z | x", "y ~ 0 + f + z | x", {}, "z"),
    ):
        data = {**table, "y": y + table[name]}
        known = moestat.fit_formula(plain, data, **more, **how).llf
        for far in (0.0, 1000.0):
            moved = {**data, name: data[name] + far, "y": data["y"] + far * bool(more)}
            found = moestat.fit_formula(whole, moved, **more, **how)
            assert found.llf == pytest.approx(known, abs=0.05), (whole, far)


def test_trees_with_the_same_nodes_for_these_experts_have_the_same_prior():
    """Further leaves are cut off: those of a node, and nodes, that are wider with more experts."""
    for n_experts, trees in (
        (2, ([1, 2], [1, 2, 3], [1, 2, 3, 4, 5])),
        (4, ([[1, 2], [3, 4]], [[1, 2], [3, 4, 5]])),
    ):
        heights = []
        for tree in trees:
            family = moestat.family(
                "gaussian", gate={"name": "hierarchical", "tree": tree}, n_experts=n_experts
            )
            blocks = family.unpack(family.typical(0))
            blocks |= {"a": np.ones((n_experts, 1)), "b": np.ones(n_experts)}
            blocks["nu"] = np.ones(n_experts)
            scores = {name for name in blocks if name[0] in "cv"}
            free = ~np.isin(np.arange(family.n_params), list(family.known_values))
            for name in scores:
                at = free[family.blocks[name]]
                blocks[name] = np.where(at, 0.5 if name[0] == "c" else 1.5, blocks[name])
            heights.append(weak(family).value(family.pack(blocks)))
        assert np.ptp(heights) < 1e-9, heights


def test_a_copy_of_an_expert_adds_nothing_to_the_prior():
    """What is known beside what is equal is the same for each, and inputs may have mean 0."""
    values = []
    for n_experts, equal in ((1, []), (2, ["a"]), (4, ["a"]), (2, ["a", "b"])):
        family = moestat.family("poisson", gate="softmax", n_experts=n_experts, n_features=2)
        ties = [Constraint(name) for name in equal] + [Constraint("b", value=0.7)]
        tied = replace(family, constraints=tuple(ties))
        blocks = tied.unpack(tied.feasible(np.zeros(tied.n_params)))
        blocks |= {"a": np.tile([0.3, -0.4], (n_experts, 1)), "b": np.full(n_experts, 0.7)}
        for centre in (UNITS.centre, np.zeros(2)):
            penalty = Prior().penalty(tied, DataUnits(centre, UNITS.scale))
            values.append(penalty.value(tied.pack(blocks)))
    assert np.ptp(values[::2]) < 1e-12
    assert np.ptp(values[1::2]) < 1e-12


def test_bounds_of_a_temperature_do_not_change_the_prior_of_the_scores():
    sizes = {"n_experts": 3, "n_features": 2}
    rng, plain = np.random.default_rng(0), moestat.family("gaussian", gate="sigmoid-inner", **sizes)
    bounds = {"tau": (2.0, 5.0)}
    other = moestat.family("gaussian", gate="sigmoid-inner", bounds=bounds, **sizes)
    pairs = []
    for _ in range(2):
        theta = plain.at_unit_scale(plain.pin(rng.uniform(0.5, 1.5, plain.n_params)))
        pairs.append((theta, other.at_unit_scale(theta)))
    own, moved = rises(plain, other, pairs)
    assert own == pytest.approx(moved, rel=1e-9)


@pytest.mark.filterwarnings("ignore::moestat.base.warnings.MoEWarning")
def test_a_temperature_does_not_weaken_the_prior_of_its_gate():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.0, 1.0, 200)
    y = np.where(x > 0.0, 3.0 + x, -3.0 - x) + 0.3 * rng.normal(size=200)
    for deviation in (2.5, 0.5):
        how = {"n_experts": 2, "prior": Prior(gate=deviation), "rng": 0}
        plain = moestat.fit("gaussian", x, y, gate="sigmoid", **how)
        scaled = moestat.fit("gaussian", x, y, gate="sigmoid-inner", **how)
        assert scaled.llf == pytest.approx(plain.llf, abs=1e-3)


@pytest.mark.filterwarnings("ignore::moestat.base.warnings.MoEWarning")
def test_equal_coefficients_are_equal_at_a_mode():
    rng = np.random.default_rng(1)
    x = rng.uniform(5.0, 8.0, 160)
    left = rng.random(160) < 1.0 / (1.0 + np.exp(-3.0 * (x - 6.5)))
    y = np.where(left, x - 3.0, 1.5 - 0.5 * x) + 0.5 * rng.normal(size=160)
    how = {"n_experts": 2, "equal": "b", "rng": 0}
    highest = moestat.fit("gaussian", x, y, **how)
    mode = moestat.fit("gaussian", x, y, prior="weak", **how)
    assert mode.certificate.certified
    assert mode.blocks["b"][0] == pytest.approx(mode.blocks["b"][1], abs=1e-10)
    assert mode.llf < highest.llf
    assert highest.certificate.p_higher < 0.1


def test_the_reference_expert_does_not_matter():
    family = FAMILIES[0]
    penalty = Prior().penalty(family, UNITS)
    rng = np.random.default_rng(1)
    blocks = family.unpack(family.pin(rng.normal(size=family.n_params)))
    turned = {name: np.roll(block, 1, axis=0) for name, block in blocks.items()}
    for name in ("beta0", "beta1"):
        turned[name] = turned[name] - turned[name][-1]
    assert penalty.value(family.pack(turned)) == pytest.approx(penalty.value(family.pack(blocks)))


def test_separated_classes_have_the_mode_that_scipy_finds():
    x, y = SEPARATED
    result = moestat.fit("multinomial", x, y, n_experts=1, prior=Prior(), rng=0)
    family = result.family
    units = DataUnits(np.array([x.mean()]), np.array([x.std()]))
    free = np.flatnonzero(family.lower < family.upper)

    def objective(values):
        theta = family.pin(np.zeros(family.n_params))
        theta[free] = values
        height = oracle.log_likelihood(family, theta, x[:, None], y, np.ones(8))
        return minus_log_prior(family, theta, units, Prior()) - height

    other = scipy.optimize.minimize(objective, np.zeros(free.size), method="BFGS", tol=1e-9)
    np.testing.assert_allclose(result.theta[free], other.x, rtol=1e-5)
    assert result.certificate.certified
    assert result.notes == ()
    height = moestat.log_likelihood(family, result.theta, x, y)
    assert result.llf == pytest.approx(height, abs=1e-9)
    # The curvature is that of the posterior density.
    expected = np.linalg.inv(approx_hess(other.x, objective))
    np.testing.assert_allclose(result.cov_params()[np.ix_(free, free)], expected, rtol=1e-4)


def test_the_variance_of_one_expert_has_a_closed_form():
    rng = np.random.default_rng(2)
    x = rng.normal(5.0, 3.0, size=40)
    y = 100.0 + 7.0 * x + rng.normal(0.0, 20.0, size=40)
    prior = Prior(gate=None, experts=None, variance=5.0)
    result = moestat.fit("gaussian", x, y, n_experts=1, prior=prior, rng=0)
    design = np.column_stack([np.ones(40), x])
    residual = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    expected = (residual @ residual + np.var(y)) / (40 + 5.0 + 2.0)
    assert result.blocks["nu"][0] == pytest.approx(expected, rel=1e-6)


def test_modes_do_not_depend_on_units_or_on_the_order_of_classes():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 1)
    options = {"n_experts": 1, "prior": Prior(), "rng": 0}
    plain = moestat.fit("multinomial", X, y, **options)
    other = moestat.fit("multinomial", 1e4 * X - 3e6, 2 - y, **options)
    assert other.llf == pytest.approx(plain.llf, rel=1e-6)
    there = other.predict_proba(1e4 * X - 3e6)[:, ::-1]
    np.testing.assert_allclose(there, plain.predict_proba(X), rtol=1e-3, atol=1e-6)


def test_variances_stay_off_the_boundary():
    """Four equal responses on a line take an expert of their own without a prior."""
    rng = np.random.default_rng(4)
    x = np.concatenate([rng.uniform(-1, 1, 30), np.linspace(0.4, 0.41, 12)])
    y = np.concatenate([rng.normal(size=30), np.full(12, 0.5)])
    mode = moestat.fit("gaussian", x, y, n_experts=2, prior=Prior(), rng=0)
    assert mode.certificate.certified
    assert not mode.certificate.active
    assert mode.blocks["nu"].min() > 1e-3 * np.var(y)


def test_a_mode_says_what_it_is():
    result = moestat.fit("multinomial", *SEPARATED, n_experts=1, prior=Prior(), rng=0)
    assert "posterior mode" in repr(result)
    assert "not the maximum of the likelihood" in str(result.summary())
    model = MoEClassifier(n_experts=1, prior=Prior(), random_state=0)
    model.fit(SEPARATED[0][:, None], SEPARATED[1])
    assert model.results_.prior == Prior()


@pytest.mark.parametrize(
    "derived",
    [
        lambda mode: mode.profile("b[1,1]"),
        lambda mode: mode.compare_lr_test(mode),
    ],
)
def test_what_is_derived_for_maxima_refuses_modes(derived):
    mode = moestat.fit("multinomial", *SEPARATED, n_experts=1, prior=Prior(), rng=0)
    with pytest.raises(ValueError, match=r"posterior mode under Prior.*fit without prior="):
        derived(mode)


def test_modes_are_compared_by_their_posterior_density(tmp_path):
    """Two classes: each has half of the contrast, so that the sum of squares is half of its own."""
    rng = np.random.default_rng(0)
    x = 3.0 + 2.0 * rng.normal(size=80)
    y = np.where(rng.random(80) < 1.0 / (1.0 + np.exp(3.0 - x)), 1, 2)
    mode = moestat.fit("multinomial", x, y, n_experts=1, prior="weak", rng=0)
    slope, level = float(mode.blocks["a"].squeeze()), float(mode.blocks["b"].squeeze())
    squares = (slope * x.std()) ** 2 / 2.5**2 + (level + slope * x.mean()) ** 2 / 10.0**2
    assert mode.log_posterior == pytest.approx(mode.llf - 0.25 * squares)
    mode.save(tmp_path / "mode.npz")
    assert moestat.load(tmp_path / "mode.npz").log_posterior == mode.log_posterior
    maximum = moestat.fit("multinomial", x, y, n_experts=1, rng=0)
    assert maximum.log_posterior == maximum.llf


def test_errors_of_a_mode_are_those_of_its_law_over_samples():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 200)
    y = rng.random(200) < 1 / (1 + np.exp(-1 - 2 * x))
    prior = Prior(experts=0.5)
    mode = moestat.fit("multinomial", x, y, n_experts=1, prior=prior, rng=0)
    Z = np.column_stack([np.ones(200), x])
    p = mode.predict_proba(x)[:, 0]
    information = (Z * (p * (1 - p))[:, None]).T @ Z
    # One of two classes is the reference: halves of the log-odds deviate from their mean.
    scale = 0.5 / np.array([16.0, 1.0]) / 0.25
    to = np.array([[1.0, x.mean()], [0.0, x.std()]])
    penalty = to.T @ np.diag(scale) @ to
    V = np.linalg.inv(information + penalty)
    scores = Z * (np.where(y, 0.0, 1.0) - p)[:, None]
    free = mode.free
    np.testing.assert_allclose(mode.cov_params()[np.ix_(free, free)], V, rtol=1e-6)
    assert mode.edf == pytest.approx(np.trace(V @ information), rel=1e-6)
    assert mode.aic == pytest.approx(2 * mode.edf - 2 * mode.llf)
    robust = mode.get_robustcov_results("HC0")
    np.testing.assert_allclose(
        robust.cov_params()[np.ix_(free, free)], V @ (scores.T @ scores) @ V, rtol=1e-6
    )
    expected = mode.get_robustcov_results("expected").bse[free]
    np.testing.assert_allclose(expected, mode.bse[free], rtol=1e-6)
    again = mode.bootstrap(200, rng=0)
    np.testing.assert_allclose(again.bse[free], robust.bse[free], rtol=0.2)
    np.testing.assert_allclose(again.replicates.mean(axis=0), mode.theta, atol=0.1)
    assert "Effective parameters" in str(mode.summary())
    assert "over repeated samples" in str(robust.summary())


def test_more_parameters_than_rows_have_a_mode():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 30))
    y = X[:, 0] + 0.1 * rng.normal(size=20)
    with pytest.raises(ValueError, match=r"20 samples.*prior=.weak."):
        moestat.fit("gaussian", X, y, n_experts=1, rng=0)
    mode = moestat.fit("gaussian", X, y, n_experts=1, prior=Prior(experts=0.3), rng=0)
    assert mode.certificate.certified
    assert mode.notes == ()
    assert 0 < mode.edf < 20
    assert (mode.bse[mode.free] > 0).all()
    few = mode.get_prediction(X).summary_frame()
    assert np.isfinite(few.to_numpy()).all()


def separated_rows(n=80):
    """Two regions that an input separates, with a line each: x (n,), y (n,)."""
    rng = np.random.default_rng(1)
    x = rng.uniform(-1.0, 1.0, n)
    return x, np.where(x > 0.0, 3.0 + x, -x) + 0.2 * rng.normal(size=n)


def test_a_separation_names_the_way_out_and_everything_follows_it():
    """One word in the warning; select, resamples, predictions, tests and estimators take it."""
    x, y = separated_rows()
    with pytest.warns(SeparationWarning, match='Use prior="weak" or fewer experts'):
        moestat.fit("gaussian", x, y, n_experts=2, rng=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", SeparationWarning)
        mode = moestat.fit("gaussian", x, y, n_experts=2, prior="weak", rng=0)
        assert mode.prior == Prior()
        assert mode.certificate.certified
        assert np.isfinite(mode.bse[mode.free]).all()
        chosen = moestat.select("gaussian", x, y, k=(1, 2), prior="weak", rng=0)
        assert chosen.chosen() == 2
        assert chosen.best.prior == Prior()
        assert np.isfinite(mode.get_prediction(x[:5]).summary_frame().to_numpy()).all()
        again = mode.bootstrap(20, rng=0)
        assert np.abs(again.replicates).max() < 100.0
        one = chosen.results[1]
        assert moestat.bootstrap_lrt(one, chosen.results[2], 19, rng=0).pvalue == 0.05
        assert mode.wald_test("a[1,0] = a[2,0]").pvalue < 0.05
        model = MoERegressor(n_experts=2, prior="weak", random_state=0).fit(x[:, None], y)
        assert model.results_.llf == pytest.approx(mode.llf, abs=0.01)
    with pytest.raises(ValueError, match="posterior mode under Prior"):
        moestat.bootstrap_lrt(one, moestat.fit("gaussian", x, y, n_experts=2, rng=0), 9)


def test_the_weak_prior_leaves_a_gate_free_that_is_not_linear():
    """Where this gate has no finite coefficients, the mode has none either.

    The posterior density is flat there: a fit that ends near the data says that other values fit
    as well, one that ends far from them that there is no finite maximum.  A fit with a centre of
    the gate at a row, where the density has a kink, is at a maximum, and its errors are large.
    """
    x, y = separated_rows()
    for seed in range(4):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            how = {"n_experts": 2, "gate": "laplace", "prior": "weak", "rng": seed}
            mode = moestat.fit("gaussian", x, y, **how)
        if not {SeparationWarning, IdentificationWarning} & {w.category for w in said}:
            assert mode.certificate.kinks
            assert mode.bse[:2].min() > 2.0
        assert mode.prior == Prior(gate=None)
        separated = [n for n in mode.notes if "no finite maximum" in n]
        assert all("Fewer experts or bounds=" in note for note in separated)


@pytest.mark.parametrize("prior", [Prior(gate=None), Prior(gate=1e8)])
def test_what_a_prior_leaves_without_a_finite_mode_is_said(prior):
    """A prior of the experts does not bound a gate that separates its regions."""
    x, y = separated_rows()
    words = "the posterior density has no finite maximum: regions of the gate"
    with pytest.warns(SeparationWarning, match=words):
        mode = moestat.fit("gaussian", x, y, n_experts=2, prior=prior, rng=0)
    assert "no finite maximum, see notes" in str(mode.summary())
    assert "the posterior density keeps increasing" in " ".join(str(mode.explain()).split())
    zeros = SEPARATED[0] > 3.0, np.repeat([0.0, 3.0], 4)
    with pytest.warns(SeparationWarning, match='Use prior="weak"'):
        moestat.fit("poisson", *zeros, n_experts=1, prior=Prior(experts=None), rng=0)


@pytest.mark.filterwarnings("ignore::moestat.base.warnings.MoEWarning")
def test_several_priors_are_compared_each_by_its_name():
    x, y = separated_rows()
    given = [Prior(experts=0.5), Prior(experts=0.5), "weak"]
    found = moestat.select("gaussian", x, y, k=(2,), prior=given, rng=0)
    assert len(found.table["k"]) == len(found.results) == 2
    assert found.to_frame().columns[0] == "prior"
    assert "under the prior of each row" in str(found)
    options = {"k": (1,), "prior": [None, "weak"], "rng": 0}
    with pytest.raises(ValueError, match="prior: bic cannot compare fits with a prior and without"):
        moestat.select("gaussian", x, y, **options)
    both = moestat.select("gaussian", x, y, criterion="cv", folds=2, **options)
    assert [key[0] for key in both.results] == [None, "weak"]
    with pytest.raises(ValueError, match="prior: the list must hold at least one prior"):
        moestat.select("gaussian", x, y, prior=[], rng=0)
    one, mode = (moestat.fit("gaussian", x, y, n_experts=1, prior=p, rng=0) for p in (None, "weak"))
    table = " ".join(moestat.compare({"ml": one, "mode": mode}).as_text().split())
    assert f"Posterior mode under {Prior()}: mode." in table


def test_more_experts_than_rows_are_refused_by_name():
    """Rows of weight 0 are no rows."""
    x, y = np.arange(6.0), np.sin(np.arange(6.0))
    weights = [1, 1, 0, 0, 0, 0]
    for rows, given in ((2, {"sample_weight": weights}), (6, {})):
        with pytest.raises(
            ValueError, match=f"n_experts must be at most the number of rows {rows}"
        ):
            moestat.fit("gaussian", x, y, n_experts=7 if rows == 6 else 3, prior="weak", **given)


def test_numbers_of_experts_are_chosen_among_modes():
    x, y = SEPARATED
    chosen = moestat.select("multinomial", x, y, k=(1, 2), prior=Prior(), rng=0)
    assert "penalised" in str(chosen)
    assert chosen.table["df"][0] == pytest.approx(chosen.results[1].edf)
    assert chosen.chosen() == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prior": "strong"}, 'prior must be a moestat.Prior or "weak", got .strong.'),
        ({"prior": Prior(), "solver": EM()}, "prior: needs the solver Newton, got solver 'em'"),
        ({"prior": Prior(), "gate": "competition-top"}, "prior: "),
    ],
)
def test_refusals(options, message):
    x = np.linspace(-1, 1, 40)
    with pytest.raises(ValueError, match=message):
        moestat.fit("gaussian", x, x + np.sin(9 * x), n_experts=2, rng=0, **options)


@pytest.mark.parametrize("name", ["gate", "experts", "variance"])
def test_numbers_are_positive(name):
    with pytest.raises(ValueError, match=f"prior: {name} must be a number"):
        Prior(**{name: 0.0})


def test_locations_of_a_gate_need_a_free_gate():
    x = np.linspace(-1, 1, 60)
    y = np.abs(x) + 0.1 * np.sin(9 * x)
    options = {"gate": "sigmoid-euclidean", "n_experts": 2, "rng": 0, "solver": Newton()}
    with pytest.raises(ValueError, match=r"cannot have a prior; use Prior\(gate=None\)"):
        moestat.fit("gaussian", x, y, prior=Prior(), **options)


@pytest.mark.filterwarnings("ignore::moestat.base.warnings.MoEWarning")
def test_a_prior_of_one_variance_does_not_excuse_the_collapse_of_another_scale():
    """The dispersion of a gamma response has no prior, whatever other response there is."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=60)
    y = np.exp(1.0 + 0.3 * x) * rng.gamma(2.0, size=60) / 2.0
    y[:4] = np.exp(3.0 + 0.5 * x[:4])
    for other in ("poisson", "gaussian"):
        both = np.column_stack([y, rng.poisson(2.0, 60)])
        mode = moestat.fit(["gamma", other], x, both, n_experts=2, prior="weak", rng=0)
        on_floor = any("phi" in name for name in mode.certificate.active)
        assert on_floor == bool(mode.certificate.collapsed)
        assert mode.certificate.certified != on_floor


@pytest.mark.filterwarnings("ignore::moestat.base.warnings.MoEWarning")
@pytest.mark.parametrize("likelihood", ["gaussian", "exponential", "inverse-gaussian"])
def test_a_mode_follows_the_unit_and_the_origin_of_its_response(likelihood):
    """Also of responses that are fitted as they are: censored ones, and those with a link."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(80, 2))
    y = np.where(rng.random(80) < 0.5, 2.0 + X[:, 1], -1.0 - X[:, 0]) + 0.4 * rng.normal(size=80)
    options = {"n_experts": 2, "prior": "weak", "rng": 0}
    if likelihood == "gaussian":
        y = np.column_stack([y, np.where(y > 1.5, np.inf, y)])
        others = [(y + 1000.0, 0.0)]
    else:
        y = np.exp(y / 3.0)
        others = [(1e3 * y, 80 * np.log(1e3)), (1e-3 * y, 80 * np.log(1e-3))]
    plain = moestat.fit(likelihood, X, y, **options)
    for response, units in others:
        other = moestat.fit(likelihood, X, response, **options)
        assert other.llf + units == pytest.approx(plain.llf, abs=1e-6)
        assert other.edf == pytest.approx(plain.edf, rel=1e-6)
