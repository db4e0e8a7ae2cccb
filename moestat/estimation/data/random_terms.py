"""Random effects of groups as they are asked for: by text, by list, and in formulas."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from moestat.base.validate import is_mapping, is_sequence, short
from moestat.model.family import Family

__all__ = ["check_random_effects", "effects_of_formula", "random_likelihood"]

_FORM = (
    'random must be text such as "1" or "1 + time", a list such as ["1", 0] of "1" and inputs, or a'
    ' table {"terms": ..., "covariance": "diagonal"}'
)


_LIKELIHOODS = ("gaussian", "poisson", "binomial")


def random_likelihood(model: object, random: object, features: Sequence[str] | None, d: int) -> Any:
    """The table of the normal likelihood with the effects that `random` names.

    `features` are the names of the d inputs, None for inputs without names.
    """
    table: Mapping[str, object] = model if is_mapping(model) else {"name": model}
    if not isinstance(table.get("name"), str) or table["name"] not in _LIKELIHOODS:
        raise ValueError(
            "random: random effects are available for the likelihood 'gaussian', and a random"
            " intercept also for 'poisson' and 'binomial'; give the likelihood by its name, got"
            f" {short(model)}"
        )
    if "random" in table:
        raise ValueError("random: the table of the likelihood has random effects, too; give one")
    covariance = "free"
    if is_mapping(random):
        if not {"terms"} <= set(random) <= {"terms", "covariance"}:
            raise ValueError(f"{_FORM}; got {short(random)}")
        random, covariance = random["terms"], random.get("covariance", "free")
    if isinstance(random, str):
        words = [word.strip() for word in random.split("+")]
        words = [*([] if {"0", "1"} & {*words} else ["1"]), *(w for w in words if w != "0")]
    elif is_sequence(random):
        words = list(random)
    else:
        raise ValueError(f"{_FORM}; got {short(random)}")
    names = {f"x[{f}]": f for f in range(d)} if features is None else {}
    names |= {_squeezed(name): f for f, name in enumerate(features or ())}
    terms: list[Any] = []
    for word in words:
        if isinstance(word, str) and word != "1":
            if _squeezed(word) not in names:
                known = ", ".join(features if features is not None else names)
                raise ValueError(
                    f"random: {word!r} is not an input of the model; random effects need an input"
                    f" of the experts, one of {known}"
                )
            word = names[_squeezed(word)]
        elif not isinstance(word, str) and not (
            isinstance(word, (int, np.integer)) and 0 <= word < d
        ):
            raise ValueError(f"random: inputs are 0..{d - 1}, got {short(word)}")
        terms.append(word)
    return {**table, "random": terms, "covariance": covariance}


def _squeezed(name: str) -> str:
    """A name without blanks and quotes."""
    return re.sub(r"[\s`]", "", name)


_TERM = re.compile(r"\(\s*([^()|~]*(?:\([^()|~]*\)[^()|~]*)*)(\|\|?)([^()|]*)\)")


def effects_of_formula(formula: Any) -> tuple[Any, Any, str | None]:
    """A formula without its term of random effects, these as `random`, and the groups' column.

    The term is that of lme4, ``(1 + time | id)``, or ``(1 + time || id)`` without correlations.
    """
    matches = list(_TERM.finditer(formula)) if isinstance(formula, str) else []
    if not matches:
        return formula, None, None
    if len(matches) > 1:
        raise ValueError(
            "formula: a fit can have only one term of random effects, with one column of groups;"
            f" got {len(matches)} in {formula!r}"
        )
    (term,) = matches
    groups = term[3].strip().strip("`")
    if not groups or re.search(r"[/:+*]", groups):
        raise ValueError(
            "formula: random effects are of the groups of one column, such as (1 | id); nested"
            f" and crossed groups are not available; got {term[0]!r}"
        )
    before, after = formula[: term.start()].rstrip(), formula[term.end() :].lstrip()
    if "|" in before:
        raise ValueError(
            f"formula: only experts have random effects, not the gate; got {formula!r}"
        )
    if before.endswith("+"):
        before = before[:-1].rstrip()
    elif before.endswith("~") and after.startswith("+"):
        after = after[1:].lstrip()
    elif before.endswith("~"):
        before += " 1"
    else:
        raise ValueError(
            f"formula: a term of random effects is added to the experts' terms, such as"
            f" 'y ~ time + (1 | id) | sex'; got {formula!r}"
        )
    random: Any = term[1].strip()
    if term[2] == "||":
        random = {"terms": random, "covariance": "diagonal"}
    return f"{before} {after}".strip(), random, groups


def check_random_effects(family: Family, groups: object, prior: object) -> None:
    """Raise unless a fit can have the random effects of its family."""
    effects = family.likelihood.effects
    if effects is None:
        return
    if groups is None:
        raise ValueError(
            "random: random effects need groups of rows; give groups=, or (1 | id) in a formula"
        )
    if prior is not None:
        raise ValueError("random: fits with random effects have no prior density; leave out prior=")
    if max(effects.features) > family.n_features:
        raise ValueError(
            f"random: inputs are 0..{family.n_features - 1}, got {max(effects.features) - 1}"
        )
    if family.own_inputs is not None:
        raise ValueError("random: random effects need experts with the same inputs")
    inputs = range(family.n_features) if family.expert_inputs is None else family.expert_inputs
    offset = () if family.offset_input is None else family.offset_input[:1]
    for f in effects.features:
        if f and (f - 1 not in inputs or f - 1 in (*family.held, *offset)):
            raise ValueError(
                f"random: input {f - 1} has a random effect, but it is not an input of the"
                " experts, or it is constant; add it to their terms"
            )
