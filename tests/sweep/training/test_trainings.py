from dataclasses import replace

import pytest

from moestat.rates.style import MARKERS
from moestat.sweep.errors import SweepError
from moestat.sweep.spec.experiments import shipped
from moestat.sweep.spec.plan import plan_cells
from moestat.sweep.spec.read import load_spec, parse_spec

SPEC = """
kind = "training"
title = "small"
seed = 1
replicates = 2
task = "clusters"
n_steps = 4
batch_size = 8
n_hidden = 2
n_test = 32
look_every = 2
x = "choice"
[values]
choice = [1, 2]
learning_rate = [1e-3, 1e-2]
[[curve]]
name = "SMoE"
method = "smoe"
[[curve]]
name = "v2"
method = "compete-v2"
rate = 0.5
"""


def test_methods_share_data_and_starts():
    cells = plan_cells(parse_spec(SPEC))
    assert len(cells) == 8
    assert len({(cell.data_seed, cell.fit_seed) for cell in cells}) == 2
    assert len({cell.identity for cell in cells}) == 8


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('method = "smoe"', 'method = "soe"', "curve 'SMoE', choice = 1: method must be one of"),
        ("n_steps = 4", "n_steps = 0", "n_steps must be an integer >= 1, got 0"),
        ("rate = 0.5", "rate = 2", "curve 'v2', choice = 1: rate must be a number in [0, 1], got"),
        ("n_hidden = 2", "n_hiden = 2", "unknown key 'n_hiden'"),
        ('x = "choice"', 'x = "chosen"', "x: must be one of 'task', 'method'"),
    ],
)
def test_bad_specs_are_refused_in_one_line(old, new, message):
    with pytest.raises(SweepError) as caught:
        parse_spec(SPEC.replace(old, new, 1))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_shipped_experiments_give_every_method_the_same_grid():
    names = [name for name in shipped() if name.startswith("compete_")]
    assert len(names) == 11
    for name in [*names, "attention_language"]:
        spec = parse_spec(shipped()[name].read_text())
        assert spec.kind == "training"
        for field in ("learning_rate", "balance", "n_steps", "batch_size"):
            panels = {}
            for curve in spec.curves:
                values = [getattr(spec.run(curve, x), field) for x in spec.sizes]
                panels.setdefault(curve.panel, []).append(values)
            assert all(grid == same[0] for same in panels.values() for grid in same)


def _legend(axes):
    legend = axes.get_legend()
    return "" if legend is None else legend.get_title().get_text()


def test_a_sweep_runs_and_reports(tmp_path):
    pytest.importorskip("torch")
    from moestat.sweep.kinds.training.analysis import summarise_trainings
    from moestat.sweep.kinds.training.display import draw_trainings, trainings_table
    from moestat.sweep.report.writing import write_report
    from moestat.sweep.run.runner import open_cells, run_cells
    from moestat.sweep.store.store import create_store

    spec = parse_spec(SPEC)
    with create_store(tmp_path / "s.sqlite", spec) as store:
        cells = open_cells(spec, store)
        records = list(run_cells(spec, store, cells, executor="serial"))
        assert {record.status for record in records} == {"done"}
        first, second = summarise_trainings(store)
        paths = [*write_report(store), *write_report(store, html=True)]
    losses = {(r.curve, r.n, r.replicate): r.losses for r in records}
    means = {x: sum(losses["SMoE", x, i]["validation_loss"] for i in range(2)) for x in (1, 2)}
    assert first.best == min(means, key=means.__getitem__)
    at = second.metrics[second.best]["difference"]
    pairs = [
        losses["v2", second.best, i]["test_loss"] - losses["SMoE", first.best, i]["test_loss"]
        for i in range(2)
    ]
    assert at.mean == pytest.approx(sum(pairs) / 2)
    assert "difference" not in first.metrics[1]
    assert second.curves["step"] == [0, 2, 4]
    assert trainings_table("t", [first, second]).row_count == 2
    by_size = [replace(summary, axis="n") for summary in (first, second)]
    panels = draw_trainings("t", by_size).axes
    assert panels[-1].get_yscale() == "log"
    (overlap,) = (each for each in panels if "(line: chance)" in each.get_title() + _legend(each))
    assert any(set(line.get_ydata()) == {first.chance} for line in overlap.get_lines())
    lines = panels[0].get_lines()
    drawn = [set(line.get_xdata()) for line in lines if line.get_marker() in MARKERS]
    assert len(drawn) == 2
    assert not drawn[0] & drawn[1]  # bars of two methods stand apart
    page, html = paths[0].read_text(), paths[-1].read_text()
    assert "The grid, the same for every method" in page
    assert f"| v2 | {second.best} | {[0.001, 0.01][second.best - 1]} |" in page
    assert html.count("<svg") == 1
    assert "single runs (" in html
    assert all(path.stat().st_size > 0 for path in paths)


def test_a_machine_without_torch_is_told_before_anything_runs(tmp_path, monkeypatch):
    from moestat.sweep.kinds.training import spec as kind

    (tmp_path / "s.toml").write_text(SPEC)
    assert load_spec(tmp_path / "s.toml").n_cells == 8
    monkeypatch.setattr(kind, "find_spec", lambda name: None)
    with pytest.raises(SweepError, match=r"s.toml: training needs PyTorch: pip install 'moestat"):
        load_spec(tmp_path / "s.toml")
    assert parse_spec(SPEC).n_cells == 8  # a store made elsewhere stays readable


def test_a_task_of_the_user_is_trained_by_its_name(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    from moestat.base.registry import Maker
    from moestat.networks.smoe.training import (
        TASKS,
        Sample,
        Task,
        make_block,
        make_settings,
        run_training,
    )

    class Sines(Task):
        def model(self):
            return make_block(self.settings, 2, 1)

        def sample(self, n, rng):
            x = torch.from_numpy(rng.uniform(-1, 1, (n, 2)).astype("float32"))
            return Sample(x, torch.sin(3 * x[:, :1]))

        def loss(self, answers, targets):
            return (answers - targets).square().mean()

    monkeypatch.setattr(TASKS, "_members", dict(TASKS._members))
    TASKS.register(Maker("sines", Sines))
    run = make_settings({"task": "sines", "method": "compete-v2", "n_steps": 60, "rate": 0.3})
    curve = run_training(run, 0, 1).curves["loss"]
    assert curve[-1] < 0.5 * curve[0]
    with pytest.raises(
        ValueError, match=r"task must be one of 'clusters', .*, 'sines', got 'sinus'; did"
    ):
        make_settings({"task": "sinus", "method": "smoe", "n_steps": 1})
