"""The sparse mixture-of-experts layer."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from moestat.base.validate import positive_int, real_in
from moestat.networks.smoe.dispatch import plan_dispatch
from moestat.networks.smoe.experts.stacked import StackedExperts
from moestat.networks.smoe.losses import balance_loss, z_loss
from moestat.networks.smoe.responses import response_called
from moestat.networks.smoe.routers.router import Router
from moestat.networks.smoe.schedule import CompetitionSchedule

__all__ = [
    "Decision",
    "SMoE",
    "auxiliary_loss",
    "before_step",
    "layers_of",
    "select",
    "weighted_sum",
]


class Decision(NamedTuple):
    """Who answers each row: scores (T, N), the experts chosen (T, K), and their weights (T, K)."""

    scores: Tensor
    chosen: Tensor
    weights: Tensor


def select(scores: Tensor, top_k: int, shift: int = 0) -> tuple[Tensor, Tensor]:
    """Scores (T, K) and experts (T, K) of the K best, or of the K that follow the `shift` best."""
    values, chosen = scores.topk(top_k + shift, dim=-1)
    return values[:, shift:], chosen[:, shift:]


def weighted_sum(weights: Tensor, answers: Tensor) -> Tensor:
    """Sums (T, D) of answers (T, K, D) with weights (T, K), in the precision of the answers."""
    # Three times as fast as a batch of T products of a row with a matrix.
    return (weights.to(answers.dtype).unsqueeze(2) * answers).sum(1).to(answers.dtype)


class SMoE(nn.Module):
    """Each row is answered by the K experts that the router scores highest.

    Takes the place of a block from (..., d) to (..., D).  Add `auxiliary_loss` of the model to
    the loss of the task in every training step.

    Parameters
    ----------
    experts : StackedExperts
        The N experts.
    router : Router
        The router.
    top_k : int
        K in 1..N.
    balance, z : float
        Weights of `balance_loss` and `z_loss`.
    response : str
        The response by which `competition` ranks the experts, a name in `RESPONSES`.

    Raises
    ------
    ValueError
        If K is not in 1..N, a weight is negative, or the parts do not fit.

    Notes
    -----
    Nguyen et al. (2025), Sec. 2.1: ``y = sum over the K best of softmax(TopK(x' W_r))_i g_i(x)``.

    Examples
    --------
    >>> from moestat.networks.smoe.experts import MLPExperts
    >>> from moestat.networks.smoe.routers import SoftmaxRouter
    >>> layer = SMoE(MLPExperts(8, 16, 32, 16), SoftmaxRouter(16, 8), top_k=2)
    >>> tuple(layer(torch.zeros(3, 5, 16)).shape)
    (3, 5, 16)
    """

    def __init__(
        self,
        experts: StackedExperts,
        router: Router,
        top_k: int = 2,
        balance: float = 0.0,
        z: float = 0.0,
        response: str = "softplus",
    ) -> None:
        super().__init__()
        n_experts = experts.n_experts
        if router.n_experts != n_experts:
            raise ValueError(f"router must score {n_experts} experts, got {router.n_experts}")
        if positive_int("top_k", top_k) > n_experts:
            raise ValueError(f"top_k must be in 1..{n_experts}, the number of experts, got {top_k}")
        self.experts, self.router, self.top_k = experts, router, top_k
        self.balance, self.z = real_in("balance", balance, 0.0), real_in("z", z, 0.0)
        self.response = response_called(response)
        self.competing = False
        self.shift = 0
        self.trace: list[tuple[Decision, Tensor]] | None = None
        self._pending: Tensor | None = None

    def decide(self, rows: Tensor, ids: Tensor | None = None) -> Decision:
        """The router's decision on rows (T, d)."""
        scores = self.router(rows, ids)
        values, chosen = select(scores, self.top_k, self.shift)
        return Decision(scores, chosen, values.softmax(-1))

    def competition(self, rows: Tensor) -> Tensor:
        """Responses (T, N) of all experts to rows (T, d)."""
        return self.response(self.experts.every(rows)).T

    def forward(self, x: Tensor, ids: Tensor | None = None) -> Tensor:
        """Outputs (..., D) of inputs (..., d); `ids` (...) are tokens, for routers that read them.

        Raises
        ------
        ValueError
            If x has another width.
        """
        if x.shape[-1] != self.experts.n_inputs:
            raise ValueError(f"x must have shape (..., {self.experts.n_inputs}), got {(*x.shape,)}")
        rows = x.reshape(-1, x.shape[-1])
        flat = None if ids is None else ids.reshape(-1)
        out = self._answer(rows, flat)
        if self.trace is not None:
            with torch.no_grad():
                self.trace.append((self.decide(rows, flat), self.competition(rows)))
        return out.reshape(*x.shape[:-1], out.shape[-1])

    def _answer(self, rows: Tensor, ids: Tensor | None) -> Tensor:
        decision = self.decide(rows, ids)
        if self.training:
            self._pending = self._regularisation(decision)
        return self._combine(rows, decision)

    def _regularisation(self, decision: Decision) -> Tensor:
        total = decision.scores.new_zeros(())
        if self.balance > 0:
            total = total + self.balance * balance_loss(decision.scores, decision.chosen)
        if self.z > 0:
            total = total + self.z * z_loss(decision.scores)
        return total

    def _combine(self, rows: Tensor, decision: Decision) -> Tensor:
        plan = plan_dispatch(decision.chosen, self.experts.n_experts)
        sent = rows.index_select(0, plan.order // self.top_k)
        answers = self.experts(sent, plan.counts).index_select(0, plan.places.reshape(-1))
        stacked = answers.view(len(rows), self.top_k, answers.shape[1])
        return weighted_sum(decision.weights, stacked)

    def take_auxiliary(self) -> Tensor | None:
        """The auxiliary loss of the last forward pass in training, once; None where there is none.

        It is handed out once, for it holds the graph of that pass.
        """
        pending, self._pending = self._pending, None
        return pending


def layers_of(model: nn.Module) -> list[SMoE]:
    """The layers of a model, in its order.

    Raises
    ------
    ValueError
        If it has none.
    """
    layers = [module for module in model.modules() if isinstance(module, SMoE)]
    if not layers:
        raise ValueError("model has no SMoE layer")
    return layers


def auxiliary_loss(model: nn.Module) -> Tensor:
    """Sum of the layers' auxiliary losses in the forward pass that has just been made.

    Parameters
    ----------
    model : Module
        A model with `SMoE` layers, in training mode.

    Returns
    -------
    Tensor
        Add it to the loss of the task.

    Raises
    ------
    ValueError
        If there is no layer, or no forward pass in training mode since the last call.
    """
    losses = [layer.take_auxiliary() for layer in layers_of(model)]
    found = [loss for loss in losses if loss is not None]
    if not found:
        raise ValueError("model has made no forward pass in training mode since the last call")
    return torch.stack(found).sum()


def before_step(
    model: nn.Module, step: int, n_steps: int, schedule: CompetitionSchedule | None = None
) -> None:
    """Tell the layers of a model which step comes: who competes, and which routers stay.

    Parameters
    ----------
    model : Module
        A model with `SMoE` layers.
    step, n_steps : int
        The step, from 0, and how many there will be.
    schedule : CompetitionSchedule, optional
        Which layers compete in which steps; none do by default.

    Raises
    ------
    ValueError
        If the schedule is for another number of layers or of steps.
    """
    layers = layers_of(model)
    shape = (len(layers), n_steps)
    if schedule is not None and schedule.active.shape != shape:
        raise ValueError(
            f"schedule must be for {shape[0]} layers and {shape[1]} steps, got one for"
            f" {schedule.active.shape[0]} and {schedule.active.shape[1]}"
        )
    for index, layer in enumerate(layers):
        layer.router.before_step(step, n_steps)
        layer.competing = schedule is not None and bool(schedule.active[index, step])
