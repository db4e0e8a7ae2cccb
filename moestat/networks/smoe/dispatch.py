"""Rows sent to their experts by sorting."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["Plan", "plan_dispatch"]


class Plan(NamedTuple):
    """Where T rows with K experts each go.

    ``order`` (T K,) lists the pairs (row, choice) by expert, ``places`` (T, K) says where each
    pair stands in that list, ``counts`` how many pairs each expert has.
    """

    order: Tensor
    places: Tensor
    counts: list[int]


@torch.compiler.disable
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
