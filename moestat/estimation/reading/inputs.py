"""Inputs of a fit or of new rows, laid out once as the loops read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from moestat.base.types import FloatArray
from moestat.base.validate import as_design
from moestat.estimation.reading.table import Table, as_table, no_missing

__all__ = ["Inputs", "read_inputs"]


@dataclass(frozen=True)
class Inputs:
    """Inputs as the loops read them, and the table that they came from.

    Parameters
    ----------
    design : ndarray of shape (d, n)
        One contiguous row per input; NaN where a value is missing.
    features : tuple of str or None
        Names of the inputs.
    table : Table or None
        Where they came from; None for arrays.
    formula : FormulaInputs or None
        How they were made.
    """

    design: FloatArray = field(repr=False)
    features: tuple[str, ...] | None = None
    table: Table | None = field(default=None, repr=False)
    formula: Any = None

    @property
    def matrix(self) -> FloatArray:
        """Inputs (n, d)."""
        return self.design.T

    @property
    def index(self) -> Any:
        """What the rows are called."""
        return None if self.table is None else self.table.index

    def like(self, values: Any, columns: Any = None) -> Any:
        """Values (n,) or (n, m) as the inputs came; see `Table.like`."""
        return values if self.table is None else self.table.like(values, columns)


def read_inputs(
    X: Any,
    n_features: int | None = None,
    features: Sequence[str] | None = None,
    missing: str = "raise",
) -> Inputs:
    """Inputs as the loops read them, laid out once.

    Parameters
    ----------
    X : array_like or table of shape (n, d)
        Inputs; (n,) when d = 1.
    n_features : int, optional
        The number d that they must have.
    features : sequence of str, optional
        Names that the columns of a table must have; they are put in this order.
    missing : {"raise", "drop"}
        With "drop" missing values are NaN.

    Returns
    -------
    Inputs
        The inputs, with the names of a table with named columns.

    Raises
    ------
    ValueError
        If columns are missing, or hold categories, missing values or anything but numbers.
    """
    table = as_table("X", X)
    if table is None:
        return Inputs(as_design(X, n_features, missing=missing == "drop"))
    if features is not None and table.named:
        table = table.chosen(features)
    design = np.empty((len(table.columns), table.n_rows))
    for j, column in enumerate(table.columns):
        where = f"X: column {column.name!r}"
        if missing == "raise":
            no_missing(where, column.missing)
        design[j] = column.numbers(where)
    if n_features not in (None, len(design)):
        raise ValueError(f"X must have shape (any, {n_features}), got {design.shape[::-1]}")
    return Inputs(design, table.names if table.named else None, table)
