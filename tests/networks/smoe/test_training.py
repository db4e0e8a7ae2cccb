import math

import pytest

torch = pytest.importorskip("torch")

from moestat.networks.smoe import training
from moestat.networks.smoe.training import run_training
from moestat.networks.smoe.training.loop import learning_rate
from moestat.networks.smoe.training.settings import make_settings


def settings(**given):
    base = {"task": "clusters", "method": "compete-v2", "n_steps": 30, "batch_size": 32}
    small = {"n_hidden": 4, "n_test": 64, "look_every": 10, "rate": 0.3, "balance": 0.01}
    return make_settings({**base, **small, **given})


def same(one, two):
    state = two.model.state_dict()
    assert all(torch.equal(value, state[name]) for name, value in one.model.state_dict().items())
    assert one.curves == two.curves
    assert one.metrics == two.metrics


@pytest.mark.parametrize("method", ["compete-v2", "compete-v1", "stable", "competition", "dense"])
def test_interrupted_training_ends_with_the_same_bits(method, tmp_path):
    run = settings(method=method)
    whole = run_training(run, 1, 2)
    path = tmp_path / "state.pt"
    run_training(run, 1, 2, checkpoint=path, stop_after=17)
    same(run_training(run, 1, 2, checkpoint=path), whole)


def test_upcycled_training_goes_on_with_the_same_bits(tmp_path):
    size = {"width": 8, "n_heads": 2, "n_layers": 1, "context": 8, "n_test": 4, "batch_size": 2}
    run = settings(task="upcycling", n_steps=6, dense_steps=4, look_every=2, **size)
    path = tmp_path / "state.pt"
    run_training(run, 1, 2, checkpoint=path, stop_after=3)
    same(run_training(run, 1, 2, checkpoint=path), run_training(run, 1, 2))


def test_seeds_of_data_and_of_weights_are_apart():
    run = settings(n_steps=1)
    base = run_training(run, 1, 2)
    assert run_training(run, 1, 2).metrics == base.metrics
    assert run_training(run, 3, 2).metrics != base.metrics
    assert run_training(run, 1, 3).metrics != base.metrics
    assert base.curves["step"] == [0, 1]


def test_training_learns_and_says_how_it_goes():
    said = []
    trained = run_training(
        settings(n_steps=200, learning_rate=1e-2), 1, 2, progress=lambda *x: said.append(x)
    )
    assert trained.curves["loss"][-1] < 0.5 * trained.curves["loss"][0]
    assert [step for step, _ in said] == list(range(0, 200, 10))
    assert 0.0 <= trained.metrics["overlap"] <= 1.0
    assert {"excess", "swap", "change_rate", "router_entropy"} <= set(trained.metrics)


def test_a_loss_that_is_not_finite_stops_and_keeps_the_checkpoint(tmp_path, monkeypatch):
    path = tmp_path / "state.pt"
    whole = training.Task.batch

    def broken(self, step):
        sample = whole(self, step)
        return sample._replace(targets=sample.targets * math.nan) if step == 25 else sample

    monkeypatch.setattr(training.Task, "batch", broken)
    with pytest.raises(ArithmeticError, match="the loss is nan at step 25"):
        run_training(settings(), 1, 2, checkpoint=path, checkpoint_every=10)
    assert torch.load(path, weights_only=True)["step"] == 20


def test_learning_rates_decay_as_said():
    cosine = settings(n_steps=100, learning_rate=0.1)
    assert learning_rate(cosine, 0) == 0.1
    assert learning_rate(cosine, 50) == pytest.approx(0.05)
    inverse = settings(decay="inverse-sqrt", learning_rate=0.1)
    assert learning_rate(inverse, 3) == pytest.approx(0.05)
    assert learning_rate(settings(decay="constant", learning_rate=0.1), 29) == 0.1


def test_training_leaves_the_global_generator_alone():
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    run_training(settings(n_steps=2), 1, 2)
    assert torch.equal(torch.rand(3), expected)


def test_upcycling_needs_experts():
    size = {"width": 8, "n_heads": 2, "n_layers": 1, "context": 8, "n_test": 4, "batch_size": 2}
    with pytest.raises(ValueError, match="method must have experts"):
        run_training(settings(task="upcycling", method="dense", **size), 1, 2)
