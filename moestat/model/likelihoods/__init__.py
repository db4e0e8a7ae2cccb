"""Likelihoods: the log-density of a response given its predictors; new ones are registered here."""

from moestat.base.registry import Registry
from moestat.base.types import Likelihood
from moestat.model.likelihoods import (
    beta,
    beta_binomial,
    binomial,
    gamma,
    gaussian,
    geometric,
    hurdle,
    inverse_gaussian,
    least_squares,
    log_normal,
    multinomial,
    multivariate_gaussian,
    negative_binomial,
    ordinal,
    poisson,
    student_t,
    weibull,
    zero_inflated,
)

__all__ = ["LIKELIHOODS"]

LIKELIHOODS: Registry[Likelihood] = Registry("likelihood", "moestat.likelihoods")
LIKELIHOODS.register(multinomial.LIKELIHOOD)
LIKELIHOODS.register(gaussian.LIKELIHOOD)
LIKELIHOODS.register(least_squares.LIKELIHOOD)
LIKELIHOODS.register(poisson.LIKELIHOOD)
LIKELIHOODS.register(negative_binomial.LIKELIHOOD)
LIKELIHOODS.register(gamma.LIKELIHOOD)
LIKELIHOODS.register(binomial.LIKELIHOOD)
LIKELIHOODS.register(student_t.LIKELIHOOD)
LIKELIHOODS.register(log_normal.LIKELIHOOD)
LIKELIHOODS.register(inverse_gaussian.LIKELIHOOD)
LIKELIHOODS.register(weibull.EXPONENTIAL)
LIKELIHOODS.register(weibull.LIKELIHOOD)
LIKELIHOODS.register(beta.LIKELIHOOD)
LIKELIHOODS.register(beta_binomial.LIKELIHOOD)
LIKELIHOODS.register(geometric.LIKELIHOOD)
for _counts in (poisson, negative_binomial):
    for _member in (
        zero_inflated.member(_counts.LIKELIHOOD),
        *hurdle.members(_counts.LIKELIHOOD, _counts.zero),
    ):
        LIKELIHOODS.register(_member)
LIKELIHOODS.register(ordinal.LIKELIHOOD)
LIKELIHOODS.register(multivariate_gaussian.member(gaussian.LIKELIHOOD))


def __dir__() -> list[str]:
    return sorted(__all__)
