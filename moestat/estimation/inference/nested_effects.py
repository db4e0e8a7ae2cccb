"""Likelihood ratios of variances of random effects, which are 0 on the boundary of their range.

With one variance more, and its covariances with the other effects, twice the gain in log-likelihood
has under the hypothesis a mixture, half and half, of two chi-square distributions: of the number of
all additional parameters, and of one less.

Source: Self and Liang (1987), Case 5 and 6; Stram and Lee (1994), Sec. 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from moestat.base.types import FloatArray
from moestat.estimation.fit.components import factor_index
from moestat.estimation.inference.hypotheses import TestResult
from moestat.estimation.inference.random_effects import effect_names
from moestat.model.joint import likelihood_table
from moestat.model.random_effects import factors

if TYPE_CHECKING:
    from moestat.estimation.fit.fitted import Fitted

__all__ = ["additional_variances", "are_nested_effects", "embedded_effects", "mixture_ratio"]


def _names(result: Fitted) -> list[str]:
    """Names of the effects; that of the groups is "Intercept", whether they have parts or not."""
    effects = result.family.likelihood.effects
    if effects is None:
        return []
    names = effect_names(result)
    return names if effects.within is None else [names[0], "Intercept"]


def _without_effects(result: Fitted) -> object:
    """The likelihood of a result without its random effects, as a table."""
    likelihood = result.family.likelihood
    if likelihood.effects is None:
        return likelihood_table(likelihood)
    if likelihood.random_effects.base is not None:
        return likelihood_table(likelihood.random_effects.base)
    table: Any = likelihood_table(likelihood)
    others = {name: table[name] for name in table if name not in ("random", "covariance")}
    return others["name"] if {*others} == {"name"} else others


def are_nested_effects(small: Fitted, large: Fitted) -> bool:
    """Whether the likelihoods differ only in random effects, and those of one are in the other."""
    effects = large.family.likelihood.effects
    if effects is None:
        return False
    names = _names(small)
    own = small.family.likelihood.effects
    correlated = own is not None and not own.diagonal and len(names) > 1
    return (
        _without_effects(small) == _without_effects(large)
        and {*names} <= {*_names(large)}
        and not (correlated and effects.diagonal)
    )


def additional_variances(small: Fitted, large: Fitted) -> int:
    """Number of the variances of one expert of `large` that `small` does not have.

    Raises
    ------
    ValueError
        If the distribution of a likelihood ratio is not known: with more than one of them, or with
        one in each of several experts.
    """
    more = [name for name in _names(large) if name not in _names(small)]
    if more and (len(more) > 1 or large.family.n_experts > 1):
        what = (
            f"{len(more)} variances" if len(more) > 1 else "a variance in each of several experts"
        )
        raise ValueError(
            f"full has {what} of random effects more than restricted ({', '.join(more)}): the"
            " likelihood ratio then has no known distribution; compare fits of one expert that"
            " differ by one random effect, or compare by BIC"
        )
    return len(more)


def embedded_effects(small: Fitted, large: Fitted, theta: FloatArray) -> FloatArray:
    """The parameters theta (P,) of the large family with the covariance matrices of the small."""
    family, names = large.family, _names(large)
    index, effects = factor_index(family), family.likelihood.random_effects
    embedded = theta.copy()
    places = [names.index(name) for name in _names(small)]
    L: Any = np.zeros((family.n_experts, len(names), len(names)))
    if places:
        own = small.family
        given = factors(own.likelihood.random_effects, np.asarray(small.theta), factor_index(own))
        L[:, np.array(places)[:, None], places] = given
    for i in range(family.n_experts):
        for j in range(len(names)):
            for f in range(j, int(effects.last[j])):
                embedded[index[i, j] + effects.features[f]] = L[i, f, j]
    return embedded


def mixture_ratio(restricted: float, full: float, df: int) -> TestResult:
    """Twice the difference of two log-likelihoods, of models that differ by one variance."""
    from scipy.stats import chi2

    statistic = max(2.0 * (full - restricted), 0.0)
    below = float(chi2.sf(statistic, df - 1)) if df > 1 else float(statistic == 0.0)
    pvalue = 0.5 * below + 0.5 * float(chi2.sf(statistic, df))
    return TestResult("likelihood ratio", statistic, df, pvalue, df - 1)
