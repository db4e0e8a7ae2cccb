"""Rules over the response: what they integrate, and what they cost."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, special

import moestat
from moestat.metrics.panels import ORDER, ResponseRule
from moestat.metrics.quadrature import log_densities, response_rules
from moestat.model.likelihoods import LIKELIHOODS
from tests import oracle
from tests.kinds import KINDS, kind_id, make, random_theta


def integral(laws, X, function, refinement=1):
    """Integral over y at each input of ``function(log densities)``."""
    n = X.shape[1]
    out = np.empty(n)
    for chunk, rule in response_rules(laws, X, refinement):
        logs = [log_densities(*law, X[:, chunk], rule) for law in laws]
        out[chunk] = rule.per_input(function(*logs), chunk.stop - chunk.start)
    return out


LONG_TAILS = {
    name
    for name in LIKELIHOODS
    if "negative-binomial" in name or name in {"student-t", "beta", "geometric"}
}


@pytest.mark.parametrize("kind", KINDS, ids=kind_id)
def test_densities_integrate_to_one(kind):
    rng = np.random.default_rng(0)
    for k, d in ((1, 1), (3, 2), (4, 1)):
        family = make(kind, k, d, 3)
        X = rng.normal(size=(d, 10))
        # With a dispersion of their own some have tails too long for a sum at larger scales.
        scale = 0.5 if kind[0] in LONG_TAILS else 1.5
        # Beta densities have mass between 1 and the number before it, more at larger scales.
        theta = random_theta(family, rng, 0.1 if kind[0] == "beta" else scale)
        # Logarithms of probabilities of counts up to e^15 are differences of such numbers.
        close = 1e-12 if family.likelihood.law is None else 1e-5 if kind[0] == "beta" else 1e-8
        assert integral([(family, theta)], X, np.exp) == pytest.approx(1.0, rel=0, abs=close)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind[0] == "gaussian"], ids=kind_id)
def test_log_densities_are_the_formula(kind):
    rng = np.random.default_rng(1)
    family = make(kind, 3, 2)
    theta, X = random_theta(family, rng), rng.normal(size=(2, 5))
    [(_, rule)] = response_rules([(family, theta)], X)
    blocks = oracle.blocks_of(family, theta)
    expected = oracle.log_density(
        family, blocks, X[:, rule.owner].repeat(ORDER, 1).T, rule.y.ravel()
    )
    found = log_densities(family, theta, X, rule)
    assert np.allclose(found.ravel(), expected, rtol=1e-10, atol=1e-10)


def two_atoms(means, variances, k=2):
    family = moestat.family("gaussian", gate="softmax", n_experts=k)
    zeros = np.zeros(k)
    return family, family.pack(
        {"beta0": zeros, "beta1": zeros, "a": zeros, "b": means, "nu": variances}
    )


@pytest.mark.parametrize("ratio", [1e-6, 1e-3, 0.1, 0.7, 1.0])
@pytest.mark.parametrize("gap", [0.0, 1e-3, 1.0, 7.0, 40.0, 1e5])
def test_atoms_of_other_widths_and_far_apart(ratio, gap):
    family, theta = two_atoms([0.0, gap], [1.0, ratio**2])
    X = np.zeros((1, 1))
    # A node is a float: its rounding is what it is in units of the narrow atom.
    accuracy = 1e-13 + 2e-16 * (1 + gap) / ratio
    assert integral([(family, theta)], X, np.exp)[0] == pytest.approx(1.0, rel=0, abs=accuracy)
    for refinement in (1, 2, 5):
        [(_, rule)] = response_rules([(family, theta)], X, refinement)
        assert rule.owner.size <= 2 * (6 * refinement + 2)
        assert rule.weight.min() > 0
        assert np.all(np.diff(rule.y.ravel()) >= 0)


def test_the_rule_covers_the_atoms_of_every_law():
    first, second = two_atoms([0.0, 1.0], [1.0, 1.0]), two_atoms([30.0, -50.0, 2.0], [4, 0.1, 1], 3)
    for which in (0, 1):
        mass = integral([first, second], np.zeros((1, 3)), lambda *logs, i=which: np.exp(logs[i]))
        assert mass == pytest.approx(1.0, rel=0, abs=1e-13)


@pytest.mark.parametrize("gap", [0.5, 2.0, 5.4, 7.0, 12.0])
def test_functions_that_are_singular_off_the_real_line(gap):
    """Roots of a mixture have branch points where the mixture is 0."""
    law = two_atoms([0.0, gap], [1.0, 0.5])
    other = two_atoms([0.3, gap], [1.0, 0.6])

    def affinity(y):
        def density(theta):
            mean, deviation = theta[[2, 7]], np.exp(0.5 * theta[[4, 9]])
            z = (y - mean) / deviation
            return np.mean(np.exp(-0.5 * z**2) / deviation) / np.sqrt(2 * np.pi)

        return np.sqrt(density(law[1]) * density(other[1]))

    assert law[0].param_names[2:5] == ["b[1]", "a[1,0]", "log nu[1]"]
    exact = integrate.quad(affinity, -12, gap + 12, epsabs=1e-14, epsrel=1e-13, limit=500)[0]
    laws, X = [law, other], np.zeros((1, 1))
    for refinement, accuracy in ((1, 1e-7), (2, 1e-10), (4, 1e-12)):
        found = integral(laws, X, lambda p, q: np.exp(0.5 * (p + q)), refinement)
        assert found[0] == pytest.approx(exact, rel=accuracy)


def test_tail_masses_and_moments():
    law = two_atoms([1.0], [4.0], 1)
    X = np.zeros((1, 1))
    [(_, rule)] = response_rules([law], X)
    density = np.exp(log_densities(*law, X, rule))
    moments = [rule.per_input(density * (rule.y - 1.0) ** m, 1)[0] for m in (1, 2, 3, 4)]
    assert moments == pytest.approx([0, 4, 0, 48], rel=1e-12, abs=1e-12)
    assert special.ndtr(-8.9) < 5e-19
    assert rule.y.min() > 1 - 18.0
    assert rule.y.max() < 1 + 18.0


def test_chunks_do_not_change_the_rule(monkeypatch):
    family = moestat.family("gaussian", gate="competition", n_experts=3)
    theta = random_theta(family, np.random.default_rng(2))
    X = np.random.default_rng(3).normal(size=(1, 31))
    [(chunk, whole)] = response_rules([(family, theta)], X)
    assert chunk == slice(0, 31)
    monkeypatch.setattr(moestat.metrics.panels, "_ROWS", 1000)
    parts = list(response_rules([(family, theta)], X))
    assert len(parts) > 5
    assert np.array_equal(np.concatenate([rule.y for _, rule in parts]), whole.y)
    assert np.array_equal(np.concatenate([rule.weight for _, rule in parts]), whole.weight)
    owners = np.concatenate([rule.owner + part.start for part, rule in parts])
    assert np.array_equal(owners, whole.owner)


def test_classes_are_summed():
    family = moestat.family("multinomial", gate="softmax", n_experts=2, n_classes=4)
    theta = random_theta(family, np.random.default_rng(4))
    X = np.random.default_rng(5).normal(size=(1, 7))
    [(_, rule)] = response_rules([(family, theta)], X)
    assert rule.y.tolist() == [[0, 1, 2, 3]] * 7
    assert np.all(rule.weight == 1)
    p = np.exp(log_densities(family, theta, X, rule))
    assert np.allclose(p, family.probabilities(theta, X.T), rtol=1e-15, atol=0)


def test_panels_are_summed_by_input():
    rule = ResponseRule(np.array([0, 2, 2]), np.zeros((3, 2)), np.array([[1.0, 2], [3, 4], [5, 6]]))
    assert rule.per_input(np.ones((3, 2)), 4).tolist() == [3, 0, 18, 0]
