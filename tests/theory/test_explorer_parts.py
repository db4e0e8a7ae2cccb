"""The parts of the bound explorer against independent computations."""

from __future__ import annotations

import numpy as np
import pytest

import moestat
from experiments.explorer import CASES
from moestat.theory.explorer._coordinates import LEAST_SHARE, Coordinates, stick
from moestat.theory.explorer._descent import descend
from moestat.theory.explorer._exact import exact_root
from moestat.theory.explorer._model import Model
from moestat.theory.explorer._nodes import make_nodes
from moestat.theory.explorer._reference import cell_sizes, references

KINDS = [
    # A normal density, classes and a regression function; compiling is what the others cost.
    *("softmax-2-order", "mlmoe-2", "attention-1"),
    *(
        pytest.param(name, marks=pytest.mark.slow)
        for name in ("mlmoe-3", "compete-32", "compete-v1-42")
    ),
]


def coordinates(name, order, pin=-1, weighted=False, which=0):
    case = CASES[name]
    family, true_family, truth = case.families()
    reference = references(family, truth, true_family, False)[which]
    nodes = make_nodes(true_family, truth, case.design, order)
    return Coordinates(Model(family, true_family, truth, reference, nodes), pin, 2.0, weighted)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("scale", [1e-1, 1e-5])
def test_the_distance_has_full_relative_accuracy(name, scale):
    here = coordinates(name, 2)
    deviation = here.unpack(here.random(np.random.default_rng(1), scale))
    root = float(np.linalg.norm(here.model.values(deviation)))
    # A raw gate shares sigma(c) out through rounded c: 1e-16, not 1e-16 of the deviation.
    assert np.isclose(root, exact_root(here.model, deviation, 40), rtol=1e-10, atol=0)


@pytest.mark.parametrize(("h", "tolerance"), [(1e-3, 1e-7), (1e-5, 1e-2)])
def test_a_distance_of_the_fourth_order_is_resolved(h, tolerance):
    here = coordinates("softmax-2-order", 2, which=1)
    z = np.zeros(here.size)
    z[[here.names.index("b[1]"), here.names.index("b[2]")]] = h, -h
    for i in range(2):
        z[here.names.index(f"log nu[{i + 1}]")] = -(h**2) / 0.25
    deviation = here.unpack(z)
    root = float(np.linalg.norm(here.model.values(deviation)))
    assert 1.0 < root / h**4 < 5.0
    assert np.isclose(root, exact_root(here.model, deviation, 60), rtol=tolerance, atol=0)


@pytest.mark.parametrize("name", ["softmax-2-order", "compete-J1", "mlmoe-2"])
def test_the_distance_is_the_public_one(name):
    here = coordinates(name, 32)
    deviation = here.unpack(here.random(np.random.default_rng(2), 0.02))
    model, params = here.model, here.model.packed(deviation)
    pair = model.family, params, model.truth_family, model.truth, CASES[name].design
    assert np.isclose(model.distance(deviation), moestat.hellinger(*pair).value, rtol=2e-3)
    assert np.isclose(
        model.total_variation(deviation), moestat.total_variation(*pair).value, rtol=2e-2
    )


def test_a_kink_that_moves_a_little_is_seen():
    here = coordinates("mlmoe-3", 24)
    z = np.zeros(here.size)
    z[here.names.index("alpha[2,0]")], z[here.names.index("alpha[3,0]")] = 1e-3, -1e-3
    deviation = here.unpack(z)
    model, design = here.model, CASES["mlmoe-3"].design
    exact = moestat.hellinger(
        model.family, model.packed(deviation), model.truth_family, model.truth, design, 20_000
    )
    assert np.isclose(model.distance(deviation), exact.value, rtol=0.05)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_jacobian_is_that_of_finite_differences(name, weighted):
    here = coordinates(name, 2, 0, weighted)
    z = here.random(np.random.default_rng(3), 0.1)
    residual, slopes = here.model.residuals(here.unpack(z))
    assert np.allclose(residual, here.model.values(here.unpack(z)), rtol=0, atol=1e-15)
    jacobian = here.jacobian(z, slopes)
    for j in range(here.size):
        step = 1e-6 * np.eye(here.size)[j]
        ahead, behind = (here.model.values(here.unpack(z + sign * step)) for sign in (1, -1))
        difference = (ahead - behind) / 2e-6
        assert np.allclose(jacobian[:, j], difference, rtol=0, atol=1e-7 * np.abs(difference).max())


def test_shares_from_angles():
    angles = np.array([0.3, 1.2, 0.9])
    shares, slopes = stick(angles)
    assert np.isclose(shares.sum(), 1.0)
    for j in range(3):
        step = 1e-7 * np.eye(3)[j]
        difference = (stick(angles + step)[0] - stick(angles - step)[0]) / 2e-7
        assert np.allclose(slopes[:, j], difference, atol=1e-8)


def test_no_atom_loses_its_mass():
    here = coordinates("softmax-3-order", 2)
    rng = np.random.default_rng(4)
    for _ in range(20):
        share = here.unpack(here.random(rng, 5.0)).share
        assert share.min() >= LEAST_SHARE - 1e-12
        assert np.allclose(np.bincount(here.model.reference.cells, weights=share), 1.0)


def test_a_descent_follows_a_steep_curved_valley():
    def residuals(z):
        steep = 1e6 * (z[1] - z[0] ** 2)
        flat = 1e-3 * (z[0] - 1.0)
        jacobian = np.array([[-2e6 * z[0], 1e6], [1e-3, 0.0], [0.0, 0.0]])
        return np.array([steep, flat, 1e-6]), jacobian

    end = descend(
        residuals,
        lambda z: residuals(z)[0],
        np.array([-1.0, 1.0]),
        np.ones(2, dtype=bool),
        np.ones(2),
        1.0,
        200,
    )
    assert end.converged
    assert np.allclose(end.z, 1.0, atol=1e-2)


def test_every_way_to_fill_the_cells():
    assert sorted(cell_sizes(4, 2)) == [(1, 3), (2, 2), (3, 1)]
    assert len(list(cell_sizes(6, 3))) == 10


def test_fixed_masses_copy_every_atom_equally_often():
    case = CASES["compete-J1-normalised"]
    family, true_family, truth = case.families()
    assert [r.name for r in references(family, truth, true_family, False)] == ["cells 2 + 2"]
    assert references(family.with_experts(3), truth, true_family, False) == []


@pytest.mark.parametrize("name", ["attention-3", "attention-5"])
def test_splits_have_the_regression_function_of_the_truth(name):
    case = CASES[name]
    family, true_family, truth = case.families()
    found = references(family, truth, true_family, True)
    assert {r.name.split(", ")[-1] for r in found} == {"experts split"}
    nodes = make_nodes(true_family, truth, case.design, 8)
    X = np.ascontiguousarray(nodes.X)
    target = true_family.regression(truth, X)[0]
    for reference in found:
        here = Coordinates(Model(family, true_family, truth, reference, nodes))
        params = here.model.packed(here.unpack(np.zeros(here.size)))
        assert np.allclose(family.regression(params, X)[0], target, rtol=0, atol=1e-14)


def test_what_bounds_hold_is_no_deviation():
    """A dense-to-sparse gate holds tau and beta: it is the softmax gate, and is searched as it."""
    held = moestat.family("multinomial", gate="dense-to-sparse", n_experts=2)
    plain = moestat.family("multinomial", gate="softmax", n_experts=2)
    sizes = []
    for one in (held, plain):
        theta = np.where(one.lower < one.upper, one.typical(0), one.lower)
        nodes = make_nodes(one, theta, moestat.Uniform(-2.0, 2.0), 4)
        three = one.with_experts(3)
        near = references(three, theta, one, False)[0]
        found = Coordinates(Model(three, one, theta, near, nodes))
        assert found.deviations(np.zeros(found.size)).shape == (found.size,)
        assert not {"tau", "beta[1]"} & set(found.names)
        sizes.append(found.size)
    assert sizes[0] == sizes[1]
