"""Experts that choose their rows (Zhou et al., 2022)."""

from __future__ import annotations

import torch
from torch import Tensor

from moestat.base.door import door
from moestat.networks.smoe.routers.softmax import SoftmaxRouter

__all__ = ["ExpertChoiceRouter"]


class ExpertChoiceRouter(SoftmaxRouter):
    """The scores of `SoftmaxRouter`; every expert chooses the rows that suit it best.

    An expert answers ``ceil(T K / N)`` of the T rows of a pass, so that all experts have as many;
    a row is answered by K experts on average, by none or by all.  The choice depends on the other
    rows of the pass: in a causal language model a token would see later ones.

    Parameters
    ----------
    n_inputs, n_experts : int
        Width of a row, and N.
    device, dtype
        Of the parameters, as `torch.nn.Linear` takes them.

    Notes
    -----
    Zhou et al. (2022), Sec. 3.2: weights are the softmax of the scores over all experts, and do
    not sum to 1 over the experts of a row.
    """

    ranks_all = False
    chooses_rows = True

    @door()
    def rows_of_experts(self, scores: Tensor, top_k: int) -> tuple[Tensor, Tensor]:
        """Weights (N, C) and rows (N, C) of the experts, of scores (T, N)."""
        rows, n_experts = scores.shape
        count = -(-rows * top_k // n_experts)
        weights, chosen = scores.softmax(-1).T.topk(count, dim=-1)
        return weights, chosen

    def select(self, scores: Tensor, top_k: int, shift: int = 0) -> tuple[Tensor, Tensor]:
        """Weights (T, N) of all experts, 0 where a row was not chosen, in the order of experts."""
        weights, rows = self.rows_of_experts(scores, top_k)
        table = torch.zeros_like(scores.T, dtype=weights.dtype).scatter(1, rows, weights)
        return table.T, torch.arange(self.n_experts, device=scores.device).expand_as(scores)
