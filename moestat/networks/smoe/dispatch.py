"""Rows sent to their experts by sorting, and products with them as operators of PyTorch's."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from moestat.base.door import door
from moestat.base.validate import positive_int

__all__ = [
    "Collected",
    "Plan",
    "Sent",
    "multiply_blocks",
    "multiply_groups",
    "plan_dispatch",
    "transforms",
]


class Plan(NamedTuple):
    """Where T rows with K experts each go.

    ``order`` (T K,) lists the pairs (row, choice) by expert, ``places`` (T, K) says where each
    pair stands in that list, ``counts`` (N,) how many pairs each expert has.
    """

    order: Tensor
    places: Tensor
    counts: Tensor


@door()
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
    flat, n_experts = chosen.reshape(-1), positive_int("n_experts", n_experts)
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


def transforms() -> bool:
    """Whether `torch.func` or forward mode differentiates: through PyTorch's operators alone."""
    if torch.compiler.is_compiling():
        return False
    active = torch._C._are_functorch_transforms_active()
    return active or torch.autograd.forward_ad._current_level >= 0


def multiply_groups(rows: Tensor, matrices: Tensor, counts: Tensor) -> Tensor:
    """`multiply_blocks` by PyTorch's product of groups."""
    ends = counts.cumsum(0).int()
    out = torch._grouped_mm(rows, matrices, ends)  # type: ignore[reportPrivateImportUsage]
    if out.requires_grad:
        out.register_hook(Tensor.contiguous)  # it takes no gradients with strides of zero
    return out


class Sent(torch.autograd.Function):
    """Rows (T, d) as the experts get them, (T K, d), by `row`, that of each pair of a plan.

    A plan is a permutation, so that the gradient is gathered, too: additions in place, which those
    of PyTorch's indexing are, take twice as long.
    """

    @staticmethod
    def forward(ctx: Any, rows: Tensor, plan: Plan, row: Tensor) -> Tensor:
        """Rows (T K, d)."""
        ctx.save_for_backward(row, *plan)
        return rows.index_select(0, row)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        """Sums over the K pairs of a row."""
        row, *saved = ctx.saved_tensors
        plan, gradient = Plan(*saved), gradients[0].contiguous()
        ones = gradient.new_ones(plan.places.shape)
        return Collected.apply(gradient, ones, plan, row), None, None  # type: ignore[return-value]


class Collected(torch.autograd.Function):
    """Sums (T, D) of answers (T K, D) in the order of a plan with weights (T, K)."""

    @staticmethod
    def forward(ctx: Any, answers: Tensor, weights: Tensor, plan: Plan, row: Tensor) -> Tensor:
        """Gathered, weighted and added in one pass over the answers."""
        ctx.save_for_backward(answers, weights, row, *plan)
        places = plan.places
        return functional.embedding_bag(places, answers, mode="sum", per_sample_weights=weights)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None]:
        """Gradients in the answers and in the weights."""
        answers, weights, row, order, places, _ = ctx.saved_tensors
        gradient = gradients[0].index_select(0, row)
        to_answers = gradient * weights.reshape(-1, 1).index_select(0, order)
        to_weights = (gradient * answers).sum(1)[places]
        return to_answers, to_weights, None, None
