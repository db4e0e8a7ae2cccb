"""The linear router of Shazeer et al. (2017), trained, never trained, or trained first."""

from __future__ import annotations

import torch
from torch import Tensor

from moestat.base.door import door
from moestat.base.validate import real_in
from moestat.networks.smoe.experts.stacked import stacked_matrix
from moestat.networks.smoe.routers.router import Router

__all__ = ["FixedRouter", "SoftmaxRouter", "StableRouter"]


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


class FixedRouter(SoftmaxRouter):
    """The scores of `SoftmaxRouter` with random weights that stay.

    Parameters
    ----------
    n_inputs, n_experts : int
        Width of a row, and N.

    Notes
    -----
    Pham et al. (2024), Sec. 6.1, "SMoE-Fixed"; SMoE-Dropout (Chen et al., 2023) with a K that
    stays, too.
    """

    @door()
    def __init__(self, n_inputs: int, n_experts: int) -> None:
        super().__init__(n_inputs, n_experts)
        self.requires_grad_(False)


class StableRouter(SoftmaxRouter):
    """The scores of `SoftmaxRouter`, trained in the first part of training only.

    Parameters
    ----------
    n_inputs, n_experts : int
        Width of a row, and N.
    first_stage : float
        Share of the steps in which the router is trained.

    Notes
    -----
    Pham et al. (2024), Table 1.  StableMoE (Dai et al., 2022) distils the router of the first stage
    into a smaller one that reads word embeddings; here the router itself is kept.
    """

    @door()
    def __init__(self, n_inputs: int, n_experts: int, first_stage: float = 0.1) -> None:
        super().__init__(n_inputs, n_experts)
        self.first_stage = real_in("first_stage", first_stage, 0.0, 1.0)

    def before_step(self, step: int, n_steps: int) -> None:
        """Stop training the router once the first stage is over."""
        trained = step < self.first_stage * n_steps
        self.requires_grad_(trained)
        if not trained:
            # An optimiser with a memory would move a parameter with a gradient of zero.
            self.weight.grad = None
