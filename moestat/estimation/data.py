"""What people pass to a fit: arrays and data frames, read once, with the names they came with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import Parameter, signature
from typing import Any

import numpy as np

from moestat.base.registry import configured
from moestat.base.types import FloatArray
from moestat.base.validate import (
    as_design,
    as_numbers,
    as_plain_array,
    as_weights,
    check_keywords,
)
from moestat.base.warnings import ConstantColumnWarning, warn_caller
from moestat.model.constraints import named
from moestat.model.family import Family, family
from moestat.model.likelihoods import LIKELIHOODS

__all__ = [
    "Data",
    "check_options",
    "check_present",
    "holding_constants",
    "read_data",
    "read_inputs",
    "spans",
]


_OF_DATA = ("likelihood", "n_features", "n_classes")
"""Arguments of `moestat.family` that the data say."""


@dataclass(frozen=True)
class Data:
    """The data of a fit and what their columns and classes are called.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Inputs, with 0 in columns that are constant.
    y : ndarray of shape (n,)
        Real responses, or positions of the labels in `classes`, from 1.
    weight : ndarray of shape (n,)
        Sample weights.
    features : tuple of str or None
        Names of the inputs; None for data without names.
    response : str or None
        Name of the response.
    classes : ndarray of shape (K,) or None
        Labels of the classes in order, the last one the reference; None for a continuous response.
    formula : FormulaInputs or None
        How inputs are made from a data frame; None for a fit without formula.
    groups : ndarray of shape (n,) or None
        Label of the group of each row, for which an expert is chosen once; None without groups.
    """

    X: FloatArray = field(repr=False)
    y: Any = field(repr=False)
    weight: FloatArray = field(repr=False)
    features: tuple[str, ...] | None = None
    response: str | None = None
    classes: Any = None
    formula: Any = None
    groups: Any = field(default=None, repr=False)


def check_options(given: Mapping[str, Any], *functions: Callable[..., Any]) -> None:
    """Raise unless what was given are arguments of these functions or of `moestat.family`.

    The first function is the one that was called.
    """
    known = [
        name
        for function in (*functions, family)
        for name, parameter in signature(function).parameters.items()
        if parameter.kind is not Parameter.VAR_KEYWORD and name not in _OF_DATA
    ]
    check_keywords(functions[0].__name__, given, dict.fromkeys(known))


def read_data(
    model: Family | str | Mapping[str, Any],
    X: Any,
    y: Any,
    sample_weight: Any,
    options: Mapping[str, Any],
) -> tuple[Family, Data]:
    """The family and the data of a fit.

    Parameters
    ----------
    model : Family, str or mapping
        The family, or the name of its likelihood, or its table; sizes are then those of the data.
    X : array_like or data frame of shape (n, d)
        Inputs; (n,) when d = 1.
    y : array_like or series of shape (n,)
        Responses.
    sample_weight : array_like of shape (n,) or None
        Weights.
    options : mapping
        Further arguments of `moestat.family`, for a family by name.

    Returns
    -------
    Family, Data
        The family, with the coefficients of constant inputs held at 0, and the data.

    Raises
    ------
    ValueError
        If anything cannot be read, with the argument and the column.
    """
    if not isinstance(model, (Family, str, Mapping)):
        raise ValueError(
            "family must be a family from moestat.family or the name of a likelihood,"
            f" {', '.join(LIKELIHOODS)}; got {model!r}"
        )
    by_name = not isinstance(model, Family)
    if isinstance(model, Mapping) and "name" not in model:
        raise ValueError(
            f"family: a table of a likelihood needs a name, {', '.join(LIKELIHOODS)}; got {model!r}"
        )
    if options and not by_name:
        raise ValueError(
            f"{', '.join(sorted(options))}: for a family by name only, such as"
            f" fit({model.likelihood.name!r}, X, y, n_experts={model.n_experts}); got {model!r}"
        )
    _check_index(X, y)
    design, features = read_inputs(X, None if by_name else model.n_features)
    likelihood = configured(LIKELIHOODS, model) if by_name else model.likelihood
    response, values = _read_series("y", y)
    classes = None
    if likelihood.support is not None:
        values, classes = _read_labels(values, None if by_name else model.n_classes)
    elif values.dtype.kind in "OUS" or likelihood.link is not None:
        values = as_numbers("y", values)
    if by_name:
        sizes = {} if classes is None else {"n_classes": len(classes)}
        options = {"gate": "softmax", **options, "n_features": design.shape[0], **sizes}
        options |= {n: named(options[n], features) for n in ("equal", "fixed") if n in options}
        model = family(model, **options)
    if values.ndim != 1:
        raise ValueError(f"y must have shape (n,), got {values.shape}")
    if len(values) != design.shape[1]:
        raise ValueError(f"X has {design.shape[1]} samples but y has {len(values)}")
    weight = as_weights(sample_weight, len(values))
    model = holding_constants(model, design, weight > 0, features)
    if model.held:
        design = design.copy()
        design[list(model.held)] = 0.0
    return model, Data(design.T, values, weight, features, response, classes)


def read_inputs(
    X: Any, n_features: int | None = None, features: Sequence[str] | None = None
) -> tuple[FloatArray, tuple[str, ...] | None]:
    """Inputs as the loops read them, and the names of their columns.

    Parameters
    ----------
    X : array_like or data frame of shape (n, d)
        Inputs; (n,) when d = 1.
    n_features : int, optional
        The number d that they must have.
    features : sequence of str, optional
        Names that the columns of a data frame must have; they are put in this order.

    Returns
    -------
    ndarray of shape (d, n), tuple of str or None
        The inputs, and the names of a data frame with named columns.

    Raises
    ------
    ValueError
        If columns are missing, or hold categories, missing values or anything but numbers.
    """
    columns = _columns_of(X)
    if columns is None:
        return as_design(X, n_features), None
    names = tuple(str(name) for name in X.columns) if hasattr(X, "columns") else (str(X.name),)
    found = X.columns if hasattr(X, "columns") else [X.name]
    named = all(isinstance(name, str) for name in found)
    if named and len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"X: two columns are called {twice!r}")
    if features is not None and named:
        lost = [name for name in features if name not in names]
        extra = [name for name in names if name not in features]
        if lost or extra:
            raise ValueError(
                f"X must have the columns of the fit, {', '.join(features)};"
                f" missing: {', '.join(lost) or 'none'}; unknown: {', '.join(extra) or 'none'}"
            )
        columns, names = [columns[names.index(name)] for name in features], tuple(features)
    values = [_numbers(name, column) for name, column in zip(names, columns, strict=True)]
    array = np.column_stack(values) if values else np.empty((len(X), 0))
    return as_design(array, n_features), names if named else None


def _columns_of(X: Any) -> list[Any] | None:
    """The columns of a pandas or polars frame or series; None of anything else."""
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        return [X.iloc[:, j] for j in range(X.shape[1])]
    if hasattr(X, "get_columns"):
        return list(X.get_columns())
    return [X] if _is_series(X) else None


def _is_series(column: Any) -> bool:
    return hasattr(column, "to_numpy") and hasattr(column, "name")


def check_present(where: str, column: Any) -> None:
    """Raise if a column has missing values."""
    missing = np.asarray(column.isna() if hasattr(column, "isna") else column.is_null())
    values = column.to_numpy()
    if values.dtype.kind == "f":
        missing = missing | np.isnan(values)
    if missing.any():
        raise ValueError(
            f"{where} has {missing.sum()} missing values, the first in row"
            f" {np.flatnonzero(missing)[0]} (from 0); leave these rows out or impute them"
        )


def _numbers(name: str, column: Any) -> FloatArray:
    where = f"X: column {name!r}"
    check_present(where, column)
    values, kind = column.to_numpy(), str(column.dtype)
    categorical = kind.startswith(("category", "Categorical", "Enum"))
    if categorical or (values.dtype.kind == "O" and any(isinstance(v, str) for v in values)):
        levels = sorted({str(value) for value in values})
        shown = ", ".join(levels[:3]) + (", ..." if len(levels) > 3 else "")
        raise ValueError(
            f"{where} is categorical ({kind}: {shown}); code it by columns of 0 and 1, one for each"
            " level but one, such as pandas.get_dummies(X, drop_first=True, dtype=float)"
        )
    numbers = as_numbers(where, values)
    if np.isinf(numbers).any():
        raise ValueError(f"{where} holds {np.isinf(numbers).sum()} infinite values")
    return numbers


def _read_series(name: str, y: Any) -> tuple[str | None, np.ndarray]:
    """A response with its name."""
    if not _is_series(y):
        return None, as_plain_array(name, y)
    check_present(name, y)
    return None if y.name in (None, "") else str(y.name), as_plain_array(name, y.to_numpy())


def _check_index(X: Any, y: Any) -> None:
    """Rows of two pandas objects belong together by their index."""
    one: Any = getattr(X, "index", None)
    other: Any = getattr(y, "index", None)
    if not (hasattr(one, "equals") and hasattr(other, "equals")) or len(one) != len(other):
        return
    if not one.equals(other):
        raise ValueError("X and y have different indexes: align their rows, or pass arrays")


def _read_labels(labels: np.ndarray, n_classes: int | None) -> tuple[Any, Any]:
    """Positions of the labels, from 1, and the labels of the classes in ascending order.

    Of a family with K classes integer labels in 1..K are these positions, whichever occur.
    """
    if labels.ndim != 1:
        raise ValueError(f"y must have shape (n,), got {labels.shape}")
    if labels.dtype.kind == "O":
        missing = np.array([label is None or label != label for label in labels])
        if missing.any():
            raise ValueError(
                f"y has {missing.sum()} missing labels, the first in row"
                f" {np.flatnonzero(missing)[0]} (from 0)"
            )
        kinds = {type(label).__name__ for label in labels}
        labels = np.array(labels.tolist())
        if labels.dtype.kind not in "biufUS" or (len(kinds) > 1 and labels.dtype.kind in "US"):
            raise ValueError(f"y must hold labels of one type, got {', '.join(sorted(kinds))}")
    if labels.dtype.kind == "f":
        if not np.all(np.isfinite(labels)):
            raise ValueError("y holds NaN or infinite values; every sample must have a class label")
        if np.any(labels != np.floor(labels)):
            wrong = labels[labels != np.floor(labels)][0]
            raise ValueError(
                f"y must hold class labels: integers, words or truth values; got {wrong:g}"
            )
        labels = labels.astype(np.int64)
    classes, position = np.unique(labels, return_inverse=True)
    if n_classes is not None:
        whole = labels.dtype.kind in "iu"
        if whole and labels.size and classes[0] >= 1 and classes[-1] <= n_classes:
            return labels.astype(np.int64), np.arange(1, n_classes + 1)
        if len(classes) != n_classes:
            shown = ", ".join(map(str, classes[:5])) + (", ..." if len(classes) > 5 else "")
            raise ValueError(
                f"y must hold the labels 1..{n_classes} or {n_classes} labels of another kind;"
                f" got {len(classes)} labels: {shown}"
            )
    elif len(classes) < 2:
        raise ValueError(f"y must hold at least two classes, got {len(classes)}")
    return position.astype(np.int64).reshape(-1) + 1, classes


def spans(design: FloatArray, used: Any) -> FloatArray:
    """Largest less smallest value of each input (d,) in the rows that are `used`, a mask."""
    # Columns chosen by a mask are no longer contiguous, which costs ten times as much to go over.
    return np.ptp(design if used.all() else np.compress(used, design, axis=1), axis=1)


def holding_constants(
    model: Family, design: FloatArray, used: Any, features: Sequence[str] | None
) -> Family:
    """The family with the coefficients of constant inputs held at 0, and a warning."""
    if used.sum() < 2:
        return model
    constant = [int(f) for f in np.flatnonzero(spans(design, used) == 0)]
    new = [f for f in constant if f in model.read]
    if not new:
        return model
    shown = ", ".join(repr(features[f]) if features else str(f) for f in new)
    what = f"X: column {shown} is constant; its slope cannot be told from the intercept"
    try:
        held = model.holding([*model.held, *new])
    except ValueError as error:
        raise ValueError(f"{what}, and {error}: leave the column out") from None
    warn_caller(
        f"{what}. Its coefficients are held at 0, and the intercepts hold its effect",
        ConstantColumnWarning,
    )
    return held


def without_rows(data: Data) -> Data:
    """The names of the data without X and y; the weights stay."""
    return replace(data, X=np.empty((0, data.X.shape[1])), y=data.y[:0])
