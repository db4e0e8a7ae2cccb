"""The atlas of rates: cells that need no search, and what the page says of the others."""

from __future__ import annotations

import json
import math

from experiments.atlas.cells import AtlasCell
from experiments.atlas.links import explored_orders
from experiments.atlas.order import by_rule
from experiments.atlas.page import write
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
