"""Layers by names, and the routers and weights of other libraries."""

import copy

import pytest

torch = pytest.importorskip("torch")

from torch import nn

from moestat.networks.smoe import (
    BiasBalancedRouter,
    CompeteSMoE,
    CompetitionMoE,
    ExpertChoiceRouter,
    GatedExperts,
    MLPExperts,
    SMoE,
    auxiliary_loss,
    before_step,
    observe_routing,
)
from moestat.networks.smoe.routers import ROUTERS
from tests.networks.smoe.kinds import KINDS, D, N, T
from tests.networks.smoe.test_combinations import WAYS, Case

SIZES = {"d_model": D, "n_experts": N, "hidden": 16}


def rows(n=T, seed=1):
    return torch.randn(n, D, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("kind", KINDS)
def test_names_make_the_layer_that_sizes_make(kind):
    torch.manual_seed(0)
    by_place = KINDS[kind](D, N, 2, 16, balance=0.1)
    torch.manual_seed(0)
    by_name = KINDS[kind](d_model=D, n_experts=N, top_k=2, hidden=16, balance=0.1)
    torch.testing.assert_close(dict(by_name.state_dict()), dict(by_place.state_dict()))
    assert repr(by_name) == repr(by_place)


def test_gated_and_a_name_of_a_router_choose_the_parts():
    layer = SMoE(**SIZES, gated=True, router="cosine", bias=True, dtype=torch.float64)
    assert type(layer.experts) is GatedExperts
    assert type(layer.router) is ROUTERS["cosine"].make
    assert {value.dtype for value in layer.parameters()} == {torch.float64}
    assert type(SMoE(**SIZES).experts) is MLPExperts


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"num_experts_per_tok": 2}, "^num_experts_per_tok: write top_k$"),
        ({"hidden_size": 8}, "^hidden_size: write d_model$"),
        ({"intermediate_size": 8}, "^intermediate_size: write hidden$"),
        ({"router_aux_loss_coef": 0.1}, "^router_aux_loss_coef: write balance$"),
        ({"balanc": 0.1}, "did you mean 'balance'"),
        ({"router": "no such"}, "unknown router 'no such'"),
        ({"router": "hash"}, "size of the vocabulary"),
        ({"experts": 4}, "d_model is given twice"),
        ({"router": 5}, "n_experts is given twice"),
        ({"norm_topk_prob": 2}, "norm_topk_prob must be True or False"),
    ],
)
def test_other_names_are_answered_with_ours(given, message):
    with pytest.raises(ValueError, match=message):
        SMoE(**{**SIZES, **given})


def test_a_size_that_is_missing_is_named():
    with pytest.raises(ValueError, match="d_model is missing"):
        SMoE(n_experts=4)
    with pytest.raises(ValueError, match="n_experts is missing"):
        SMoE(d_model=4)


def test_weights_are_the_softmax_of_all_experts_or_of_the_chosen_ones():
    torch.manual_seed(0)
    layer = SMoE(**SIZES, norm_topk_prob=False)
    x = rows()
    decision = layer.decide(x)
    torch.testing.assert_close(decision.weights, decision.scores.softmax(-1).topk(2).values)
    every = layer.experts.every(x)
    full = torch.zeros(T, N).scatter(1, decision.chosen, decision.weights)
    torch.testing.assert_close(layer(x), torch.einsum("tn,ntd->td", full, every))
    layer.norm_topk_prob = True
    assert torch.allclose(layer.decide(x).weights.sum(1), torch.ones(T))


def test_experts_that_choose_rows_have_equally_many():
    """Outputs and gradients are those of the formula, expert by expert."""
    torch.manual_seed(0)
    layer = SMoE(**SIZES, router="expert-choice", top_k=2).double()
    x = rows(T + 1).double().requires_grad_()
    out = layer(x)
    out.square().sum().backward()
    found = {name: value.grad.clone() for name, value in layer.named_parameters()}
    found["x"] = x.grad.clone()
    layer.zero_grad()
    x.grad = None
    affinities = (x @ layer.router.weight[0]).softmax(-1)
    count = -(-(T + 1) * 2 // N)
    total = torch.zeros_like(x)
    for i in range(N):
        best = affinities[:, i].argsort(descending=True)[:count]
        mask = torch.zeros(T + 1, 1, dtype=x.dtype)
        mask[best] = 1.0
        total = total + mask * affinities[:, i : i + 1] * layer.experts.every(x)[i]
    torch.testing.assert_close(out, total)
    total.square().sum().backward()
    expected = {name: value.grad for name, value in layer.named_parameters()} | {"x": x.grad}
    torch.testing.assert_close(found, expected)
    assert (layer.last.load - 1 / N).abs().max() < 1e-6


def test_what_has_no_meaning_where_experts_choose_is_refused():
    for more in ({"balance": 0.1}, {"capacity": 1.0}):
        with pytest.raises(ValueError, match="where experts choose rows"):
            SMoE(**SIZES, router="expert-choice", **more)
    with pytest.raises(ValueError, match="where experts choose rows"):
        CompeteSMoE(**SIZES, router="expert-choice")
    with pytest.raises(ValueError, match="a competition chooses"):
        CompetitionMoE(**SIZES, norm_topk_prob=False)
    with pytest.raises(ValueError, match="must choose top_k experts for each row"):
        observe_routing(SMoE(**SIZES, router="expert-choice"), rows())


def test_a_bias_balances_without_a_loss():
    """Rows are near each other, so that one expert has most of them; the router itself stays.

    The bias ends in a band of its step around the balance, so that the step is small.
    """
    torch.manual_seed(0)
    layer = SMoE(MLPExperts(N, D, 16, D), BiasBalancedRouter(D, N, rate=0.002), top_k=1)
    x = torch.ones(512, D) + 0.3 * rows(512)
    layer(x)
    start = layer.last.load.max()
    weight = layer.router.weight.detach().clone()
    for step in range(300):
        before_step(layer, step, 300)
        layer(x)
        auxiliary_loss(layer)
    assert layer.last.load.max() < 0.5 * (1 / N + start)
    assert layer.last.load.max() < 1.3 / N
    torch.testing.assert_close(layer.router.weight, weight)
    # Weights are those of the scores: the bias chooses alone.
    decision = layer.decide(x)
    torch.testing.assert_close(decision.weights, torch.ones(512, 1))
    layer.eval()
    before_step(layer, 0, 1)
    bias = layer.router.bias.clone()
    layer(x)
    before_step(layer, 0, 1)
    torch.testing.assert_close(layer.router.bias, bias)


NEW = {
    "expert-choice": {"router": "expert-choice", "z": 0.5},
    "bias-balanced": {"router": "bias-balanced", "balance": 0.5},
    "norm_topk_prob": {"norm_topk_prob": False, "balance": 0.5},
    "gated": {"gated": True, "balance": 0.5},
}


@pytest.mark.filterwarnings("ignore")  # the compiler's own
@pytest.mark.parametrize("way", [way for way in WAYS if way != "inductor"])
@pytest.mark.parametrize("option", NEW)
def test_a_way_to_run_a_layer_changes_nothing(option, way):
    case = Case.__new__(Case)
    torch.manual_seed(0)
    case.layer, case.masked = SMoE(**SIZES, top_k=2, **NEW[option]), False
    case.option, case.training = "plain", True
    expected = case.answer(copy.deepcopy(case.layer))
    found = WAYS[way](case)
    told = {n: value.detach() for n, value in found.items() if value is not None}
    wanted = {n: value.detach() for n, value in expected.items() if value is not None}
    torch.testing.assert_close(told, wanted, rtol=1e-4, atol=1e-5)


def test_masked_rows_are_chosen_by_no_expert():
    layer = SMoE(**SIZES, router="expert-choice")
    x, mask = rows(), torch.arange(T) % 3 > 0
    out = layer(x, mask=mask)
    torch.testing.assert_close(out[mask], layer(x[mask]))
    assert not out[~mask].any()


def test_the_sizes_of_an_empty_batch():
    layer = nn.Sequential(SMoE(**SIZES, router="expert-choice"))
    assert layer(torch.zeros(0, D)).shape == (0, D)
    assert isinstance(layer[0].router, ExpertChoiceRouter)
