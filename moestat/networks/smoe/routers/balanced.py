"""A router that is balanced by a bias in place of a loss (Wang et al., 2024)."""

from __future__ import annotations

import torch
from torch import Tensor

from moestat.base.door import door
from moestat.base.validate import real_in
from moestat.networks.smoe.routers.softmax import SoftmaxRouter

__all__ = ["BiasBalancedRouter"]


class BiasBalancedRouter(SoftmaxRouter):
    """The scores of `SoftmaxRouter`; experts with few rows are preferred by a bias.

    The bias is added to the softmax of the scores where experts are chosen, and is no part of
    their weights, so that no gradient disturbs the loss of the task.  `before_step` moves it by
    `rate` towards the experts that had fewer rows than the mean since the last call; without
    `before_step` it stays.

    Parameters
    ----------
    n_inputs, n_experts : int
        Width of a row, and N.
    rate : float
        Step of the bias, in units of probability.
    device, dtype
        Of the parameters, as `torch.nn.Linear` takes them.

    Notes
    -----
    Wang et al. (2024), Algorithm 1, with their rate 0.001; their gate is a sigmoid, here it is the
    softmax of all experts.  In several processes the counts are summed over all of them.
    """

    bias: Tensor
    counts: Tensor

    @door()
    def __init__(
        self,
        n_inputs: int,
        n_experts: int,
        rate: float = 0.001,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(n_inputs, n_experts, device, dtype)
        self.rate = real_in("rate", rate, 0.0)
        self.register_buffer("bias", torch.zeros(n_experts, device=device))
        self.register_buffer("counts", torch.zeros(n_experts, device=device), persistent=False)

    def select(self, scores: Tensor, top_k: int, shift: int = 0) -> tuple[Tensor, Tensor]:
        """See `Router.select`."""
        kind = torch.promote_types(scores.dtype, torch.float32)
        preferred = scores.detach().to(kind).softmax(-1) + self.bias
        chosen = preferred.topk(top_k + shift, dim=-1).indices[:, shift:]
        if self.training:
            flat = chosen.reshape(-1)
            ones = torch.ones_like(flat, dtype=self.counts.dtype)
            self.counts += torch.zeros_like(self.counts).scatter_add(0, flat, ones)
        return scores.gather(1, chosen), chosen

    def before_step(self, step: int, n_steps: int) -> None:
        """Move the bias by the rows of the experts since the last call."""
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            torch.distributed.all_reduce(self.counts)
        with torch.no_grad():
            self.bias += self.rate * torch.sign(self.counts.mean() - self.counts)
            self.counts.zero_()
