"""Fits by formula: a response, terms of the experts and terms of the gate, from a data frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from inspect import signature
from typing import Any, cast

import numpy as np

from moestat.base.door import door
from moestat.base.validate import is_mapping, is_sequence
from moestat.estimation.data import check_options
from moestat.estimation.fitting import fit
from moestat.estimation.formula_terms import arguments_of, check_finite, read_terms
from moestat.estimation.reading.by_expert import count_of
from moestat.estimation.reading.formula import (
    FormulaInputs,
    response_column,
    response_columns,
    table_of,
    used_names,
)
from moestat.estimation.reading.table import Table, as_table, column_names
from moestat.estimation.results import MoEResults
from moestat.estimation.source_fits import fit_source
from moestat.estimation.sources import LazySource, as_source
from moestat.model.joint import as_likelihood

__all__ = ["fit_formula"]


@door()
def fit_formula(
    formula: str | Mapping[Any, str],
    data: Any,
    family: str | Mapping[str, Any] | Sequence[Any] = "gaussian",
    *,
    n_experts: int | None = None,
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
        back-ticks, and ``offset(log(t))`` among the terms of the experts.  A response that is
        censored from above is ``Surv(time, event)``, with an event of 1 where it was seen; one
        with two bounds is ``cbind(low, high)``.  A table has a formula for each expert, ``{"1":
        "y ~ x", "2": "y ~ x + z"}``, with the same response, gate, groups and offset; without a
        bar the gate reads the terms of all.
    data : table, mapping of str to array_like of shape (n,), or source of rows
        The data, n rows, of pandas, polars, pyarrow or another library that narwhals knows; only
        columns that are named are read.  A source is read in parts and need not fit into memory:
        the path of a Parquet file, of a folder of them or a pattern such as ``"sales/*.parquet"``,
        a data set of pyarrow, a frame of dask, a lazy frame of polars with more than 100,000
        rows (a shorter one is collected), or `moestat.Blocks` with names.  Such a fit is that of
        `moestat.fit_blocks`.
    family : str, mapping or sequence
        Name of the likelihood, or its table with options, as in `moestat.fit`; a list of these for
        the several responses of ``"cbind(y1, y2) ~ x"``.
    n_experts : int, optional
        Number of experts k; 2 by default, or as many as there are likelihoods by expert.
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
    Of a source a first pass finds missing rows and levels, and a random sample of 100,000 rows from
    which transforms with knots, centres or scales (``bs``, ``cr``, ``poly``, ``scale``) learn;
    ``result.notes`` says so where these are not all rows.  Groups, several responses, responses
    of two columns and priors need all rows in memory.  A source that changes between two passes is
    refused, and a part that cannot be read is named.

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
    >>> result.params.index[3], round(float(result.params["a[0,region[T.S]]"]))
    ('a[0,age]', 3)
    >>> result.predict({"age": [30.0], "region": ["S"]}).round().tolist()
    [23.0]
    """
    check_options(options, fit_formula, fit)
    how = weights, offset, groups, missing, scope
    source, n_experts = as_source(data), count_of(formula, n_experts)
    if source is not None and not (isinstance(source, LazySource) and source.is_small):
        if is_mapping(formula):
            raise ValueError("formula: a formula for each expert is for rows in memory")
        known, text = signature(fit).parameters, cast(str, formula)
        return fit_source(text, source, family, n_experts, *how, options, [*known])
    made, y, given, own = read_formula(formula, data, family, *how, options)
    result = fit(family, made, y, n_experts=n_experts, **given)
    assert result.data is not None
    return replace(result, data=replace(result.data, **own))


def read_formula(
    formula: str | Mapping[Any, str],
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
    read, groups, scope = asked.read, asked.groups, asked.scope
    columns = asked.columns
    table, kept = _complete(data, asked.names, missing)
    inputs = FormulaInputs.of(asked.formula, read, table, scope)
    designs = inputs.designs(table)
    weight = None if weights is None else table[weights].numbers(f"data: column {weights!r}")
    for design, whose in zip(designs, ("experts", "gate", "offset"), strict=False):
        check_finite(design, whose)
    made, given = arguments_of(asked, inputs, table, designs, family)
    given |= {
        "sample_weight": weight,
        "groups": None if groups is None else table[groups],
    }
    several = is_sequence(family) or bool(as_likelihood(family).parts)
    responses = response_columns if several else response_column
    own: dict[str, Any] = {
        "columns": inputs.plain_columns(table),
        "responses": tuple(used_names([read.response], columns, scope)[0]),
        "weights_column": weights,
        "groups_column": groups,
    }
    if kept is not None:
        own |= {"kept": np.flatnonzero(kept), "dropped": kept.size - int(kept.sum())}
    return made, responses(read.response, table, scope), given, own


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
