"""CompeteSMoE, first version: the router is trained to predict a competition by norms."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from moestat.base.door import door
from moestat.base.validate import real_in
from moestat.networks.smoe.compete import CompetitionMoE, contest, reading_called
from moestat.networks.smoe.experts.stacked import StackedExperts
from moestat.networks.smoe.layer import Answer, SMoE
from moestat.networks.smoe.losses import distillation_loss, router_loss
from moestat.networks.smoe.routers.router import Router

__all__ = ["CompeteSMoEv1", "CompetitionMoEv1"]


def _softmax(values: Tensor) -> Tensor:
    return values.softmax(-1)


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
        Weight of the task's loss for the router; of the router's own with ``reading="code"``.
    reading : str
        ``"paper"``; or ``"code"``, by which the competition's output answers in a competing step,
        as `CompetitionMoEv1` has it, and all parameters see ``NLL + alpha L_R``, with the softmax
        of all scores in L_R.

    Notes
    -----
    Pham et al. (2024), eqs. (3) to (5).  The paper's reading: the output of a competing step is
    the router's, for the output of a competition does not depend on the router, whose NLL (5)
    differentiates.  The other one is `custom_layers_opt.py` of giangdip2410/CompeteSMoE at
    cacb77e, without its option ``combine_gate``.

    Examples
    --------
    >>> layer = CompeteSMoEv1(16, 8, top_k=2, hidden=32)
    >>> layer.competing = True
    >>> tuple(layer(torch.zeros(3, 16)).shape)
    (3, 16)
    """

    competes = True
    reading = "paper"
    """That of layers which were stored before there was a choice."""

    @door()
    def __init__(
        self,
        experts: StackedExperts | int | None = None,
        router: Router | int | str | None = None,
        top_k: int = 2,
        hidden: int | None = None,
        *,
        alpha: float = 5.0,
        reading: str = "paper",
        **options: Any,
    ) -> None:
        super().__init__(experts, router, top_k, hidden, response="norm", **options)
        self.alpha = real_in("alpha", alpha, 0.0)
        self.reading = reading_called(reading)

    def _answer(self, rows: Tensor, ids: Tensor | None) -> Answer:
        if not (self.training and self.competing):
            return super()._answer(rows, ids)
        return (self._by_code if self.reading == "code" else self._by_paper)(rows, ids)

    def _by_code(self, rows: Tensor, ids: Tensor | None) -> Answer:
        outputs = self.experts.every(rows)
        outcome = contest(outputs, self.response(outputs).T, self.top_k, weigh=_softmax)
        decision = self.decide(rows, ids)
        routed = decision.scores.softmax(-1)
        loss = distillation_loss(routed, outcome.affinities, outcome.chosen, 0.0)
        return outcome.output, decision, {"router": self.alpha * loss}

    def _by_paper(self, rows: Tensor, ids: Tensor | None) -> Answer:
        scaled = {
            name: _Scaled.apply(value, self.alpha) for name, value in self.router.named_parameters()
        }
        scores = self.routed(rows, ids, scaled)
        decision = self._decision(scores)
        with torch.no_grad():
            responses = self.competition(rows)
        plain = self.score(rows.detach(), ids)
        losses = self._regularisation(decision._replace(scores=plain))
        losses["router"] = router_loss(plain, responses, self.top_k)
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

    _fixed: ClassVar[dict[str, Any]] = {"response": "norm"}

    def weigh(self, values: Tensor) -> Tensor:
        """See `CompetitionMoE.weigh`."""
        return _softmax(values)
