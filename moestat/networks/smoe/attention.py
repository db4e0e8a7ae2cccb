"""Self-attention with softmax or sigmoid weights, ALiBi and normalised queries and keys."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from moestat.base.door import door
from moestat.base.validate import positive_int
from moestat.networks.smoe.experts.stacked import stacked_matrix

__all__ = ["RMSNorm", "SelfAttention", "SigmoidAttention", "SoftmaxAttention", "alibi_slopes"]


class RMSNorm(nn.Module):
    """``g x / sqrt(mean(x^2) + 1e-6)`` over the last axis (Zhang and Sennrich, 2019).

    Parameters
    ----------
    width : int
        Length of the last axis.
    """

    @door()
    def __init__(self, width: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(positive_int("width", width)))

    @door()
    def forward(self, x: Tensor) -> Tensor:
        """The normalised x."""
        return nn.functional.rms_norm(x, (x.shape[-1],), self.gain, eps=1e-6)


@door()
def alibi_slopes(n_heads: int) -> Tensor:
    """Slopes ``2^(-8 h / H)`` of the heads h = 1..H (Press et al., 2022).

    Parameters
    ----------
    n_heads : int
        H.

    Returns
    -------
    Tensor of shape (H,)
        The slopes.

    Examples
    --------
    >>> alibi_slopes(4).tolist()
    [0.25, 0.0625, 0.015625, 0.00390625]
    """
    heads = torch.arange(1, positive_int("n_heads", n_heads) + 1)
    return 2.0 ** (-8.0 * heads / n_heads)


class SelfAttention(nn.Module):
    """Multi-head self-attention; subclasses say what the weights are.

    Parameters
    ----------
    width : int
        d, a multiple of the number of heads.
    n_heads : int
        H; queries, keys and values have d / H elements.
    causal : bool
        Whether a token sees itself and what comes before it alone.
    alibi : bool
        Whether scores fall with the distance of tokens, at `alibi_slopes`.
    qk_norm : bool
        Whether queries and keys are normalised by `RMSNorm`.

    Raises
    ------
    ValueError
        If the heads do not divide the width.
    """

    @door()
    def __init__(
        self,
        width: int,
        n_heads: int = 1,
        causal: bool = True,
        alibi: bool = True,
        qk_norm: bool = True,
    ) -> None:
        super().__init__()
        if positive_int("width", width) % positive_int("n_heads", n_heads):
            raise ValueError(f"n_heads must divide the width {width}, got {n_heads}")
        self.n_heads, self.causal, self.alibi = n_heads, causal, alibi
        head = width // n_heads
        self.queries = stacked_matrix(n_heads, width, head)
        self.keys = stacked_matrix(n_heads, width, head)
        self.values = stacked_matrix(n_heads, width, head)
        self.out = stacked_matrix(1, width, width)
        self.norms = nn.ModuleList([RMSNorm(head), RMSNorm(head)] if qk_norm else [])

    def weights(self, scores: Tensor) -> Tensor:
        """Weights of scores (..., n, n), minus infinity where a token is not seen."""
        raise NotImplementedError

    def heads(self, x: Tensor) -> Tensor:
        """Context vectors (B, H, n, d / H) of tokens (B, n, d)."""
        each = x.unsqueeze(1)
        queries, keys, values = each @ self.queries, each @ self.keys, each @ self.values
        if self.norms:
            queries, keys = self.norms[0](queries), self.norms[1](keys)
        scores = queries @ keys.transpose(-1, -2) / math.sqrt(queries.shape[-1])
        place = torch.arange(x.shape[1], device=x.device)
        distance = place.unsqueeze(1) - place
        if self.alibi:
            slopes = alibi_slopes(self.n_heads).to(x.device, scores.dtype)
            scores = scores - slopes[:, None, None] * distance.abs()
        if self.causal:
            scores = scores.masked_fill(distance < 0, -torch.inf)
        return self.weights(scores) @ values

    @door()
    def forward(self, x: Tensor) -> Tensor:
        """Outputs (B, n, d) of tokens (B, n, d)."""
        mixed = self.heads(x).transpose(1, 2).reshape(x.shape)
        return mixed @ self.out[0]


class SoftmaxAttention(SelfAttention):
    """Weights ``Softmax(Q K' / sqrt(d_k))``, Yan et al. (2025), eq. (1).

    Examples
    --------
    >>> SoftmaxAttention(8, n_heads=2)(torch.zeros(1, 5, 8)).shape
    torch.Size([1, 5, 8])
    """

    def weights(self, scores: Tensor) -> Tensor:
        """Softmax over what is seen."""
        return scores.softmax(-1)


class SigmoidAttention(SelfAttention):
    """Weights ``sigma(Q K' / sqrt(d_k) + b)`` with ``b = -log n``, Yan et al. (2025), eq. (85).

    n is the length of the sequence; the weights of a row need not sum to 1.

    Examples
    --------
    >>> SigmoidAttention(8, n_heads=2)(torch.zeros(1, 5, 8)).shape
    torch.Size([1, 5, 8])
    """

    def weights(self, scores: Tensor) -> Tensor:
        """The sigmoid of each score with the bias."""
        return torch.sigmoid(scores - math.log(scores.shape[-1]))
