"""Likelihoods: the log-density of a response given its predictors; new ones are registered here."""

from moestat._registry import Registry
from moestat._types import Likelihood
from moestat.likelihoods import gaussian, least_squares, multinomial

__all__ = ["LIKELIHOODS"]

LIKELIHOODS: Registry[Likelihood] = Registry("likelihood")
LIKELIHOODS.register(multinomial.LIKELIHOOD)
LIKELIHOODS.register(gaussian.LIKELIHOOD)
LIKELIHOODS.register(least_squares.LIKELIHOOD)
