"""What routers do, measured in evaluation mode whatever the last training step left."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from moestat.base.door import door
from moestat.base.types import FloatArray
from moestat.base.validate import check_kind
from moestat.networks.smoe.layer import layers_of, top_experts
from moestat.networks.smoe.losses import load_of

__all__ = [
    "Routing",
    "evaluating",
    "expert_change_rate",
    "observe_routing",
    "swapped_top",
]


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """The model in evaluation mode without gradients; every module returns to its own mode."""
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, mode in modes.items():
            module.training = mode


@dataclass(frozen=True)
class Routing:
    """Routing of T rows in one layer.

    Parameters
    ----------
    probabilities : Tensor of shape (T, N)
        Softmax of the router's scores over all experts.
    chosen, weights : Tensor of shape (T, K)
        The experts of each row and their weights.
    winners : Tensor of shape (T, K)
        The experts that a competition would have chosen.
    """

    probabilities: Tensor
    chosen: Tensor
    weights: Tensor
    winners: Tensor

    @property
    def load(self) -> FloatArray:
        """Share of all choices that falls on each expert, (N,)."""
        return load_of(self.chosen, self.probabilities.double()).numpy(force=True)

    @property
    def load_entropy(self) -> float:
        """Entropy of the load in nats; log N where all experts are used alike."""
        return float(torch.special.entr(torch.from_numpy(self.load)).sum())

    @property
    def router_entropy(self) -> float:
        """Mean entropy of the router's probabilities in nats, Pham et al. (2024), App. C.5."""
        return float(torch.special.entr(self.probabilities.double()).sum(1).mean())

    @property
    def weight_entropy(self) -> float:
        """Mean entropy (nats) of the chosen experts' weights, Nguyen et al. (2025), App. E (b)."""
        return float(torch.special.entr(self.weights.double()).sum(1).mean())

    @property
    def overlap(self) -> float:
        """Mean share of a row's experts that a competition would have chosen, too.

        Nguyen et al. (2025), App. C.5, counts them ("level learning"); this is that count over K T.
        """
        return float(_members(self.chosen, self.winners).double().mean())


def _members(first: Tensor, second: Tensor) -> Tensor:
    """Whether each of `first` (T, K) is among its row of `second` (T, K)."""
    return (first.unsqueeze(2) == second.unsqueeze(1)).any(2)


@door()
def observe_routing(model: nn.Module, *inputs: object) -> list[Routing]:
    """The routing of every layer on some inputs, in evaluation mode.

    Parameters
    ----------
    model : Module
        A model with `SMoE` layers.
    *inputs
        What the model is called with.

    Returns
    -------
    list of Routing
        One per layer, in the order of the model.
    """
    layers = layers_of(model)
    for layer in layers:
        if layer.router.chooses_rows:
            kind = type(layer.router).__name__
            raise ValueError(f"the router must choose top_k experts for each row, got {kind}")
    for layer in layers:
        layer.trace = []
    try:
        with evaluating(model):
            model(*inputs)
        observed = []
        for layer in layers:
            for decision, responses in layer.trace or []:
                winners = top_experts(responses, layer.top_k)[1]
                probabilities = decision.scores.softmax(-1)
                observed.append(Routing(probabilities, decision.chosen, decision.weights, winners))
        return observed
    finally:
        for layer in layers:
            layer.trace = None


@door()
def expert_change_rate(before: list[Routing], after: list[Routing]) -> float:
    """Share of assignments of `after` that are not among the row's assignments in `before`.

    Parameters
    ----------
    before, after : list of Routing
        Routing of the same inputs by two checkpoints.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    ValueError
        If they are not of the same layers and rows.

    Notes
    -----
    Nguyen et al. (2025), Sec. 5.2.2 (b).  A mismatch is read as an expert that is absent from the
    row's earlier set; the order within a set does not count.
    """
    for name, side in (("before", before), ("after", after)):
        for routing in side:
            check_kind(name, routing, Routing, "a Routing of each layer")
    shapes = [[tuple(routing.chosen.shape) for routing in side] for side in (before, after)]
    if shapes[0] != shapes[1] or not shapes[0]:
        raise ValueError(
            f"before and after must be of the same layers and rows, got {shapes[0]} and {shapes[1]}"
        )
    unchanged = [
        _members(new.chosen, old.chosen).double().mean().item()
        for old, new in zip(before, after, strict=True)
    ]
    return 1.0 - float(np.mean(unchanged))


@contextmanager
def swapped_top(model: nn.Module) -> Iterator[None]:
    """The best expert of every row gives way to the one that is ranked K + 1.

    Parameters
    ----------
    model : Module
        A model with `SMoE` layers.

    Raises
    ------
    ValueError
        If a layer has K = N, or a router that does not rank the experts beyond the K best.

    Notes
    -----
    Nguyen et al. (2025), Sec. 5.2.2 (a): the selected experts shift down by one rank.  Their
    weights are those of a layer that chose them: the softmax of their scores.
    """
    layers = layers_of(model)
    for layer in layers:
        if layer.top_k == layer.experts.n_experts:
            raise ValueError(f"top_k must be below the number of experts, got {layer.top_k}")
        if not layer.router.ranks_all:
            kind = type(layer.router).__name__
            raise ValueError(f"the router must rank all experts, which {kind} does not")
    try:
        for layer in layers:
            layer.shift = 1
        yield
    finally:
        for layer in layers:
            layer.shift = 0
