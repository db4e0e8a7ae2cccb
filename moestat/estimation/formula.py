"""Fits by formula: a response, terms of the experts and terms of the gate, from a data frame."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from moestat.base.door import door
from moestat.base.validate import is_mapping, is_sequence, short
from moestat.estimation.data import check_options
from moestat.estimation.fitting import fit
from moestat.estimation.random_terms import effects_of_formula
from moestat.estimation.reading.formula import (
    FormulaInputs,
    beside,
    response_column,
    response_columns,
    table_of,
    used_names,
)
from moestat.estimation.reading.parse import Parsed, parsed
from moestat.estimation.reading.table import Table, as_table, check_missing, column_names
from moestat.estimation.results import MoEResults
from moestat.model.joint import as_likelihood

__all__ = ["fit_formula"]


@door()
def fit_formula(
    formula: str,
    data: Any,
    family: str | Mapping[str, Any] | Sequence[Any] = "gaussian",
    *,
    n_experts: int = 2,
    weights: str | None = None,
    offset: str | None = None,
    groups: str | None = None,
    missing: str = "raise",
    scope: Mapping[str, Any] | None = None,
    **options: Any,
) -> MoEResults:
    """Maximum-likelihood fit of a mixture of experts that a formula describes.

    In ``"wage ~ age + C(region) | age"`` the experts read age and region, the gate age alone.
    Without a bar both read the same terms; ``| 1`` is a constant gate.

    Parameters
    ----------
    formula : str
        Response, ``~``, terms of the experts and, after ``|``, those of the gate, in the grammar
        of the package formulaic: columns of `data`, categories (words, or ``C(x)``), interactions
        ``a:b`` and ``a * b``, functions such as ``log(x)``, ``poly(x, 2)``, ``bs(x, df=4)`` and
        those of the caller's, ``I(x ** 2)``, ``.`` for all other columns, names with spaces in
        back-ticks, and ``offset(log(t))`` among the terms of the experts.
    data : table, or mapping of str to array_like of shape (n,)
        The data, n rows, of pandas, polars, pyarrow or another library that narwhals knows; only
        columns that are named are read.
    family : str, mapping or sequence
        Name of the likelihood, or its table with options, as in `moestat.fit`; a list of these for
        the several responses of ``"cbind(y1, y2) ~ x"``.
    n_experts : int
        Number of experts k.
    weights : str, optional
        Column of non-negative counts or frequency weights.
    offset : str, optional
        Column, or a function of columns such as ``"log(exposure)"``, that is added to the linear
        predictor of every expert as it is.
    groups : str, optional
        Column of labels of groups, such as subjects, for each of which an expert is chosen once;
        or the third part of the formula, ``"y ~ x | z | id"``.
    missing : {"raise", "drop"}
        What to do with rows that have missing values in a column that is used.
    scope : mapping, optional
        Functions and values that the formula may name; by default those where the call is.
    **options
        Further arguments of `moestat.fit`: ``gate``, ``expert``, ``bounds``, ``solver``,
        ``n_starts``, ``rng`` and so on.

    Returns
    -------
    MoEResults
        As of `moestat.fit`, with parameters named after the columns of the formula.  ``predict``,
        ``predict_proba`` and ``get_prediction`` take data with the columns that the formula names.
        Coefficients of columns that only the other part of the formula has are 0 and pinned; the
        summary leaves them out.

    Raises
    ------
    ValueError
        If the formula cannot be read, a column is unknown or has missing values, a term is
        infinite or undefined somewhere, or as `moestat.fit`.

    Notes
    -----
    Grammar and coding of categories are those of Wilkinson and Rogers (1973) as R and formulaic
    have them, first level the reference.  ``0 +`` or ``- 1`` leaves out the experts' intercept; the
    gate always has one.

    Examples
    --------
    >>> import numpy as np, pandas as pd, moestat
    >>> age = np.linspace(20, 60, 200)
    >>> south = np.arange(200) % 2 == 0
    >>> wage = np.where(age > 40, 30, age - 10) + 3.0 * south + np.sin(9.0 * np.arange(200))
    >>> data = pd.DataFrame({"wage": wage, "age": age, "region": np.where(south, "S", "N")})
    >>> result = moestat.fit_formula("wage ~ age + region | age", data, n_experts=2, rng=0)
    >>> result.params.index[4], round(float(result.params["a[0,region[T.S]]"]))
    ('a[0,age]', 3)
    >>> result.predict({"age": [30.0], "region": ["S"]}).round().tolist()
    [23.0]
    """
    check_options(options, fit_formula, fit)
    how = weights, offset, groups, missing, scope
    made, y, given, own = read_formula(formula, data, family, *how, options)
    result = fit(family, made, y, n_experts=n_experts, **given)
    assert result.data is not None
    return replace(result, data=replace(result.data, **own))


def read_formula(
    formula: str,
    data: Any,
    family: Any,
    weights: str | None,
    offset: str | None,
    groups: str | None,
    missing: str,
    scope: Mapping[str, Any] | None,
    options: Mapping[str, Any],
) -> tuple[Any, Any, dict[str, Any], dict[str, Any]]:
    """Inputs, response and further arguments of `moestat.fit`, and what its data have besides.

    Arguments are as of `fit_formula`.
    """
    asked = read_terms(
        formula, column_names(data), family, weights, offset, groups, missing, scope, options
    )
    formula, read, groups, scope = asked.formula, asked.read, asked.groups, asked.scope
    options, columns = asked.options, asked.columns
    table, kept = _complete(data, asked.names, missing)
    inputs = FormulaInputs.of(formula, read, table, scope)
    designs = inputs.designs(table)
    weight = None if weights is None else table[weights].numbers(f"data: column {weights!r}")
    for design, whose in zip(designs, ("experts", "gate", "offset"), strict=False):
        _check_finite(design, whose)
    several = is_sequence(family) or bool(as_likelihood(family).parts)
    columns_of_response = beside(read.response)
    if not several and len(columns_of_response) not in (1, 2):
        raise ValueError(
            f"formula: {read.response[1]!r} has {len(columns_of_response)} responses; give a list"
            f" of as many likelihoods, such as family={['gaussian'] * len(columns_of_response)}."
            " Two columns with one likelihood are bounds, or successes and failures"
        )
    if not read.has_intercept:
        names = [f"b_{each}" for _, each in beside(read.response)] if several else ["b"]
        options["fixed"] = _without_intercept(options.get("fixed"), formula, names)
    made = inputs.inputs_of(table, designs)
    assert made.features is not None
    if len(designs) > 2:
        options["offset"] = made.features.index(_offset_name(designs))
    options |= {
        "sample_weight": weight,
        "groups": None if groups is None else table[groups],
        "expert_inputs": [made.features.index(name) for name in designs[0].columns],
        "gate_inputs": [made.features.index(name) for name in designs[1].columns],
    }
    responses = response_columns if several else response_column
    own: dict[str, Any] = {
        "columns": inputs.plain_columns(table),
        "responses": tuple(used_names([read.response], columns, scope)[0]),
        "weights_column": weights,
        "groups_column": groups,
    }
    if kept is not None:
        own |= {"kept": np.flatnonzero(kept), "dropped": kept.size - int(kept.sum())}
    return made, responses(read.response, table, scope), options, own


@dataclass(frozen=True)
class Asked:
    """What a fit by formula asks of a table: terms, columns, and arguments of `moestat.fit`."""

    formula: str  # the formula without its random effects
    read: Parsed
    columns: Sequence[str]  # columns of the table
    names: Sequence[str]  # columns that are read
    groups: str | None
    scope: Mapping[str, Any]
    options: dict[str, Any]


def read_terms(
    formula: str,
    columns: Sequence[str],
    family: Any,
    weights: str | None,
    offset: str | None,
    groups: str | None,
    missing: str,
    scope: Mapping[str, Any] | None,
    options: Mapping[str, Any],
) -> Asked:
    """What a formula asks of a table with these columns; arguments are as of `fit_formula`."""
    options = dict(options)
    formula, random, grouped = effects_of_formula(formula)
    if random is not None:
        for name, value in (("random", options.get("random")), ("groups", groups)):
            if value is not None:
                raise ValueError(f"{name}: the formula has random effects of groups, too; give one")
        options["random"], groups = random, grouped
    for name in ("sample_weight", "n_features", "gate_inputs", "expert_inputs"):
        if name in options:
            raise ValueError(f"{name} is for moestat.fit; a formula says it by columns' names")
    if not (isinstance(family, str) or is_mapping(family) or is_sequence(family)):
        raise ValueError(
            'family must be the name of a likelihood such as "gaussian", got'
            f" {short(family)}; sizes are those of the formula"
        )
    check_missing(missing)
    columns_by_name: list[tuple[str, Any]] = [("weights", weights), ("groups", groups)]
    for name, column in columns_by_name:
        if column is not None and not isinstance(column, str):
            raise ValueError(f"{name} must be the name of a column, got {short(column)}")
    others = [each for each in (weights, groups) if each is not None]
    read = parsed(formula, [each for each in columns if each not in others], offset)
    if read.groups is not None:
        if groups is not None:
            raise ValueError(f"groups: {groups!r} is given, and {formula!r} has a third part, too")
        groups = read.groups
        others.append(groups)
    scope = _scope_of_caller() if scope is None else scope
    factors = [read.response, *(f for part in read.parts for term in part for f in term)]
    names, _ = used_names([*factors, *(("lookup", each) for each in others)], columns, scope)
    return Asked(formula, read, columns, names, groups, scope, options)


def _scope_of_caller() -> Mapping[str, Any]:
    """Names where this package was called from: of that function, then of its module."""
    frame = inspect.currentframe()
    assert frame is not None
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("moestat."):
        frame = frame.f_back
    return {**frame.f_globals, **frame.f_locals}


def _complete(data: Any, names: Sequence[str], missing: str) -> tuple[Table, Any]:
    """The named columns where none is missing, and a mask of these rows if any are left out."""
    if missing == "raise":
        return table_of(data, names), None
    table = as_table("data", data, names)
    assert table is not None
    gaps = np.zeros(table.n_rows, dtype=bool)
    for column in table.columns:
        gaps |= column.missing
    if not gaps.any():
        return table, None
    if gaps.all():
        raise ValueError("data: every row has a missing value")
    return table.at(np.flatnonzero(~gaps)), ~gaps


def _offset_name(designs: Sequence[Any]) -> str:
    """The one column of an offset, which is no term besides."""
    made = [str(column) for column in designs[2].columns]
    if len(made) != 1:
        raise ValueError(f"offset must be one column of numbers, not {', '.join(made)}")
    if any(made[0] in design.columns for design in designs[:2]):
        raise ValueError(f"offset: {made[0]!r} is a term of the formula, too")
    return made[0]


def _without_intercept(fixed: Any, formula: str, names: Sequence[str]) -> dict[str, Any]:
    """Fixed blocks, with the experts' intercepts, called `names`, at 0."""
    if fixed is not None and (not isinstance(fixed, Mapping) or {*names} & {*fixed}):
        known = ", ".join(map(repr, names))
        raise ValueError(
            f"fixed: {formula!r} leaves out the intercepts {known}, got {short(fixed)}"
        )
    return {**(fixed or {}), **dict.fromkeys(names, 0.0)}


def _check_finite(design: Any, whose: str) -> None:
    """Raise if a column of one part is infinite or undefined somewhere."""
    infinite = ~np.isfinite(np.asarray(design, dtype=np.float64))
    wrong = infinite.any(axis=0)
    if wrong.any():
        name = str(design.columns[wrong][0])
        row = int(np.flatnonzero(infinite[:, wrong][:, 0])[0])
        why = ": a logarithm needs numbers above 0" * ("log(" in name)
        raise ValueError(
            f"formula: {name!r} of the {whose} is infinite or undefined in some rows, the first is"
            f" row {row} (from 0){why}"
        )
