"""CompeteSMoE, first version: the router is trained to predict a competition by norms."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call

from moestat.base.validate import real_in
from moestat.networks.smoe.compete import CompetitionMoE
from moestat.networks.smoe.experts.stacked import StackedExperts
from moestat.networks.smoe.layer import Decision, SMoE, select
from moestat.networks.smoe.losses import router_loss
from moestat.networks.smoe.routers.router import Router

__all__ = ["CompeteSMoEv1", "CompetitionMoEv1"]


class _Scaled(torch.autograd.Function):
    """The identity, whose gradient is multiplied by a constant."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, factor: float) -> Tensor:
        ctx.factor = factor
        return value.view_as(value)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return ctx.factor * gradients[0], None


class CompeteSMoEv1(SMoE):
    """`SMoE` whose router is trained, in some steps, on ``L_R + alpha NLL``.

    In a training step with ``competing = True`` the router still decides, all experts answer, and
    `router_loss` compares its scores with the norms of their answers.  Gradients of the loss of
    the task with respect to the router are multiplied by alpha in that step; all other parameters
    see the loss of the task alone.

    Parameters
    ----------
    experts, router, top_k, hidden, balance, z, ...
        As `SMoE` takes them.
    alpha : float
        Weight of the task's loss for the router.

    Notes
    -----
    Pham et al. (2024), eqs. (3) to (5).  Reading: the output of a competing step is the router's,
    for the output of a competition does not depend on the router, whose NLL (5) differentiates.

    Examples
    --------
    >>> layer = CompeteSMoEv1(16, 8, top_k=2, hidden=32)
    >>> layer.competing = True
    >>> tuple(layer(torch.zeros(3, 16)).shape)
    (3, 16)
    """

    def __init__(
        self,
        experts: StackedExperts | int,
        router: Router | int,
        top_k: int = 2,
        hidden: int | None = None,
        *,
        alpha: float = 5.0,
        **options: Any,
    ) -> None:
        super().__init__(experts, router, top_k, hidden, response="norm", **options)
        self.alpha = real_in("alpha", alpha, 0.0)

    def _answer(
        self, rows: Tensor, ids: Tensor | None
    ) -> tuple[Tensor, Decision, dict[str, Tensor]]:
        if not (self.training and self.competing):
            return super()._answer(rows, ids)
        scaled = {
            name: _Scaled.apply(value, self.alpha) for name, value in self.router.named_parameters()
        }
        scores = self.in_its_precision(
            rows, lambda rows: functional_call(self.router, scaled, (rows, ids))
        )
        values, chosen = select(scores, self.top_k)
        with torch.no_grad():
            responses = self.competition(rows)
        plain = self.score(rows.detach(), ids)
        losses = self._regularisation(Decision(plain, chosen, values))
        losses["router"] = router_loss(plain, responses, self.top_k)
        decision = Decision(scores, chosen, values.softmax(-1))
        return self._combine(rows, decision), decision, losses


class CompetitionMoEv1(CompetitionMoE):
    """`CompetitionMoE` by norms, the winners weighted by the softmax of these.

    Parameters
    ----------
    experts, router, top_k, hidden, balance, z, ...
        As `SMoE` takes them.

    Notes
    -----
    Pham et al. (2024), Sec. 3.1, and the gate of its theory, eq. (6).
    """

    def __init__(
        self,
        experts: StackedExperts | int,
        router: Router | int,
        top_k: int = 2,
        hidden: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(experts, router, top_k, hidden, response="norm", **options)

    def weigh(self, values: Tensor) -> Tensor:
        """See `CompetitionMoE.weigh`."""
        return values.softmax(-1)
