"""A block of one expert, in the place where a layer of experts will stand."""

from __future__ import annotations

from torch import Tensor, nn

from moestat.base.door import door
from moestat.networks.smoe.experts import StackedExperts

__all__ = ["DenseBlock"]


class DenseBlock(nn.Module):
    """One expert that answers every row: the block that a layer of experts replaces.

    Parameters
    ----------
    experts : StackedExperts
        One expert.
    """

    @door()
    def __init__(self, experts: StackedExperts) -> None:
        super().__init__()
        self.experts = experts

    def forward(self, x: Tensor, ids: Tensor | None = None) -> Tensor:
        """Outputs (..., D) of inputs (..., d)."""
        rows = x.reshape(-1, x.shape[-1])
        return self.experts.every(rows)[0].reshape(*x.shape[:-1], -1)
