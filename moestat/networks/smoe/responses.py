"""Responses: how strongly each expert answers a row, from its output."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

from moestat.base.door import door
from moestat.base.validate import one_of

__all__ = ["RESPONSES", "response_called"]

Response = Callable[[Tensor], Tensor]


def _norm(outputs: Tensor) -> Tensor:
    return torch.linalg.vector_norm(outputs, dim=-1)


def _mean(activation: Response, outputs: Tensor) -> Tensor:
    return activation(outputs).mean(-1)


def _softmax(outputs: Tensor) -> Tensor:
    return outputs.softmax(dim=0).mean(-1)


RESPONSES: dict[str, Response] = {
    "softplus": partial(_mean, functional.softplus),
    "norm": _norm,
    "silu": partial(_mean, functional.silu),
    "sigmoid": partial(_mean, torch.sigmoid),
    "relu": partial(_mean, functional.relu),
    "softmax": _softmax,
}
"""Responses (N, T) to outputs (N, T, D), by name.

Nguyen et al. (2025), Sec. 2.2, App. C.3 and C.4, eqs. (10) and (11).  Means are over the D
elements.  Two readings: the softmax is over the experts, for its mean over an expert's own elements
is 1 / D; and a mean of SiLU below 0 ranks its expert, but as a weight it counts as 0, for weights
are responses over their sum.
"""


@door()
def response_called(name: str) -> Response:
    """The response of that name."""
    return RESPONSES[one_of("response", name, RESPONSES)]
