"""Optimisers of networks: each one file; a new optimiser is registered here."""

from __future__ import annotations

from moestat.base.registry import Maker, Registry
from moestat.networks.optimisers.adam import Adam
from moestat.networks.optimisers.gradient_descent import GradientDescent
from moestat.networks.optimisers.normalised import NormalisedGradientDescent
from moestat.networks.optimisers.optimiser import Optimiser

__all__ = ["OPTIMISERS", "Adam", "GradientDescent", "NormalisedGradientDescent", "Optimiser"]

OPTIMISERS: Registry[Maker] = Registry("optimiser", "moestat.networks.optimisers")
OPTIMISERS.register(Maker("normalised-gd", NormalisedGradientDescent))
OPTIMISERS.register(Maker("gd", GradientDescent))
OPTIMISERS.register(Maker("adam", Adam))
