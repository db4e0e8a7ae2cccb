"""Rows sent to their experts by sorting, and products with them as operators of PyTorch's."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

__all__ = ["Grouped", "Plan", "multiply_blocks", "plan_dispatch"]


class Plan(NamedTuple):
    """Where T rows with K experts each go.

    ``order`` (T K,) lists the pairs (row, choice) by expert, ``places`` (T, K) says where each
    pair stands in that list, ``counts`` (N,) how many pairs each expert has.
    """

    order: Tensor
    places: Tensor
    counts: Tensor


def plan_dispatch(chosen: Tensor, n_experts: int) -> Plan:
    """Pairs (row, choice) sorted by expert.

    Parameters
    ----------
    chosen : Tensor of shape (T, K)
        Experts of each row.
    n_experts : int
        N.

    Returns
    -------
    Plan
        The order and its inverse.

    Examples
    --------
    >>> plan_dispatch(torch.tensor([[1], [0], [1]]), 2).order.tolist()
    [1, 0, 2]
    """
    flat = chosen.reshape(-1)
    order = flat.argsort(stable=True)
    places = torch.empty_like(order)
    places[order] = torch.arange(order.shape[0], device=order.device)
    counts = flat.new_zeros(n_experts).scatter_add(0, flat, torch.ones_like(flat))
    return Plan(order, places.view_as(chosen), counts)


def _products(rows: Tensor, matrices: Tensor, counts: Tensor) -> Tensor:
    parts = zip(rows.split(counts.tolist()), matrices.unbind(0), strict=True)
    return torch.cat([part @ matrix for part, matrix in parts])


def _outer_products(rows: Tensor, others: Tensor, counts: Tensor) -> Tensor:
    sizes = counts.tolist()
    parts = zip(rows.split(sizes), others.split(sizes), strict=True)
    return torch.stack([part.T @ other for part, other in parts])


def _keep(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


multiply_blocks = torch.library.custom_op("moestat::multiply_blocks", _products, mutates_args=())
"""Products (R, n) of rows (R, m) in blocks, `counts[i]` of them with matrix i of (N, m, n).

One operator, so that compiled and exported code needs no sizes of blocks.
"""
_outer_blocks = torch.library.custom_op("moestat::outer_blocks", _outer_products, mutates_args=())


@multiply_blocks.register_fake
def _like_products(rows: Tensor, matrices: Tensor, counts: Tensor) -> Tensor:
    return rows.new_empty(rows.shape[0], matrices.shape[2])


@_outer_blocks.register_fake
def _like_outer_products(rows: Tensor, others: Tensor, counts: Tensor) -> Tensor:
    return rows.new_empty(counts.shape[0], rows.shape[1], others.shape[1])


def _backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
    rows, matrices, counts = ctx.saved_tensors
    to_rows = multiply_blocks(gradient, matrices.transpose(1, 2), counts)
    return to_rows, _outer_blocks(rows, gradient, counts), None


multiply_blocks.register_autograd(_backward, setup_context=_keep)


def _grouped_mm(one: Tensor, other: Tensor, ends: Tensor) -> Tensor:
    return torch._grouped_mm(one, other, ends)  # type: ignore[reportPrivateImportUsage]


class Grouped(torch.autograd.Function):
    """`multiply_blocks` by PyTorch's product of groups, which takes no gradients but plain ones."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, matrices: Tensor, counts: Tensor) -> Tensor:
        """Products (R, n)."""
        _keep(ctx, (rows, matrices, counts), rows)
        return _grouped_mm(rows, matrices, counts.cumsum(0).int())

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        """Gradients in the rows and the matrices."""
        rows, matrices, counts = ctx.saved_tensors
        (gradient,) = gradients
        if torch.is_grad_enabled():  # gradients of the gradient are wanted
            to_rows = _products(gradient, matrices.transpose(1, 2), counts)
            return to_rows, _outer_products(rows, gradient, counts), None
        gradient, ends = gradient.contiguous(), counts.cumsum(0).int()
        to_rows = _grouped_mm(gradient, matrices.transpose(1, 2), ends)
        return to_rows, _grouped_mm(rows.T, gradient, ends), None
