"""The atlas of rates: cells that need no search, and what the page says of the others."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from experiments.atlas.cells import AtlasCell
from experiments.atlas.derivatives import AT_LEAST, BY_DERIVATIVES, order_by_derivatives
from experiments.atlas.links import explored_orders
from experiments.atlas.order import by_rule, drawn_truth
from experiments.atlas.page import write
from experiments.explorer import CASES
from experiments.folders import FIGURES


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
