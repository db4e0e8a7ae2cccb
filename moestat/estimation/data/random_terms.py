"""Random effects of groups as they are asked for: by text, by list, and in formulas."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from moestat.base.validate import is_mapping, is_sequence, short
from moestat.estimation.reading.hints import unwritable
from moestat.estimation.reading.parse import ONE, Term, one_column, parsed
from moestat.model.family import Family

__all__ = [
    "RandomTerms",
    "check_random_effects",
    "effects_of_formula",
    "random_likelihood",
    "random_terms",
    "without_parts",
]

_FORM = (
    'random must be text such as "1" or "1 + time", a list such as ["1", 0] of "1" and inputs, or a'
    ' table {"terms": ..., "covariance": "diagonal"} or {"terms": "1", "within": an input that has'
    " the parts of the groups}"
)


_LIKELIHOODS = ("gaussian", "poisson", "binomial")


def random_likelihood(model: object, random: object, features: Sequence[str] | None, d: int) -> Any:
    """The table of the normal likelihood with the effects that `random` names.

    `features` are the names of the d inputs, None for inputs without names.
    """
    table: Mapping[str, object] = model if is_mapping(model) else {"name": model}
    if not isinstance(table.get("name"), str) or table["name"] not in _LIKELIHOODS:
        raise ValueError(
            "random: random effects are available for the likelihoods 'gaussian', 'poisson' and"
            f" 'binomial'; give the likelihood by its name, got {short(model)}"
        )
    if "random" in table:
        raise ValueError("random: the table of the likelihood has random effects, too; give one")
    covariance, within = "free", None
    if is_mapping(random):
        if not {"terms"} <= set(random) <= {"terms", "covariance", "within"}:
            raise ValueError(f"{_FORM}; got {short(random)}")
        within = random.get("within")
        random, covariance = random["terms"], random.get("covariance", "free")
    if not isinstance(random, str) and not is_sequence(random):
        raise ValueError(f"{_FORM}; got {short(random)}")
    names = {f"x[{f}]": f for f in range(d)} if features is None else {}
    names |= {name: f for f, name in enumerate(features or ())}
    terms: list[Any] = []
    for word in _words(random, names) if isinstance(random, str) else random:
        if isinstance(word, str) and word != "1":
            name = word if word in names else word.strip().removeprefix("`").removesuffix("`")
            if name not in names:
                known = ", ".join(features if features is not None else names)
                raise ValueError(
                    f"random: {word!r} is not an input of the model; random effects need an input"
                    f" of the experts, one of {known}"
                )
            word = names[name]
        elif not isinstance(word, str) and not (
            isinstance(word, (int, np.integer)) and 0 <= word < d
        ):
            raise ValueError(f"random: inputs are 0..{d - 1}, got {short(word)}")
        terms.append(word)
    chosen = {**table, "random": terms, "covariance": covariance}
    if within is None:
        return chosen
    within = names.get(within, within)
    if not isinstance(within, (int, np.integer)) or isinstance(within, bool) or not 0 <= within < d:
        known = ", ".join(features if features is not None else names)
        raise ValueError(
            f"random: within must be an input that has the parts of the groups, one of {known}; got"
            f" {short(within)}"
        )
    return {**chosen, "within": int(within)}


def without_parts(
    options: Mapping[str, Any], model: object, d: int, features: Sequence[str] | None
) -> Mapping[str, Any]:
    """Options of `moestat.family` in which the input with the parts of groups is no input.

    Experts and gate do not read it; an option that names it is refused.
    """
    within = model.get("within") if is_mapping(model) else None
    if within is None:
        return options
    others = [f for f in range(d) if f != within]
    called = within if features is None else features[within]
    for name in ("gate_inputs", "expert_inputs"):
        given = options.get(name)
        if is_sequence(given) and {within, called} & {*map(_plain, given)}:
            raise ValueError(
                f"{name}: {called!r} has the parts of the groups (within), and no part of the model"
                " reads it"
            )
    return {"gate_inputs": others, "expert_inputs": others, **options}


def _plain(place: object) -> object:
    return tuple(place) if is_sequence(place) else place


def _split(text: str) -> list[str]:
    """What is between the plus signs outside brackets and quotes."""
    pluses = [place for place, depth in _marks(text) if depth == 0 and text[place] == "+"]
    ends = zip([-1, *pluses], [*pluses, len(text)], strict=True)
    return [text[begin + 1 : end].strip() for begin, end in ends]


def _words(text: str, names: Container[str]) -> list[str]:
    """Names of the terms of a text such as "1 + time", by the grammar of formulas.

    A name that is an input is taken as it is, also without the back-ticks that it needs elsewhere.
    """
    words = _split(text)
    given = [word for word in words if word in names]
    others = " + ".join(word for word in words if word not in names)
    terms = parsed(f"_ ~ {others or '1'} | 1", ()).parts[0]
    named = [":".join(part for _, part in term) for term in terms if term != ONE]
    return [*(["1"] if ONE in terms else []), *given, *named]


@dataclass(frozen=True)
class RandomTerms:
    """The random effects of a formula: terms, read by the grammar of formulas, and groups."""

    terms: tuple[Term, ...]  # with `ONE` for an intercept
    covariance: str
    groups: str | None = None  # the column of labels; None if the effects came as an argument
    within: str | None = None  # the column of the parts of groups, where these are nested

    def chosen(self, columns: Sequence[str], features: Sequence[str]) -> dict[str, object]:
        """The argument `random`, from names of the columns of the terms among the inputs."""
        places: list[object] = [features.index(name) for name in columns]
        chosen: dict[str, object] = {
            "terms": [*(["1"] if ONE in self.terms else []), *places],
            "covariance": self.covariance,
        }
        nested = {} if self.within is None else {"within": features.index(self.label)}
        return chosen | nested

    @property
    def label(self) -> str:
        """The name of the input that has the parts of groups."""
        return f"{self.groups}/{self.within}"

    def check_among(self, terms: Sequence[Term], columns: Sequence[str]) -> None:
        """Raise unless all terms are among those of the experts, which have these columns."""
        known = {frozenset(term) for term in terms}
        for term in self.terms:
            if term != ONE and frozenset(term) not in known:
                raise ValueError(
                    f"random: {':'.join(text for _, text in term)!r} is not an input of the model;"
                    " random effects need an input of the experts, one of"
                    f" {', '.join(map(str, columns)) or 'none'}"
                )


def random_terms(
    random: object, features: Sequence[str], left: str, columns: Sequence[str]
) -> RandomTerms | None:
    """The effects that an argument `random` gives by terms of a formula.

    None if it names inputs, `features`, as they are.  `left` is the side of the response of the
    formula, for a dot among the terms, and `columns` are those of the table.
    """
    covariance: object = "free"
    if is_mapping(random):
        random, covariance = random.get("terms"), random.get("covariance", "free")
    if not isinstance(random, str) or {*_split(random)} <= {*features, "0", "1"}:
        return None
    terms = parsed(f"{left} ~ {random} | 1", columns).parts[0]
    return RandomTerms(terms, str(covariance))


def effects_of_formula(formula: Any, columns: Sequence[str]) -> tuple[Any, RandomTerms | None]:
    """A formula for a table with these columns without its term of random effects, and these.

    The term is that of lme4, ``(1 + time | id)``, or ``(1 + time || id)`` without correlations.
    """
    if not isinstance(formula, str):
        return formula, None
    marks = _marks(formula)
    terms = _terms_with_bars(formula, marks)
    if not terms:
        return formula, None
    if len(terms) > 1:
        raise ValueError(
            "formula: a fit has one term of random effects, such as (1 + time | id), or"
            f" (1 | school/class) for nested groups; got {len(terms)} in {formula!r}. Crossed"
            " effects, (1 | rater) + (1 | item), are not available, because all rows would be one"
            " group: use lme4 of R, or C(item) among the terms if the items are few"
        )
    begin, bar, end = terms[0]
    double = formula[bar + 1] == "|"
    inside, label = formula[begin + 1 : bar].strip(), formula[bar + 1 + double : end].strip()
    # A name with blanks needs no back-ticks here.
    plain = label in columns and not {*label} & {*"/:+*"}
    groups, within = (label, None) if plain else _columns_of_groups(label, columns)
    if groups is None:
        raise ValueError(
            "formula: random effects are of the groups of one column, such as (1 | id), or of two"
            " nested ones, such as (1 | school/class); other and crossed groups are not available"
            f" (lme4 of R has them); got {formula[begin : end + 1]!r}"
            + (f": {reason}" if (reason := unwritable(label, columns)) else "")
        )
    others = [name for name in columns if name not in (groups, within)]
    before, after = formula[:begin].rstrip(), formula[end + 1 :].lstrip()
    outside = [place for place, depth in marks if depth == 0 and place < begin]
    if any(formula[place] == "|" for place in outside):
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
    left = formula[: next(place for place in outside if formula[place] == "~")]
    random = parsed(f"{left} ~ {inside} | 1", others)
    covariance = "diagonal" if double else "free"
    found = RandomTerms(random.parts[0], covariance, groups, within)
    if within is not None and found.terms != (ONE,):
        raise ValueError(
            "formula: nested groups have random intercepts, (1 | school/class), and no random"
            f" slopes; got {formula[begin : end + 1]!r}"
        )
    return f"{before} {after}".strip(), found


def _columns_of_groups(label: str, columns: Sequence[str]) -> tuple[str | None, str | None]:
    """The column of groups, or those of two nested ones, ``school/class``; None for the rest."""
    slashes = [place for place, depth in _marks(label) if depth == 0 and label[place] == "/"]
    if len(slashes) != 1:
        return None if slashes else one_column(label, columns), None
    sides = label[: slashes[0]].strip(), label[slashes[0] + 1 :].strip()
    outer, inner = (s if s in columns else one_column(s, columns) for s in sides)
    return (None, None) if outer is None or inner is None or outer == inner else (outer, inner)


def _marks(text: str) -> list[tuple[int, int]]:
    """Places of the characters outside quotes and back-ticks, and the depth of brackets there.

    A bracket has the depth of what is around it.
    """
    marks, depth, quote = list[tuple[int, int]](), 0, ""
    for place, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "`'\"":
            quote = character
        else:
            depth -= character in ")]}"
            marks.append((place, depth))
            depth += character in "([{"
    return marks


def _terms_with_bars(text: str, marks: Sequence[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Places of the brackets and of the bar of terms ``( ... | ... )`` outside functions."""
    terms = list[tuple[int, int, int]]()
    begin = bar = -1
    for place, depth in marks:
        if depth == 0 and text[place] == "(":
            called = place > 0 and (text[place - 1].isalnum() or text[place - 1] in "_`)]")
            begin, bar = (-1 if called else place), -1
        elif depth == 0 and text[place] == ")" and begin >= 0 and bar >= 0:
            terms.append((begin, bar, place))
        elif depth == 1 and text[place] == "|" and bar < 0:
            bar = place
    return terms


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
    if max(*effects.features, 0, 1 + (-1 if effects.within is None else effects.within)) > (
        family.n_features
    ):
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
