"""Sweeps of networks: specs, cells, resumption, summaries, and what the commands show."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from moestat.networks import Network, NormalisedGradientDescent, PatchLaw, evaluate, train
from moestat.sweep import SweepError, create_store, open_store, parse_spec, plan_cells, run_cell
from moestat.sweep.cli import app
from moestat.sweep.kinds.network.kind import METRICS
from moestat.sweep.store.export import export

SPEC = """
kind = "network"
title = "Small networks"
seed = 3
replicates = 2
n = 300
n_test = 200
n_steps = 12
look_every = 5
sigma_0 = 0.001
scale = 10.0
x = "n_experts"

[values]
n_experts = [2, 5]
router_rate = [0.1, 0.25]

[[curve]]
name = "MLP"
panel = "a"
expert = "mlp"

[[curve]]
name = "CNN"
panel = "b"
expert = "cnn"
note = "shared weights"
"""


def _changed(old, new):
    assert old in SPEC
    return SPEC.replace(old, new, 1)


def _run(tmp_path, text=SPEC, *options):
    (tmp_path / "s.toml").write_text(text)
    given = ["run", str(tmp_path / "s.toml"), "--out", str(tmp_path / "s.sqlite"), *options]
    return CliRunner().invoke(app, given)


def _numbers(path):
    with open_store(path) as store:
        return {record.key: record.numbers for record in store.records()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("networks")
    done = _run(path, SPEC, "--workers", "1")
    assert done.exit_code == 0, done.output
    return path


def test_cells_are_named_by_the_axis_and_share_data():
    cells = {cell.key: cell for cell in plan_cells(parse_spec(SPEC))}
    assert len(cells) == 8
    mlp, cnn = (cells[f"{name} | n_experts=5 | replicate=1"] for name in ("MLP", "CNN"))
    few = cells["MLP | n_experts=2 | replicate=1"]
    assert mlp.data_seed == cnn.data_seed == few.data_seed
    assert mlp.data_seed != cells["MLP | n_experts=5 | replicate=0"].data_seed
    assert len({cell.identity for cell in cells.values()}) == 8


def test_identities_follow_what_the_numbers_depend_on():
    def identities(text):
        return {cell.key: cell.identity for cell in plan_cells(parse_spec(text))}

    before = identities(SPEC)
    assert identities(_changed("Small networks", "Other words")) == before
    assert identities(_changed('note = "shared weights"', "")) == before
    longer = identities(_changed("[2, 5]", "[2, 5, 7]").replace("[0.1, 0.25]", "[0.1, 0.25, 0.4]"))
    assert {key: longer[key] for key in before} == before
    rate = identities(_changed("[0.1, 0.25]", "[0.1, 0.3]"))
    changed = {key for key in before if rate[key] != before[key]}
    assert changed == {key for key in before if "n_experts=5" in key}
    for old, new in (
        ("n_steps = 12", "n_steps = 13"),
        ("0.001", "0.002"),
        ("seed = 3", "seed = 4"),
    ):
        assert not set(identities(_changed(old, new)).values()) & set(before.values())


@pytest.mark.thorough
def test_a_cell_is_what_the_library_computes():
    spec = parse_spec(SPEC)
    cell = next(c for c in plan_cells(spec) if c.key == "CNN | n_experts=5 | replicate=0")
    record = run_cell(SPEC, cell)
    law = PatchLaw(scale=10.0)
    data_rng, test_rng = np.random.default_rng(cell.data_seed).spawn(2)
    data, test = law.sample(300, data_rng), law.sample(200, test_rng)
    network = Network("cnn", 5, sigma_0=0.001)
    rule = NormalisedGradientDescent(router_rate=0.25)
    trained = train(network, data, 12, optimiser=rule, rng=cell.fit_seed)
    found = evaluate(network, trained.weights, test)
    assert record.losses["test_accuracy"] == found.accuracy
    assert record.losses["entropy"] == found.entropy
    assert record.loss == found.loss
    assert record.losses["curve"]["step"] == [0, 5, 10, 12]
    assert record.losses["curve"]["test_accuracy"][-1] == found.accuracy
    theorem = record.losses["theorem"]
    assert theorem["test_error"] == 1 - found.accuracy
    assert theorem["misrouted"] == pytest.approx(1 - record.losses["specialist_share"])
    assert 1 <= record.losses["clusters_covered"] <= 4
    margins = record.losses["margins"]
    assert margins["smallest"] == found.margins.min()
    assert margins["smallest"] <= margins["lower"] <= margins["median"]


def test_the_axis_may_be_any_field():
    text = """
kind = "network"
title = "Scales"
seed = 0
replicates = 1
n = 50
n_steps = 2
n_experts = 2
x = "sigma_0"
[values]
sigma_0 = [0.001, 0.05, 1.0]
[[curve]]
name = "c"
"""
    cells = plan_cells(parse_spec(text))
    assert [cell.key for cell in cells] == [
        "c | sigma_0=1 | replicate=0",
        "c | sigma_0=0.05 | replicate=0",
        "c | sigma_0=0.001 | replicate=0",
    ]
    assert len({cell.data_seed for cell in cells}) == 1
    steps = parse_spec(text.replace("n_steps = 2\n", "").replace("sigma_0", "n_steps", 1)
                       .replace("sigma_0 = [0.001, 0.05, 1.0]", "n_steps = [2, 4]\n")
                       .replace("n = 50", "n = 50\nsigma_0 = 0.1"))  # fmt: skip
    two, four = (run_cell(steps.text, cell) for cell in reversed(plan_cells(steps)))
    assert four.losses["curve"]["test_loss"][0] == two.losses["curve"]["test_loss"][0]


@pytest.mark.slow  # what is kept of a killed sweep does not depend on its kind
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_killed_sweep_goes_on_to_the_same_numbers(tmp_path, folder, workers):
    spec, store = tmp_path / "s.toml", tmp_path / "s.sqlite"
    spec.write_text(SPEC)
    command = [sys.executable, "-m", "moestat.sweep", "run", str(spec), "--out", str(store)]
    command += ["--workers", workers]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    until = time.monotonic() + 120
    while time.monotonic() < until and process.poll() is None:
        if store.exists() and store.stat().st_size and _settled(store):
            break
        time.sleep(0.01)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    subprocess.run(command, check=True, capture_output=True)
    assert _numbers(store) == _numbers(folder / "s.sqlite")


def _settled(store):
    try:
        with open_store(store) as opened:
            return bool(opened.statuses())
    except SweepError:
        return False


def test_summaries_are_means_deviations_and_quantiles(folder):
    with open_store(folder / "s.sqlite") as store:
        summaries = METRICS.summarise(store)
        records = [r for r in store.records() if r.curve == "MLP" and r.n == 5]
    accuracies = [record.losses["test_accuracy"] for record in records]
    place = summaries[0].metrics["test_accuracy"][5]
    assert place.count == len(accuracies) == 2
    assert place.mean == np.mean(accuracies)
    assert place.deviation == pytest.approx(np.std(accuracies, ddof=1))
    assert (place.quantiles[0], place.quantiles[-1]) == (min(accuracies), max(accuracies))


def test_commands_say_what_applies(folder, tmp_path):
    store = str(folder / "s.sqlite")
    run = CliRunner().invoke
    shown = run(app, ["rates", store])
    assert shown.exit_code == 0
    assert "no rates" in shown.output
    found = json.loads(run(app, ["rates", store, "--json"]).output)
    assert [each["curve"] for each in found] == ["MLP", "CNN"]
    assert {place["n_experts"] for place in found[0]["metrics"]["entropy"]} == {2, 5}
    refused = run(app, ["compare", store, "MLP", "CNN"])
    assert refused.exit_code != 0
    assert "no rates to compare" in refused.output + str(refused.exception)
    assert run(app, ["report", store, "--html", "--out", str(tmp_path)]).exit_code == 0
    page = (tmp_path / "s.html").read_text()
    assert page.count("<svg") == 1
    assert "single runs (" in page
    assert run(app, ["status", store]).exit_code == 0
    assert run(app, ["verify-store", store]).exit_code == 0
    assert (folder / "s.png").stat().st_size > 0
    out = folder / "report"
    assert run(app, ["report", store, "--out", str(out)]).exit_code == 0
    page = (out / "s.md").read_text()
    assert "> shared weights" in page
    assert "| 5 | 2 | 0." in page
    key = "MLP | n_experts=2 | replicate=0"
    again = run(app, ["cell", store, key, "--json"])
    assert json.loads(again.output)["same_as_stored"] is True


def test_exports_have_the_metrics_and_the_curves(folder):
    with open_store(folder / "s.sqlite") as store:
        rows, dictionary = export(store, folder / "s.csv")
    head = (folder / "s.csv").read_text().splitlines()[0].split(",")
    assert rows == 8
    assert {"losses.test_accuracy", "losses.curve.entropy", "losses.theorem.misrouted"} <= set(head)
    assert "a further part" not in dictionary.read_text()


def test_training_that_turns_non_finite_fails_its_cell_with_the_step(tmp_path):
    text = _changed("n_steps = 12", 'n_steps = 12\noptimiser = "gd"\nlearning_rate = 1e30')
    done = _run(tmp_path, text, "--limit-cells", "1", "--workers", "1")
    assert done.exit_code != 0
    with open_store(tmp_path / "s.sqlite") as store:
        (record,) = store.records()
    assert record.status == "failed"
    assert "training gave infinite or NaN values at step" in record.message


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("sigma_0 = 0.001", "n_patches = 2", "curve 'MLP', n_experts = 2: sigma_0 is missing"),
        ("scale = 10.0", "n_patches = 2", "n_patches must be an integer >= 3, got 2"),
        ("scale = 10.0", "n_clusters = 26", "n_features must be at least 2 n_clusters = 52"),
        ("scale = 10.0", "n_clusters = 1", "n_clusters must be an integer >= 2, got 1"),
        ("scale = 10.0", "alpha = [2.0, 0.5]", "alpha must be a pair"),
        ("scale = 10.0", "learning_rate = -1.0", "learning_rate must be a number in [0"),
        ("scale = 10.0", "scale = 'big'", "scale must be a number in"),
        ("[2, 5]", "[0, 5]", "values: n_experts: must hold numbers > 0, got 0"),
        ("[2, 5]", "[2.5, 5]", "n_experts must be an integer >= 1, got 2.5"),
        ("[2, 5]", "[5, 2]", "values: n_experts: must hold increasing values"),
        ("[2, 5]", "[2]", "values: router_rate: must hold as many values as n_experts, 1, got 2"),
        ('x = "n_experts"', 'x = "experts"', "x: must be one of 'n', 'n_test',"),
        ('expert = "mlp"', 'expert = "mpl"', "unknown expert 'mpl'; known: 'mlp', 'cnn'"),
        ('expert = "mlp"', "n_expert = 4", "curve 'MLP': unknown key 'n_expert' (did you mean"),
        ('expert = "mlp"', "n_experts = 4", "curve 'MLP': n_experts: is given by [values], too"),
        ('name = "CNN"', 'name = "MLP"', "curve 'MLP': name is taken by an earlier curve"),
        (
            'kind = "network"',
            'kind = "net"',
            "kind: must be one of 'fit', 'network', 'training', 'inference', got 'net'",
        ),
    ],
)
def test_bad_specs_are_refused_in_one_line_that_names_the_key(old, new, message):
    with pytest.raises(SweepError) as caught:
        parse_spec(_changed(old, new))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_shipped_experiments_are_specs_of_networks():
    from moestat.sweep.spec.experiments import shipped

    specs: dict[str, Any] = {
        name: parse_spec(path.read_text())
        for name, path in shipped().items()
        if name.startswith("expert_count")
    }
    figure = specs["expert_count_figure1"]
    assert figure.n_cells == 100
    rates = {figure.run(figure.curves[0], M).optimiser.router_rate for M in figure.sizes}
    assert rates == {0.1, 0.25, 0.4}
    assert all(math.isclose(spec.run(spec.curves[0], 8).law.scale, 10) for spec in specs.values())


def test_a_store_of_networks_may_be_extended(tmp_path):
    with create_store(tmp_path / "s.sqlite", parse_spec(SPEC)):
        pass
    more = parse_spec(_changed("replicates = 2", "replicates = 3"))
    with create_store(tmp_path / "s.sqlite", more, extend=True) as store:
        assert store.spec.replicates == 3


def test_a_cell_whose_numbers_no_row_holds_fails_alone():
    text = _changed("n_test = 200", "n_test = 1")  # a cluster has no example to test on
    record = run_cell(text, plan_cells(parse_spec(text))[0])
    assert record.status == "failed"
    assert "numbers must be finite" in (record.message or "")
