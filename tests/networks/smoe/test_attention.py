import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from moestat.model.attention import (
    attention_row,
    length_bias,
    sigmoid_attention,
    softmax_attention,
)
from moestat.networks.smoe.attention import SelfAttention, SigmoidAttention, SoftmaxAttention

N_TOKENS, WIDTH = 5, 4


def plain(kind, n_heads=1, **extra):
    torch.manual_seed(0)
    options = {"causal": False, "alibi": False, "qk_norm": False, **extra}
    module = kind(WIDTH, n_heads, **options).double()
    tokens = torch.randn(2, N_TOKENS, WIDTH, dtype=torch.float64)
    matrices = [m.detach().numpy() for m in (module.queries, module.keys, module.values)]
    return module, tokens, matrices


@pytest.mark.parametrize("n_heads", [1, 2])
def test_modules_are_the_attention_of_the_library(n_heads):
    for kind, function, bias in (
        (SigmoidAttention, sigmoid_attention, {"bias": length_bias(N_TOKENS)}),
        (SoftmaxAttention, softmax_attention, {}),
    ):
        module, tokens, (Q, K, V) = plain(kind, n_heads)
        found = module.heads(tokens).detach().numpy()
        for head in range(n_heads):
            expected = function(tokens.numpy(), Q[head], K[head], V[head], **bias)
            np.testing.assert_allclose(found[:, head], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("kind", "name"), [(SigmoidAttention, "sigmoid"), (SoftmaxAttention, "softmax")]
)
def test_rows_are_mixtures_of_experts(kind, name):
    module, tokens, (Q, K, V) = plain(kind)
    bias = length_bias(N_TOKENS) if name == "sigmoid" else 0.0
    found = module.heads(tokens).detach().numpy()[:, 0]
    for row in range(N_TOKENS):
        mixture = attention_row(Q[0], K[0], V[0], N_TOKENS, row, name, bias)
        np.testing.assert_allclose(found[:, row], mixture(tokens.numpy()), rtol=0, atol=1e-10)


@pytest.mark.parametrize("kind", [SigmoidAttention, SoftmaxAttention])
def test_tokens_do_not_see_what_follows(kind):
    torch.manual_seed(1)
    module = kind(WIDTH, 2)
    tokens = torch.randn(1, N_TOKENS, WIDTH)
    changed = tokens.clone()
    changed[:, -1] += 1.0
    assert torch.equal(module(tokens)[:, :-1], module(changed)[:, :-1])
    assert not torch.equal(module(tokens)[:, -1], module(changed)[:, -1])


def test_scores_fall_with_distance_at_the_slope_of_the_head():
    module, _, _ = plain(SoftmaxAttention, 2, alibi=True)
    with torch.no_grad():
        module.queries.zero_()
        module.values.copy_(torch.eye(WIDTH, dtype=torch.float64).view(WIDTH, 2, 2).transpose(0, 1))
    weights = [math.exp(-distance * slope) for slope in (1 / 16, 1 / 256) for distance in (0, 1)]
    tokens = torch.tensor([[[1.0, 0, 1, 0], [0, 1.0, 0, 1]]], dtype=torch.float64)
    first = module.heads(tokens)[0, :, 0, 0]
    expected = [weights[0] / (weights[0] + weights[1]), weights[2] / (weights[2] + weights[3])]
    np.testing.assert_allclose(first.detach().numpy(), expected, rtol=1e-12)


def test_norms_make_scores_blind_to_the_size_of_queries():
    torch.manual_seed(2)
    module = SoftmaxAttention(WIDTH, 2)
    tokens = 10.0 * torch.randn(1, N_TOKENS, WIDTH)  # far above the norms' floor
    before = module(tokens)
    with torch.no_grad():
        module.queries.mul_(100.0)
    torch.testing.assert_close(module(tokens), before, rtol=1e-3, atol=1e-4)


def test_heads_divide_the_width():
    with pytest.raises(ValueError, match="n_heads must divide the width 4, got 3"):
        SelfAttention(4, 3)
