"""Blocks of other libraries become layers of experts that begin with their outputs."""

import copy

import pytest

torch = pytest.importorskip("torch")

from torch import nn

from moestat.networks.smoe import SMoE, auxiliary_loss, upcycle
from moestat.networks.smoe.upcycling import PROJECTIONS

D, H = 8, 20


class Gated(nn.Module):
    """A gated block with maps of such names."""

    def __init__(self, names, bias=False, act=nn.functional.silu, dropout=0.0):
        super().__init__()
        self.names = names
        if len(names) == 2:
            setattr(self, names[0], nn.Linear(D, 2 * H, bias=bias))
        else:
            for name in names[:-1]:
                setattr(self, name, nn.Linear(D, H, bias=bias))
        setattr(self, names[-1], nn.Linear(H, D, bias=bias))
        self.act_fn = act
        if dropout:
            self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        *inner, outer = (getattr(self, name) for name in self.names)
        parts = inner[0](x).chunk(2, dim=-1) if len(inner) == 1 else (inner[0](x), inner[1](x))
        return outer(self.act_fn(parts[0]) * parts[1])


class Layer(nn.Module):
    """A decoder layer as those of Llama, without its attention."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(D)
        self.mlp = Gated(PROJECTIONS[0], act=nn.SiLU())

    def forward(self, x):
        return x + self.mlp(self.norm(x))


@pytest.mark.parametrize("names", PROJECTIONS, ids=lambda names: names[0])
@pytest.mark.parametrize("bias", [False, True], ids=["", "bias"])
@pytest.mark.parametrize("act", [nn.SiLU(), nn.GELU(approximate="tanh")], ids=["silu", "gelu"])
def test_a_block_with_the_projections_of_a_gated_mlp(names, bias, act):
    torch.manual_seed(0)
    block = Gated(names, bias, act).double().eval()
    layer = upcycle(block, n_experts=5, top_k=3, balance=0.1)
    x = torch.randn(4, 7, D, dtype=torch.float64)
    torch.testing.assert_close(layer(x), block(x), rtol=0, atol=1e-12)
    assert layer.experts.n_experts == 5
    assert layer.top_k == 3
    assert not layer.training
    assert {value.dtype for value in layer.parameters()} == {torch.float64}


def test_a_whole_model_by_one_call():
    torch.manual_seed(0)
    model = nn.ModuleDict({"layers": nn.Sequential(*(Layer() for _ in range(4)))})
    x = torch.randn(3, 5, D)
    before = model["layers"](x)
    some = upcycle(copy.deepcopy(model), n_experts=4, every=2)
    kinds = [type(layer.mlp) for layer in some["layers"]]
    assert kinds == [Gated, SMoE, Gated, SMoE]
    torch.testing.assert_close(some["layers"](x), before, rtol=0, atol=1e-6)
    assert upcycle(model, n_experts=4, balance=0.01) is model
    after = model["layers"](x)
    torch.testing.assert_close(after, before, rtol=0, atol=1e-6)
    (after.square().mean() + auxiliary_loss(model)).backward()
    assert all(value.grad is not None for value in model.parameters())


def test_dropout_of_the_block_is_that_of_the_experts():
    layer = upcycle(Gated(PROJECTIONS[2], dropout=0.3), n_experts=2, top_k=1)
    assert layer.experts.dropout.p == 0.3


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"norm_topk_prob": False}, "must sum to 1"),
        ({"router": "expert-choice"}, "must sum to 1"),
        ({"shared": nn.Linear(D, D)}, "shared: the outputs"),
        ({"n_experts": 0}, "n_experts must be an integer >= 1"),
        ({"every": 0}, "every must be an integer >= 1"),
    ],
)
def test_what_would_change_the_outputs_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        upcycle(nn.Sequential(Layer()), **{"n_experts": 4, **given})


def test_a_model_without_such_a_block_is_refused_with_the_names():
    with pytest.raises(ValueError, match="gate_proj, up_proj, down_proj; w1, w3, w2"):
        upcycle(nn.Sequential(nn.Linear(D, D)), n_experts=2)
    with pytest.raises(ValueError, match="sparse: n_experts and options"):
        upcycle(Layer(), Layer(), n_experts=2)


CONFIGURATIONS = ("Llama", "Mistral", "Qwen2", "Gemma", "Phi3")


@pytest.mark.parametrize("name", CONFIGURATIONS)
@pytest.mark.filterwarnings("ignore")
def test_a_model_of_transformers(name):
    """A tiny random one: the logits of the dense model, and gradients of all experts' inputs."""
    transformers = pytest.importorskip("transformers")
    config = getattr(transformers, f"{name}Config")(
        vocab_size=50,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        pad_token_id=0,
    )
    torch.manual_seed(0)
    model = getattr(transformers, f"{name}ForCausalLM")(config).eval()
    tokens = torch.randint(1, 50, (2, 9))
    before = model(tokens).logits
    upcycle(model, n_experts=4, top_k=2, balance=0.01)
    torch.testing.assert_close(model(tokens).logits, before, rtol=0, atol=1e-6)
    model.train()
    loss = model(tokens, labels=tokens).loss + auxiliary_loss(model)
    loss.backward()
    routers = [v.grad for n, v in model.named_parameters() if ".router." in n]
    assert len(routers) == 2
    assert all(grad is not None and grad.isfinite().all() for grad in routers)
