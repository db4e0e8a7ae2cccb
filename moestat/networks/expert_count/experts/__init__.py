"""Experts of networks: each one file; a new expert is registered here."""

from __future__ import annotations

from moestat.base.registry import Registry
from moestat.networks.expert_count.experts import cnn, mlp
from moestat.networks.expert_count.experts.expert import PatchExpert

__all__ = ["EXPERTS", "PatchExpert"]

EXPERTS: Registry[PatchExpert] = Registry("expert", "moestat.networks.experts")
EXPERTS.register(mlp.EXPERT)
EXPERTS.register(cnn.EXPERT)
