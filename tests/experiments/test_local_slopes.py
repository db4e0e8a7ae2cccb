"""Microscope sweeps: specs with lattices, local slopes, and the figure from a store."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import moestat
from experiments.pages import microscope, microscope_atoms, microscope_theorems
from experiments.quantities import absorbed, observed
from moestat.rates.local_slopes import (
    EXPONENTS,
    exponent_name,
    exponents_seen,
    judge,
    lightest_weight,
    local_slopes,
    null_part,
)
from moestat.sweep import SweepError, load_spec, parse_spec, plan_cells, run_cell
from moestat.sweep.kinds.fit.spec import loss_label
from moestat.sweep.store.record import Record
from moestat.sweep.store.store import create_store, open_store
from tests.sweep.specs import STARTS, classes, curve, sweep

ROOT = Path(__file__).resolve().parents[2]

SPEC = sweep(
    "A small microscope",
    'design = { law = "lattice", low = -4, high = 4, nodes = 32 }\n',
    classes(),
    curve("k = 2", 2, "theory = -0.5", STARTS),
    curve("k = 3", 3, STARTS, "require_certificate = false"),
    replicates=2,
    n="{ start = 1e5, stop = 1e14, num = 4 }",
)


@pytest.fixture(scope="module")
def records():
    """Every record of the small sweep."""
    return {cell.key: run_cell(SPEC, cell) for cell in plan_cells(parse_spec(SPEC))}


# --- local slopes ---------------------------------------------------------------------------------


def test_local_slopes_of_a_power_law_are_its_exponent():
    n = np.repeat(np.geomspace(1e3, 1e14, 12), 5)
    noise = np.exp(0.05 * np.random.default_rng(0).standard_normal(n.size))
    slopes = local_slopes(n, n**-0.25 * noise)
    assert slopes.n == pytest.approx(np.geomspace(1e4, 1e13, 10))
    assert np.all(np.abs(slopes.slope + 0.25) < 5 * slopes.error)
    assert np.all(slopes.error < 0.02)
    assert slopes.agrees_from(-0.25, sigmas=5.0) == pytest.approx(1e4)
    assert slopes.agrees_from(-0.5) is None


def test_a_bend_is_found_where_it_is():
    n = np.repeat(np.geomspace(1e3, 1e12, 10), 8)
    noise = np.exp(0.02 * np.random.default_rng(1).standard_normal(n.size))
    loss = np.where(n < 1e7, 1.0, (n / 1e7) ** -0.5) * noise
    assert local_slopes(n, loss).agrees_from(-0.5, sigmas=4.0) == pytest.approx(1e8)
    slope, (low, high), seen = exponents_seen(n, loss)
    assert low < slope < high
    assert seen == (-0.5,)


def test_a_plateau_is_seen_as_one():
    n = np.repeat(np.geomspace(1e3, 1e12, 10), 8)
    loss = np.exp(0.02 * np.random.default_rng(1).standard_normal(n.size))
    assert exponents_seen(n, loss)[2] == (0.0,)


def test_one_replicate_has_no_error():
    slopes = local_slopes([1e3, 1e4, 1e5], [1.0, 0.5, 0.1])
    assert slopes.slope == pytest.approx([-0.5])
    assert np.isnan(slopes.error).all()
    assert slopes.agrees_from(-0.5) is None


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="same length"):
        local_slopes([1, 2], [1.0])
    with pytest.raises(ValueError, match="positive"):
        local_slopes([1, 2, 3], [1.0, 0.0, 1.0])


def test_every_exponent_has_a_name():
    assert [exponent_name(e) for e in EXPONENTS] == ["0", "-1/12", "-1/8", "-1/6", "-1/4", "-1/2"]


# --- sweeps ---------------------------------------------------------------------------------------


def test_cells_hold_to_1e14(records):
    for record in records.values():
        assert record.message == ""
    exact = [r for r in records.values() if r.curve == "k = 2"]
    assert all(r.certified for r in exact)
    slope, _, _ = exponents_seen([r.n for r in exact], [r.loss for r in exact])
    assert slope == pytest.approx(-0.5, abs=0.2)
    hellinger = [r.losses["hellinger"] * np.sqrt(r.n) for r in records.values()]
    assert max(hellinger) < 6.0


def test_a_cell_is_the_same_whenever_it_runs(records):
    cells = plan_cells(parse_spec(SPEC))
    for cell in (cells[-1], cells[3]):
        again = run_cell(SPEC, cell)
        assert again.loss == records[cell.key].loss
        assert again.params == records[cell.key].params


def test_an_error_that_a_translation_mostly_absorbs_has_no_row():
    """What is left of it is not a sample: it comes from the fits that no translation helped."""

    def of(errors):
        return [
            Record("k", "c", 10, j, "done", losses={"cells": [cell(error)]})
            for j, error in enumerate(errors)
        ]

    def cell(error):
        return {"size": 1, "mass_error": 0.5, "errors": {"beta1": error}, "expert_error": 0.2}

    few, most = of([1e-15, 0.1, 0.2, 0.3]), of([1e-15, 0.0, 1e-14, 0.3, 0.4])
    assert [value for _, value in observed(few, (1, "beta1"))] == [0.1, 0.2, 0.3]
    assert observed(most, (1, "beta1")) == []
    assert len(observed(most, (1, "mass"))) == 5
    assert absorbed(few, (1, "beta1")) == (1, 4)
    assert absorbed(most, (2, "beta1")) == (0, 0)


def test_sizes_are_exact_integers():
    spec = parse_spec(SPEC)
    assert spec.sizes == (10**5, 10**8, 10**11, 10**14)
    assert parse_spec(SPEC.replace("{ start = 1e5, stop = 1e14, num = 4 }", "[1e15]")).sizes == (
        10**15,
    )


@pytest.mark.parametrize(
    ("slope", "noise", "verdict"),
    [
        (-0.5, 0.1, "seen"),
        (-0.25, 0.1, "slower"),
        (-0.8, 0.1, "faster"),
        (0.0, 0.1, "plateau"),
        (-0.5, 5.0, "undecided"),
    ],
)
def test_verdicts_on_a_predicted_half(slope, noise, verdict):
    rng = np.random.default_rng(5)
    n = np.repeat(10.0 ** np.arange(3, 15), 20)
    early = np.where(n < 1e8, 3.0, 0.0)  # what happens early does not count
    sight = judge(n, n**slope * np.exp(noise * rng.standard_normal(n.size) + early), -0.5)
    assert sight.verdict == verdict
    assert sight.interval[0] <= sight.slope <= sight.interval[1]
    if verdict == "seen":
        assert sight.since >= 1e8
        assert str(sight) == f"seen, from n = {sight.since:.0e}"


def test_errors_are_split_along_what_a_ridge_leaves_free():
    """The inner product's scale, under a relabelling and a shift of the log-masses."""
    family = moestat.family("multinomial", gate="sigmoid-inner", n_experts=2, n_classes=2)
    theta = family.pack(
        {
            "gamma": [0.2, -0.3],
            "alpha": [-2.0, 3.0],
            "beta": [1.5, 1.0],
            "tau": 1.0,
            "a": [[-2.0, 0.0], [1.5, 0.0]],
            "b": [[1.0, 0.0], [-1.0, 0.0]],
        }
    )
    design = moestat.Uniform(-4.0, 4.0)
    directions = moestat.information_spectrum(family, theta, design).null_directions
    assert len(directions) == 1
    blocks = family.unpack(theta)
    scaled = {**blocks, **{key: 1.01 * blocks[key] for key in ("alpha", "beta", "tau")}}
    scaled["a"] = scaled["a"] + 1e-3
    swapped = {key: block[::-1] if np.ndim(block) else block for key, block in scaled.items()}
    swapped["gamma"] = swapped["gamma"] + 7.0
    packed = family.pack({k: np.squeeze(v) if k == "alpha" else v for k, v in swapped.items()})
    along, across = null_part(family, theta, packed, directions)
    ridge = 0.01 * np.sqrt(2.0**2 + 3.0**2 + 1.5**2 + 1.0 + 1.0)
    assert along == pytest.approx(ridge, rel=1e-6)
    assert across == pytest.approx(1e-3 * np.sqrt(2.0), rel=1e-6)


@pytest.mark.parametrize("design", [moestat.Uniform(-1, 2), moestat.Lattice(-1, 2, nodes=48)])
def test_the_lightest_weight_is_a_mean_over_the_inputs(design):
    family = moestat.family("multinomial", gate="softmax", n_experts=3, n_classes=2)
    theta = family.pin(np.random.default_rng(0).normal(size=family.n_params))
    theta[family.blocks["beta0"][1]] -= 5.0
    x = np.random.default_rng(1).uniform(-1, 2, size=200_000)
    weights = family.gate_probabilities(theta, x)
    mean, error = weights.mean(axis=0), weights.std(axis=0) / np.sqrt(x.size)
    assert mean.argmin() == 1
    assert lightest_weight(family, theta, design) == pytest.approx(mean[1], abs=5 * error[1])
    # Which of the atoms it is makes no difference.
    atoms, shared = family.split(theta)
    turned = family.pin(family.join(atoms[[1, 2, 0]], shared))
    assert lightest_weight(family, turned, design) == pytest.approx(
        lightest_weight(family, theta, design), rel=1e-12
    )


def test_a_lattice_of_responses_must_hold_the_narrowest_atom_of_a_fit(tmp_path):
    path = ROOT / "experiments" / "microscope_gaussian.toml"
    load_spec(path)
    text = path.read_text(encoding="utf-8").replace("nu = [0.05, 10]", "nu = [0.01, 10]")
    narrow = tmp_path / "narrow.toml"
    narrow.write_text(text, encoding="utf-8")
    with pytest.raises(SweepError, match=r"nu may be as small as 0\.01.*from nu = 0\.0433 on"):
        load_spec(narrow)
    parse_spec(text)  # stores made from it stay readable


def test_identities_depend_on_the_lattice_and_on_nothing_new_elsewhere():
    keys = {
        plan_cells(parse_spec(SPEC.replace("nodes = 32", change)))[0].data_seed
        for change in ("nodes = 32", "nodes = 64", 'nodes = 32, rule = "uniform"')
    }
    assert len(keys) == 3
    uniform = SPEC.replace('law = "lattice", ', "").replace(", nodes = 32", "")
    uniform = parse_spec(uniform.replace("stop = 1e14", "stop = 1e6"))
    assert uniform.design_table == {"low": -4.0, "high": 4.0, "law": "uniform"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("stop = 1e14", "stop = 1e16", r"curve 'k = 2': design: n must be at most 1e\+15"),
        ("nodes = 32", "nodes = 8", "8 nodes with 2 classes.*use more nodes"),
        ("nodes = 32", "nodes = 32, step = 0.6", "design: step must be above 0 and below"),
        ("nodes = 32", "node = 32", "does not take these options: node; it takes low, high, nodes"),
        ('law = "lattice"', 'law = "lattices"', "unknown design 'lattices'; known: 'uniform'"),
        ('"lattice", low = -4, high = 4, nodes = 32', '"uniform"', "n must be at most 1e.09 rows"),
    ],
)
def test_bad_specs_are_refused(old, new, message):
    with pytest.raises(SweepError, match=message):
        parse_spec(SPEC.replace(old, new))


def test_the_figure_and_its_page_come_from_the_store(records, tmp_path, monkeypatch, capsys):
    path = tmp_path / "small.sqlite"
    with create_store(path, parse_spec(SPEC)) as store:
        store.put(records.values())
    monkeypatch.setattr("sys.argv", ["microscope.py", str(path), str(tmp_path / "out")])
    microscope.main()
    written = [Path(line).name for line in capsys.readouterr().out.split()]
    assert written[:2] == ["small.png", "small.pdf"]
    assert written[-1] == "small.md"
    assert "small_cells_of_two.png" in written
    page = (tmp_path / "out" / "small.md").read_text()
    assert "## k = 2\n\n8 of 8 estimates are certified." in page
    assert "| softmax-D1 | " in page
    assert "2 replicates per sample size." in page
    assert "Passes of the winning start, median: " in page
    with open_store(path) as store:
        found = {
            c.name: microscope.quantities(
                store.spec, c, [r for r in records.values() if r.curve == c.name]
            )
            for c in store.spec.curves
        }
        pictures = microscope.draw(store, found)
    assert all(len(figure.axes) <= 4 for figure in pictures.values())
    first = pictures[""].axes[0]
    labels = [text.get_text() for text in first.get_legend().get_texts()]
    assert labels == ["k = 2", "k = 3"]
    levels = [line.get_ydata()[0] for line in first.lines if len(set(line.get_ydata())) == 1]
    assert set(EXPONENTS) <= set(levels)


def test_the_page_of_atoms_comes_from_the_store(records, tmp_path, monkeypatch, capsys):
    with create_store(tmp_path / "microscope_small.sqlite", parse_spec(SPEC)) as store:
        store.put(records.values())
    monkeypatch.setattr("sys.argv", ["microscope_atoms.py", str(tmp_path)])
    microscope_atoms.main()
    assert capsys.readouterr().out.split() == [str(tmp_path / "microscope_atoms.md")]
    page = (tmp_path / "microscope_atoms.md").read_text()
    (line,) = [line for line in page.splitlines() if line.startswith("| k = ")]
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    family = parse_spec(SPEC).fitted_family(parse_spec(SPEC).curve("k = 3"))
    design = parse_spec(SPEC).design
    own = [r for r in records.values() if r.curve == "k = 3" and r.n == 1e14]
    light = [lightest_weight(family, r.params, design) < 1e14**-0.25 for r in own]
    assert cells[0] == "k = 3"
    assert cells[4] == f"{np.mean(light):.2f}"


def test_every_prediction_is_about_a_quantity_of_a_shipped_curve():
    predictions = [p for own in microscope_theorems.THEOREMS.values() for p in own]
    assert len(predictions) > 100
    specs = {
        name: parse_spec((ROOT / "experiments" / f"{name}.toml").read_text())
        for name in {p.experiment for p in predictions}
    }
    for p in predictions:
        curve = specs[p.experiment].curve(p.curve)
        if p.row == "loss":
            losses = (curve.loss, *curve.also)
            assert p.label in [loss_label(loss) for loss in losses]
        else:
            family = specs[p.experiment].fitted_family(curve)
            assert p.label in {"mass", "expert", *family.blocks}
    for experiment, curve in microscope_theorems.RIDGES:
        assert specs[experiment].curve(curve).n_experts == 2
    page = microscope_theorems.page({})
    assert "| -1/12 | 0 | 0 | nowhere |" in page


@pytest.mark.parametrize("path", sorted((ROOT / "experiments").glob("microscope_*.toml")))
def test_shipped_microscopes_run_at_their_largest_n(path):
    text = path.read_text()
    spec = parse_spec(text)
    decades = {"floors": range(4, 15, 2), "neurons": range(6, 15, 2)}
    kind = path.stem.split("_")[1]
    assert spec.sizes == tuple(10**e for e in decades.get(kind, range(3, 15)))
    assert spec.replicates == (100 if kind in decades else 20)
    assert spec.design.counted
