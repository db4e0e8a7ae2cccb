"""Experts: how the predictors of the likelihood depend on x; a new expert is registered here."""

from moestat.base.registry import Registry
from moestat.model.experts import activation, ffn, linear, polynomial
from moestat.model.members import Expert

__all__ = ["EXPERTS"]

EXPERTS: Registry[Expert] = Registry("expert", "moestat.experts")
EXPERTS.register(linear.EXPERT)
EXPERTS.register(polynomial.EXPERT)
EXPERTS.register(activation.EXPERT)
EXPERTS.register(ffn.EXPERT)


def __dir__() -> list[str]:
    return sorted(__all__)
