"""How far an estimate is above the truth, where the two sums are equal but for rounding."""

import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest

from moestat.estimation.data.data import Data
from moestat.model.generate import sample_weighted
from moestat.sweep.kinds.fit.cell import above_truth, data_of, run_fit
from moestat.sweep.spec.plan import plan_cells
from moestat.sweep.spec.read import parse_spec

SPEC = """
title = "Heights"
seed = 1
replicates = 1
n = [100_000_000_000_000]
design = { law = "lattice", low = -2, high = 2, nodes = 12 }

[truth.density]
likelihood = "gaussian"
gate = "softmax"
beta0 = [0.0]
beta1 = [0.0]
a = [1.5]
b = [0.5]
nu = [0.25]

[truth.function]
likelihood = "least-squares"
gate = "softmax"
noise = 0.25
beta0 = [0.0]
beta1 = [0.0]
a = [1.5]
b = [0.5]

[[curve]]
name = "density"
truth = "density"
n_experts = 1
loss = "gaussian-softmax-D"

[[curve]]
name = "function"
truth = "function"
n_experts = 1
loss = { name = "block-exponents", over = { a = 2, b = 2, beta1 = 2 }, vectors = ["a", "beta1"] }
"""


def long_sum(truth, model, theta, data):
    """The difference with 64 bits of the significand, for one line with normal errors."""
    x, y, weight = (np.longdouble(each) for each in (data.X[:, 0], data.y, data.weight))
    lines = []
    for parameters in (theta, truth.theta):
        blocks = {
            key: np.longdouble(each.ravel()[0]) for key, each in model.unpack(parameters).items()
        }
        squares = (y - blocks["a"] * x - blocks["b"]) ** 2
        nu = blocks.get("nu")
        lines.append(squares if nu is None else -0.5 * (np.log(nu) + squares / nu))
    if "nu" in model.blocks:
        return float(np.sum(weight * (lines[0] - lines[1])))
    more = np.sum(weight * (lines[0] - lines[1])) / np.sum(weight * lines[1])
    return float(-0.5 * np.sum(weight) * np.log1p(more))


@pytest.mark.parametrize("name", ["density", "function"])
def test_the_difference_of_1e14_rows_is_that_of_long_sums(name):
    spec = parse_spec(SPEC)
    truth = spec.truths[name]
    model, rng = truth.family, np.random.default_rng(3)
    for cell in range(8):
        drawn = sample_weighted(model, truth.theta, spec.sizes[0], cell, spec.design, truth.noise)
        data = Data.of(model, *drawn)
        theta = truth.theta + 1e-7 * rng.normal(size=model.n_params) * (model.upper > model.lower)
        above = above_truth(SimpleNamespace(family=model, theta=theta), truth, data)
        assert above == pytest.approx(long_sum(truth, model, theta, data), abs=0.01)


@pytest.mark.parametrize("name", ["density", "function"])
def test_memory_beside_the_data_does_not_grow_with_the_rows(name):
    truth = parse_spec(SPEC).truths[name]
    model, n = truth.family, 1 << 20
    data = Data.of(model, np.linspace(-2.0, 2.0, n)[:, None], np.zeros(n), np.ones(n))
    fitted = SimpleNamespace(family=model, theta=truth.theta)
    above_truth(fitted, truth, data.at(np.arange(1000)))  # compiles
    tracemalloc.start()
    assert above_truth(fitted, truth, data) == 0.0
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 16 * n


def test_an_exact_fit_is_as_high_as_a_truth_without_noise():
    """Both sums of squares are rounding, whatever the ratio of the two."""
    text = SPEC.replace("noise = 0.25", "noise = 0").replace("100_000_000_000_000", "1000")
    text = text.replace('"lattice"', '"uniform"').replace(", nodes = 12", "")
    spec = parse_spec(text)
    (cell,) = (cell for cell in plan_cells(spec) if cell.curve == "function")
    record = run_fit(spec, cell)
    assert record.status == "done"
    X, y, _ = data_of(spec, cell)
    assert np.ptp(y - spec.truths["function"].family.mean(spec.truths["function"].theta, X)) == 0
    assert record.certificate["above_truth"] == pytest.approx(0.0, abs=1e-9)
