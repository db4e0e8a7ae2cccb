"""The atlas of rates: cells that need no search, and what the page says of the others."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from experiments.atlas.cells import AtlasCell, atlas_cells
from experiments.atlas.derivatives import AT_LEAST, BY_DERIVATIVES, order_by_derivatives
from experiments.atlas.labels import order_of_gates, unseen
from experiments.atlas.links import explored_orders
from experiments.atlas.order import by_rule, drawn_truth
from experiments.atlas.page import write
from experiments.atlas.rates import answered, write_table
from experiments.atlas.rates_page import CELLS, compared
from experiments.atlas.rates_page import write as write_rates
from experiments.explorer import CASES
from experiments.folders import FIGURES
from moestat.model.axes import family


def test_a_gate_without_free_masses_has_no_cells_of_two_beside_one():
    found = by_rule(AtlasCell("gaussian", "competition", "linear", 2), ())
    assert found is not None
    assert found.order is None
    assert "no measure" in found.found


def test_a_direction_that_one_atom_does_not_show_is_not_shown_by_several():
    cell = AtlasCell("multinomial", "sigmoid-inner", "linear", 3)
    assert by_rule(cell, ("+1 tau",)).order == math.inf
    assert by_rule(cell, ()) is None


def test_regressions_under_a_normalised_gate_are_not_searched():
    expert = json.dumps({"name": "polynomial", "degree": 1})
    found = by_rule(AtlasCell("least-squares", "softmax-quadratic", expert, 2), ())
    assert found.order is None


def test_orders_of_the_explorers_cases_are_taken(tmp_path):
    found = explored_orders(FIGURES)
    assert abs(found["gaussian", "softmax", "linear", 3][0] - 6.0) < 0.2
    assert explored_orders(tmp_path) == {}


def test_the_shipped_page_comes_from_its_results(tmp_path):
    kept = FIGURES / "theory_atlas.json"
    for name in ("theory_claims.json", "theory_explorer.json"):
        (tmp_path / name).write_bytes((FIGURES / name).read_bytes())
    write(json.loads(kept.read_text()), tmp_path)
    shipped = (FIGURES / "theory_atlas.md").read_text()
    assert (tmp_path / "theory_atlas.md").read_text() == shipped


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("softmax-2-order", AT_LEAST),
        ("compete-J1-order", BY_DERIVATIVES),
        pytest.param("softmax-3-order", AT_LEAST, marks=pytest.mark.slow),
        pytest.param("compete-32-neurons-order", BY_DERIVATIVES, marks=pytest.mark.slow),
    ],
)
def test_derivatives_agree_with_the_explorers_orders(name, told):
    """Where the explorer searched at a truth of the papers, derivatives say the same or no more."""
    fitted, model, truth = CASES[name].families()
    found = order_by_derivatives(model, truth, fitted.n_experts - model.n_experts + 1)
    assert found is not None
    searched = json.loads((FIGURES / "theory_explorer.json").read_text())[name]["exponent"]
    assert found[1] == told
    assert abs(searched - found[0]) < 0.15


def test_classes_under_sigmoid_gates_have_order_two():
    """A search in double precision takes the distance for 0; derivatives tell it from 0."""
    cell = AtlasCell("multinomial", "sigmoid", "linear", 3)
    theta, null = drawn_truth(cell)
    assert null == ()
    assert order_by_derivatives(cell.true_family(), theta, 3) == (2.0, BY_DERIVATIVES)


def test_what_derivatives_say_of_one_size_holds_for_the_others():
    cell = AtlasCell("gaussian", "sigmoid", "linear", 4)
    assert by_rule(cell, (), AT_LEAST).order == 8.0
    assert by_rule(cell, (), BY_DERIVATIVES).order == 2.0
    assert by_rule(cell, (), "falls") is None


def test_derivatives_do_not_decide_kinks_and_regressions():
    for axes in (("multinomial", "laplace"), ("least-squares", "sigmoid-partial")):
        model = AtlasCell(*axes, "linear", 2).true_family()
        assert order_by_derivatives(model, model.typical(0), 2) is None


def test_derivatives_of_experts_without_slopes_cancel():
    """Two classes at a = 0: an expert is a mean of two others, and nothing is decided."""
    model = AtlasCell("multinomial", "softmax", "linear", 2).true_family()
    theta = model.typical(0)
    theta[np.ravel(model.blocks["a"])] = 0.0
    assert order_by_derivatives(model, theta, 2) is None


@pytest.mark.parametrize(
    ("share", "order"), [(0.2, 4), (0.42, 4), (0.43, 5), (0.9, 5), (1.0 - 3.0**-0.5, 6)]
)
def test_the_order_of_two_quadratic_gates_depends_on_the_gate(share, order):
    expert = {"name": "activation", "activation": "gelu", "weighted": False}
    model = family("least-squares", gate="sigmoid-quadratic", expert=expert, n_experts=2)
    blocks = {"A": [[0.0], [0.8]], "b": [[0.0], [-0.6]], "alpha": [1.5, -1.0], "beta": [0.7, 0.3]}
    theta = model.pack(blocks | {"c": [math.log(share / (1.0 - share)), 0.2]})
    assert order_of_gates(model, theta, 2) == order
    assert order_of_gates(model, theta, 3) is None
    softmax = family("least-squares", gate="softmax-quadratic", expert=expert, n_experts=2)
    assert order_of_gates(softmax, theta, 2) is None


def test_a_switch_is_seen_with_the_root_of_its_move_and_a_common_scale_is_not():
    """Hellinger distances under a top-1 gate, by a rule that is fine near the switch."""
    model = family("gaussian", gate="softmax-top", n_experts=2)
    blocks = {"beta0": [0.3, 0.0], "beta1": [1.0, 0.0], "a": [2.0, -1.5], "b": [1.0, -1.0]}
    truth = blocks | {"nu": [0.25, 0.4]}

    def distance(**moved):
        x = np.linspace(-2.0, 2.0, 200_001)
        y = np.linspace(-9.0, 9.0, 301)
        one, two = (model.pack(each) for each in (truth, truth | moved))
        # Densities differ where another atom is chosen only: the share of these inputs decides.
        chosen = [(each[0] + each[1] * x) > 0.0 for each in ((0.3, 1.0), _scores(moved))]
        apart = x[chosen[0] != chosen[1]]
        if not apart.size:
            return 0.0
        points = apart[:: max(1, apart.size // 200)]
        square = 0.0
        for at in points:
            grid = np.full((y.size, 1), at)
            roots = [np.exp(0.5 * model.log_density(theta, grid, y)) for theta in (one, two)]
            square += 0.5 * np.trapezoid((roots[0] - roots[1]) ** 2, y) / points.size
        return math.sqrt(square * apart.size / x.size)

    def _scores(moved):
        values = truth | moved
        return values["beta0"][0], values["beta1"][0]

    moves = (0.01, 0.003, 0.001)
    distances = [distance(beta0=[0.3 + move, 0.0]) for move in moves]
    slopes = np.diff(np.log(distances)) / np.diff(np.log(moves))
    assert np.allclose(slopes, 0.5, atol=0.02)
    assert distance(beta0=[0.6, 0.0], beta1=[2.0, 0.0]) == 0.0
    null = ("+1 beta0[1]", "+1 beta1[1,0]")
    assert "r = 1/2" in unseen(model, null)


def test_a_translation_of_the_cosine_gate_is_a_convention():
    model = family("gaussian", gate="perturbed-cosine", n_experts=2)
    theta = model.pack(
        {
            **{"gamma": [0.3, 0.0], "alpha": [0.8, -0.5], "tau1": 0.1, "tau2": 0.1},
            **{"a": [2.0, -1.5], "b": [1.0, -1.0], "nu": [0.25, 0.4]},
        }
    )
    units = np.array([0.8, -0.5]) / (np.array([0.8, 0.5]) + 0.1) + 0.05
    moved = dict(model.measure(theta).atoms)
    alpha = np.sign(units) * 0.1 * np.abs(units) / (1.0 - np.abs(units))
    x = np.linspace(-2.0, 2.0, 50)[:, None]
    first = model.gate_probabilities(theta, x)
    blocks = {name: moved[name] for name in ("a", "b", "nu")}
    other = model.pack({"gamma": [0.3, 0.0], "alpha": alpha, "tau1": 0.1, "tau2": 0.1, **blocks})
    assert np.allclose(first, model.gate_probabilities(other, x), atol=1e-12)
    assert "softmax rows pin" in unseen(model, ("+1 alpha[1,0], +0.1 alpha[2,0]",))


def test_the_shipped_rates_come_from_their_results(tmp_path):
    kept = json.loads((FIGURES / "atlas_rates.json").read_text())
    (tmp_path / "theory_atlas.json").write_bytes((FIGURES / "theory_atlas.json").read_bytes())
    write_rates(kept, tmp_path)
    write_table(kept, tmp_path)
    for name in ("atlas_rates.md", "atlas_rates.csv"):
        assert (tmp_path / name).read_text() == (FIGURES / name).read_text()


def test_every_cell_has_an_answer_or_a_reason():
    kept = json.loads((FIGURES / "atlas_rates.json").read_text())
    assert {tuple(name.split("; ")) for name in kept} <= {cell.words for cell in atlas_cells()}
    for name, told in kept.items():
        cells = {row["cell"] for row in told["rows"]}
        assert told["why"] or {"1", "2", "3"} <= cells, name
        assert cells <= set(CELLS)


def test_differences_from_the_older_atlas_are_named():
    row = {"block": "b", "cell": "2", "r": 4.0, "at_least": False, "status": "proved", "reason": ""}
    kept = {"gaussian; softmax; linear": {"why": "", "rows": [row]}}
    old = {"gaussian; softmax; linear; 2": {"order": 2.0, "found": "bounded"}}
    found = {name: kind for name, _, kind in compared(kept, old)}
    assert found["gaussian; softmax; linear; 2"] == "now slower"


def test_a_family_is_asked_once_for_all_its_cells(tmp_path):
    cell = AtlasCell("multinomial", "sigmoid", "linear", 1)
    told = answered(cell, 0.0, 300.0, tmp_path)
    assert {row["cell"] for row in told["rows"]} == set(CELLS)
    assert {row["status"] for row in told["rows"]} == {"certified"}
    assert len(list(tmp_path.glob("*.json"))) == 4
    late = answered(cell, 0.0, 1e-3, tmp_path)
    assert late["why"].startswith("not done in")
