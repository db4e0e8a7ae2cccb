"""The cosine router of XMoE (Chi et al., 2022)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from moestat.base.door import door
from moestat.networks.smoe.experts.stacked import stacked_matrix
from moestat.networks.smoe.routers.router import Router

__all__ = ["CosineRouter"]

_TEMPERATURE = 0.3


class CosineRouter(Router):
    """Cosines of a projection of the row with one direction per expert, over a temperature.

    Parameters
    ----------
    n_inputs, n_experts : int
        Width of a row, and N; the projection has ``max(2, N // 2)`` dimensions.

    Notes
    -----
    Chi et al. (2022), Sec. 3.2; the temperature is learned, its start 0.3 is ours.
    """

    @door()
    def __init__(self, n_inputs: int, n_experts: int) -> None:
        super().__init__(n_experts)
        width = max(2, n_experts // 2)
        self.projection = stacked_matrix(1, n_inputs, width)
        self.directions = nn.Parameter(torch.randn(width, n_experts))
        self.log_temperature = nn.Parameter(torch.tensor(_TEMPERATURE).log())

    def forward(self, rows: Tensor, ids: Tensor | None = None) -> Tensor:
        """See `Router.forward`."""
        place = functional.normalize(torch.mm(rows, self.projection[0]), dim=1)
        cosines = torch.mm(place, functional.normalize(self.directions, dim=0))
        return cosines / self.log_temperature.exp()
