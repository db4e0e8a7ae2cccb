"""Likelihoods: the log-density of a response given its predictors; new ones are registered here."""

from moestat.base.registry import Registry
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
from moestat.model.members import Likelihood

__all__ = ["LIKELIHOODS"]

_ALIASES = {
    "normal": "gaussian",
    "multivariate-normal": "multivariate-gaussian",
    "mvn": "multivariate-gaussian",
    "lognormal": "log-normal",
    "student": "student-t",
    "t": "student-t",
    "studentt": "student-t",
    "invgauss": "inverse-gaussian",
    "inversegaussian": "inverse-gaussian",
    "wald": "inverse-gaussian",
    "negbin": "negative-binomial",
    "negativebinomial": "negative-binomial",
    "nbinom": "negative-binomial",
    "nb": "negative-binomial",
    "nb2": "negative-binomial",
    "zip": "zero-inflated-poisson",
    "zeroinflatedpoisson": "zero-inflated-poisson",
    "zinb": "zero-inflated-negative-binomial",
    "bernoulli": "binomial",  # whose default is one trial
    "betabinomial": "beta-binomial",
    "betabinom": "beta-binomial",
    "logistic": "multinomial",
    "logit": "multinomial",
    "mnlogit": "multinomial",
    "categorical": "multinomial",
    "ordered": "ordinal",
    "expon": "exponential",
}
"""Names of flexmix, mclust, R, SciPy, scikit-learn and statsmodels that have one meaning."""

LIKELIHOODS: Registry[Likelihood] = Registry("likelihood", "moestat.likelihoods", aliases=_ALIASES)
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
