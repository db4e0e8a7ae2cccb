"""Linear experts, the ones that the theory of competition has most to say about."""

from __future__ import annotations

from torch import Tensor

from moestat.base.door import door
from moestat.networks.smoe.experts.stacked import Product, StackedExperts, stacked_matrix

__all__ = ["LinearExperts"]


class LinearExperts(StackedExperts):
    """``g_i(x) = x A_i``; an intercept is a column of ones in x.

    Parameters
    ----------
    n_experts, n_inputs, n_outputs : int
        N and the widths.
    n_hidden : int, optional
        Not used: there are no hidden units.
    """

    @door()
    def __init__(
        self, n_experts: int, n_inputs: int, n_hidden: int | None = None, n_outputs: int = 1
    ) -> None:
        super().__init__(n_experts, n_inputs, n_outputs)
        self.slopes = stacked_matrix(n_experts, n_inputs, n_outputs)

    def run(self, rows: Tensor, product: Product) -> Tensor:
        """See `StackedExperts.run`."""
        return product(rows, self.slopes)
