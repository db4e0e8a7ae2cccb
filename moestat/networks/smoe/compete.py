"""CompeteSMoE, second version: in scheduled steps all experts answer, and the strongest win."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from moestat.base.door import door
from moestat.base.validate import real_in, short
from moestat.networks.smoe.experts.stacked import StackedExperts
from moestat.networks.smoe.layer import Answer, Decision, SMoE, top_experts, weighted_sum
from moestat.networks.smoe.losses import distillation_loss, diversity_loss
from moestat.networks.smoe.routers.router import Router

__all__ = ["CompeteSMoE", "CompetitionMoE", "Contest", "contest", "normalised", "reading_called"]


@door()
def reading_called(name: str) -> str:
    """The name of a reading, if it is one."""
    if name not in ("paper", "code"):
        raise ValueError(f"reading must be 'paper' or 'code', got {short(name)}")
    return name


class Contest(NamedTuple):
    """Outcome of a competition.

    The weighted output (T, D), the winners (T, K), their outputs (T, K, D), and the affinities
    (T, N), zero for experts that lost.
    """

    output: Tensor
    chosen: Tensor
    winners: Tensor
    affinities: Tensor


@door()
def normalised(values: Tensor) -> Tensor:
    """Values (T, K) over their sum, those below 0 as 0; equal shares where all are 0."""
    values = values.clamp_min(0.0)
    total = values.sum(-1, keepdim=True)
    equal = torch.full_like(values, 1 / values.shape[-1])
    return torch.where(total > 0, values / torch.where(total > 0, total, 1.0), equal)


@door()
def contest(
    outputs: Tensor,
    responses: Tensor,
    top_k: int,
    shift: int = 0,
    weigh: Callable[[Tensor], Tensor] = normalised,
) -> Contest:
    """Steps 3 and 4 of Nguyen et al. (2025), Sec. 2.2.

    Parameters
    ----------
    outputs : Tensor of shape (N, T, D)
        Outputs of all experts.
    responses : Tensor of shape (T, N)
        Their responses.
    top_k, shift : int
        The K strongest win, or the K that follow the `shift` strongest.
    weigh : callable
        Weights (T, K) of the winners from their responses.

    Returns
    -------
    Contest
        Who wins, and what comes out.

    Examples
    --------
    >>> outputs = torch.tensor([[[1.0]], [[3.0]], [[2.0]]])
    >>> round(contest(outputs, outputs[..., 0].T, top_k=2).output.item(), 5)
    2.6
    """
    values, chosen = top_experts(responses, top_k, shift)
    weights = weigh(values)
    row = torch.arange(chosen.shape[0], device=chosen.device).unsqueeze(1)
    winners = outputs[chosen, row]
    output = weighted_sum(weights, winners)
    affinities = torch.zeros_like(responses).scatter(1, chosen, weights)
    return Contest(output, chosen, winners, affinities)


class CompeteSMoE(SMoE):
    """`SMoE` whose router learns, in some steps, whom a competition would have chosen.

    In a training step with ``competing = True`` all experts answer, the K with the strongest
    responses are weighted by them, and the router is trained on the distillation loss.  In all
    others, and in evaluation, the router alone decides.

    Parameters
    ----------
    experts, router, top_k, hidden, balance, z, response, ...
        As `SMoE` takes them.
    gamma : float
        Weight of the distillation loss (1).
    alpha : float
        Weight of the winners' errors in it.
    beta : float
        Weight of the diversity loss (2).
    reading : str
        ``"paper"``; or ``"code"``: the target of (1) is the softmax of all N responses, (2) is
        averaged over all K^2 entries, the balance loss counts first choices only, in a competing
        step those of the competition with the softmax of its responses, and there is no z loss in
        it.  `CompetitionSchedule` has the code's deferral.

    Notes
    -----
    Nguyen et al. (2025), Sec. 2; defaults of its Table 20.  The paper's readings: the router's
    affinities in (1) are the softmax over all N experts, for a top-K would give the losers no
    gradient; the competition's affinities are a target, through which (1) has no gradient.  The
    other one is `moe_model/model/moe/competesmoe.py` of Fsoft-AIC/CompeteSMoE at 0be1cb7, where
    alpha is ``router_theta`` with ``hybrid``, and 0 without.

    Examples
    --------
    >>> from moestat.networks.smoe import auxiliary_loss
    >>> _ = torch.manual_seed(0)
    >>> layer = CompeteSMoE(16, 8, top_k=2, hidden=32)
    >>> layer.competing = True
    >>> y = layer(torch.randn(3, 16))
    >>> bool(auxiliary_loss(layer) > 0)
    True
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
        gamma: float = 0.01,
        alpha: float = 0.1,
        beta: float = 0.005,
        reading: str = "paper",
        **options: Any,
    ) -> None:
        super().__init__(experts, router, top_k, hidden, **options)
        self.gamma = real_in("gamma", gamma, 0.0)
        self.alpha = real_in("alpha", alpha, 0.0)
        self.beta = real_in("beta", beta, 0.0)
        self.reading = reading_called(reading)

    def _regularisation(self, decision: Decision) -> dict[str, Tensor]:
        if self.reading == "code":
            decision = decision._replace(chosen=decision.chosen[:, :1])
        return super()._regularisation(decision)

    def _answer(self, rows: Tensor, ids: Tensor | None) -> Answer:
        if not (self.training and self.competing):
            return super()._answer(rows, ids)
        outputs = self.experts.every(rows)
        responses = self.response(outputs).T
        outcome = contest(outputs, responses, self.top_k)
        decision = self.decide(rows, ids)
        target, share = outcome.affinities, 1.0
        losses = self._regularisation(decision)
        if self.reading == "code":
            target, share = responses.softmax(-1), 1 - 1 / self.top_k
            losses = self._regularisation(
                decision._replace(scores=responses, chosen=outcome.chosen)
            )
            losses.pop("z", None)
        routed = decision.scores.softmax(-1)
        distilled = distillation_loss(routed, target.detach(), outcome.chosen, self.alpha)
        losses["distillation"] = self.gamma * distilled
        losses["diversity"] = self.beta * share * diversity_loss(outcome.winners)
        return outcome.output, decision, losses


class CompetitionMoE(SMoE):
    """Competition in training and in evaluation: no router decides, all experts always answer.

    Parameters
    ----------
    experts, router, top_k, hidden, balance, z, response, ...
        As `SMoE` takes them; the router is there for its place in the layer and is not trained.

    Notes
    -----
    Nguyen et al. (2025), Sec. 2.2.
    """

    _fixed: ClassVar[dict[str, Any]] = {}

    @door()
    def __init__(
        self,
        experts: StackedExperts | int | None = None,
        router: Router | int | str | None = None,
        top_k: int = 2,
        hidden: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(experts, router, top_k, hidden, **self._fixed, **options)
        if not self.norm_topk_prob or self.router.chooses_rows:
            raise ValueError(
                "norm_topk_prob and router: a competition chooses the experts and their weights"
            )
        self.router.requires_grad_(False)

    def weigh(self, values: Tensor) -> Tensor:
        """Weights (T, K) of the winners from their responses."""
        return normalised(values)

    def decide(self, rows: Tensor, ids: Tensor | None = None) -> Decision:
        """The competition's decision on rows (T, d)."""
        scores = self.competition(rows)
        values, chosen = top_experts(scores, self.top_k, self.shift)
        return Decision(scores, chosen, self.weigh(values))

    def _answer(self, rows: Tensor, ids: Tensor | None) -> Answer:
        outputs = self.experts.every(rows)
        responses = self.response(outputs).T
        outcome = contest(outputs, responses, self.top_k, self.shift, self.weigh)
        weights = outcome.affinities.gather(1, outcome.chosen)
        return outcome.output, Decision(responses, outcome.chosen, weights), {}
