"""The columns and terms that a formula needs from a table, and the arguments of its fit."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from moestat.base.validate import is_mapping, is_sequence, short
from moestat.estimation.data.exposure import offset_of_exposure
from moestat.estimation.data.random_terms import RandomTerms, effects_of_formula, random_terms
from moestat.estimation.reading.by_expert import Combined, combined
from moestat.estimation.reading.formula import FormulaInputs, beside, used_names
from moestat.estimation.reading.inputs import Inputs
from moestat.estimation.reading.parse import Parsed, parsed
from moestat.estimation.reading.table import Table, check_missing
from moestat.model.constraints import experts_in_fixed
from moestat.model.joint import as_likelihood

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FormulaRequest", "arguments_of", "check_finite", "read_terms"]


@dataclass(frozen=True)
class FormulaRequest:
    """Terms and columns that a fit by formula needs, and its arguments of `moestat.fit`."""

    formula: str  # the formula without its random effects, of all experts
    terms: Parsed
    columns: Sequence[str]  # columns of the table
    names: Sequence[str]  # columns that are read
    groups: str | None
    scope: Mapping[str, object]
    options: dict[str, Any]
    by_expert: Combined | None = None  # formulas of the experts, where these differ
    random: RandomTerms | None = None  # random effects, where these are terms


def read_terms(
    formula: Any,
    columns: Sequence[str],
    family: Any,
    weights: str | None,
    offset: str | None,
    groups: str | None,
    missing: str,
    scope: Mapping[str, object] | None,
    options: Mapping[str, Any],
) -> FormulaRequest:
    """The request of a formula to a table with these columns, from arguments of `fit_formula`."""
    options, by_expert = dict(options), None
    if is_mapping(formula):
        others = [each for each in (weights, groups) if each is not None]
        by_expert = combined(formula, [each for each in columns if each not in others])
        formula = by_expert.text
    formula, random = effects_of_formula(formula, columns)
    if random is not None:
        for name, value in (("random", options.get("random")), ("groups", groups)):
            if value is not None:
                raise ValueError(f"{name}: the formula has random effects of groups, too; give one")
        groups = random.groups
    within = None if random is None else random.within
    for name in ("sample_weight", "n_features", "gate_inputs", "expert_inputs"):
        if name in options:
            raise ValueError(
                f"{name} is an argument of moestat.fit; in a formula, use the names of columns"
                " instead"
            )
    if not (isinstance(family, str) or is_mapping(family) or is_sequence(family)):
        raise ValueError(
            'family must be the name of a likelihood such as "gaussian", got'
            f" {short(family)}; sizes are those of the formula"
        )
    exposure = options.pop("exposure", None)
    if exposure is not None:
        offset = offset_of_exposure(exposure, family, offset, columns)
    check_missing(missing)
    columns_by_name: list[tuple[str, object]] = [("weights", weights), ("groups", groups)]
    for name, column in columns_by_name:
        if column is not None and not isinstance(column, str):
            raise ValueError(f"{name} must be the name of a column, got {short(column)}")
    others = [each for each in (weights, groups, within) if each is not None]
    terms = parsed(formula, [each for each in columns if each not in others], offset)
    if terms.groups is not None:
        if groups is not None:
            raise ValueError(f"groups: {groups!r} is given, and {formula!r} has a third part, too")
        groups = terms.groups
        others.append(groups)
    scope = _scope_of_caller() if scope is None else scope
    factors = [terms.response, *(f for part in terms.parts for term in part for f in term)]
    names, _ = used_names([*factors, *(("lookup", each) for each in others)], columns, scope)
    return FormulaRequest(formula, terms, columns, names, groups, scope, options, by_expert, random)


def arguments_of(
    request: FormulaRequest,
    inputs: FormulaInputs,
    table: Table,
    designs: Sequence[pd.DataFrame],
    family: Any,
) -> tuple[Inputs, dict[str, Any]]:
    """Inputs of a fit from the designs of a table, and options with the inputs of each part."""
    terms, formula, options = request.terms, request.formula, dict(request.options)
    several = is_sequence(family) or bool(as_likelihood(family).parts)
    columns_of_response = beside(terms.response)
    if not several and len(columns_of_response) not in (1, 2):
        raise ValueError(
            f"formula: {terms.response[1]!r} has {len(columns_of_response)} responses; give a list"
            f" of as many likelihoods, such as family={['gaussian'] * len(columns_of_response)}."
            " Two columns with one likelihood are bounds, or successes and failures"
        )
    names = [f"b_{each}" for _, each in beside(terms.response)] if several else ["b"]
    if request.by_expert is not None and request.by_expert.without_intercept:
        fixed = options.get("fixed")
        first = 0 if isinstance(fixed, Mapping) and 0 in experts_in_fixed(fixed) else 1
        known = dict.fromkeys((i + first for i in request.by_expert.without_intercept), 0.0)
        options["fixed"] = _without_intercept(fixed, formula, names, known)
    elif not terms.has_intercept:
        options["fixed"] = _without_intercept(options.get("fixed"), formula, names)
    inputs_of_fit = inputs.inputs_of(table, designs)
    features = inputs_of_fit.features
    assert features is not None
    if len(designs) > 2 + (inputs.within is not None):
        options["offset"] = features.index(_offset_name(designs))
    columns_by_expert = (
        [designs[0].columns]
        if request.by_expert is None
        else inputs.columns_of(request.by_expert.parts, table)
    )
    for i, names in enumerate(columns_by_expert):
        if lost := [name for name in names if name not in designs[0].columns]:
            raise ValueError(
                f"formula: {lost[0]!r} of expert {i + 1} has another coding than in the formulas"
                " of the other experts; use the same main effects and the same intercept in all"
                " formulas"
            )
    random = request.random
    if random is None:
        left, by_name = formula.partition("~")[0], options.get("random")
        random = random_terms(by_name, features, left, request.columns)
    if random is not None:
        if random.within is not None and any(random.label in each.columns for each in designs[:-1]):
            raise ValueError(
                f"formula: a term has the name {random.label!r} of the nested groups; rename the"
                " column"
            )
        random.check_among(terms.parts[0], [*map(str, designs[0].columns)])
        (names_of_random,) = inputs.columns_of([random.terms], table)
        if lost := [name for name in names_of_random if name not in designs[0].columns]:
            raise ValueError(
                f"random: {lost[0]!r} has another coding among the random effects than among the"
                " terms of the experts; a category needs an intercept in both or in none"
            )
        options["random"] = random.chosen(names_of_random, features)
    read_by = [[features.index(name) for name in names] for names in columns_by_expert]
    options |= {
        "expert_inputs": read_by[0] if request.by_expert is None else read_by,
        "gate_inputs": [features.index(name) for name in designs[1].columns],
    }
    return inputs_of_fit, options


def _scope_of_caller() -> Mapping[str, Any]:
    """Local and global names of the function that called this package."""
    frame = inspect.currentframe()
    assert frame is not None
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("moestat."):
        frame = frame.f_back
    return {**frame.f_globals, **frame.f_locals}


def _offset_name(designs: Sequence[pd.DataFrame]) -> str:
    """The one column of an offset, which may not be a term of the formula, too."""
    names = [str(column) for column in designs[2].columns]
    if len(names) != 1:
        raise ValueError(f"offset must be one column of numbers, not {', '.join(names)}")
    if any(names[0] in design.columns for design in designs[:2]):
        raise ValueError(f"offset: {names[0]!r} is a term of the formula, too")
    return names[0]


def _without_intercept(
    fixed: Mapping[str, Any] | None,
    formula: str,
    names: Sequence[str],
    values: float | Mapping[int, float] = 0.0,
) -> dict[str, Any]:
    """Fixed blocks, with the experts' intercepts, the blocks `names`, fixed at `values`."""
    if fixed is not None and (not isinstance(fixed, Mapping) or {*names} & {*fixed}):
        known = ", ".join(map(repr, names))
        raise ValueError(
            f"fixed: {formula!r} leaves out the intercepts {known}, got {short(fixed)}"
        )
    return {**(fixed or {}), **dict.fromkeys(names, values)}


def check_finite(design: pd.DataFrame, whose: str, first: int = 0) -> None:
    """Raise if a column of one part is infinite or undefined; `first` is the number of row 0."""
    infinite = ~np.isfinite(np.asarray(design, dtype=np.float64))
    affected = np.flatnonzero(infinite.any(axis=0))
    if affected.size:
        name = str(design.columns[affected[0]])
        row = first + int(np.flatnonzero(infinite[:, affected[0]])[0])
        exposure = " and exposure= need" if whose == "offset" else " needs"
        why = f": a logarithm{exposure} numbers above 0" * ("log(" in name)
        raise ValueError(
            f"formula: {name!r} of the {whose} is infinite or undefined in some rows, the first is"
            f" row {row} (from 0){why}"
        )
