"""Sweeps of inference: what cells judge, how shares are counted, what specs may say."""

import numpy as np
import pytest

from moestat.estimation.inference.alignment import align
from moestat.sweep.errors import SweepError
from moestat.sweep.kinds.inference.analysis import share, summarise_inference
from moestat.sweep.kinds.inference.display import _side, inference_table
from moestat.sweep.kinds.inference.observed import Observed, best_approximation
from moestat.sweep.kinds.inference.procedures import PROCEDURES
from moestat.sweep.kinds.inference.trial import make_trial
from moestat.sweep.report.writing import write_report
from moestat.sweep.spec.experiments import shipped
from moestat.sweep.spec.plan import plan_cells
from moestat.sweep.spec.read import parse_spec

LINES = (
    '{ likelihood = "gaussian", gate = "softmax", beta0 = [0.3, 0.0], beta1 = [1.0, 0.0],'
    " a = [2.0, -1.5], b = [1.0, -1.0], nu = [0.25, 0.16] }"
)
SPEC = f"""
kind = "inference"
title = "small"
seed = 1
replicates = 2
procedures = ["wald", "prediction"]
design = {{ law = "uniform", low = -2, high = 2 }}
n_starts = 0
x = "n"
[values]
n = [200, 400]
[[curve]]
name = "right"
truth = {LINES}
[[curve]]
name = "grouped"
truth = {LINES}
group_size = 4
"""


def trial(**changes):
    fields = {
        "n": 300,
        "truth": {
            "likelihood": "gaussian",
            "gate": "softmax",
            "beta0": [0.3, 0.0],
            "beta1": [1.0, 0.0],
            "a": [2.0, -1.5],
            "b": [1.0, -1.0],
            "nu": [0.25, 0.16],
        },
        "design": {"law": "uniform", "low": -2, "high": 2},
        "procedures": ["wald"],
        "n_starts": 0,
    }
    return make_trial({**fields, **changes})


def observed(own, seed=0):
    return Observed(own, np.random.default_rng(seed), np.random.default_rng(seed + 1))


def test_a_sweep_runs_and_reports(tmp_path):
    from moestat.sweep.run.runner import open_cells, run_cells
    from moestat.sweep.store.store import create_store

    spec = parse_spec(SPEC)
    with create_store(tmp_path / "s.sqlite", spec) as store:
        cells = open_cells(spec, store)
        records = list(run_cells(spec, store, cells, executor="serial"))
        assert [record.message for record in records if record.status != "done"] == []
        first, second = summarise_inference(store)
        paths = [*write_report(store), *write_report(store, html=True)]
    assert set(first.shares) < set(second.shares)
    own = [r.losses["wald"]["Wald, HC0"] for r in records if (r.curve, r.n) == ("right", 200)]
    found = first.shares["wald", "Wald, HC0"][200]
    assert found.mean == pytest.approx(np.mean([list(items.values()) for items in own]))
    assert ("wald", "Wald, cluster") in second.shares
    assert inference_table("t", [first, second], details=True).row_count == 2 * (6 + 7)
    # A caption explains the columns of its table alone.
    for details in (False, True):
        table = inference_table("t", [first, second], details=details)
        names = {column.header for column in table.columns}
        for name in ("lowest", "highest"):
            assert (name in str(table.caption)) == (name in names) == details
    text = paths[0].read_text()
    assert "in band" in text
    # A curve's reading stands before its table.
    assert text.count(" are in the band") == 2
    assert text.index(" are in the band") < text.index("| what |")
    html = paths[-1].read_text()
    assert html.count("<svg") == 1
    assert "Wald, cluster" in html
    assert all(path.stat().st_size > 0 for path in paths)


def test_curves_on_one_truth_see_the_same_data():
    one_more = SPEC.replace("group_size = 4", "n_experts = 3")
    cells = plan_cells(parse_spec(one_more))
    assert len({cell.data_seed for cell in cells}) == 4
    assert len({cell.identity for cell in cells}) == 8
    assert len({cell.data_seed for cell in plan_cells(parse_spec(SPEC))}) == 8


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('["wald", "prediction"]', '["walds"]', "procedures must be a list of some of 'wald', "),
        ("group_size = 4", "group_size = 0", "group_size must be an integer >= 1, got 0"),
        ("nu = [0.25, 0.16]", "nu = [0.25]", "nu"),
        (
            '["wald", "prediction"]',
            '["order"]',
            "n_starts must be an integer >= 1 for the",
        ),
        ("n_starts = 0", "n_starts = -1", "n_starts must be an integer >= 0, got -1"),
        ('likelihood = "gaussian"', 'noise = 1.0, likelihood = "least-squares"', ""),
    ],
)
def test_bad_specs_are_refused_in_one_line(old, new, message):
    with pytest.raises(SweepError) as caught:
        parse_spec(SPEC.replace(old, new))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_shares_count_what_is_missing():
    found = share([{"a": 1.0, "b": 0.0}, {"fit": None}, {"a": 1.0, "b": None}])
    assert (found.count, found.mean, found.missing) == (2, 0.75, 0.5)
    assert share([{"fit": None}]) is None
    # 50 of 50 is not certain.
    assert 0.01 < share([{"a": 1.0}] * 50).error < 0.03
    low, high = share([{"a": 1.0}] * 50).interval
    assert (low, high) == (pytest.approx(50 / (50 + 1.96**2), abs=1e-4), 1.0)  # Wilson (1927)


@pytest.mark.parametrize(("chance", "count"), [(0.95, 200), (0.99, 50), (0.5, 30)])
def test_intervals_of_shares_cover_and_stay_between_none_and_all(chance, count):
    rng, covered = np.random.default_rng(1), 0
    for _ in range(500):
        outcomes = [{"a": float(rng.random() < chance)} for _ in range(count)]
        low, high = share(outcomes).interval
        assert 0.0 <= low <= high <= 1.0
        covered += low <= chance <= high
    assert 0.92 <= covered / 500 <= 0.98


def test_a_share_is_in_the_band_as_far_as_its_interval_tells():
    def of(count, hits):
        return share([{"a": 1.0}] * hits + [{"a": 0.0}] * (count - hits))

    sides = [_side(0.95, of(*each)) for each in ((10000, 9500), (100, 95), (1000, 880))]
    assert sides == [0, None, -1]


def test_labels_are_those_of_the_truth():
    own = observed(trial(n_starts=2))
    swapped = trial(
        truth={
            "likelihood": "gaussian",
            "gate": "softmax",
            "beta0": [0.0, 0.3],
            "beta1": [0.0, 1.0],
            "a": [-1.5, 2.0],
            "b": [-1.0, 1.0],
            "nu": [0.16, 0.25],
        }
    )
    other = observed(swapped)
    # The same rows, whose experts have their names the other way round.
    other.__dict__["data"] = own.data
    for found in (own, other):
        apart = np.abs(found.result.theta - found.target)
        assert np.all(apart < 5 * np.asarray(found.result.bse) + 1e-12)
    assert own.result.llf == pytest.approx(other.result.llf, abs=1e-6)
    assert own.result.blocks["a"][0, 0] == pytest.approx(other.result.blocks["a"][1, 0])


def test_the_best_approximation_within_the_model_is_the_truth():
    own = trial()
    four = trial(
        truth={
            "likelihood": "gaussian",
            "gate": "softmax",
            # Each line twice: the law is that of two experts.
            "beta0": [0.3, 0.3, 0.0, 0.0],
            "beta1": [1.0, 1.0, 0.0, 0.0],
            "a": [2.0, 2.0, -1.5, -1.5],
            "b": [1.0, 1.0, -1.0, -1.0],
            "nu": [0.25, 0.25, 0.16, 0.16],
        },
        n_experts=2,
    )
    found = best_approximation(four)
    expected = own.family.pin(own.truth.theta)
    aligned, _ = align(own.family, found, expected, np.ones(found.size))
    np.testing.assert_allclose(aligned, expected, atol=1e-6)


def test_an_expert_too_many_is_compared_with_the_nearest_line():
    own = observed(trial(n_experts=3, n_starts=4))
    sizes = [int(name.rpartition(" ")[2]) for name, *_ in own.targets]
    assert len(sizes) == 9
    assert set(sizes) == {1, 2}
    values = {value for name, _, value in own.targets if name.startswith("a[")}
    assert values == {2.0, -1.5}


@pytest.mark.parametrize("name", ["profile", "bootstrap", "order", "selection"])
def test_procedures_answer(name):
    size = {"n": 100, "n_resamples": 9, "procedures": [name]}
    if name in ("order", "selection"):
        size |= {"n_starts": 2}
    if name == "selection":
        size |= {"n_experts": 3}
    own = observed(trial(**size))
    outcomes = PROCEDURES[name].judge(own)
    values = [value for items in outcomes.values() for value in items.values()]
    assert set(values) <= {0.0, 1.0, None}
    assert any(value is not None for value in values)


def test_tests_of_an_input_have_their_constraints():
    truth = {
        "likelihood": "gaussian",
        "gate": "softmax",
        "n_features": 2,
        "beta0": [0.3, 0.0],
        "beta1": [[1.0, 0.0], [0.0, 0.0]],
        "a": [[2.0, 0.2], [-1.5, 0.2]],
        "b": [1.0, -1.0],
        "nu": [0.25, 0.16],
    }
    # The input has an effect here: every test sees it.
    outcomes = PROCEDURES["nested"].judge(observed(trial(truth=truth)))
    assert all(items == {"last input": 1.0} for items in outcomes.values())


def test_shipped_experiments_say_what_is_regular():
    names = [name for name in shipped() if name.startswith("coverage_")]
    assert len(names) == 6
    for name in names:
        assert parse_spec(shipped()[name].read_text()).kind == "inference"
