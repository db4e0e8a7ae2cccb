"""Several responses of a row: within an expert they are independent given the inputs.

The log-density of an expert is the sum of those of the responses, each with a likelihood,
predictors and scales of its own, ``l = sum_r l_r(y_r | eta_r)``.  The channels of an atom are those
of the first response, the expert's and then the likelihood's, those of the second, and so on;
blocks carry the name of their response.  Encoded responses are one record per row, with a field
for each of them.

Source: Gruen and Leisch (2008), Sec. 2; latent classes with covariates: Bandeen-Roche, Miglioretti,
Zeger and Rathouz (1997).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from moestat.base.registry import configured, table_of
from moestat.base.types import FloatArray
from moestat.base.validate import is_mapping, is_sequence, positive_int
from moestat.model.by_expert import by_expert, is_by_expert
from moestat.model.likelihoods import LIKELIHOODS
from moestat.model.members import Channel, Expert, Likelihood, Part, Symmetry
from moestat.model.qualify import renamed
from moestat.model.records import joined

__all__ = ["as_likelihood", "expert_of", "joint", "likelihood_table", "with_responses"]


def as_likelihood(given: Any) -> Likelihood:
    """A likelihood by name or table, or that of several responses by a list of these.

    A table ``{"experts": [...]}`` has the likelihood of each expert.
    """
    if is_by_expert(given):
        if unknown := given.keys() - {"experts"}:
            raise ValueError(f"likelihood: a table of experts has no {', '.join(unknown)}")
        return by_expert(given["experts"])
    return joint(given) if is_sequence(given) else configured(LIKELIHOODS, given)


def with_responses(
    given: Any, names: Sequence[str], n_classes: Sequence[int | None] | None = None
) -> Likelihood:
    """A likelihood of several responses by list, name or table, with these names and sizes."""
    if is_sequence(given):
        return joint(given, names, n_classes)
    table = {"name": given} if isinstance(given, str) else dict(given)
    return configured(LIKELIHOODS, {**table, "responses": list(names)})


def likelihood_table(likelihood: Likelihood) -> Any:
    """The name, table or list that makes a likelihood, the inverse of `as_likelihood`."""
    if likelihood.choices is not None:
        return {"experts": likelihood.choices.tables}
    if not likelihood.parts or likelihood.options:
        return table_of(likelihood)
    tables = []
    for one in likelihood.parts:
        table = {"name": one.likelihood.name, **one.likelihood.options, "response": one.name}
        tables.append(
            table | ({} if one.likelihood.support is None else {"n_classes": one.n_classes})
        )
    return tables


def shortest_table(likelihood: Likelihood, n_classes: int) -> Any:
    """The name of a likelihood where it makes this one for so many classes, else its table."""
    named = {**LIKELIHOODS[likelihood.name].options} if likelihood.name in LIKELIHOODS else {}
    if "levels" in named:
        named["levels"] = n_classes
    return likelihood.name if likelihood.options == named else likelihood_table(likelihood)


def joint(
    likelihoods: Sequence[Any],
    names: Sequence[str] | None = None,
    n_classes: Sequence[int | None] | None = None,
) -> Likelihood:
    """The likelihood of several responses that are independent within an expert.

    A table may hold the ``response``'s name and, of classes, ``n_classes``; `names` and `n_classes`
    take their places.
    """
    if not likelihoods:
        raise ValueError("likelihood: a list must hold one likelihood for each response")
    parts = []
    for r, given in enumerate(likelihoods):
        table = dict(given) if is_mapping(given) else {}
        name = table.pop("response", f"y{r + 1}") if names is None else names[r]
        table.pop("response", None)
        K = table.pop("n_classes", None)
        K = K if n_classes is None or n_classes[r] is None else n_classes[r]
        parts.append(_part(r, str(name), configured(LIKELIHOODS, table or given), K))
    called = [one.name for one in parts]
    if len(set(called)) < len(called):
        raise ValueError(f"y: two responses are called {max(called, key=called.count)!r}")
    return joined(tuple(parts))


def _part(r: int, name: str, likelihood: Likelihood, K: int | None) -> Part:
    """The r-th response, its likelihood for K classes."""
    if likelihood.block is None or likelihood.dtype is np.complex128:
        why = "has no density" if likelihood.block is None else "has two columns"
        raise ValueError(
            f"likelihood: {likelihood.name!r} of response {name!r} {why}, and several responses"
            " have one column and a density each"
        )
    if likelihood.support is None:
        return Part(name, r, likelihood, 1)
    K = positive_int(f"n_classes of response {name!r}", 2 if K is None else K, 2)
    if "levels" in likelihood.options:
        assert likelihood.configure is not None
        likelihood = likelihood.configure(levels=K)
    return Part(name, r, likelihood, K)


def expert_of(expert: Expert, likelihood: Likelihood) -> Expert:
    """The expert with predictors of each response, blocks by its name; for one as it is."""
    parts = likelihood.parts
    if not parts:
        return expert
    if expert.block is not None:
        raise ValueError(
            f"expert {expert.name!r} supplies one mean, but there are {len(parts)} responses; only"
            " linear experts have several"
        )
    experts = [renamed(expert, one.blocks(expert.bounds)) for one in parts]

    def channels(n_features: int, n_responses: int | None) -> tuple[Channel, ...]:
        """The predictors of all responses, response by response."""
        pairs = zip(experts, parts, strict=True)
        return tuple(c for each, one in pairs for c in each.channels(n_features, one.n_responses))

    def reference(blocks: Mapping[str, np.ndarray], X: FloatArray) -> np.ndarray:
        """Predictors (k, Q, n)."""
        predictors = [
            each.reference({name: blocks[name] for name in each.bounds}, X) for each in experts
        ]
        return np.concatenate([f[:, None] if f.ndim == 2 else f for f in predictors], axis=1)

    def typical(rng, n_experts, n_features, n_responses):
        """Predictors of a sensible truth."""
        pairs = zip(experts, parts, strict=True)
        truths = [each.typical(rng, n_experts, n_features, one.n_responses) for each, one in pairs]
        return {name: block for blocks in truths for name, block in blocks.items()}

    levels = tuple(each.units.level for each in experts if isinstance(each.units.level, str))
    return replace(
        expert,
        channels=channels,
        reference=reference,
        typical=typical,
        bounds={name: pair for each in experts for name, pair in each.bounds.items()},
        units=replace(
            expert.units,
            level=levels,
            powers={n: p for each in experts for n, p in each.units.powers.items()},
        ),
        symmetry=Symmetry(
            linear_in=tuple(name for each in experts for name in each.symmetry.linear_in)
        ),
    )
