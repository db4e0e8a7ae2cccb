import math

import pytest

torch = pytest.importorskip("torch")

from moestat.networks.smoe.compete import CompeteSMoE, CompetitionMoE
from moestat.networks.smoe.experts import MLPExperts
from moestat.networks.smoe.layer import SMoE
from moestat.networks.smoe.metrics import (
    Routing,
    evaluating,
    expert_change_rate,
    observe_routing,
    swapped_top,
)
from moestat.networks.smoe.routers import HashRouter, SoftmaxRouter


@pytest.fixture
def layer():
    torch.manual_seed(0)
    return CompeteSMoE(MLPExperts(4, 3, 5, 3), SoftmaxRouter(3, 4), 2)


def routing(chosen, winners=None, n_experts=4):
    chosen = torch.tensor(chosen)
    uniform = torch.full((len(chosen), n_experts), 1 / n_experts)
    weights = torch.full(chosen.shape, 1 / chosen.shape[1])
    return Routing(uniform, chosen, weights, chosen if winners is None else torch.tensor(winners))


def test_measured_in_evaluation_mode_whatever_came_before(layer):
    X = torch.randn(50, 3)
    layer.eval()
    quiet = observe_routing(layer, X)[0]
    layer.train()
    layer.competing = True
    loud = observe_routing(layer, X)[0]
    assert torch.equal(loud.chosen, quiet.chosen)
    assert torch.equal(loud.weights, quiet.weights)
    assert layer.training
    assert layer.trace is None


def test_every_module_returns_to_its_own_mode(layer):
    model = torch.nn.Sequential(layer, torch.nn.Dropout().eval())
    with evaluating(model):
        assert not model[0].training
        assert not torch.is_grad_enabled()
    assert [model[0].training, model[1].training] == [True, False]


def test_entropies_of_known_routing():
    uniform = routing([[0, 1], [2, 3]])
    assert uniform.router_entropy == pytest.approx(math.log(4))
    assert uniform.load_entropy == pytest.approx(math.log(4))
    assert uniform.weight_entropy == pytest.approx(math.log(2))
    assert routing([[0, 1], [0, 1]]).load.tolist() == [0.5, 0.5, 0.0, 0.0]
    assert routing([[0, 1], [0, 1]]).load_entropy == pytest.approx(math.log(2))


def test_change_rate_and_overlap_ignore_order():
    before, after = routing([[0, 1], [2, 3]]), routing([[1, 0], [2, 1]])
    assert expert_change_rate([before], [after]) == 0.25
    assert routing([[0, 1], [2, 3]], winners=[[1, 2], [3, 2]]).overlap == 0.75
    with pytest.raises(ValueError, match="same layers and rows"):
        expert_change_rate([before], [after, after])


def test_competition_overlaps_with_itself():
    torch.manual_seed(1)
    always = CompetitionMoE(MLPExperts(4, 3, 5, 3), SoftmaxRouter(3, 4), 2)
    assert observe_routing(always, torch.randn(20, 3))[0].overlap == 1.0


@pytest.mark.parametrize("kind", [SMoE, CompetitionMoE])
def test_swap_shifts_by_one_rank(kind):
    torch.manual_seed(2)
    layer = kind(MLPExperts(4, 3, 5, 3), SoftmaxRouter(3, 4), 2).eval()
    X = torch.randn(20, 3)
    plain = layer(X)
    ranked = layer.decide(X).scores.argsort(dim=1, descending=True)
    with swapped_top(layer):
        assert torch.equal(layer.decide(X).chosen, ranked[:, 1:3])
        assert not torch.allclose(layer(X), plain)
    assert torch.equal(layer(X), plain)


def test_swap_refuses_what_has_no_next_expert():
    full = SMoE(MLPExperts(4, 3, 5, 3), SoftmaxRouter(3, 4), 4)
    with pytest.raises(ValueError, match="top_k must be below the number of experts, got 4"):
        swapped_top(full).__enter__()
    hashed = SMoE(MLPExperts(4, 3, 5, 3), HashRouter(3, 4, n_tokens=5), 1)
    with pytest.raises(ValueError, match="must rank all experts"):
        swapped_top(hashed).__enter__()
