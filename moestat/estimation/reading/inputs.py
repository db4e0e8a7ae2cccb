"""Inputs of a fit or of new rows, laid out once as the loops read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from moestat.base.types import FloatArray, TableLike
from moestat.base.validate import as_design
from moestat.estimation.reading.table import Table, as_table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Inputs", "read_inputs"]


class Recipe(Protocol):
    """How inputs are computed from the columns of a table: a formula."""

    def inputs(self, data: object) -> Inputs:
        """The inputs of new data."""
        ...


@dataclass(frozen=True)
class Inputs:
    """Inputs as the compiled loops read them, and their original table."""

    # (d, n): one contiguous row per input; NaN where a value is missing
    design: FloatArray = field(repr=False)
    features: tuple[str, ...] | None = None
    table: Table | None = field(default=None, repr=False)  # the original table; None for arrays
    formula: Recipe | None = None  # the formula that computed them

    @property
    def matrix(self) -> FloatArray:
        """Inputs (n, d)."""
        return self.design.T

    @property
    def index(self) -> pd.Index | None:
        """Labels of the rows."""
        return None if self.table is None else self.table.index

    def like(self, values: np.ndarray, columns: Any = None) -> Any:
        """Values (n,) or (n, m) in the type of the original inputs; see `Table.like`."""
        return values if self.table is None else self.table.like(values, columns)


def read_inputs(
    X: ArrayLike | TableLike | None,
    n_features: int | None = None,
    features: Sequence[str] | None = None,
    missing: str = "raise",
) -> Inputs:
    """Inputs as the compiled loops read them; missing values are NaN if rows are dropped.

    Columns of a table are put in the order of `features`, which it must have.
    """
    table = as_table("X", X)
    if table is None:
        return Inputs(as_design(X, n_features, missing=missing == "drop"))
    if features is not None and table.named:
        table = table.chosen(features)
    design = np.empty((len(table.columns), table.n_rows))
    for j, column in enumerate(table.columns):
        label = f"X: column {column.name!r}"
        if missing == "raise":
            column.check_missing(label)
        design[j] = column.numbers(label)
    if n_features not in (None, len(design)):
        raise ValueError(f"X must have shape (any, {n_features}), got {design.shape[::-1]}")
    return Inputs(design, table.names if table.named else None, table)
