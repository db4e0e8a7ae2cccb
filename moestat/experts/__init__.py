"""Experts: how the predictors of the likelihood depend on x; a new expert is registered here."""

from moestat._registry import Registry
from moestat._types import Expert
from moestat.experts import activation, ffn, linear, polynomial

__all__ = ["EXPERTS"]

EXPERTS: Registry[Expert] = Registry("expert")
EXPERTS.register(linear.EXPERT)
EXPERTS.register(polynomial.EXPERT)
EXPERTS.register(activation.EXPERT)
EXPERTS.register(ffn.EXPERT)
