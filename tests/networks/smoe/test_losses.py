import pytest

torch = pytest.importorskip("torch")

from moestat.networks.smoe.compete import contest, normalised
from moestat.networks.smoe.dispatch import multiply_blocks
from moestat.networks.smoe.experts import GatedExperts, MLPExperts
from moestat.networks.smoe.losses import distillation_loss, diversity_loss
from moestat.networks.smoe.responses import RESPONSES


def test_products_of_blocks_have_the_right_gradients():
    torch.manual_seed(0)
    rows = torch.randn(6, 3, dtype=torch.float64, requires_grad=True)
    experts = MLPExperts(3, 3, 4, 2, activation="tanh", bias=True).double()
    counts = torch.tensor([2, 0, 4])
    assert torch.autograd.gradcheck(lambda r: experts(r, counts), (rows,))

    def operator(r, m):
        return multiply_blocks(r, m, counts)

    assert torch.autograd.gradcheck(operator, (rows, experts.inner))
    (slope,) = torch.autograd.grad(experts(rows, counts).sum(), experts.outer)
    assert (slope[1] == 0).all()
    assert (slope[0] != 0).any()
    assert (slope[2] != 0).any()


@pytest.mark.parametrize("kind", [MLPExperts, GatedExperts])
@pytest.mark.parametrize("counts", [[3, 0, 9], [12, 0, 0], [4, 4, 4]])
def test_products_in_one_call_are_those_one_by_one(kind, counts, monkeypatch):
    torch.manual_seed(0)
    experts, sizes = kind(3, 4, 8, 12, bias=True), torch.tensor(counts)
    rows = torch.randn(12, 4, requires_grad=True)

    def found():
        leaves = [rows, *experts.parameters()]
        out = experts(rows, sizes)
        plain = torch.autograd.grad(out.sum(), leaves, retain_graph=True)
        first = torch.autograd.grad(out.square().sum(), leaves, create_graph=True)
        second = torch.autograd.grad(first[0].square().sum(), leaves, allow_unused=True)
        return [out, *plain, *first, *second]

    assert experts._fit_together(rows)
    together = found()
    monkeypatch.setattr("moestat.networks.smoe.experts.stacked._CACHED", 0)
    assert not experts._fit_together(rows)
    torch.testing.assert_close(together, found())


def test_no_diversity_is_asked_of_one_winner():
    assert diversity_loss(torch.randn(4, 1, 3)).item() == 0.0


def test_equal_outputs_have_the_largest_diversity_loss():
    assert diversity_loss(torch.ones(4, 3, 5)).item() == pytest.approx(1.0)


def test_silent_experts_share():
    assert normalised(torch.zeros(1, 2)).tolist() == [[0.5, 0.5]]
    outputs = -torch.ones(3, 1, 4)
    responses = RESPONSES["relu"](outputs).T
    assert contest(outputs, responses, 2).output.tolist() == [[-1.0] * 4]


@pytest.mark.parametrize("response", RESPONSES)
def test_weights_of_the_winners_are_shares(response):
    outputs = torch.linspace(-20, 20, 60).reshape(4, 3, 5)
    weights = contest(outputs, RESPONSES[response](outputs).T, 3).affinities
    assert (weights >= 0).all()
    torch.testing.assert_close(weights.sum(1), torch.ones(3))


def test_alpha_weighs_winners_alone():
    routed = torch.tensor([[0.2, 0.3, 0.5]])
    competed = torch.tensor([[0.6, 0.4, 0.0]])
    won = torch.tensor([[0, 1]])
    more, less = (distillation_loss(routed, competed, won, alpha) for alpha in (1.0, 0.0))
    assert (more - less).item() == pytest.approx((0.4**2 + 0.1**2) / 2)
