"""What the experts of a layer share: stacked matrices, and two ways to run them."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from moestat.networks.smoe.dispatch import grouped_product

__all__ = ["ACTIVATIONS", "Product", "StackedExperts", "activation_called", "stacked_matrix"]

Product = Callable[[Tensor, Tensor], Tensor]

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": functional.gelu,
    "relu": functional.relu,
    "silu": functional.silu,
    "softplus": functional.softplus,
    "tanh": torch.tanh,
}
"""Activations of hidden units, by name."""


def activation_called(name: str) -> Callable[[Tensor], Tensor]:
    """The activation of that name."""
    if name not in ACTIVATIONS:
        known = ", ".join(map(repr, ACTIVATIONS))
        raise ValueError(f"activation must be one of {known}, got {name!r}")
    return ACTIVATIONS[name]


def stacked_matrix(n_experts: int, n_in: int, n_out: int) -> nn.Parameter:
    """Matrices (N, n_in, n_out), uniform on +-1 / sqrt(n_in) as those of `torch.nn.Linear`."""
    bound = 1 / math.sqrt(n_in)
    return nn.Parameter(torch.empty(n_experts, n_in, n_out).uniform_(-bound, bound))


class StackedExperts(nn.Module):
    """N experts of one shape.

    Parameters
    ----------
    n_experts : int
        N.
    n_inputs, n_outputs : int
        Widths of a row and of an expert's output.
    """

    def __init__(self, n_experts: int, n_inputs: int, n_outputs: int) -> None:
        super().__init__()
        self.n_experts, self.n_inputs, self.n_outputs = n_experts, n_inputs, n_outputs

    def run(self, rows: Tensor, product: Product) -> Tensor:
        """The experts on `rows`, whose products with stacked matrices are `product`."""
        raise NotImplementedError

    def forward(self, rows: Tensor, counts: list[int]) -> Tensor:
        """Outputs (R, D) of rows that stand in blocks, `counts[i]` of them for expert i."""
        return self.run(rows, partial(grouped_product, counts=counts))

    def every(self, rows: Tensor) -> Tensor:
        """Outputs (N, T, D) of every expert on every row."""
        return self.run(rows, torch.matmul)
