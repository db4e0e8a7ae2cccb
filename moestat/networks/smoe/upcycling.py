"""Sparse upcycling: a trained dense model becomes one of experts that begin as its copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor, nn

from moestat.base.door import door
from moestat.base.validate import positive_int
from moestat.networks.smoe.dense import DenseBlock
from moestat.networks.smoe.experts import GatedExperts
from moestat.networks.smoe.layer import SMoE
from moestat.networks.smoe.routers import ROUTERS

__all__ = ["PROJECTIONS", "copy_gated", "copy_linear", "copy_mixtral", "upcycle"]


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


PROJECTIONS = (
    ("gate_proj", "up_proj", "down_proj"),
    ("w1", "w3", "w2"),
    ("wi_0", "wi_1", "wo"),
    ("gate_up_proj", "down_proj"),
)
"""Names of the linear maps of a gated block: gate, up and down, or both inner ones in one matrix.

Those of Llama, Mistral, Qwen and Gemma; of Meta's own code and Mixtral; of T5 1.1; of Phi 3.
"""


def _projections(block: nn.Module) -> tuple[str, ...] | None:
    """The names of the projections of a gated block; None if it is no such block."""
    for names in PROJECTIONS:
        if all(isinstance(getattr(block, name, None), nn.Linear) for name in names):
            return names
    return None


def _activation_of(block: nn.Module) -> Callable[[Tensor], Tensor]:
    for name in ("act_fn", "act", "activation_fn", "activation"):
        function = getattr(block, name, None)
        if callable(function):
            return cast(Callable[[Tensor], Tensor], function)
    return nn.functional.silu


def _experts_of(block: nn.Module, names: tuple[str, ...], n_experts: int) -> GatedExperts:
    """Experts that are copies of a gated block."""
    maps: list[nn.Linear] = [getattr(block, name) for name in names]
    outer = maps[-1]
    parts = [(each.weight, each.bias) for each in maps[:-1]]
    if len(parts) == 1:
        weight, bias = parts[0]
        biases = (None, None) if bias is None else bias.chunk(2)
        parts = list(zip(weight.chunk(2), biases, strict=True))
    named = dict(zip(("inner", "gate", "outer"), [*parts, (outer.weight, outer.bias)], strict=True))
    has_bias = any(bias is not None for _, bias in named.values())
    dropout = getattr(block, "dropout", None)
    experts = GatedExperts(
        n_experts,
        maps[0].in_features,
        outer.in_features,
        outer.out_features,
        activation=_activation_of(block),
        bias=has_bias,
        dropout=dropout.p if isinstance(dropout, nn.Dropout) else 0.0,
        device=outer.weight.device,
        dtype=outer.weight.dtype,
    )
    with torch.no_grad():
        for name, (weight, bias) in named.items():
            experts.get_parameter(name).copy_(weight.T.expand(n_experts, -1, -1))
            if has_bias:
                target = experts.get_parameter(f"{name}_bias")
                target.zero_() if bias is None else target.copy_(bias.expand_as(target))
    return experts


@door()
def upcycle(
    dense: nn.Module,
    sparse: nn.Module | None = None,
    *,
    n_experts: int | None = None,
    top_k: int = 2,
    every: int = 1,
    router: str = "softmax",
    **options: Any,
) -> nn.Module:
    """Make a model of experts of a dense one, whose outputs it has at first.

    Parameters
    ----------
    dense : Module
        With `n_experts`: a gated block, such as the ``mlp`` of Llama, Mistral, Qwen, Gemma or Phi 3
        in Hugging Face's transformers, or any module with the projections of one of `PROJECTIONS`;
        or a model with such blocks, which are replaced in place.  With `sparse`: a trained model
        with blocks `DenseBlock`.
    sparse : Module, optional
        A model that differs from `dense` in its blocks alone, which are `SMoE`.  Every expert
        becomes a copy of the block in its place; routers stay as they are.
    n_experts, top_k : int
        N and K of the new layers.
    every : int
        Each so many blocks of the model one is replaced, the last of them.
    router : str
        Name of the router, see `SMoE`.
    **options
        Further arguments of `SMoE`, such as ``balance`` and ``z``.

    Returns
    -------
    Module
        The layer in place of a block; or the model.

    Raises
    ------
    ValueError
        If there is no gated block, or the models do not fit.

    Notes
    -----
    Komatsuzaki et al. (2023); Nguyen et al. (2025), Sec. 2.3.1 and 5.1.  The weights of the chosen
    experts sum to 1, so that the model of experts begins with the outputs of the dense one.
    A replaced model is saved and loaded by its ``state_dict``: ``from_pretrained`` makes the dense
    blocks of its configuration, so call `upcycle` before you load.

    Examples
    --------
    >>> class MLP(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.gate_proj, self.up_proj = nn.Linear(8, 16), nn.Linear(8, 16)
    ...         self.down_proj = nn.Linear(16, 8)
    ...
    ...     def forward(self, x):
    ...         return self.down_proj(nn.functional.silu(self.gate_proj(x)) * self.up_proj(x))
    >>> block, x = MLP(), torch.randn(5, 8)
    >>> layer = upcycle(block, n_experts=4, top_k=2, balance=0.01)
    >>> bool(torch.allclose(layer(x), block(x), atol=1e-6))
    True
    """
    if sparse is not None:
        if n_experts is not None or options:
            raise ValueError("sparse: n_experts and options of SMoE make the layers without it")
        _copy_blocks(dense, sparse)
        return sparse
    number = positive_int("n_experts", n_experts)
    if options.get("norm_topk_prob", True) is not True or router == "expert-choice":
        raise ValueError(
            "norm_topk_prob and router: the weights of a row must sum to 1, else the outputs are"
            " not those of the dense model"
        )
    if options.get("shared") is not None:
        raise ValueError("shared: the outputs of a shared expert are added to those of the block")

    def layer_of(block: nn.Module, names: tuple[str, ...]) -> SMoE:
        experts = _experts_of(block, names, number)
        scorer = ROUTERS[router].make(n_inputs=experts.n_inputs, n_experts=number)
        like = experts.get_parameter("outer")
        made = SMoE(experts, scorer.to(like.device, like.dtype), top_k, **options)
        return made.train(block.training)

    names = _projections(dense)
    if names is not None:
        return layer_of(dense, names)
    places = [
        (parent, name, block, found)
        for parent in dense.modules()
        for name, block in parent.named_children()
        if not isinstance(parent, SMoE) and (found := _projections(block)) is not None
    ]
    if not places:
        known = "; ".join(", ".join(names) for names in PROJECTIONS)
        raise ValueError(
            f"dense has no block with linear maps of these names: {known}. Of a block with others"
            " use copy_gated or copy_linear"
        )
    for parent, name, block, found in places[positive_int("every", every) - 1 :: every]:
        setattr(parent, name, layer_of(block, found))
    return dense


def _copy_blocks(dense: nn.Module, sparse: nn.Module) -> None:
    """Give the layers of `sparse` the weights of the blocks of `dense` in the same places."""
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
