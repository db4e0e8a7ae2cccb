"""Likelihoods: the log-density of a response given its predictors; new ones are registered here."""

from moestat.base.registry import Registry
from moestat.base.types import Likelihood
from moestat.model.likelihoods import (
    binomial,
    gamma,
    gaussian,
    least_squares,
    multinomial,
    negative_binomial,
    poisson,
)

__all__ = ["LIKELIHOODS"]

LIKELIHOODS: Registry[Likelihood] = Registry("likelihood")
LIKELIHOODS.register(multinomial.LIKELIHOOD)
LIKELIHOODS.register(gaussian.LIKELIHOOD)
LIKELIHOODS.register(least_squares.LIKELIHOOD)
LIKELIHOODS.register(poisson.LIKELIHOOD)
LIKELIHOODS.register(negative_binomial.LIKELIHOOD)
LIKELIHOODS.register(gamma.LIKELIHOOD)
LIKELIHOODS.register(binomial.LIKELIHOOD)
