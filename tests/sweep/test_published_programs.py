"""What it takes to repeat a published program: its inputs, sizes, starts, and its estimates."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from moestat import family, sample
from moestat.estimation.starts import make_starts
from moestat.metrics.losses import make_loss, voronoi_terms
from moestat.model.designs import Equispaced, Given, make_design
from moestat.solvers.problem import Problem, Rows
from moestat.sweep import SweepError, parse_spec, plan_cells, run_cell
from moestat.sweep.cli import app
from moestat.sweep.kinds.fit.scoring import score

TEXT = """
title = "A published program"
seed = 1
replicates = 2
n = [60, 90]
design = { law = "equispaced", low = -1, high = 1 }

[truth.t]
likelihood = "gaussian"
gate = "softmax"
beta0 = [0.2, 0.0]
beta1 = [1.5, 0.0]
b = [1.0, -1.0]
a = [-2.0, 2.0]
nu = [0.09, 0.16]

[[curve]]
name = "k = 2"
truth = "t"
n_experts = 2
loss = "gaussian-softmax-D"
n = { start = 100, stop = 300, num = 3, spacing = "linear" }

[[curve]]
name = "k = 3"
truth = "t"
n_experts = 3
loss = "gaussian-softmax-D"
starts = { truth = 2, noise = { b = 0.05 }, decay = { b = 0.5 } }
"""


def problem_of(n=400):
    F = family("gaussian", gate="softmax", n_experts=2)
    theta = F.pack(parse_spec(TEXT).truths["t"].family.unpack(parse_spec(TEXT).truths["t"].theta))
    X, y = sample(F, theta, n=n, rng=0)
    return F, theta, Problem(F, Rows(np.asarray(X).reshape(1, -1), np.asarray(y), np.ones(n)))


def test_equispaced_inputs_are_no_draw():
    F, theta, _ = problem_of()
    X, _ = sample(F, theta, n=5, rng=3, design=Equispaced(-1, 1))
    np.testing.assert_array_equal(X.ravel(), [-1.0, -0.5, 0.0, 0.5, 1.0])
    nodes, mass = Equispaced(0, 2).quadrature(1, 30)
    assert mass @ nodes[0] ** 2 == pytest.approx(4 / 3)


def test_given_inputs_come_in_their_order_and_again():
    design = make_design({"law": "given", "points": [[0.0, 1.0], [2, 3]]})
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(design.draw(3, 2, rng), [[0, 2, 0], [1, 3, 1]])
    nodes, mass = design.quadrature(2, 5)
    assert (nodes.shape, mass.tolist()) == ((2, 2), [0.5, 0.5])
    assert Given([1.0, 2.0]) == Given([[1], [2]])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"law": "given"}, "points must be rows of one length"),
        ({"law": "given", "points": [[1], [1, 2]]}, "points must be rows of one length"),
        ({"law": "given", "points": 3}, "points must be rows of one length"),
        ({"law": "given", "points": ["a"]}, "points must be a number"),
        ({"law": "equispaced", "low": 2}, "low must be below high"),
    ],
)
def test_designs_refuse(options, message):
    with pytest.raises(ValueError, match=message):
        make_design(options)


@pytest.mark.parametrize("design", [Equispaced(), Given([[1.0, 2.0, 3.0]])])
def test_fixed_inputs_have_their_number_of_features(design):
    for draw in (design.draw, lambda n, d, rng: design.quadrature(d, 3)):
        with pytest.raises(ValueError, match=r"design: .* got 2|design: points have 3 inputs"):
            draw(4, 2, np.random.default_rng(0))


def test_a_spec_names_a_design_for_other_inputs():
    given = TEXT.replace(
        'law = "equispaced", low = -1, high = 1', 'law = "given", points = [[1,2]]'
    )
    with pytest.raises(SweepError, match=r"design: points have 2 inputs, the family 1"):
        parse_spec(given)


def test_sample_sizes_of_one_curve():
    spec = parse_spec(TEXT)
    own, other = spec.curves
    assert (spec.sizes_of(own), spec.sizes_of(other)) == ((100, 200, 300), (60, 90))
    cells = plan_cells(spec)
    assert len(cells) == spec.n_cells == 10
    assert [cell.n for cell in cells] == sorted((cell.n for cell in cells), reverse=True)
    assert {cell.n for cell in cells if cell.curve == "k = 2"} == {100, 200, 300}
    # A size that another spec gives to all curves is the same cell.
    alone = parse_spec(TEXT.replace("n = [60, 90]", "n = [60, 90, 200]"))
    of = {cell.key: cell.identity for cell in plan_cells(alone)}
    assert all(of.get(cell.key, cell.identity) == cell.identity for cell in cells)
    assert alone.digest != spec.digest


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"linear"', '"even"', r"curve 'k = 2': n: spacing: must be one of 'log', 'linear'"),
        ("start = 100", "start = 1000", r"curve 'k = 2': n: needs 1 <= start <= stop"),
        ("start = 100", "start = 2", r"n: 2 samples cannot determine"),
        ("noise = { b = 0.05 }", "noise = { c = 0.05 }", r"starts: noise: unknown block 'c'"),
        ("decay = { b = 0.5 }", "decay = { b = -1 }", r"starts: decay must be a number"),
        ("truth = 2, ", "given = [], truth = 2, ", r"given must be a list of one or more tables"),
        ("truth = 2, ", "given = [1], truth = 2, ", r"given must be a list of one or more tables"),
        ("truth = 2, ", "given = [{a = 1}], truth = 2, ", r"missing: b, beta0, beta1, nu"),
    ],
)
def test_specs_refuse(old, new, message):
    with pytest.raises(SweepError, match=message):
        parse_spec(TEXT.replace(old, new))


def test_noise_of_starts_by_block():
    F, theta, problem = problem_of()
    table = {"truth": 3, "noise": {"b": 0.1, "nu": 0.2}, "decay": {"b": 0.5}}
    (rule,) = make_starts(table, F, theta, F)
    starts = rule.draw(problem, np.random.default_rng(0))
    blocks = {name: at.ravel() for name, at in F.blocks.items()}
    for start in starts:
        # Blocks without noise are the truth's, in either order.
        assert sorted(start[blocks["a"]]) == [-2.0, 2.0]
        assert sorted(start[blocks["beta1"]]) == [0.0, 1.5]
        assert np.all(np.sort(start[blocks["nu"]]) != np.sort(theta[blocks["nu"]]))
    off = starts[:, blocks["b"]] - np.round(starts[:, blocks["b"]])
    assert 0.0 < np.abs(off).max() < 5 * 0.1 * 400**-0.5


def test_given_starts_in_a_spec():
    table = "{ beta0 = [0.1, 0.1, 0], beta1 = [1, 1, 0], b = [1, 1.2, -1], a = [-2, -2, 2],"
    given = f"starts = {{ given = [{table} nu = [0.1, 0.1, 0.1] }}] }}"
    old = "starts = { truth = 2, noise = { b = 0.05 }, decay = { b = 0.5 } }"
    text = TEXT.replace(old, given)
    spec = parse_spec(text)
    (rule,) = spec.start_rules(spec.curves[1])
    blocks = spec.fitted_family(spec.curves[1]).unpack(rule.points[0])
    assert blocks["b"].tolist() == [1.0, 1.2, -1.0]
    record = run_cell(text, plan_cells(spec)[-1])
    assert (record.status, record.certificate["start"]) == ("done", "given 0")


@pytest.fixture
def estimates(tmp_path):
    """Estimates near the truth, by blocks, with a translated gate."""
    rng = np.random.default_rng(5)
    n = np.repeat([1000, 10000, 100000], 4)
    error = (n**-0.5)[:, None] * rng.normal(size=(n.size, 2))
    blocks = {
        "beta0": np.array([0.2, 0.0]) + error + 3.0,
        "beta1": np.array([1.5, 0.0]) + error - 2.0,
        "b": np.array([1.0, -1.0]) + error,
        "a": np.array([-2.0, 2.0]) + error,
        "nu": np.array([0.09, 0.16]) * np.exp(error),
    }
    path = tmp_path / "estimates.npz"
    np.savez(path, **{f"k = 2/{name}": array for name, array in {"n": n, **blocks}.items()})
    return path, n, blocks


def test_foreign_estimates_are_scored_by_the_spec_s_losses(estimates):
    path, n, blocks = estimates
    spec = parse_spec(TEXT)
    (found,) = score(spec, path)
    curve = spec.curves[0]
    fitted, target = spec.fitted_family(curve), spec.target(curve)
    theta = fitted.pack({name: array[7] for name, array in blocks.items()})
    alone = voronoi_terms(fitted.measure(fitted.pin(theta)), target, make_loss(curve.loss))
    assert found.losses["gaussian-softmax-D"][7] == pytest.approx(float(alone.value), rel=1e-12)
    np.testing.assert_array_equal(found.n, n)
    assert score(spec, _lost(path))[0].finite("gaussian-softmax-D")[0].size == n.size - 1
    assert found.rates("gaussian-softmax-D")["median"].slope == pytest.approx(-0.5, abs=0.2)


def _lost(path):
    """The same estimates with one whose mass is 0 in float64."""
    with np.load(path) as held:
        arrays = {name: held[name].copy() for name in held.files}
    arrays["k = 2/beta0"][3] = [-2000.0, 0.0]
    np.savez(path.with_name("lost.npz"), **arrays)
    return path.with_name("lost.npz")


def test_score_on_the_command_line(tmp_path, estimates):
    spec = tmp_path / "spec.toml"
    spec.write_text(TEXT)
    shown = CliRunner().invoke(app, ["score", str(spec), str(estimates[0])])
    assert shown.exit_code == 0
    assert "k = 2" in shown.output
    assert "median loss" in shown.output
    plain = CliRunner().invoke(app, ["score", str(spec), str(estimates[0]), "--json"])
    (found,) = json.loads(plain.output)
    assert found["n"] == estimates[1].tolist()
    assert set(found["rates"]["gaussian-softmax-D"]) == {"all", "mean", "median"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"k = 9/n": np.ones(3)}, r"unknown curve 'k = 9'; known: 'k = 2', 'k = 3'"),
        ({"k = 2/n": np.zeros(12)}, r"k = 2/n must be sample sizes"),
        ({"k = 2/b": np.ones(3)}, r"k = 2/b must have 12 rows"),
        ({"k = 2/b": np.ones((12, 5))}, r"k = 2: row 0: "),
        ({"k = 2/c": np.ones((12, 2))}, r"unknown: 'c'"),
    ],
)
def test_estimates_that_do_not_fit(tmp_path, estimates, change, message):
    with np.load(estimates[0]) as held:
        arrays = {name: held[name] for name in held.files}
    path = tmp_path / "other.npz"
    np.savez(path, **{**arrays, **change})
    with pytest.raises(SweepError, match=message):
        score(parse_spec(TEXT), path)


def test_no_estimates(tmp_path):
    with pytest.raises(SweepError, match=r"cannot read the estimates .*nothing.npz"):
        score(parse_spec(TEXT), tmp_path / "nothing.npz")
    path = tmp_path / "text.npz"
    path.write_text("no zip")
    with pytest.raises(SweepError, match=r"is not an .npz file"):
        score(parse_spec(TEXT), path)
