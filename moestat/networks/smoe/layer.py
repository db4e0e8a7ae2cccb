"""The sparse mixture-of-experts layer."""

from __future__ import annotations

import math
import warnings
from inspect import signature
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call

from moestat.base.door import door
from moestat.base.validate import UnknownArgumentError, check_keywords, positive_int, real_in, short
from moestat.base.warnings import MoEWarning, warn_caller
from moestat.networks.smoe.dispatch import Collected, Sent, plan_dispatch, transforms
from moestat.networks.smoe.experts import GatedExperts, MLPExperts, StackedExperts
from moestat.networks.smoe.losses import balance_loss, load_of, z_loss
from moestat.networks.smoe.responses import response_called
from moestat.networks.smoe.routers import ROUTERS, ExpertChoiceRouter, HashRouter, Router
from moestat.networks.smoe.schedule import CompetitionSchedule

__all__ = [
    "Decision",
    "Pass",
    "SMoE",
    "auxiliary_loss",
    "before_step",
    "layers_of",
    "top_experts",
    "weighted_sum",
]


class Decision(NamedTuple):
    """Who answers each row: scores (T, N), the experts chosen (T, K), and their weights (T, K)."""

    scores: Tensor
    chosen: Tensor
    weights: Tensor


Answer = tuple[Tensor, Decision, dict[str, Tensor]]
"""Outputs of rows, who answered them, and the weighted terms of the auxiliary loss."""


@door()
def top_experts(scores: Tensor, top_k: int, shift: int = 0) -> tuple[Tensor, Tensor]:
    """Scores (T, K) and experts (T, K) of the K best, or of the K that follow the `shift` best."""
    values, chosen = scores.topk(top_k + shift, dim=-1)
    return values[:, shift:], chosen[:, shift:]


@door()
def weighted_sum(weights: Tensor, answers: Tensor) -> Tensor:
    """Sums (T, D) of answers (T, K, D) with weights (T, K), in the precision of the answers."""
    # Three times as fast as a batch of T products of a row with a matrix.
    return (weights.to(answers.dtype).unsqueeze(2) * answers).sum(1).to(answers.dtype)


class Pass(NamedTuple):
    """What a layer did in its last forward pass, without gradients, for logging.

    Scores (T, N), the experts chosen (T, K), the share of all choices that each expert got (N,),
    and the weighted terms of the auxiliary loss by name, in training.
    """

    scores: Tensor
    chosen: Tensor
    load: Tensor
    losses: dict[str, Tensor]

    def __repr__(self) -> str:
        rows, n_experts = self.scores.shape
        text = f"Pass({rows} rows, {n_experts} experts, top_k={self.chosen.shape[1]}"
        if not self.load.is_meta:
            text += f", load {float(self.load.min()):.3g} to {float(self.load.max()):.3g}"
            text += "".join(f", {name} {float(loss):.3g}" for name, loss in self.losses.items())
        return f"{text})"


class _Attached(torch.autograd.Function):
    """The identity in the outputs, which makes a loss part of what they were computed from.

    Whoever walks from the outputs to the parameters, as `DistributedDataParallel` does to find
    those that take no part, finds those of the loss.
    """

    @staticmethod
    def forward(ctx: Any, out: Tensor, loss: Tensor) -> Tensor:
        ctx.like = loss.detach()
        return out.view_as(out)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        return gradients[0], torch.zeros_like(ctx.like)


_is_exporting = getattr(torch.compiler, "is_exporting", torch.compiler.is_compiling)
"""PyTorch 2.6 has one function for both, so that compiled code leaves no `last` there."""

_MOST_PENDING = 1024
"""Passes whose auxiliary losses wait to be taken, at most: each holds the graph of its pass."""


class SMoE(nn.Module):
    """Each row is answered by the K experts that the router scores highest.

    Takes the place of a block from (..., d) to (..., D).  Add `auxiliary_loss` of the model to
    the loss of the task in every training step.

    Parameters
    ----------
    experts : StackedExperts or int, optional
        The N experts, beside a router; or d_model.
    router : Router, str or int, optional
        The router; or its name in `moestat.networks.smoe.routers.ROUTERS`, ``"softmax"`` by
        default; or n_experts.
    top_k : int
        K in 1..N.
    hidden : int, optional
        Hidden units of an expert, 4 d by default.
    d_model, n_experts : int, optional
        The width d = D of a row, and N: the layer makes its experts and its router.
    gated : bool
        Beside sizes: `GatedExperts`, as in Llama and Mixtral, in place of `MLPExperts`.
    norm_topk_prob : bool
        Whether the weights of the K experts sum to 1; if not, they are the softmax over all N
        experts, as in OLMoE and Qwen2-MoE.
    activation, bias, dropout, device, dtype
        Beside sizes: as `MLPExperts` takes them.
    balance, z : float
        Weights of `balance_loss` and `z_loss`.
    response : str
        The response by which `competition` ranks the experts, a name in `RESPONSES`.
    shared : Module, optional
        A block from (T, d) to (T, D) whose answer is added for every row.
    jitter : float
        In training the router reads rows times uniform noise on [1 - jitter, 1 + jitter].
    capacity : float, optional
        An expert answers at most ``ceil(capacity T K / N)`` rows, the first ones; the part of
        the others is 0.  No limit by default.
    router_dtype : torch.dtype, optional
        Precision of the router, such as ``torch.float32`` under autocast; that of the rows by
        default.

    Attributes
    ----------
    last : Pass or None
        Scores, choices, load and losses of the last forward pass.

    Raises
    ------
    ValueError
        If K is not in 1..N, a weight is negative, or the parts do not fit.

    Notes
    -----
    Nguyen et al. (2025), Sec. 2.1: ``y = sum over the K best of softmax(TopK(x' W_r))_i g_i(x)``.
    Jitter and capacity are those of Fedus et al. (2022), Sec. 2.2 and 2.4; shared experts those of
    Dai et al. (2024).

    Examples
    --------
    >>> layer = SMoE(d_model=16, n_experts=8, hidden=32, top_k=2, balance=0.01, gated=True)
    >>> tuple(layer(torch.zeros(3, 5, 16)).shape)
    (3, 5, 16)
    >>> from moestat.networks.smoe import GatedExperts, SoftmaxRouter
    >>> layer = SMoE(GatedExperts(8, 16, 32, 16), SoftmaxRouter(16, 8), top_k=2, balance=0.01)
    >>> tuple(layer(torch.zeros(3, 5, 16)).shape)
    (3, 5, 16)
    """

    competes = False
    """Whether `before_step` can make this kind of layer compete in some steps."""

    norm_topk_prob = True
    """That of layers which were stored before there was a choice."""

    told = False
    """Whether `before_step` has been called for this layer."""

    @door()
    def __init__(
        self,
        experts: StackedExperts | int | None = None,
        router: Router | int | str | None = None,
        top_k: int = 2,
        hidden: int | None = None,
        *,
        d_model: int | None = None,
        n_experts: int | None = None,
        gated: bool = False,
        norm_topk_prob: bool = True,
        balance: float = 0.0,
        z: float = 0.0,
        response: str = "softplus",
        shared: nn.Module | None = None,
        jitter: float = 0.0,
        capacity: float | None = None,
        router_dtype: torch.dtype | None = None,
        **sizes: Any,
    ) -> None:
        super().__init__()
        self.experts, self.router = make_parts(
            experts, router, d_model, n_experts, hidden, gated, sizes
        )
        most = self.experts.n_experts
        if positive_int("top_k", top_k) > most:
            raise ValueError(f"top_k must be in 1..{most}, the number of experts, got {top_k}")
        if not isinstance(shared, nn.Module | None):
            raise ValueError(f"shared must be a module or None, got {short(shared)}")
        if not isinstance(router_dtype, torch.dtype | None):
            raise ValueError(f"router_dtype must be one of PyTorch's, got {short(router_dtype)}")
        self.top_k, self.shared, self.router_dtype = top_k, shared, router_dtype
        self.balance, self.z = real_in("balance", balance, 0.0), real_in("z", z, 0.0)
        self.jitter = real_in("jitter", jitter, 0.0, 1.0)
        if capacity is not None:
            capacity = real_in("capacity", capacity, 0.0, open_low=True)
        self.capacity = capacity
        self.norm_topk_prob = norm_topk_prob
        if self.router.chooses_rows and (self.competes or self.balance or capacity is not None):
            raise ValueError(
                "router: where experts choose rows they have equally many, and balance, capacity"
                " and competition have no meaning; use SMoE without balance= and capacity="
            )
        self.response = response_called(response)
        self.competing = False
        self.shift = 0
        self.trace: list[tuple[Decision, Tensor]] | None = None
        self.last: Pass | None = None
        self._pending: list[Tensor] = []
        self._blind = False

    def __getstate__(self) -> dict[str, object]:
        """The layer without what belongs to one pass: copies and files hold no graph."""
        return self.__dict__ | {"_pending": [], "_blind": False, "last": None, "trace": None}

    def extra_repr(self) -> str:
        """Sizes and weights, for the representation of a model."""
        named = {"top_k": self.top_k, "balance": self.balance, "z": self.z}
        named |= {"jitter": self.jitter, "capacity": self.capacity or 0}
        parts = [f"{name}={value:g}" for name, value in named.items() if value]
        return ", ".join([*parts, *([f"competing={self.competing}"] if self.competes else [])])

    def score(self, rows: Tensor, ids: Tensor | None = None) -> Tensor:
        """The router's scores (T, N) of rows (T, d)."""
        if self.training and self.jitter:
            rows = rows * torch.empty_like(rows).uniform_(1 - self.jitter, 1 + self.jitter)
        if self.router_dtype is None:
            return self.router(rows, ids)
        return self.routed(rows, ids, dict(self.router.named_parameters()))

    def routed(self, rows: Tensor, ids: Tensor | None, weights: dict[str, Tensor]) -> Tensor:
        """Scores (T, N) of rows (T, d) by a router of such weights, in the precision asked for."""
        if self.router_dtype is None:
            return functional_call(self.router, weights, (rows, ids))
        weights = {name: value.to(self.router_dtype) for name, value in weights.items()}
        with torch.autocast("cpu" if rows.is_meta else rows.device.type, enabled=False):
            return functional_call(self.router, weights, (rows.to(self.router_dtype), ids))

    def decide(self, rows: Tensor, ids: Tensor | None = None) -> Decision:
        """The router's decision on rows (T, d)."""
        scores = self.score(rows, ids)
        return self._decision(scores)

    def _decision(self, scores: Tensor) -> Decision:
        """Who answers, of the router's scores (T, N)."""
        values, chosen = self.router.select(scores, self.top_k, self.shift)
        if self.router.chooses_rows:
            return Decision(scores, chosen, values)
        if self.norm_topk_prob:
            return Decision(scores, chosen, values.softmax(-1))
        return Decision(scores, chosen, scores.softmax(-1).gather(1, chosen))

    def competition(self, rows: Tensor) -> Tensor:
        """Responses (T, N) of all experts to rows (T, d)."""
        return self.response(self.experts.every(rows)).T

    def forward(self, x: Tensor, ids: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        """Outputs (..., D) of inputs (..., d).

        Parameters
        ----------
        x : Tensor of shape (..., d)
            Inputs.
        ids : Tensor of shape (...), optional
            Tokens, for routers that read them.
        mask : bool Tensor of shape (...), optional
            False for padding: these rows count nowhere, and their outputs are 0.

        Raises
        ------
        ValueError
            If x has another width or holds no floating-point numbers, or if ids or the mask have
            another shape.
        """
        for name, given in {"x": x, "ids": ids, "mask": mask}.items():
            if not isinstance(given, Tensor) and (given is not None or name == "x"):
                raise ValueError(f"{name} must be a Tensor, got {short(given)}")
        if x.shape[-1:] != (self.experts.n_inputs,) or not x.is_floating_point():
            raise ValueError(
                f"x must be of floats and of shape (..., {self.experts.n_inputs}), got {x.dtype}"
                f" and {(*x.shape,)}"
            )
        if ids is not None and ids.shape != x.shape[:-1]:
            raise ValueError(f"ids must have shape {(*x.shape[:-1],)}, got {(*ids.shape,)}")
        rows = x.reshape(-1, x.shape[-1])
        flat = None if ids is None else ids.reshape(-1)
        if mask is None:
            out = self._whole_answer(rows, flat)
        else:
            if mask.shape != x.shape[:-1] or mask.dtype != torch.bool:
                raise ValueError(
                    f"mask must be of bool and of shape {(*x.shape[:-1],)}, got {mask.dtype} and"
                    f" {(*mask.shape,)}"
                )
            (positions,) = torch.nonzero(mask.reshape(-1), as_tuple=True)
            outputs = self._whole_answer(rows[positions], None if flat is None else flat[positions])
            out = outputs.new_zeros(rows.shape[0], outputs.shape[1]).index_copy(
                0, positions, outputs
            )
        return out.reshape(*x.shape[:-1], out.shape[-1])

    def _whole_answer(self, rows: Tensor, ids: Tensor | None) -> Tensor:
        out, decision, losses = self._answer(rows, ids)
        if self.training:
            out = self._note(out, decision, losses)
        if self.trace is not None:
            with torch.no_grad():
                self.trace.append((self.decide(rows, ids), self.competition(rows)))
        if not _is_exporting():
            scores, chosen = decision.scores.detach(), decision.chosen
            terms = {name: loss.detach() for name, loss in losses.items()} if self.training else {}
            self.last = Pass(scores, chosen, load_of(chosen, scores), terms)
        return out if self.shared is None else out + self.shared(rows)

    def _answer(self, rows: Tensor, ids: Tensor | None) -> Answer:
        decision = self.decide(rows, ids)
        return self._combine(rows, decision), decision, self._regularisation(decision)

    def _regularisation(self, decision: Decision) -> dict[str, Tensor]:
        terms = {}
        if self.training and self.balance > 0:
            terms["balance"] = self.balance * balance_loss(decision.scores, decision.chosen)
        if self.training and self.z > 0:
            terms["z"] = self.z * z_loss(decision.scores)
        return terms

    def _note(self, out: Tensor, decision: Decision, losses: dict[str, Tensor]) -> Tensor:
        """Keep the auxiliary loss of a pass; the outputs, from which its parameters are found."""
        # Of one term the total is the term itself: a compiler would make one tensor of a sum with 0
        # and of the detached term in `last`, and take it for one without a gradient.
        terms = list(losses.values()) or [decision.scores.new_zeros(())]
        total = sum(terms[1:], terms[0])
        if total.requires_grad:
            out = _Attached.apply(out, total)  # type: ignore[assignment]
        # A checkpoint that is computed again in the backward pass has been kept the first time.
        if torch.compiler.is_compiling() or torch._C._current_graph_task_id() == -1:
            if len(self._pending) == _MOST_PENDING:
                warnings.warn(
                    f"auxiliary_loss has not been called for {_MOST_PENDING} passes in training:"
                    " the oldest is dropped",
                    stacklevel=2,
                )
                del self._pending[0]
            self._pending.append(total)
            self._blind |= bool(losses) and not torch.is_grad_enabled()
        return out

    def _combine_chosen_rows(
        self, rows: Tensor, router: ExpertChoiceRouter, scores: Tensor
    ) -> Tensor:
        """Outputs (T, D) where each expert answers the rows that it has chosen."""
        weights, chosen = router.rows_of_experts(scores, self.top_k)
        flat = chosen.reshape(-1)
        counts = chosen.new_full((chosen.shape[0],), chosen.shape[1])
        answers = self.experts(rows.index_select(0, flat), counts)
        answers = answers * weights.reshape(-1, 1).to(answers.dtype)
        return answers.new_zeros(rows.shape[0], answers.shape[1]).index_add(0, flat, answers)

    def _combine(self, rows: Tensor, decision: Decision) -> Tensor:
        if isinstance(self.router, ExpertChoiceRouter):
            return self._combine_chosen_rows(rows, self.router, decision.scores)
        plan = plan_dispatch(decision.chosen, self.experts.n_experts)  # type: ignore[reportCallIssue]
        weights = decision.weights
        if self.capacity is not None:
            room = math.ceil(self.capacity * plan.order.shape[0] / self.experts.n_experts)
            first = plan.counts.cumsum(0) - plan.counts
            weights = weights * (plan.places - first[decision.chosen] < room)
        row = plan.order // self.top_k
        if rows.device.type != "cpu" or transforms():
            answers = self.experts(rows.index_select(0, row), plan.counts)
            answers = answers.index_select(0, plan.places.reshape(-1))
            return weighted_sum(weights, answers.view(*plan.places.shape, answers.shape[1]))
        answers = self.experts(Sent.apply(rows, plan, row), plan.counts)
        return Collected.apply(answers, weights.to(answers.dtype), plan, row)  # type: ignore[return-value]

    def take_auxiliary(self) -> Tensor | None:
        """Sum of the auxiliary losses of the passes in training since the last call, if any.

        Each is handed out once, for it holds the graph of its pass.

        Raises
        ------
        RuntimeError
            If gradients are wanted and a pass was made without them.
        """
        pending, self._pending = self._pending, []
        if not pending:
            return None
        blind, self._blind = self._blind, False
        if blind and torch.is_grad_enabled():
            raise RuntimeError(
                "auxiliary_loss has no gradient: the layer's forward pass was made without"
                " gradients, under torch.no_grad() or by checkpoint(use_reentrant=True). Use"
                " use_reentrant=False; transformers take gradient_checkpointing_kwargs="
                "{'use_reentrant': False}"
            )
        return pending[0] if len(pending) == 1 else torch.stack(pending).sum()


_NAMES_ELSEWHERE = {
    "num_experts_per_tok": "top_k",
    "num_experts_per_token": "top_k",
    "moe_top_k": "top_k",
    "k": "top_k",
    "num_experts": "n_experts",
    "num_local_experts": "n_experts",
    "n_routed_experts": "n_experts",
    "hidden_size": "d_model",
    "input_size": "d_model",
    "embed_dim": "d_model",
    "dim": "d_model",
    "intermediate_size": "hidden",
    "moe_intermediate_size": "hidden",
    "ffn_dim": "hidden",
    "d_ff": "hidden",
    "hidden_act": "activation",
    "router_aux_loss_coef": "balance",
    "aux_loss_coef": "balance",
    "router_z_loss_coef": "z",
    "router_jitter_noise": "jitter",
    "capacity_factor": "capacity",
    "expert_capacity": "capacity",
    "shared_expert": "shared",
    "norm_topk_probs": "norm_topk_prob",
}
"""Names of arguments in Hugging Face's configurations and in other libraries -> ours."""

_OF_LAYER = (
    *("d_model", "n_experts", "hidden", "top_k", "balance", "gated", "router", "norm_topk_prob"),
    *("z", "shared", "jitter", "capacity", "router_dtype", "response"),
)
_OF_EXPERTS = ("activation", "bias", "dropout", "device", "dtype")


def make_parts(
    experts: StackedExperts | int | None,
    router: Router | int | str | None,
    d_model: int | None,
    n_experts: int | None,
    hidden: int | None,
    gated: bool,
    sizes: dict[str, Any],
) -> tuple[StackedExperts, Router]:
    """Experts and router as given, or made from a width and a number of experts."""
    for name in sizes:
        if name in _NAMES_ELSEWHERE:
            raise UnknownArgumentError(f"{name}: write {_NAMES_ELSEWHERE[name]}")
    if isinstance(experts, StackedExperts) and isinstance(router, Router):
        given = {"d_model": d_model, "n_experts": n_experts, "hidden": hidden}
        extra = [*sizes, *(name for name, value in given.items() if value is not None)]
        extra += ["gated"] * gated
        if extra:
            raise ValueError(
                f"{', '.join(extra)}: allowed only with sizes, not with existing experts"
            )
        if router.n_experts != experts.n_experts:
            raise ValueError(
                f"router must score {experts.n_experts} experts, got {router.n_experts}"
            )
        return experts, router
    if isinstance(experts, nn.Module) or isinstance(router, nn.Module):
        raise ValueError(
            "experts and router must be modules both, or a width and a number of experts, got"
            f" {type(experts).__name__} and {type(router).__name__}"
        )
    check_keywords("SMoE", sizes, (*_OF_LAYER, *_OF_EXPERTS))
    kind = router if isinstance(router, str) else "softmax"
    number = n_experts if router is None or isinstance(router, str) else router
    for name, first, second in (("d_model", experts, d_model), ("n_experts", number, n_experts)):
        if first is None and second is None:
            raise ValueError(f"{name} is missing: SMoE(d_model=64, n_experts=8, hidden=256)")
        if None not in (first, second) and first is not second and first != second:
            raise ValueError(f"{name} is given twice, as {short(first)} and as {short(second)}")
    width = positive_int("d_model", d_model if experts is None else experts)
    number = positive_int("n_experts", number)
    units = 4 * width if hidden is None else positive_int("hidden", hidden)
    if ROUTERS[kind].make is HashRouter:
        raise ValueError(
            "router: 'hash' needs the size of the vocabulary: give HashRouter(d_model, n_experts,"
            " n_tokens) beside experts"
        )
    made = (GatedExperts if gated else MLPExperts)(number, width, units, width, **sizes)
    factory = {name: sizes[name] for name in ("device", "dtype") if name in sizes}
    taken = {n: v for n, v in factory.items() if n in signature(ROUTERS[kind].make).parameters}
    scorer = ROUTERS[kind].make(n_inputs=width, n_experts=number, **taken)
    return made, scorer if taken == factory else scorer.to(**factory)


@door()
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


@door()
def auxiliary_loss(model: nn.Module) -> Tensor:
    """Sum of the layers' auxiliary losses in the passes made since the last call.

    A layer that a model uses twice counts twice, and so do two batches before one step.

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
    RuntimeError
        If gradients are wanted and a pass was made without them.

    Warns
    -----
    MoEWarning
        Once, if the model has layers that can compete and `before_step` was never called.
    """
    layers = layers_of(model)
    if any(layer.competes and not layer.told and not layer.competing for layer in layers):
        warn_caller(
            "before_step has not been called: no layer competes, and the layers train as SMoE does."
            " Call before_step(model, step, n_steps, schedule) before each step, with schedule=None"
            " if none is to compete",
            MoEWarning,
        )
        for layer in layers:
            layer.told = True
    losses = [layer.take_auxiliary() for layer in layers]
    present = [loss for loss in losses if loss is not None]
    if not present:
        raise ValueError("model has made no forward pass in training mode since the last call")
    return torch.stack([loss.to(present[0].device) for loss in present]).sum()


@door()
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
        Which layers compete in which steps.  With None, the default, no layer competes: a
        `CompeteSMoE` then trains as `SMoE` does.

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
        layer.told = True
        layer.router.before_step(step, n_steps)
        layer.competing = schedule is not None and bool(schedule.active[index, step])
