"""Sparse upcycling: a trained dense model becomes one of experts that begin as its copies."""

from __future__ import annotations

import torch
from torch import nn

from moestat.networks.smoe.build import DenseBlock
from moestat.networks.smoe.layer import SMoE

__all__ = ["upcycle"]


def upcycle(dense: nn.Module, sparse: nn.Module) -> None:
    """Give a model of experts the weights of a dense one.

    Parameters
    ----------
    dense : Module
        A trained model with blocks `DenseBlock`.
    sparse : Module
        A model that differs from it in its blocks alone, which are `SMoE`.  Every expert becomes
        a copy of the block in its place; routers stay as they are.

    Raises
    ------
    ValueError
        If the models do not fit.

    Notes
    -----
    Komatsuzaki et al. (2023); Nguyen et al. (2025), Sec. 2.3.1 and 5.1.  The weights of the chosen
    experts sum to 1, so that the model of experts begins with the outputs of the dense one.
    """
    given = dict(dense.named_parameters())
    blocks = {name for name, module in dense.named_modules() if isinstance(module, DenseBlock)}
    layers = {name for name, module in sparse.named_modules() if isinstance(module, SMoE)}
    if not blocks or blocks != layers:
        raise ValueError(
            f"dense and sparse must have blocks in the same places, got {sorted(blocks)} and"
            f" {sorted(layers)}"
        )
    with torch.no_grad():
        for name, value in sparse.named_parameters():
            if ".router." in f".{name}":
                continue
            source = given.get(name)
            if source is None or source.shape[1:] != value.shape[1:]:
                raise ValueError(
                    f"dense has no {name} of shape {tuple(value.shape[1:])} per expert"
                )
            value.copy_(source.expand_as(value))
