"""A block of one expert, in the place where a layer of experts will stand."""

from __future__ import annotations

from torch import Tensor, nn

from moestat.base.door import door
from moestat.base.validate import short
from moestat.networks.smoe.experts import StackedExperts

__all__ = ["DenseBlock"]


class DenseBlock(nn.Module):
    """One expert that answers every row: the block that a layer of experts replaces.

    Parameters
    ----------
    experts : StackedExperts
        One expert.

    Raises
    ------
    ValueError
        If it is none, or several.
    """

    @door()
    def __init__(self, experts: StackedExperts) -> None:
        super().__init__()
        if not isinstance(experts, StackedExperts) or experts.n_experts != 1:
            raise ValueError(f"experts must be those of a layer, one of them, got {short(experts)}")
        self.experts = experts

    @door()
    def forward(self, x: Tensor, ids: Tensor | None = None) -> Tensor:
        """Outputs (..., D) of inputs (..., d)."""
        rows = x.reshape(-1, x.shape[-1])
        return self.experts.every(rows)[0].reshape(*x.shape[:-1], -1)
