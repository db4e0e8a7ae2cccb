"""The linear router of Shazeer et al. (2017)."""

from __future__ import annotations

import torch
from torch import Tensor

from moestat.base.door import door
from moestat.networks.smoe.experts.stacked import stacked_matrix
from moestat.networks.smoe.routers.router import Router

__all__ = ["SoftmaxRouter"]


class SoftmaxRouter(Router):
    """Scores ``x' W_r``.

    Parameters
    ----------
    n_inputs, n_experts : int
        Width of a row, and N.
    device, dtype
        Of the parameters, as `torch.nn.Linear` takes them.

    Notes
    -----
    Nguyen et al. (2025), Sec. 2.1.
    """

    @door()
    def __init__(
        self,
        n_inputs: int,
        n_experts: int,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(n_experts)
        self.weight = stacked_matrix(1, n_inputs, n_experts, device, dtype)

    def forward(self, rows: Tensor, ids: Tensor | None = None) -> Tensor:
        """See `Router.forward`."""
        return torch.mm(rows, self.weight[0])
