"""Responses: how strongly each expert answers a row, from its output."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

__all__ = ["RESPONSES", "response_called"]

Response = Callable[[Tensor], Tensor]


def _norm(outputs: Tensor) -> Tensor:
    return torch.linalg.vector_norm(outputs, dim=-1)


def _mean_of(activation: Response) -> Response:
    return lambda outputs: activation(outputs).mean(-1)


def _silu(outputs: Tensor) -> Tensor:
    return functional.silu(outputs).mean(-1).clamp_min(0.0)


def _softmax(outputs: Tensor) -> Tensor:
    return outputs.softmax(dim=0).mean(-1)


RESPONSES: dict[str, Response] = {
    "softplus": _mean_of(functional.softplus),
    "norm": _norm,
    "silu": _silu,
    "sigmoid": _mean_of(torch.sigmoid),
    "relu": _mean_of(functional.relu),
    "softmax": _softmax,
}
"""Responses (N, T) >= 0 to outputs (N, T, D), by name.

Nguyen et al. (2025), Sec. 2.2, App. C.3 and C.4, eqs. (10) and (11).  Means are over the D
elements.  Two readings: the softmax is over the experts, for its mean over an expert's own elements
is 1 / D; and a negative mean of SiLU counts as 0, for weights are responses over their sum.
"""


def response_called(name: str) -> Response:
    """The response of that name."""
    if name not in RESPONSES:
        known = ", ".join(map(repr, RESPONSES))
        raise ValueError(f"response must be one of {known}, got {name!r}")
    return RESPONSES[name]
