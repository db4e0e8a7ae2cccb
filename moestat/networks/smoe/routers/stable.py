"""The router of StableMoE (Dai et al., 2022): trained first, then left as it is."""

from __future__ import annotations

from moestat.base.door import door
from moestat.base.validate import real_in
from moestat.networks.smoe.routers.softmax import SoftmaxRouter

__all__ = ["StableRouter"]


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
    Pham et al. (2024), Table 1.  StableMoE distils the router of the first stage into a smaller one
    that reads word embeddings; here the router itself is kept.
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
