"""A random linear router that is never trained: SMoE-Dropout (Chen et al., 2023)."""

from __future__ import annotations

from moestat.base.door import door
from moestat.networks.smoe.routers.softmax import SoftmaxRouter

__all__ = ["FixedRouter"]


class FixedRouter(SoftmaxRouter):
    """The scores of `SoftmaxRouter` with random weights that stay; K stays, too.

    Parameters
    ----------
    n_inputs, n_experts : int
        Width of a row, and N.

    Notes
    -----
    Pham et al. (2024), Sec. 6.1, "SMoE-Fixed".
    """

    @door()
    def __init__(self, n_inputs: int, n_experts: int) -> None:
        super().__init__(n_inputs, n_experts)
        self.requires_grad_(False)
