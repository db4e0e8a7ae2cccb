"""Rows of self-attention are mixtures of experts: the identity, both ways."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from moestat.model.attention import (
    attention_row,
    length_bias,
    row_weights,
    sigmoid_attention,
    softmax_attention,
)


def random_weights(seed, d=3, d_k=2, d_v=4):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(d, d_k)), rng.normal(size=(d, d_k)), rng.normal(size=(d, d_v)), rng


def plain(kind, tokens, W_Q, W_K, W_V, bias):
    """Attention written out with queries, keys and values, one row at a time."""
    Q, K, V = tokens @ W_Q, tokens @ W_K, tokens @ W_V
    out = np.zeros((len(tokens), W_V.shape[1]))
    for i in range(len(tokens)):
        s = np.array([Q[i] @ K[j] for j in range(len(tokens))]) / np.sqrt(W_Q.shape[1]) + bias
        w = 1 / (1 + np.exp(-s)) if kind == "sigmoid" else np.exp(s) / np.exp(s).sum()
        out[i] = w @ V
    return out


@pytest.mark.parametrize("kind", ["sigmoid", "softmax"])
@pytest.mark.parametrize("n_tokens", [1, 2, 5])
def test_a_row_is_a_mixture_of_experts(kind, n_tokens):
    W_Q, W_K, W_V, rng = random_weights(n_tokens)
    tokens = rng.normal(size=(20, n_tokens, 3))
    bias = length_bias(n_tokens) if kind == "sigmoid" else 0.0
    whole = (
        sigmoid_attention(tokens, W_Q, W_K, W_V, bias)
        if kind == "sigmoid"
        else softmax_attention(tokens, W_Q, W_K, W_V)
    )
    exact = np.array([plain(kind, x, W_Q, W_K, W_V, bias) for x in tokens])
    assert np.allclose(whole, exact, rtol=0, atol=1e-12)
    for i in range(n_tokens):
        row = attention_row(W_Q, W_K, W_V, n_tokens, i, kind, bias)
        assert np.allclose(row(tokens), exact[:, i], rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["sigmoid", "softmax"])
@pytest.mark.parametrize("row", [0, 2])
def test_the_way_back(kind, row):
    W_Q, W_K, W_V, rng = random_weights(7)
    bias = length_bias(4) if kind == "sigmoid" else 0.0
    mixture = attention_row(W_Q, W_K, W_V, 4, row, kind, bias)
    if kind == "softmax":
        pinned = np.array([mixture.family.pin(theta) for theta in mixture.theta])
        assert np.abs(pinned - mixture.theta).max() > 0.1
        mixture = replace(mixture, theta=pinned)
    found = row_weights(mixture)
    assert np.allclose(found.scores, W_Q @ W_K.T / np.sqrt(2), rtol=0, atol=1e-12)
    assert np.allclose(found.values, W_V, rtol=0, atol=1e-12)
    assert found.bias == pytest.approx(bias, abs=1e-12)
    again = attention_row(np.sqrt(3) * found.scores, np.eye(3), found.values, 4, row, kind, bias)
    tokens = rng.normal(size=(6, 4, 3))
    assert np.allclose(again(tokens), mixture(tokens), rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["sigmoid", "softmax"])
@pytest.mark.parametrize("block", ["A", "c", "alpha", "beta"])
def test_other_mixtures_are_no_rows_of_attention(kind, block):
    W_Q, W_K, W_V, _ = random_weights(1)
    mixture = attention_row(W_Q, W_K, W_V, 3, 1, kind)
    theta = mixture.theta.copy()
    theta[:, mixture.family.blocks[block].ravel()[0]] += 1e-3
    with pytest.raises(ValueError, match="structure of a row of attention"):
        row_weights(replace(mixture, theta=theta))


def test_arguments_are_checked():
    W_Q, W_K, W_V, rng = random_weights(0)
    with pytest.raises(ValueError, match="W_K must have shape"):
        sigmoid_attention(np.zeros((2, 3)), W_Q, W_K[:2], W_V)
    with pytest.raises(ValueError, match="tokens must have shape"):
        softmax_attention(np.zeros(3), W_Q, W_K, W_V)
    with pytest.raises(ValueError, match=r"row must be in 0\.\.1"):
        attention_row(W_Q, W_K, W_V, 2, 2)
    with pytest.raises(ValueError, match="kind must be"):
        attention_row(W_Q, W_K, W_V, 2, 0, "hard")
    with pytest.raises(ValueError, match="tokens must have shape"):
        attention_row(W_Q, W_K, W_V, 2)(rng.normal(size=(3, 3)))
    with pytest.raises(ValueError, match="symmetric part"):
        row_weights(attention_row(W_Q, W_K, W_V, 1))
