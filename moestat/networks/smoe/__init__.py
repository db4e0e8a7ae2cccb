"""Sparse mixtures of experts as PyTorch modules, and CompeteSMoE (extra ``torch``).

Names are resolved on first use; nothing outside this folder imports PyTorch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moestat.networks.smoe.build import DenseBlock
    from moestat.networks.smoe.compete import CompeteSMoE, CompetitionMoE
    from moestat.networks.smoe.compete_v1 import CompeteSMoEv1, CompetitionMoEv1
    from moestat.networks.smoe.encoder import SMoEEncoderLayer
    from moestat.networks.smoe.experts import GatedExperts, LinearExperts, MLPExperts
    from moestat.networks.smoe.layer import SMoE, auxiliary_loss, before_step
    from moestat.networks.smoe.routers import (
        CosineRouter,
        FixedRouter,
        HashRouter,
        SoftmaxRouter,
        StableRouter,
    )
    from moestat.networks.smoe.schedule import CompetitionSchedule
    from moestat.networks.smoe.upcycling import copy_gated, copy_linear, copy_mixtral, upcycle

_HOMES = {
    "compete": ("CompeteSMoE", "CompetitionMoE"),
    "compete_v1": ("CompeteSMoEv1", "CompetitionMoEv1"),
    "build": ("DenseBlock",),
    "encoder": ("SMoEEncoderLayer",),
    "experts": ("GatedExperts", "LinearExperts", "MLPExperts"),
    "layer": ("SMoE", "auxiliary_loss", "before_step"),
    "routers": ("CosineRouter", "FixedRouter", "HashRouter", "SoftmaxRouter", "StableRouter"),
    "schedule": ("CompetitionSchedule",),
    "upcycling": ("copy_gated", "copy_linear", "copy_mixtral", "upcycle"),
}

__all__ = [
    "CompeteSMoE",
    "CompeteSMoEv1",
    "CompetitionMoE",
    "CompetitionMoEv1",
    "CompetitionSchedule",
    "CosineRouter",
    "DenseBlock",
    "FixedRouter",
    "GatedExperts",
    "HashRouter",
    "LinearExperts",
    "MLPExperts",
    "SMoE",
    "SMoEEncoderLayer",
    "SoftmaxRouter",
    "StableRouter",
    "auxiliary_loss",
    "before_step",
    "copy_gated",
    "copy_linear",
    "copy_mixtral",
    "upcycle",
]


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
