"""A small decoder: pre-norm blocks of self-attention and of a layer of experts."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from moestat.base.door import door
from moestat.base.validate import positive_int
from moestat.networks.smoe.attention import RMSNorm, SigmoidAttention, SoftmaxAttention
from moestat.networks.smoe.training.blocks import make_block
from moestat.networks.smoe.training.settings import Settings

__all__ = ["LanguageModel"]

_ATTENTION = {"softmax": SoftmaxAttention, "sigmoid": SigmoidAttention}


class _Block(nn.Module):
    @door()
    def __init__(self, settings: Settings, n_tokens: int) -> None:
        super().__init__()
        width = settings.width
        self.norms = nn.ModuleList([RMSNorm(width), RMSNorm(width)])
        self.attention = _ATTENTION[settings.attention](width, settings.n_heads)
        self.feed_forward = make_block(settings, width, width, n_tokens)

    def forward(self, x: Tensor, ids: Tensor) -> Tensor:
        x = x + self.attention(self.norms[0](x))
        return x + self.feed_forward(self.norms[1](x), ids)


class LanguageModel(nn.Module):
    """Logits of the next token.

    Parameters
    ----------
    settings : Settings
        Sizes, attention and the method of the feed-forward blocks.
    n_tokens : int
        Size of the vocabulary.

    Notes
    -----
    Positions enter by ALiBi alone; queries and keys are normalised; norms are `RMSNorm`.
    """

    @door()
    def __init__(self, settings: Settings, n_tokens: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(positive_int("n_tokens", n_tokens), settings.width)
        blocks: Sequence[nn.Module] = [_Block(settings, n_tokens) for _ in range(settings.n_layers)]
        self.blocks = nn.ModuleList(blocks)
        self.norm = RMSNorm(settings.width)
        self.head = nn.Linear(settings.width, n_tokens, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        """Logits (B, n, V) of tokens (B, n)."""
        x = self.embedding(ids)
        for block in self.blocks:
            x = block(x, ids)
        return self.head(self.norm(x))
