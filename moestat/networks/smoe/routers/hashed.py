"""The router of hash layers (Roller et al., 2021): the token alone decides."""

from __future__ import annotations

import torch
from torch import Tensor

from moestat.base.door import door
from moestat.base.validate import positive_int
from moestat.networks.smoe.routers.router import Router

__all__ = ["HashRouter"]


class HashRouter(Router):
    """K experts per token of the vocabulary, drawn once; they have equal weights.

    Parameters
    ----------
    n_inputs, n_experts : int
        Width of a row, which is not read, and N.
    n_tokens : int
        Size of the vocabulary.
    top_k : int
        Experts per token.
    """

    ranks_all = False

    @door()
    def __init__(self, n_inputs: int, n_experts: int, n_tokens: int, top_k: int = 1) -> None:
        super().__init__(n_experts)
        keys = torch.rand(positive_int("n_tokens", n_tokens), n_experts)
        ranked = keys.argsort(dim=1)[:, : positive_int("top_k", top_k)]
        table = torch.full_like(keys, -torch.inf).scatter(1, ranked, 0.0)
        self.register_buffer("table", table)

    def forward(self, rows: Tensor, ids: Tensor | None = None) -> Tensor:
        """See `Router.forward`."""
        if ids is None:
            raise ValueError("ids is missing: a hash router reads the tokens, not their rows")
        return self.table[ids].to(rows.dtype)  # type: ignore[index]
