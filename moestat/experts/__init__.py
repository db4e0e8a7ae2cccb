"""Experts: how the predictors of the likelihood depend on x; a new expert is registered here."""

from moestat._registry import Registry
from moestat._types import Expert
from moestat.experts import linear

__all__ = ["EXPERTS"]

EXPERTS: Registry[Expert] = Registry("expert")
EXPERTS.register(linear.EXPERT)
