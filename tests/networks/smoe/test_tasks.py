import itertools

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from moestat.networks.smoe.dense import DenseBlock
from moestat.networks.smoe.layer import layers_of
from moestat.networks.smoe.training.blocks import make_block
from moestat.networks.smoe.training.decoder import LanguageModel
from moestat.networks.smoe.training.settings import CHOICES, make_settings
from moestat.networks.smoe.training.tasks import TASKS, make_task
from moestat.networks.smoe.training.tasks.language import filtered_loss
from moestat.networks.smoe.upcycling import upcycle


def settings(**given):
    return make_settings({"task": "clusters", "method": "smoe", "n_steps": 4, **given})


def test_every_name_of_a_setting_is_known_to_what_reads_it():
    from moestat.networks.smoe.experts import STACKED_EXPERTS
    from moestat.networks.smoe.responses import RESPONSES

    assert set(TASKS) == set(CHOICES["task"])
    assert set(STACKED_EXPERTS) == set(CHOICES["expert"])
    assert set(RESPONSES) == set(CHOICES["response"])
    for method in CHOICES["method"]:
        block = make_block(settings(method=method), 4, 3, n_tokens=5)
        ids = torch.zeros(2, dtype=torch.int64)
        assert block(torch.zeros(2, 4), ids).shape == (2, 3)


def test_filter_is_the_sum_over_all_topics():
    rng = np.random.default_rng(0)
    transitions = rng.dirichlet(np.ones(3), size=(2, 3))
    tokens = rng.integers(3, size=(4, 5))
    switch, topics = 0.3, 2
    total = 0.0
    for row in tokens:
        probability = 0.0
        for path in itertools.product(range(topics), repeat=5):
            p = 1 / topics
            for t in range(1, 5):
                stay = (1 - switch) * (path[t] == path[t - 1]) + switch / topics
                p *= stay * transitions[path[t], row[t - 1], row[t]]
            probability += p
        total -= np.log(probability) / 4
    assert filtered_loss(transitions, tokens, switch) == pytest.approx(total / 4, abs=1e-12)


def test_the_exact_predictor_loses_less_than_one_topic_would():
    task = make_task(settings(task="language", n_test=64), 3)
    sample = task.held_out(1)
    tokens = np.concatenate([sample.inputs[:, :1], sample.targets], axis=1)
    blind = filtered_loss(task.transitions.mean(0, keepdims=True), tokens, 0.5)
    assert sample.best < blind < np.log(32)


@pytest.mark.parametrize("name", sorted(TASKS))
def test_samples_are_functions_of_seed_and_purpose(name):
    expert = "linear" if name == "gaussian" else "mlp"
    given = settings(task=name, n_test=32, batch_size=8, expert=expert)
    one, two = make_task(given, 5), make_task(given, 5)
    assert torch.equal(one.batch(3).inputs, two.batch(3).inputs)
    assert not torch.equal(one.batch(3).inputs, one.batch(4).inputs)
    assert not torch.equal(one.held_out(0).inputs, one.held_out(1).inputs)
    assert not torch.equal(one.batch(3).inputs, make_task(given, 6).batch(3).inputs)
    answers = one.model()(one.batch(0).inputs)
    assert torch.isfinite(one.loss(answers, one.batch(0).targets))


def test_teachers_reach_the_least_loss_of_clusters():
    task = make_task(settings(n_test=4096), 1)
    sample = task.held_out(1)
    assert sample.best == pytest.approx(0.01, rel=0.05)
    classes = make_task(settings(task="cluster-classes", n_test=4096), 1).held_out(1)
    assert 0.0 < classes.best < np.log(8)


def test_true_lines_have_no_error_and_reach_the_least_loss():
    given = settings(
        task="gaussian", method="competition-v1", expert="linear", n_experts=4, n_test=4000
    )
    task = make_task(given, 2)
    model = task.model()
    with torch.no_grad():
        lines = np.stack([task.slopes, task.intercepts], axis=1)[:, :, None]
        model.experts.slopes.copy_(torch.from_numpy(lines))
    sample = task.held_out(1)
    loss = task.loss(model.eval()(sample.inputs), sample.targets).item()
    assert loss == pytest.approx(sample.best, rel=1e-4)
    assert task.truths(model)["expert_error"] == pytest.approx(0.0, abs=1e-6)
    with torch.no_grad():
        model.experts.slopes[:, 1] += 0.5
    assert task.truths(model)["expert_error"] > 0.1


def test_upcycled_model_begins_as_the_dense_one():
    torch.manual_seed(0)
    size = {"width": 8, "n_heads": 2, "n_hidden": 6, "n_experts": 4, "task": "language"}
    dense = LanguageModel(settings(method="dense", **{**size, "top_k": 1}), 10)
    sparse = LanguageModel(settings(method="compete-v2", **size), 10)
    router = layers_of(sparse)[0].router.weight.clone()
    upcycle(dense, sparse)
    ids = torch.randint(10, (3, 7))
    torch.testing.assert_close(sparse(ids), dense(ids), rtol=0, atol=1e-6)
    assert torch.equal(layers_of(sparse)[0].router.weight, router)
    with pytest.raises(ValueError, match="blocks in the same places"):
        upcycle(sparse, dense)
    wider = LanguageModel(settings(method="dense", **size), 10)
    with pytest.raises(ValueError, match="dense has no blocks"):
        upcycle(wider, sparse)


def test_dense_block_takes_any_leading_shape():
    block = make_block(settings(method="dense"), 4, 3)
    assert isinstance(block, DenseBlock)
    assert block(torch.zeros(2, 5, 4)).shape == (2, 5, 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"top_k": 9}, r"top_k must be in 1\.\.8"),
        ({"limit": -1}, "limit must be an integer >= 0"),
        ({"rate": 1.5}, "rate must be a number in"),
        ({"gamma": -1.0}, "gamma must be a number in"),
        ({"learning_rate": 0.0}, "learning_rate must be a number in"),
        ({"method": "smeo"}, "method must be one of 'smoe', 'xmoe'"),
        ({"n_heads": 3}, "n_heads must divide the width 64, got 3"),
    ],
)
def test_bad_settings_are_one_line(change, message):
    with pytest.raises(ValueError, match=message):
        settings(**change)
    with pytest.raises(ValueError, match="n_steps is missing"):
        make_settings({"task": "clusters", "method": "smoe"})
