"""Experts of one layer, with their matrices stacked: one file each."""

from __future__ import annotations

from moestat.base.registry import Maker, Registry
from moestat.networks.smoe.experts.linear import LinearExperts
from moestat.networks.smoe.experts.mlp import GatedExperts, MLPExperts
from moestat.networks.smoe.experts.stacked import StackedExperts

__all__ = ["STACKED_EXPERTS", "GatedExperts", "LinearExperts", "MLPExperts", "StackedExperts"]

STACKED_EXPERTS: Registry[Maker] = Registry("experts", "moestat.networks.smoe_experts")
"""Name -> class; every one takes n_experts, n_inputs, n_hidden and n_outputs."""
for _maker in (
    Maker("mlp", MLPExperts),
    Maker("gated", GatedExperts),
    Maker("linear", LinearExperts),
):
    STACKED_EXPERTS.register(_maker)


def __dir__() -> list[str]:
    return sorted(__all__)
