"""Links between means and predictors, by name."""

from __future__ import annotations

import numpy as np

from moestat.model.members import Likelihood

__all__ = ["link_of", "links_of"]

_PROBE = np.array([0.1, 0.3, 0.7])
"""Means at which a link is compared with a logarithm and a logit: no two of the links logit,
probit, complementary log-log and logarithm take one of them to the same predictor."""


def link_of(law: Likelihood) -> str:
    """The link of a likelihood of one response: "log", "logit", "identity" or "other".

    The predictors of classes are logits.

    Examples
    --------
    >>> from moestat.model.likelihoods import LIKELIHOODS
    >>> [link_of(LIKELIHOODS[name]) for name in ("poisson", "binomial", "gaussian")]
    ['log', 'logit', 'identity']
    """
    if law.support is not None:
        return "logit" if law.chances is None or law.name == "ordinal" else "other"
    if law.link is None:
        return "identity"
    trials = law.options.get("trials", 1)
    n = trials if isinstance(trials, int) else 1
    if np.allclose(law.link(n * _PROBE), np.log(_PROBE) - np.log1p(-_PROBE)):
        return "logit"
    return "log" if np.allclose(law.link(_PROBE), np.log(_PROBE)) else "other"


def links_of(law: Likelihood) -> set[str]:
    """The links of a likelihood of several responses, or of one for each expert."""
    if law.choices is not None:
        return {link_of(one) for one in law.choices.laws if one.reads_mean}
    return {link_of(one.likelihood) for one in law.parts} or {link_of(law)}
