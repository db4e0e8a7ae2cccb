"""Blocks by the name of a method."""

from __future__ import annotations

from typing import Any

from moestat.base.door import door
from moestat.networks.smoe.compete import CompeteSMoE, CompetitionMoE
from moestat.networks.smoe.compete_v1 import CompeteSMoEv1, CompetitionMoEv1
from moestat.networks.smoe.dense import DenseBlock
from moestat.networks.smoe.experts import STACKED_EXPERTS
from moestat.networks.smoe.layer import SMoE
from moestat.networks.smoe.routers import ROUTERS
from moestat.networks.smoe.training.settings import Settings

__all__ = ["make_block"]

_ROUTER = {"xmoe": "cosine", "fixed": "fixed", "stable": "stable", "hash": "hash"}


@door()
def make_block(
    settings: Settings, n_inputs: int, n_outputs: int, n_tokens: int = 0
) -> SMoE | DenseBlock:
    """The block of a method.

    Parameters
    ----------
    settings : Settings
        Its method and sizes.
    n_inputs, n_outputs : int
        Widths of a row and of an output.
    n_tokens : int
        Size of the vocabulary, for a hash router.

    Returns
    -------
    SMoE or DenseBlock
        With random weights.

    Examples
    --------
    >>> from moestat.networks.smoe.training.settings import make_settings
    >>> settings = make_settings({"task": "clusters", "method": "compete-v2", "n_steps": 1})
    >>> type(make_block(settings, 4, 3)).__name__
    'CompeteSMoE'
    """
    method, dense = settings.method, settings.method == "dense"
    experts = STACKED_EXPERTS[settings.expert].make(
        n_experts=1 if dense else settings.n_experts,
        n_inputs=n_inputs,
        n_hidden=settings.n_hidden * (settings.top_k if dense else 1),
        n_outputs=n_outputs,
    )
    if dense:
        return DenseBlock(experts)
    name = _ROUTER.get(method, "softmax")
    more = {"n_tokens": n_tokens, "top_k": settings.top_k} if name == "hash" else {}
    router = ROUTERS[name].make(n_inputs=n_inputs, n_experts=settings.n_experts, **more)
    shared: dict[str, Any] = {
        "top_k": settings.top_k,
        "balance": settings.balance,
        "z": settings.z,
    }
    if method == "compete-v1":
        options = {"alpha": settings.alpha, "reading": settings.reading}
        return CompeteSMoEv1(experts, router, **options, **shared)
    if method == "competition-v1":
        return CompetitionMoEv1(experts, router, **shared)
    if method == "compete-v2":
        weights = {name: getattr(settings, name) for name in ("gamma", "alpha", "beta", "reading")}
        return CompeteSMoE(experts, router, response=settings.response, **shared, **weights)
    kind = CompetitionMoE if method == "competition" else SMoE
    return kind(experts, router, response=settings.response, **shared)
