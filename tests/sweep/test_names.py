"""A name that is misspelt in a spec or a command is told the one that is spelt alike."""

import pytest

from moestat.sweep import SweepError, compare_curves, create_store, open_store, parse_spec
from moestat.sweep.spec.experiments import shipped
from moestat.sweep.spec.plan import find_cell

MISSPELT = [
    ('truth = "first"', 'truth = "fist"', "curve 'newton': truth: unknown truth 'fist'", "first"),
    ("theory = -0.5", 'target = "fist"', "curve 'newton': target: unknown truth 'fist'", "first"),
    ("seed = 7", 'seed = 7\nestimate = "maximun"', "estimate: must be one of", "maximum"),
    ("seed = 7", 'seed = 7\ndistances = ["helinger"]', "distances: must be a list", "hellinger"),
    ("{ truth = 1,", "{ thruth = 1,", "starts: unknown start rule 'thruth'", "truth"),
    ("noise = 0.1", "noise = { bta1 = 0.1 }", "starts: noise: unknown block 'bta1'", "beta1"),
    ("max_iterations = 20", "max_iteration = 20", "solver: 'em' does not take", "max_iterations"),
    ('"em",', '"squaren",', "solver: unknown solver 'squaren'", "squarem"),
    ("low = -4", "lw = -4", "design: 'uniform' does not take these options: lw", "low"),
    ('"softmax"', '"sofmax"', "gate: unknown gate 'sofmax'", "softmax"),
    ('loss = "softmax-D1"', 'loss = "sofmax-D1"', "loss: unknown loss 'sofmax-D1'", "softmax-D1"),
]


@pytest.mark.parametrize(("old", "new", "message", "meant"), MISSPELT)
def test_names_in_specs_of_fits(text, old, new, message, meant):
    text = text.replace("[truth.t]", "[truth.first]").replace('truth = "t"', 'truth = "first"')
    assert old in text
    with pytest.raises(SweepError) as raised:
        parse_spec(text.replace(old, new, 1))
    assert message in str(raised.value)
    assert f"did you mean {meant!r}?" in str(raised.value)


@pytest.mark.parametrize(
    ("name", "old", "new", "meant"),
    [
        ("coverage_order", 'x = "n"', 'x = "n_expert"', "n_experts"),
        ("coverage_order", '["order"]', '["oder"]', "order"),
        ("expert_count_figure1", 'gate = "patch"', 'gate = "pach"', "patch"),
        ("expert_count_figure1", 'kind = "network"', 'kind = "netwok"', "network"),
    ],
)
def test_names_in_specs_of_runs(name, old, new, meant):
    text = shipped()[name].read_text()
    text = text.replace(old, new, 1) if old in text else f"{new}\n{text}"
    with pytest.raises(SweepError) as raised:
        parse_spec(text)
    assert f"did you mean {meant!r}?" in str(raised.value)


def test_names_of_curves(spec, tmp_path):
    with create_store(tmp_path / "a.sqlite", spec):
        pass
    with (
        open_store(tmp_path / "a.sqlite") as store,
        pytest.raises(SweepError, match=r"unknown curve 'nweton'; known: 'newton', 'em'; did"),
    ):
        compare_curves(store, "nweton", store, "em")
    with pytest.raises(SweepError, match=r"did you mean 'newton'\?$"):
        find_cell(spec, "nweton | n=200 | replicate=0")
    with pytest.raises(SweepError, match=r"replicate=0'$"):
        find_cell(spec, "newton | n=201 | replicate=0")
