"""Rows of a fit, or new rows, read in the way of the fit: by names, formula and groups.

Every method that needs rows gets them from `read_rows` as one record, `Data`, so that none reads X,
y, weights and groups by itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from moestat.base.types import FloatArray, IntArray, Labels, TableLike
from moestat.base.validate import as_weights
from moestat.estimation.data.data import Data
from moestat.estimation.data.groups import check_groups, read_groups
from moestat.estimation.data.read import check_size
from moestat.estimation.reading.inputs import Inputs, read_inputs
from moestat.estimation.reading.responses import (
    Columns,
    as_columns,
    in_order,
    labels_of,
    named_pair,
    read_columns,
    values_of,
)
from moestat.estimation.reading.table import (
    Column,
    Table,
    as_column,
    as_table,
    check_aligned,
    column_names,
    is_table,
)
from moestat.model.family import Family

__all__ = [
    "own_inputs",
    "places_of_rows",
    "places_of_units",
    "read_groups_of_new",
    "read_new_inputs",
    "read_rows",
]


def places_of_rows(rows: Data, name: str, count: int, index: Any = None) -> IntArray:
    """Positions (n,) of the rows of a fit among `count` rows that a user gives afterwards.

    These are the rows of the fit, or all rows that were passed to it, before those with missing
    values were left out.  An `index` of pandas must have the labels of these rows at these places.
    """
    n = len(rows.y)
    at = np.arange(n) if count == n else rows.kept
    if count not in (n, n + rows.dropped) or at is None:
        raise ValueError(f"{name} must hold one label per row, shape ({n},), got ({count},)")
    if rows.index is not None and index is not None and not index[at].equals(rows.index):
        raise ValueError(
            f"X and {name} have different indexes: align their rows, such as"
            f" {name}.reindex(the index of X), or pass arrays"
        )
    return at


def places_of_units(rows: Data, name: str, count: int, index: Any = None) -> IntArray:
    """Positions of the units of a fit among rows, as `places_of_rows`, or among its groups.

    Values of groups, one each, are found by the labels of an `index`, or are in ascending order of
    the labels.  The positions are those of rows (n,) in the first case, of groups (G,) else.
    """
    if rows.groups is None or count in (len(rows.y), len(rows.y) + rows.dropped):
        return places_of_rows(rows, name, count, index)
    labels = np.unique(rows.groups)
    if index is not None and index.is_unique:
        known = index.astype(str) if labels.dtype.kind in "US" else index
        found = known.get_indexer(labels)
        if (found >= 0).all():
            return found
    elif count == labels.size:
        return np.arange(count)
    raise ValueError(
        f"{name} must hold one value per row, {len(rows.y)} of them, or one per group,"
        f" {labels.size} in ascending order or with the labels of the groups as index; got {count}"
    )


def read_rows(
    family: Family,
    fitted: Data | None,
    X: ArrayLike | TableLike | None,
    y: ArrayLike | TableLike | None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    *,
    weighted: bool = False,
    grouped: bool = False,
) -> tuple[Inputs, Data]:
    """The inputs as passed, and the rows as `Data`: new rows X, or the rows of the fit without X.

    Parameters
    ----------
    family : Family
        The model of the fit.
    fitted : Data or None
        The data of the fit; None where they were not kept, which new rows do not need.
    X : array_like or table of shape (n, d), or None
        Inputs of new rows; those of the fit by default.
    y : array_like or table of shape (n,) or (n, R), or None
        Responses of these rows; of a fit by formula those of the table X by default.
    sample_weight : array_like of shape (n,), optional
        Weights; of a fit by formula those of the column that the fit has read.
    groups : array_like of shape (n,), optional
        Labels of groups; of a fit by formula those of the column that the fit has read.
    weighted, grouped : bool
        Whether the method depends on weights, and on groups if the fit has groups.

    Raises
    ------
    ValueError
        If something that the method needs is missing, or differs from what the fit has read.
    """
    at_fit = X is None
    inputs = own_inputs(fitted) if fitted is not None and at_fit else None
    if inputs is None:
        inputs = read_new_inputs(family, fitted, X)
    n = inputs.design.shape[1]
    check_aligned({"X": inputs.table, "y": y, "sample_weight": sample_weight, "groups": groups})
    if at_fit and y is None:
        assert fitted is not None
        values = fitted.y
    else:
        values = _read_responses(family, fitted, X, y)
    if len(values) != n:
        raise ValueError(f"X has {n} samples but y has {len(values)}")
    weight = np.ones(n)
    if sample_weight is not None:
        given = as_column("sample_weight", sample_weight).numbers("sample_weight")
        weight = as_weights(given, n)
    elif at_fit and fitted is not None:
        weight = fitted.weight
    elif weighted and fitted is not None and fitted.weights_column is not None:
        column = _column_of(X, fitted.weights_column, "sample_weight", "the weights of its rows")
        weight = as_weights(column.numbers("sample_weight"), n)
    labels = None
    if fitted is not None and fitted.groups is not None and grouped:
        labels = (
            fitted.groups if at_fit and groups is None else read_groups_of_new(fitted, X, groups, n)
        )
    elif groups is not None:
        _refuse_groups(fitted)
    features = None if fitted is None else fitted.features
    rows = Data(inputs.matrix, values, weight, features, groups=labels)
    if labels is not None and not at_fit:
        check_groups(family, rows)
    return inputs, rows


def _refuse_groups(fitted: Data | None) -> None:
    """Raise because the method does not use groups."""
    if fitted is None or fitted.groups is None:
        raise ValueError("groups: the fit has no groups; fit with groups= or by 'y ~ x | z | id'")
    raise ValueError("groups: the result has a value for each row separately; leave groups out")


def own_inputs(fitted: Data) -> Inputs:
    """Inputs of the fit."""
    table = Table((), fitted.features is not None, len(fitted.X), fitted.index)
    return Inputs(np.ascontiguousarray(fitted.X.T), fitted.features, table)


def read_new_inputs(family: Family, fitted: Data | None, X: ArrayLike | TableLike | None) -> Inputs:
    """Inputs of new rows, read as those of the fit: by formula, by name or by position."""
    if fitted is not None and fitted.formula is not None:
        inputs = fitted.formula.inputs(X)
    else:
        inputs = read_inputs(X, family.n_features, None if fitted is None else fitted.features)
    check_size(
        "X", inputs.design.min(-1, initial=0.0), inputs.design.max(-1, initial=0.0), squared=False
    )
    return inputs


def read_groups_of_new(
    fitted: Data,
    X: ArrayLike | TableLike | None,
    groups: ArrayLike | Column | None,
    n: int,
) -> Labels:
    """Labels (n,) of the groups of new rows, from `groups` or the table X; raises without them."""
    within = None if fitted.formula is None else fitted.formula.within
    if within is not None and X is not None:
        _column_of(X, within[0], "data", "the parts of groups")
    if groups is None and fitted.groups_column is not None:
        groups = _column_of(X, fitted.groups_column, "groups", "the group of each row")
    elif groups is None:
        raise ValueError(
            "groups: the fit chooses an expert once for all rows of a group; give groups=, the"
            " label of the group of each row of X"
        )
    assert groups is not None
    assert fitted.groups is not None
    labels = read_groups(groups, n)
    kinds = [known.dtype.kind in "US" for known in (labels, fitted.groups)]
    if kinds[0] != kinds[1]:
        words = ["numbers", "words"]
        raise ValueError(f"groups must hold {words[kinds[1]]} as in the fit, got {words[kinds[0]]}")
    return labels


def _column_of(X: ArrayLike | TableLike | None, name: str, argument: str, what: str) -> Column:
    """A column of the table X that is not an input; raises if the table lacks it."""
    if name not in column_names(X):
        raise ValueError(
            f"{argument}: the fit used {what} from column {name!r}, which the data lack; give"
            f" {argument}= or the column"
        )
    table = as_table("data", X, [name])
    assert table is not None
    column = table[name]
    column.check_missing(f"data: column {name!r}")
    return column


def _read_responses(
    family: Family,
    fitted: Data | None,
    X: ArrayLike | TableLike | None,
    y: ArrayLike | TableLike | Column | Columns | None,
) -> FloatArray | IntArray:
    """Responses of new rows: numbers (n,) or (n, R), and positions of labels from 1."""
    likelihood = family.likelihood
    formula = None if fitted is None else fitted.formula
    known = () if fitted is None else fitted.responses
    several = bool(likelihood.parts)
    if y is None and formula is not None:
        y = formula.response_of(X, several)
    elif formula is not None and known and (table := _named(y)) is not None:
        plain = formula.response[0] == "lookup" and len(table.columns) == 1
        # Two columns may also have telling names, such as successes and failures.
        if not plain and named_pair(likelihood, table.names) is None:
            y = formula.response_in(table, known, several)
    if y is None:
        raise ValueError("y: give the responses of the rows of X")
    classes = None if fitted is None else fitted.class_labels
    labels = labels_of(likelihood, classes, family.n_classes)
    if several:
        names = [one.name for one in likelihood.parts]
        columns = as_columns(_by_names(y, known, names), names)
        return values_of(likelihood, read_columns(likelihood, columns, names), labels)
    column = as_column("y", y)
    order = named_pair(likelihood, column.parts) or known
    if column.parts and len(order) == 2 and set(order) != set(column.parts):
        raise ValueError(
            f"y must have the columns of the fit, {', '.join(order)}; got {', '.join(column.parts)}"
        )
    column = in_order(column, order) if len(order) == 2 else column
    return values_of(likelihood, read_columns(likelihood, column), labels)


def _named(y: ArrayLike | TableLike | Column | Columns | None) -> Table | None:
    """The table of responses with names; None for anything else."""
    if isinstance(y, Column | Columns):
        return None
    table = as_table("y", y) if is_table(y) else None
    return table if table is not None and table.named else None


def _by_names(
    y: ArrayLike | TableLike | Column | Columns, known: tuple[str, ...], names: list[str]
) -> ArrayLike | TableLike | Column | Columns:
    """Several responses with the columns in the order of the fit; raise for other names."""
    table = _named(y)
    if table is None or set(names) <= set(table.names):
        return y
    if known and set(known) <= set(table.names):
        return table.some(known)
    raise ValueError(
        f"y must have the columns of the fit, {', '.join(known or names)}; got"
        f" {', '.join(table.names)}"
    )
