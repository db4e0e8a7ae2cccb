"""Sparse upcycling: a trained dense model becomes one of experts that begin as its copies."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from moestat.base.door import door
from moestat.networks.smoe.dense import DenseBlock
from moestat.networks.smoe.layer import SMoE

__all__ = ["copy_gated", "copy_linear", "copy_mixtral", "upcycle"]


def _place(layer: SMoE, name: str, values: list[Tensor]) -> None:
    """Copy matrices (out, in) of linear maps, one for each expert or one for all."""
    target = getattr(layer.experts, name, None)
    if target is None:
        raise ValueError(f"layer has experts without {name}: {type(layer.experts).__name__}")
    given = torch.stack([value.detach() for value in values])
    given = given.transpose(1, 2) if given.dim() == 3 else given.unsqueeze(1)
    if given.shape[1:] != target.shape[1:] or len(given) not in (1, len(target)):
        raise ValueError(f"{name} must have shape {tuple(target.shape)}, got {tuple(given.shape)}")
    with torch.no_grad():
        target.copy_(given.expand_as(target))


def _place_linear(layer: SMoE, name: str, maps: list[nn.Linear]) -> None:
    _place(layer, name, [each.weight for each in maps])
    has_bias = getattr(layer.experts, f"{name}_bias") is not None
    if has_bias != (maps[0].bias is not None):
        raise ValueError(f"{name}: experts and linear maps must both have biases, or neither")
    if has_bias:
        _place(layer, f"{name}_bias", [each.bias for each in maps])


@door()
def copy_linear(layer: SMoE, inner: nn.Linear, outer: nn.Linear) -> None:
    """Give every expert of a layer the weights of a block ``outer(phi(inner(x)))``.

    Parameters
    ----------
    layer : SMoE
        With `MLPExperts`; the router stays.
    inner, outer : torch.nn.Linear
        The maps of a trained block, such as ``linear1`` and ``linear2`` of
        `torch.nn.TransformerEncoderLayer`.

    Raises
    ------
    ValueError
        If shapes or biases do not fit.

    Examples
    --------
    >>> inner, outer = nn.Linear(8, 16), nn.Linear(16, 8)
    >>> layer = SMoE(8, 4, hidden=16, bias=True)
    >>> copy_linear(layer, inner, outer)
    >>> x = torch.randn(5, 8)
    >>> bool(torch.allclose(layer(x), outer(nn.functional.gelu(inner(x))), atol=1e-6))
    True
    """
    _place_linear(layer, "inner", [inner])
    _place_linear(layer, "outer", [outer])


@door()
def copy_gated(layer: SMoE, gate: nn.Linear, up: nn.Linear, down: nn.Linear) -> None:
    """Give every expert of a layer the weights of a block ``down(phi(gate(x)) * up(x))``.

    Parameters
    ----------
    layer : SMoE
        With `GatedExperts`; the router stays.
    gate, up, down : torch.nn.Linear
        ``gate_proj``, ``up_proj`` and ``down_proj`` of a Llama block.

    Raises
    ------
    ValueError
        If shapes or biases do not fit.
    """
    for name, each in (("inner", gate), ("gate", up), ("outer", down)):
        _place_linear(layer, name, [each])


@door()
def copy_mixtral(layer: SMoE, block: Any) -> None:
    """Give a layer the experts and the router of a Mixtral block.

    Parameters
    ----------
    layer : SMoE
        With `GatedExperts` and `SoftmaxRouter`.
    block : Module
        A block with a linear ``gate`` and ``experts``: a list of modules with linear ``w1``,
        ``w3`` and ``w2``, or one module with stacked ``gate_up_proj`` (N, 2 H, d) and
        ``down_proj`` (N, d, H).

    Raises
    ------
    ValueError
        If shapes do not fit.
    """
    experts = block.experts
    if hasattr(experts, "gate_up_proj"):
        for name, part in zip(("inner", "gate"), experts.gate_up_proj.chunk(2, dim=1), strict=True):
            _place(layer, name, list(part))
        _place(layer, "outer", list(experts.down_proj))
    else:
        for name, source in (("inner", "w1"), ("gate", "w3"), ("outer", "w2")):
            _place_linear(layer, name, [getattr(each, source) for each in experts])
    with torch.no_grad():
        layer.router.get_parameter("weight").copy_(block.gate.weight.T.unsqueeze(0))


@door()
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
