"""Optimisers of networks: each one file; a new optimiser is registered here."""

from __future__ import annotations

from moestat.base.registry import Maker, Registry
from moestat.networks.expert_count.optimisers.adam import Adam
from moestat.networks.expert_count.optimisers.gradient_descent import GradientDescent
from moestat.networks.expert_count.optimisers.normalised import NormalisedGradientDescent
from moestat.networks.expert_count.optimisers.optimiser import Optimiser

__all__ = ["OPTIMISERS", "Adam", "GradientDescent", "NormalisedGradientDescent", "Optimiser"]

OPTIMISERS: Registry[Maker] = Registry("optimiser", "moestat.networks.optimisers")
OPTIMISERS.register(Maker("normalised-gd", NormalisedGradientDescent))
OPTIMISERS.register(Maker("gd", GradientDescent))
OPTIMISERS.register(Maker("adam", Adam))
