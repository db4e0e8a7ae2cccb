"""Fits by formula: a response, terms of the experts and terms of the gate, from a data frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from moestat.base.door import door
from moestat.base.types import Seed
from moestat.base.validate import is_sequence, short
from moestat.estimation.data.exposure import OFFSET, is_values, with_offset_column
from moestat.estimation.data.formula_terms import arguments_of, check_finite, read_terms
from moestat.estimation.data.priors import Prior
from moestat.estimation.data.read import check_options
from moestat.estimation.fitting.fit import fit, telling_clusters, with_covariance
from moestat.estimation.fitting.fit_source import (
    SharedSource,
    columns_of_source,
    fit_source,
    warn_of_dropped_rows,
)
from moestat.estimation.reading.by_expert import count_of
from moestat.estimation.reading.formula import (
    FormulaInputs,
    response_column,
    response_columns,
    table_of,
    used_names,
)
from moestat.estimation.reading.inputs import Inputs
from moestat.estimation.reading.responses import Columns
from moestat.estimation.reading.table import Column, Table, as_table, column_names
from moestat.estimation.results.results import MoEResults
from moestat.estimation.rows.sources import LazySource, Source, as_source
from moestat.model.axes import family as make_family
from moestat.model.joint import as_likelihood
from moestat.model.members import Expert, Gate

__all__ = ["fit_formula", "shared_source"]


@door()
def fit_formula(
    formula: str | Mapping[Any, str],
    data: object,
    family: str | Mapping[str, object] | Sequence[object] = "gaussian",
    *,
    n_experts: int | None = None,
    gate: str | Mapping[str, object] | Gate | None = None,
    expert: str | Mapping[str, object] | Expert | None = None,
    weights: str | None = None,
    offset: str | ArrayLike | None = None,
    exposure: str | None = None,
    groups: str | None = None,
    missing: str = "raise",
    scope: Mapping[str, object] | None = None,
    resume: str | Path | None = None,
    rng: Seed = None,
    prior: Prior | str | None = None,
    cov_type: str = "observed",
    cov_kwds: Mapping[str, Any] | None = None,
    verbose: bool = False,
    **options: Any,
) -> MoEResults:
    """Fit a mixture of experts that a formula describes, by maximum likelihood.

    In ``"wage ~ age + C(region) | age"`` the terms before the bar, age and region, are inputs of
    the experts, and the term after it, age, is an input of the gate.  Without a bar all terms are
    inputs of both; ``| 1`` is a gate without inputs.

    Parameters
    ----------
    formula : str or mapping
        ``"response ~ terms of the experts | terms of the gate | group"``; the second and third
        parts are optional.  The grammar is that of the package formulaic:

        - columns of `data`, with names that contain spaces in back-ticks; ``.`` stands for all
          other columns;
        - categories, which are columns of words, or ``C(x)``;
        - interactions, ``a:b`` and ``a * b``;
        - functions such as ``log(x)``, ``poly(x, 2)``, ``bs(x, df=4)``, ``I(x ** 2)``, and your
          own;
        - ``offset(log(t))`` among the terms of the experts.

        A response that is censored from above is ``Surv(time, event)``, where event is 1 if the
        time was observed.  A response between two bounds is ``cbind(low, high)``.  A mapping has a
        formula for each expert, ``{"1": "y ~ x", "2": "y ~ x + z"}``, with the same response,
        gate, groups and offset; without a bar, the terms of all experts are inputs of the gate.
    data : table, mapping of str to array_like of shape (n,), or source of rows
        The data, n rows: a frame of pandas, polars, pyarrow or another library that narwhals
        supports.  Only the columns that the call names are read.  Data that do not fit into memory
        may be given as the path of a Parquet file, the path of a folder of such files, a pattern
        such as ``"sales/*.parquet"``, a data set of pyarrow, a frame of dask, a lazy frame of
        polars with more than 100,000 rows (a shorter one is collected), or `moestat.Blocks` with
        names.  They are read in parts and fitted as by `moestat.fit_blocks`.
    family : str, mapping or sequence
        Name of the likelihood, such as "gaussian" or "poisson", or a mapping with its options, as
        in `moestat.fit`; a list of these for several responses, ``"cbind(y1, y2) ~ x"``.
    n_experts : int, optional
        Number of experts; 2 by default, or the number of likelihoods if each expert has its own.
    gate, expert : str or mapping, optional
        Gate and regression functions, as in `moestat.family`; "softmax" and "linear" by default.
    weights : str, optional
        Column of non-negative counts or frequency weights.
    offset : str or array_like of shape (n,), optional
        Column, or a function of columns such as ``"log(exposure)"``, that is added to the linear
        predictor of every expert with the coefficient 1.  Values of the rows become a column
        ``offset``, which data for predictions must have.
    exposure : str, optional
        Column, or a function of columns such as ``"days / 365"``, with the positive time, or number
        of persons, in which the events of a row were counted; for likelihoods with a log link.  It
        is the same as the offset ``"log(days / 365)"``.
    groups : str, optional
        Column of labels of groups, such as subjects: all rows of a group belong to the same
        expert.  It is the same as a third part of the formula, ``"y ~ x | z | id"``.
    missing : {"raise", "drop"}
        "raise" refuses data with missing values in a column that is used; "drop" leaves out the
        rows that have them.
    scope : mapping, optional
        Functions and values that the formula may use; by default those that are defined where
        you call `fit_formula`.
    resume : str or Path, optional
        Of a source: the file that keeps the best points after each pass, see `moestat.fit_blocks`.
        If the fit ends early, the same call begins there.
    rng : numpy.random.Generator, int or None
        Source of the random starts.
    prior : Prior or "weak", optional
        A weakly informative prior density, see `moestat.fit`.
    cov_type, cov_kwds : str and mapping, optional
        Type of the covariance matrix, and further arguments of
        `MoEResults.get_robustcov_results`, such as ``cov_kwds={"groups": "subject"}``, the name of
        a column.
    verbose : bool
        Whether to show the progress on standard error.
    **options
        Further arguments of `moestat.fit`: ``bounds``, ``equal``, ``solver``, ``n_starts`` and so
        on.

    Returns
    -------
    MoEResults
        The same as from `moestat.fit`, with parameters named after the terms of the formula.
        ``predict``, ``predict_proba`` and ``get_prediction`` take data with the columns that the
        formula uses.  If a term is an input of the gate only, its coefficient in the experts is
        fixed at 0, and the reverse; the summary leaves these coefficients out.

    Raises
    ------
    ValueError
        If the formula is not valid, a column is unknown or has missing values, or a term is
        infinite or undefined in some row; also for the reasons of `moestat.fit`.

    Notes
    -----
    Data that do not fit into memory are read several times.  The first pass finds the rows with
    missing values and the levels of categories, and draws a random sample of 100,000 rows.  Knots,
    centres and scales of ``bs``, ``cr``, ``poly`` and ``scale`` are computed from this sample; if
    there are more rows, ``result.notes`` says so.  All rows of a group are read together: at most
    a million rows may lie in another part of the source than the first rows of their group.  Data
    that change between two passes are refused.
    If a part of the data cannot be read, the error names it.

    The grammar and the coding of categories are those of Wilkinson and Rogers (1973), as in R and
    formulaic; the first level is the reference.  ``0 +`` or ``- 1`` leaves out the intercept of the
    experts; the gate always has an intercept.

    Examples
    --------
    >>> import numpy as np, pandas as pd, moestat
    >>> age = np.linspace(20, 60, 200)
    >>> south = np.arange(200) % 2 == 0
    >>> wage = np.where(age > 40, 30, age - 10) + 3.0 * south + np.sin(9.0 * np.arange(200))
    >>> data = pd.DataFrame({"wage": wage, "age": age, "region": np.where(south, "S", "N")})
    >>> result = moestat.fit_formula("wage ~ age + region | age", data, n_experts=2, rng=0)
    >>> result.params.index[3], round(float(result.params["a[1,region[T.S]]"]))
    ('a[1,age]', 3)
    >>> result.predict({"age": [30.0], "region": ["S"]}).round().tolist()
    [23.0]
    """
    check_options(options, fit_formula, fit)
    if isinstance(data, str) and "~" in data and not isinstance(formula, str):
        raise ValueError(
            "formula and data are swapped: the order is fit_formula(formula, data), such as"
            f" fit_formula({short(data)}, data)"
        )
    shown = {"gate": gate, "expert": expert, "rng": rng, "prior": prior, "exposure": exposure}
    options = {**options, **{name: each for name, each in shown.items() if each is not None}}
    if verbose:
        options["verbose"] = verbose
    source, n_experts = source_of(data), count_of(formula, n_experts)
    named_offset: Any = offset
    if is_values(offset):
        if source is not None:
            raise ValueError("offset: for a source give the name of a column")
        data = with_offset_column(data, offset, column_names(data))
        named_offset = OFFSET
    how = weights, named_offset, groups, missing, scope
    if source is not None:
        of_model = signature(make_family).parameters
        known = [name for name in signature(fit).parameters if name not in of_model]
        result = fit_source(formula, source, family, n_experts, *how, options, known, resume)
        return result if cov_type == "observed" else with_covariance(result, cov_type, cov_kwds)
    if resume is not None:
        raise ValueError(
            "resume: available only for sources that are read in parts; got data in memory"
        )
    inputs, y, given, fields_of_data = read_formula(formula, data, family, *how, options)
    with telling_clusters(cov_type, cov_kwds):
        result = fit(family, inputs, y, n_experts=n_experts, **given)
    assert result.data is not None
    held = data.data if isinstance(data, SharedTable) else data
    result = replace(result, data=replace(result.data, **fields_of_data), table=held)
    return result if cov_type == "observed" else with_covariance(result, cov_type, cov_kwds)


@dataclass(frozen=True)
class SharedTable:
    """A table of fits that are compared: all leave out the rows with a gap for any of them."""

    data: object
    names: tuple[str, ...]  # the columns of all fits

    @classmethod
    def of(cls, data: object, names_by_fit: Sequence[Sequence[str]]) -> SharedTable:
        """The table of fits that read these columns; warns if one of them could use more rows."""
        names = sorted({name for names in names_by_fit for name in names})
        table = as_table("data", data, names)
        assert table is not None
        gaps = {n: c.missing for n, c in zip(names, table.columns, strict=True) if c.missing.any()}
        lost = int(np.sum(np.any([*gaps.values()], axis=0))) if gaps else 0
        warn_of_dropped_rows(names_by_fit, [*gaps], lost, table.n_rows)
        return cls(data, tuple(names))


def source_of(data: object) -> Source | SharedSource | None:
    """The source if the data are read in parts; None if all rows are in memory."""
    if isinstance(data, SharedSource):
        return data
    if isinstance(data, SharedTable):
        return None
    source = as_source(data)
    return None if isinstance(source, LazySource) and source.is_small else source


def shared_source(formulas: Sequence[Any], data: Any, family: Any, given: Mapping[str, Any]) -> Any:
    """The data of fits by several formulas; a source becomes one whose first pass they share."""
    source, missing = source_of(data), given.get("missing", "raise")
    if isinstance(source, SharedSource) or isinstance(data, SharedTable) or data is None:
        return data
    if source is None and missing != "drop":
        return data
    columns = column_names(data) if source is None else columns_of_source(source)
    scope = given.get("scope")
    weights, offset, groups = (given.get(name) for name in ("weights", "offset", "groups"))
    terms = {name: given[name] for name in ("random", "exposure") if name in given}
    also = [
        read_terms(formula, columns, family, weights, offset, groups, missing, scope, terms)
        for formula in formulas
    ]
    if source is not None:
        return SharedSource(source, tuple(also))
    return SharedTable.of(data, [each.names for each in also])


def read_formula(
    formula: str | Mapping[Any, str],
    data: object,
    family: object,
    weights: str | None,
    offset: str | None,
    groups: str | None,
    missing: str,
    scope: Mapping[str, object] | None,
    options: Mapping[str, object],
) -> tuple[Inputs, Column | Columns, dict[str, Any], dict[str, Any]]:
    """Inputs, response and further arguments of `moestat.fit`, and further fields of its `Data`.

    The arguments are those of `fit_formula`.
    """
    also: Sequence[str] = ()
    if isinstance(data, SharedTable):
        data, also = data.data, data.names
    request = read_terms(
        formula, column_names(data), family, weights, offset, groups, missing, scope, options
    )
    terms, groups, scope = request.terms, request.groups, request.scope
    columns = request.columns
    # Columns of other fits decide which rows are left out, and no more.
    table, complete = _complete(data, sorted({*request.names, *also}), missing)
    table = table.some(request.names) if also else table
    random = request.random
    within = None if random is None or random.within is None else (random.within, random.label)
    formula_inputs = FormulaInputs.of(request.formula, terms, table, scope, within)
    designs = formula_inputs.designs(table)
    weight = None if weights is None else table[weights].numbers(f"data: column {weights!r}")
    for design, whose in zip(designs, ("experts", "gate", "offset"), strict=False):
        check_finite(design, whose)
    inputs, given = arguments_of(request, formula_inputs, table, designs, family)
    given |= {
        "sample_weight": weight,
        "groups": None if groups is None else table[groups],
    }
    several = is_sequence(family) or bool(as_likelihood(family).parts)
    responses = response_columns if several else response_column
    fields_of_data: dict[str, Any] = {
        "columns": formula_inputs.plain_columns(table),
        "responses": tuple(used_names([terms.response], columns, scope)[0]),
        "weights_column": weights,
        "groups_column": groups,
    }
    if within is not None:
        fields_of_data["parts"] = table[within[0]].as_labels(f"data: column {within[0]!r}")
    if complete is not None:
        fields_of_data |= {
            "kept": np.flatnonzero(complete),
            "dropped": complete.size - int(complete.sum()),
        }
    return inputs, responses(terms.response, table, scope), given, fields_of_data


def _complete(
    data: object, names: Sequence[str], missing: str
) -> tuple[Table, NDArray[np.bool_] | None]:
    """The rows of the named columns without missing values; their mask if any row is left out."""
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
