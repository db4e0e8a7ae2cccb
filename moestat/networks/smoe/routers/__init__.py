"""Routers: how a row ranks the experts of a layer.  One file each."""

from __future__ import annotations

from moestat.base.registry import Maker, Registry
from moestat.networks.smoe.routers.balanced import BiasBalancedRouter
from moestat.networks.smoe.routers.cosine import CosineRouter
from moestat.networks.smoe.routers.expert_choice import ExpertChoiceRouter
from moestat.networks.smoe.routers.hashed import HashRouter
from moestat.networks.smoe.routers.router import Router
from moestat.networks.smoe.routers.softmax import FixedRouter, SoftmaxRouter, StableRouter

__all__ = [
    "ROUTERS",
    "BiasBalancedRouter",
    "CosineRouter",
    "ExpertChoiceRouter",
    "FixedRouter",
    "HashRouter",
    "Router",
    "SoftmaxRouter",
    "StableRouter",
]

ROUTERS: Registry[Maker] = Registry("router", "moestat.networks.routers")
"""Name -> class; every one takes n_inputs and n_experts."""
for _maker in (
    Maker("softmax", SoftmaxRouter),
    Maker("cosine", CosineRouter),
    Maker("fixed", FixedRouter),
    Maker("stable", StableRouter),
    Maker("hash", HashRouter),
    Maker("bias-balanced", BiasBalancedRouter),
    Maker("expert-choice", ExpertChoiceRouter),
):
    ROUTERS.register(_maker)


def __dir__() -> list[str]:
    return sorted(__all__)
