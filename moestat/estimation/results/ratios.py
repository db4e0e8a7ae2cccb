"""Rate and odds ratios: coefficients on a logarithmic or logit scale, exponentiated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from moestat.estimation.results.estimate import NOT_A_RATIO, OF_INTERCEPT, Estimate
from moestat.model.family import Family
from moestat.model.links import link_of
from moestat.model.members import Likelihood

__all__ = ["has_ratios", "kinds_of_ratio", "with_ratios"]


def kinds_of_ratio(family: Family) -> list[str]:
    """What the exponential of each packed parameter (P,) is; "as estimated" where it is no ratio.

    The intercept and the slopes of an expert are on the scale of its link, those of a softmax gate
    are log-odds of an expert against the reference.
    """
    kinds = [NOT_A_RATIO] * family.n_params
    for c, channel in enumerate(family.channels):
        for atom in range(1 if channel.shared else family.n_experts):
            kind = _kind(family, c, atom)
            if kind is None:
                continue
            first = int(family.index[atom, c])
            kinds[first] = OF_INTERCEPT
            for position in range(first + 1, first + int(family.width[c])):
                kinds[position] = kind
    return kinds


def _kind(family: Family, c: int, atom: int) -> str | None:
    """What the exponential of a slope of one channel of an atom is; None if it is no ratio."""
    channel = family.channels[c]
    if channel.shared or channel.log or channel.axis is not None or channel.reads is not None:
        return None
    if channel.slope is None and channel.products is None:
        return None
    if c < family.first_expert_channel:
        gate = family.channels[: family.first_expert_channel]
        # A shared parameter, such as a temperature, divides the log-odds.
        is_logit = family.plain_name(c) in family.gate.translations and not any(
            each.shared for each in gate
        )
        return "odds ratio" if is_logit else None
    if family.expert.block is not None:
        return None  # not linear in the coefficients
    choices = family.likelihood.choices
    if choices is not None:
        return _kind_of_link(choices.laws[choices.law_of_expert[atom]])
    return _kind_of_link(family.likelihood.laws[int(family.response_of[c])])


def _kind_of_link(law: Likelihood) -> str | None:
    """What the exponential of a slope is under the link of a likelihood."""
    link = link_of(law)
    if link == "log":
        return "rate ratio" if law.counts else "ratio of means"
    return "odds ratio" if link == "logit" else None


def _kinds(family: Family, names: Sequence[str], rows: Sequence[Estimate]) -> list[str]:
    """What the exponential of each estimate is."""
    kind_of = dict(zip(names, kinds_of_ratio(family), strict=True))
    return [kind_of[each.term.name] for each in rows]


def has_ratios(family: Family, names: Sequence[str], rows: Sequence[Estimate]) -> bool:
    """Whether any of these estimates is on a log or logit scale."""
    return any(kind != NOT_A_RATIO for kind in _kinds(family, names, rows))


def with_ratios(family: Family, names: Sequence[str], rows: Sequence[Estimate]) -> list[Estimate]:
    """Estimates with those on a log or logit scale exponentiated; `scale` is what each of them is.

    `names` has the name of each packed parameter.  Standard errors are those of the delta method,
    ``exp(b) se(b)``; the ends of intervals are the exponentials of those of b; z and p-values are
    those of b, and test that a ratio is 1.
    """
    kinds = _kinds(family, names, rows)
    if not has_ratios(family, names, rows):
        raise ValueError(
            "exponentiate: no coefficient of this model is on a log or logit scale (experts"
            f" {family.likelihood.name!r}, {family.n_experts} of them, gate {family.gate.name!r});"
            " leave exponentiate out"
        )
    return [
        each if kind == NOT_A_RATIO else _exponentiated(each, kind)
        for each, kind in zip(rows, kinds, strict=True)
    ]


def _exponentiated(each: Estimate, kind: str) -> Estimate:
    with np.errstate(over="ignore", invalid="ignore"):
        ratio, lower, upper = np.exp([each.estimate, each.lower, each.upper]).tolist()
        error = float(np.multiply(ratio, each.error))
    return replace(each, estimate=ratio, error=error, lower=lower, upper=upper, scale=kind)
