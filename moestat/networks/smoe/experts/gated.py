"""Experts with gated hidden units."""

from __future__ import annotations

from torch import Tensor

from moestat.networks.smoe.experts.stacked import (
    Product,
    StackedExperts,
    activation_called,
    stacked_matrix,
)

__all__ = ["GatedExperts"]


class GatedExperts(StackedExperts):
    """``g_i(x) = (phi(x A_i) * (x C_i)) B_i``, element by element (Shazeer (2020)).

    Parameters
    ----------
    n_experts, n_inputs, n_hidden, n_outputs : int
        N and the widths; A_i and C_i are (n_inputs, n_hidden), B_i (n_hidden, n_outputs).
    activation : str
        phi, a name in `moestat.networks.smoe.experts.stacked.ACTIVATIONS`.
    """

    def __init__(
        self,
        n_experts: int,
        n_inputs: int,
        n_hidden: int,
        n_outputs: int,
        activation: str = "silu",
    ) -> None:
        super().__init__(n_experts, n_inputs, n_outputs)
        self.activation = activation_called(activation)
        self.inner = stacked_matrix(n_experts, n_inputs, n_hidden)
        self.gate = stacked_matrix(n_experts, n_inputs, n_hidden)
        self.outer = stacked_matrix(n_experts, n_hidden, n_outputs)

    def run(self, rows: Tensor, product: Product) -> Tensor:
        """See `StackedExperts.run`."""
        hidden = self.activation(product(rows, self.inner)) * product(rows, self.gate)
        return product(hidden, self.outer)
