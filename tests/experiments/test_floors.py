"""The page of floored microscopes: slopes of quantiles, and what it makes of a small store."""

from __future__ import annotations

import json

import numpy as np
import pytest

from experiments.folders import FIGURES
from experiments.pages.floors import (
    Panel,
    _has_quiet,
    beside_one,
    draw,
    late_quantile,
    page,
    read,
)
from experiments.pages.floors_gates import Fall, draw_falls, keep, write
from experiments.pages.least_weight import least_weight
from experiments.pages.quantiles import quantile_slope
from moestat.sweep.run.runner import open_cells, run_cells
from moestat.sweep.spec.experiments import find_spec
from moestat.sweep.spec.read import load_spec
from moestat.sweep.store.record import Record
from moestat.sweep.store.store import create_store


def drawn(rng, power, count=100, late=1e6):
    n = np.repeat([late, 1e8, 1e10, 1e12, 1e14], count)
    return n, n**power * rng.exponential(size=n.size)


def test_the_interval_of_a_quantiles_slope_covers_as_often_as_it_says():
    covered = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        found = quantile_slope(*drawn(rng, -1 / 8), 0.9, rng)
        covered += found.low <= -1 / 8 <= found.high
    assert covered >= 51  # 95% of 60 is 57; 50 or fewer have probability 1e-3


def test_only_the_last_four_decades_enter():
    rng = np.random.default_rng(0)
    n, error = drawn(rng, -1 / 4)
    error[n < 1e10] = 1.0
    assert quantile_slope(n, error, 0.5, rng).slope == pytest.approx(-1 / 4, abs=0.03)


def test_too_few_errors_give_no_slope():
    rng = np.random.default_rng(0)
    assert quantile_slope(*drawn(rng, -1 / 4, count=4), 0.9, rng) is None
    assert quantile_slope([1e14] * 9, np.ones(9), 0.9, rng) is None


def test_a_small_store_is_read_drawn_and_told(tmp_path):
    spec = load_spec(find_spec("microscope_floors_gaussian"))
    path = tmp_path / "small.sqlite"
    with create_store(path, spec) as store:
        cells = [
            cell
            for cell in open_cells(spec, store)
            if cell.curve == "single, k = 2" and cell.n in (10**10, 10**12) and cell.replicate < 5
        ]
        list(run_cells(spec, store, cells, executor="serial"))
    panels, shares, weights = read([path])
    assert weights == []
    assert [(panel.curve, panel.size, len(panel.cells)) for panel in panels] == [
        ("single, k = 2", 2, 10)
    ]
    (panel,) = panels
    assert panel.theory("b") == -1 / 8
    n, error = panel.series("b")
    powers = panel.series("b", powers=True)[1]
    assert np.all(powers <= 2.0 * error**4 + 1e-12)  # masses add up to 1: sum w |d|^4
    text = page(panels, shares)
    assert "| single, k = 2 | 2 | b | 5 to 5 | -0.1250 |" in text
    assert "| small | single, k = 2 | 10 | " in text
    high = [np.quantile(error[n == size], 0.9) for size in (1e10, 1e12)]
    local = np.log(high[1] / high[0]) / np.log(100.0)
    assert f"| single, k = 2 | 2 | -0.1250 | {local:.3f} |" in text
    assert [len(figure.axes) for figure in draw(panels)] == [1, 1, 1]
    assert set(n) == {1e10, 1e12}
    assert "microscope_floors_gates" not in text  # all of it is under the Gaussian softmax
    slope = late_quantile(path, "single, k = 2", 2, "b")
    assert f"| 2 | b | 5 to 5 | -0.1250 | {slope.slope:.3f} [" in text
    assert late_quantile(path, "single, k = 2", 3, "b") is None
    assert panel.theory("a") == panel.theory("nu") == -1 / 4
    assert panel.theory("beta1") is None  # its only cell has several atoms
    assert "| single, k = 2 | 2 | beta1 | 5 to 5 | not identified |" in text


def test_the_reference_of_a_block_depends_on_the_other_cells():
    spec = load_spec(find_spec("microscope_floors_gaussian"))

    def theory(curve, size, block):
        beside = beside_one(spec, spec.curve(curve), size)
        return Panel("t", curve, size, [], "gaussian, softmax", beside).theory(block)

    # Least distances: squares of slope deviations beside a cell of one, else the order 2 m.
    assert [theory("first, k = 4", 3, block) for block in ("a", "beta1", "b", "nu")] == [
        *(-1 / 4, -1 / 4, -1 / 12, -1 / 6),
    ]
    assert theory("single, k = 3", 3, "a") == -1 / 6
    assert theory("first, k = 4", 2, "beta1") is None
    assert theory("first, k = 3", 2, "beta1") == -1 / 4


def test_pictures_of_other_gates_come_from_the_kept_results(tmp_path):
    kept = json.loads((FIGURES / "microscope_floors.json").read_text(encoding="utf-8"))
    assert len({fall["gate"] for fall in kept["falls"]}) == 6
    fall = next(each for each in kept["falls"] if each["curve"] == "classes-second, k = 3")
    assert fall["slope"].startswith("-0.249 [")
    late = np.log(fall["quantile"][-1] / fall["quantile"][-3]) / np.log(1e4)
    assert late == pytest.approx(-0.249, abs=0.02)  # of three sizes; the slope is by least squares
    n = np.array([1e10, 1e12, 1e14])
    made = [Fall("one", "gate", -0.25, "-0.250 [-0.3, -0.2]", n, n**-0.25)]
    (picture,) = write(keep(made, tmp_path / "microscope_floors.json"))
    assert picture.stat().st_size > 0
    (figure,) = draw_falls(made)
    line = figure.axes[0].get_lines()[1]  # beside its curve
    assert line.get_ydata() == pytest.approx(n**-0.25)


def test_the_least_weight_under_competition_is_below_all_in_the_box():
    spec = load_spec(find_spec("microscope_floors_competition"))
    curve = spec.curve("competition, k = 3")
    floor = least_weight(spec, curve)
    fitted, rng = spec.fitted_family(curve), np.random.default_rng(0)
    x, mass = spec.design.quadrature(1, 32)
    assert 0.005 < floor < 0.05
    for _ in range(200):
        at = {name: rng.choice(fitted.box[name], 3) for name in ("c", "a", "b")}
        at["c"][2] = 0.0
        answer = np.exp(at["c"])[:, None] * (
            1.0 + np.exp(np.outer(at["a"], x[0]) + at["b"][:, None])
        )
        assert ((answer / answer.sum(axis=0)) @ mass).min() > floor * (1.0 - 1e-9)


def test_an_expert_near_0_is_found_whatever_its_gate():
    spec = load_spec(find_spec("microscope_floors_attention"))
    curve = spec.curve("sigmoid-quadratic, k = 3")
    blocks = spec.fitted_family(curve).unpack(np.full(spec.fitted_family(curve).n_params, 0.5))

    def quiet(size):
        changed = {
            name: np.concatenate([value[:-1], size * value[-1:]])
            if name in ("alpha", "beta")
            else value
            for name, value in blocks.items()
        }
        params = spec.fitted_family(curve).pack(changed)
        return _has_quiet(spec, curve, Record("k", curve.name, 10, 0, "done", params=params))

    assert quiet(1e-3)
    assert not quiet(0.2)
