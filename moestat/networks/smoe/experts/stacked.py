"""What the experts of a layer share: stacked matrices, and two ways to run them."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.nn import functional

from moestat.base.memory import check_room
from moestat.base.validate import positive_int, short
from moestat.networks.smoe.dispatch import multiply_blocks, multiply_groups, transforms

__all__ = [
    "HIDDEN_ACTIVATIONS",
    "Activation",
    "Product",
    "StackedExperts",
    "activation_called",
    "stacked_matrix",
]

Product = Callable[..., Tensor]
Activation = Callable[[Tensor], Tensor]

HIDDEN_ACTIVATIONS: dict[str, Activation] = {
    "gelu": functional.gelu,
    "relu": functional.relu,
    "silu": functional.silu,
    "softplus": functional.softplus,
    "tanh": torch.tanh,
}
"""Activations of hidden units, by name."""

Device: TypeAlias = torch.device | str | int | None


def activation_called(name: str | Activation) -> Activation:
    """The activation of that name; a callable is one itself."""
    if callable(name):
        return name
    if name not in HIDDEN_ACTIVATIONS:
        known = ", ".join(map(repr, HIDDEN_ACTIVATIONS))
        raise ValueError(f"activation must be one of {known} or a callable, got {short(name)}")
    return HIDDEN_ACTIVATIONS[name]


def stacked_matrix(
    n_experts: int, n_in: int, n_out: int, device: Device = None, dtype: torch.dtype | None = None
) -> nn.Parameter:
    """Matrices (N, n_in, n_out), uniform on +-1 / sqrt(n_in) as those of `torch.nn.Linear`."""
    return _uniform((n_experts, n_in, n_out), n_in, device, dtype)


def _uniform(
    shape: tuple[int, ...], n_in: int, device: Device, dtype: torch.dtype | None
) -> nn.Parameter:
    names = ("n_experts", "n_inputs", "n_outputs")
    for name, size in zip(names, shape, strict=True):
        positive_int(f"{name}: a width of matrices {short(shape)}", size)
    check_room(4.0 * math.prod(shape), f"n_experts, n_inputs, n_outputs: matrices {shape}")
    try:
        device = None if device is None else torch.device(device)
    except (RuntimeError, TypeError):
        raise ValueError(f"device must be one that PyTorch knows, got {short(device)}") from None
    if not isinstance(dtype, torch.dtype | None):
        raise ValueError(f"dtype must be one of PyTorch's, got {short(dtype)}")
    bound = 1 / math.sqrt(n_in)
    return nn.Parameter(torch.empty(shape, device=device, dtype=dtype).uniform_(-bound, bound))


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
        self.n_experts = positive_int("n_experts", n_experts)
        self.n_inputs = positive_int("n_inputs", n_inputs)
        self.n_outputs = positive_int("n_outputs", n_outputs)

    def extra_repr(self) -> str:
        """Sizes, for the representation of a model."""
        return ", ".join(f"{name}={value}" for name, value in self.sizes().items())

    def sizes(self) -> dict[str, int]:
        """Numbers of experts, inputs and outputs, and what a kind of experts has beside them."""
        return {
            "n_experts": self.n_experts,
            "n_inputs": self.n_inputs,
            "n_outputs": self.n_outputs,
        }

    def biases(self, wanted: bool, n_in: int, n_out: int, **factory: Any) -> nn.Parameter | None:
        """Intercepts (N, 1, n_out) on +-1 / sqrt(n_in), or None if they are not wanted."""
        return _uniform((self.n_experts, 1, n_out), n_in, **factory) if wanted else None

    def run(self, rows: Tensor, product: Product) -> Tensor:
        """The experts on `rows`, whose products with stacked matrices are `product`."""
        raise NotImplementedError

    def forward(self, rows: Tensor, counts: Tensor) -> Tensor:
        """Outputs (R, D) of rows that stand in blocks, `counts[i]` of them for expert i.

        One expert at a time, so that its hidden units stay in the cache, or all in one call where
        they fit into it together; code that is compiled or exported does not know the sizes of
        blocks, and multiplies by all in one operator.
        """
        if torch.compiler.is_compiling() or rows.is_meta:
            return self.run(rows, partial(_product_of_blocks, counts, multiply_blocks))
        if self._fit_together(rows):
            return self.run(rows, partial(_product_of_blocks, counts, multiply_groups))
        apart: dict[int, tuple[Tensor, ...]] = {}

        def matrix(matrices: Tensor, i: int) -> Tensor:
            # One gradient for all matrices: that of `matrices[i]` would be as large, for each i.
            if id(matrices) not in apart:
                apart[id(matrices)] = matrices.unbind(0)
            return apart[id(matrices)][i]

        def product(i: int, rows: Tensor, matrices: Tensor, bias: Tensor | None = None) -> Tensor:
            out = rows @ matrix(matrices, i)
            return out if bias is None else out + matrix(bias, i)

        parts = enumerate(rows.split(counts.tolist()))
        return torch.cat([self.run(part, partial(product, i)) for i, part in parts])

    def _fit_together(self, rows: Tensor) -> bool:
        """Whether all hidden units fit into the cache, and PyTorch multiplies such blocks."""
        matrices = list(self.parameters())
        widths = {self.n_inputs, *(each.shape[-1] for each in matrices)}
        kinds = {rows.dtype, *(each.dtype for each in matrices)}
        return (
            0 < rows.shape[0] * max(widths) <= _CACHED
            and kinds == {torch.float32}
            and rows.device.type == "cpu"
            and not torch.is_autocast_enabled("cpu")
            and not transforms()
            and all(width % _ALIGNED == 0 for width in widths)
            and _multiplies_groups()
        )

    def every(self, rows: Tensor) -> Tensor:
        """Outputs (N, T, D) of every expert on every row."""
        return self.run(rows, _product_of_all)


def _product_of_all(rows: Tensor, matrices: Tensor, bias: Tensor | None = None) -> Tensor:
    out = torch.matmul(rows, matrices)
    return out if bias is None else out + bias


_CACHED = 2**18
"""Numbers of four bytes in a second level of cache of 1 MiB."""
_ALIGNED = 4
"""Numbers of four bytes that the rows of a matrix must be a multiple of."""


def _same(saved: Tensor) -> Tensor:
    return saved


@cache
def _multiplies_groups() -> bool:
    """Whether this PyTorch has products of groups in single precision, and their gradients."""
    one = torch.ones(1, _ALIGNED, requires_grad=True)
    # A checkpoint counts what is saved, and this runs once: hooks of its own keep it from sight.
    with torch.enable_grad(), saved_tensors_hooks(_same, _same):
        try:
            product = multiply_groups(one, torch.ones(1, _ALIGNED, _ALIGNED), torch.ones(1).long())
            product.sum().backward()  # type: ignore[reportOptionalMemberAccess]
        except (AttributeError, RuntimeError):
            return False
    return True


def _product_of_blocks(
    counts: Tensor,
    multiply: Product,
    rows: Tensor,
    matrices: Tensor,
    bias: Tensor | None = None,
) -> Tensor:
    device = rows.device.type
    if not rows.is_meta and torch.is_autocast_enabled(device):
        low = torch.get_autocast_dtype(device)
        rows, matrices = rows.to(low), matrices.to(low)
    out = multiply(rows, matrices, counts)
    if bias is None:
        return out
    return out + bias.squeeze(1).repeat_interleave(counts, dim=0, output_size=rows.shape[0])
