"""Expected times: none before every curve is known, none that experience has shown too short."""

from moestat.sweep import plan_cells
from moestat.sweep.run.cost import CostModel
from moestat.sweep.run.progress import _Count
from tests.sweep.cells import exact_rate


def test_estimating_until_every_curve_has_been_measured(spec, text):
    cells = plan_cells(spec)
    count = _Count(cells, CostModel())
    assert count.text() == "0/12 cells, estimating"
    count.add(exact_rate(text, next(cell for cell in cells if cell.curve == "em")))
    assert count.text().endswith("estimating")
    count.add(exact_rate(text, next(cell for cell in cells if cell.curve == "newton")))
    assert count.text().endswith("left")


def test_the_rest_is_expected_to_take_as_much_longer_as_the_others_did():
    costs = CostModel([("em", 1000, 1.0)])
    for _ in range(5):  # in proportion to n they would take a tenth of a second
        costs.add("em", 100, 0.8)
    assert costs.total({("em", 10): 1}) >= 0.08
    steady = CostModel([("em", 1000, 1.0)] * 5)
    assert steady.total({("em", 1000): 2}) == 2.0


def test_cells_of_one_curve_are_spread_over_its_sizes(spec):
    first = [(cell.curve, cell.n) for cell in plan_cells(spec)[:2]]
    assert first == [("newton", 400), ("em", 400)]


def test_old_surprises_are_forgotten():
    costs = CostModel([("em", 1000.0, 1.0)])
    for i in range(1, 202):
        n = 1000.0 * 0.5**i
        costs.add("em", n, 8.0 * costs.seconds("em", n))
    assert costs.total({("em", 1000.0): 1}) == 8.0
    for _ in range(200):
        costs.add("em", 1000.0, 1.0)
    assert costs.total({("em", 1000.0): 1}) == 1.0
