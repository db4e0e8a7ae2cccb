import dataclasses

from moestat.sweep import parse_spec, plan_cells
from moestat.sweep.spec.plan import counts_of

GOLDEN_DATA = "0x40f9eeecc9e1774cb922bdb2d5c5c035"
GOLDEN_FIT = "0x755205f0c8c30cf322e563a8dd17e1f4"


def cell_at(spec, curve, n=200, replicate=0):
    found = [c for c in plan_cells(spec) if (c.curve, c.n, c.replicate) == (curve, n, replicate)]
    assert len(found) == 1
    return found[0]


def test_every_cell_once_and_the_largest_first(spec):
    cells = plan_cells(spec)
    assert len({cell.key for cell in cells}) == len(cells) == spec.n_cells
    assert [cell.n for cell in cells] == sorted((cell.n for cell in cells), reverse=True)


def test_golden_seeds(spec):
    cell = cell_at(spec, "newton", 400, 2)
    assert cell.key == "newton | n=400 | replicate=2"
    assert hex(cell.data_seed) == GOLDEN_DATA
    assert hex(cell.fit_seed) == GOLDEN_FIT


def test_curves_of_one_truth_share_data_and_curves_of_one_start_rule_share_starts(text):
    newton, em = (cell_at(parse_spec(text), name) for name in ("newton", "em"))
    assert (newton.data_seed, newton.fit_seed) == (em.data_seed, em.fit_seed)
    other = parse_spec(text.replace("truth = 1", "truth = 2", 1))
    assert cell_at(other, "newton").data_seed == newton.data_seed
    assert cell_at(other, "newton").fit_seed != newton.fit_seed


def test_data_and_starts_have_unrelated_seeds(spec):
    seeds = {seed for c in plan_cells(spec) for seed in (c.data_seed, c.fit_seed)}
    assert len(seeds) == 2 * len(spec.sizes) * spec.replicates


def test_seeds_do_not_depend_on_what_else_the_spec_holds(text, spec):
    more = text.replace("[200, 400]", "[100, 200, 400]").replace("replicates = 3", "replicates = 5")
    more = more.replace('name = "newton"', 'name = "renamed"').replace('panel = "a"', 'panel = "b"')
    renamed, cell = cell_at(parse_spec(more), "renamed"), cell_at(spec, "newton")
    assert dataclasses.replace(renamed, curve="newton") == cell


def test_seeds_depend_on_what_the_data_depend_on(text, spec):
    reference = cell_at(spec, "newton").data_seed
    for old, new in (
        ("seed = 7", "seed = 8"),
        ("low = -4", "low = -3"),
        ("beta0 = [-2.0, 0.0]", "beta0 = [-2.1, 0.0]"),
    ):
        assert cell_at(parse_spec(text.replace(old, new)), "newton").data_seed != reference


def test_a_plan_is_a_sequence_whose_parts_are_plans(spec):
    plan = plan_cells(spec)
    cells = list(plan)
    assert [plan[i] for i in range(len(plan))] == cells
    assert list(plan[1::3]) == cells[1::3]
    assert plan[-1] == cells[-1]
    assert plan.counts() == counts_of(cells) == plan[:].counts()
    assert list(plan[2:9].intersect(plan[::2])) == cells[2:9:2]


def test_settled_cells_are_left_out(spec):
    settled = {("em", 400): [0, 2, 99], ("nobody", 400): [1]}
    left = [cell.key for cell in plan_cells(spec, settled=settled)]
    gone = {"em | n=400 | replicate=0", "em | n=400 | replicate=2"}
    assert left == [cell.key for cell in plan_cells(spec) if cell.key not in gone]
