"""Rows sent to their experts by sorting, and products of blocks of rows with stacked matrices."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

__all__ = ["Plan", "grouped_product", "plan_dispatch"]


class _GroupedProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, counts: list[int]) -> Tensor:
        ctx.save_for_backward(rows, weight)
        ctx.counts = counts
        out = rows.new_empty(len(rows), weight.shape[2])
        for block, matrix, target in zip(
            rows.split(counts), weight, out.split(counts), strict=True
        ):
            torch.mm(block, matrix, out=target)
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        rows, weight = ctx.saved_tensors
        gradient = gradients[0].contiguous()
        to_rows, to_weight = torch.empty_like(rows), torch.empty_like(weight)
        parts = (part.split(ctx.counts) for part in (rows, gradient, to_rows))
        for i, (block, slope, target) in enumerate(zip(*parts, strict=True)):
            torch.mm(slope, weight[i].T, out=target)
            torch.mm(block.T, slope, out=to_weight[i])
        return to_rows, to_weight, None


def grouped_product(rows: Tensor, weight: Tensor, counts: list[int]) -> Tensor:
    """Rows in blocks, each block times its own matrix.

    Parameters
    ----------
    rows : Tensor of shape (R, a)
        The rows of block i follow those of block i - 1.
    weight : Tensor of shape (N, a, b)
        One matrix per block.
    counts : list of int
        Rows in each block, of sum R.

    Returns
    -------
    Tensor of shape (R, b)
        The products, in the order of the rows.  Under autocast in its precision.

    Examples
    --------
    >>> rows, weight = torch.ones(3, 2), torch.stack([torch.eye(2), 2 * torch.eye(2)])
    >>> grouped_product(rows, weight, [1, 2])[:, 0].tolist()
    [1.0, 2.0, 2.0]
    """
    kind = rows.device.type
    if torch.is_autocast_enabled(kind):
        dtype = torch.get_autocast_dtype(kind)
        rows, weight = rows.to(dtype), weight.to(dtype)
    return _GroupedProduct.apply(rows.contiguous(), weight, counts)  # type: ignore[return-value]


class Plan(NamedTuple):
    """Where T rows with K experts each go.

    ``order`` (T K,) lists the pairs (row, choice) by expert, ``places`` (T, K) says where each
    pair stands in that list, ``counts`` how many pairs each expert has.
    """

    order: Tensor
    places: Tensor
    counts: list[int]


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
    places[order] = torch.arange(len(order), device=order.device)
    counts = torch.bincount(flat, minlength=n_experts).tolist()
    return Plan(order, places.view_as(chosen), counts)
