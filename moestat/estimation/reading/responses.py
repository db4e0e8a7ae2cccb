"""Several responses of a row: columns of a table or an array, and their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from moestat.base.types import FloatArray, IntArray, Labels, TableLike
from moestat.base.validate import as_plain_array, check_kind
from moestat.estimation.reading.labels import positions_of, read_labels
from moestat.estimation.reading.table import Column, as_column, as_table
from moestat.model.joint import as_likelihood, with_responses
from moestat.model.members import Likelihood

__all__ = ["PAIRS", "Columns", "as_columns", "in_order", "read_responses", "values_of"]

PAIRS: dict[str, tuple[tuple[str, ...], ...]] = {
    "trials": (("successes", "failures"),),
    "censored": (("low", "high"), ("lower", "upper")),
}
"""Names that identify the two columns of a response, by the option that reads two columns."""


def in_order(column: Column, names: Sequence[str]) -> Column:
    """A response of two named columns with these in the order of `names`."""
    if not column.parts or tuple(column.parts) == tuple(names):
        return column
    order = [column.parts.index(name) for name in names]
    return replace(column, values=column.values[:, order], parts=tuple(names))


@dataclass(frozen=True)
class Columns:
    """Columns of responses, one beside the other."""

    columns: tuple[Column, ...]  # one per response
    named: bool  # whether their names are words
    name: None = None

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the columns, where they are words."""
        return tuple(str(column.name) for column in self.columns) if self.named else ()

    @property
    def values(self) -> np.ndarray:
        """The first of the responses (n,)."""
        return self.columns[0].values

    @property
    def missing(self) -> np.ndarray:
        """A mask (n,) of the rows in which a response is missing."""
        return np.any([column.missing for column in self.columns], axis=0)

    def check_missing(self, label: str) -> None:
        """Raise if anything is missing."""
        for r, column in enumerate(self.columns):
            called = r if column.name is None else column.name
            column.check_missing(f"{label}: column {called!r}")

    def at(self, rows: IntArray | NDArray[np.bool_]) -> Columns:
        """The columns at some rows."""
        return Columns(tuple(column.at(rows) for column in self.columns), self.named)


def as_columns(
    given: ArrayLike | TableLike | Column | Columns | None, names: Sequence[str] | None
) -> Columns:
    """Columns of responses, by position; those of a table with all of these names, by name."""
    q = "q" if names is None else len(names)
    if isinstance(given, Columns):
        columns, named = given.columns, given.named
    elif (table := as_table("y", given)) is not None:
        columns, named = table.columns, table.named
        if named and names is not None and set(names) <= set(table.names):
            columns = tuple(table[name] for name in names)
    else:
        values = as_plain_array("y", given)
        if values.ndim != 2:
            raise ValueError(
                f"y must have shape (n, {q}), one column per response, got {values.shape}"
            )
        columns, named = tuple(as_column("y", column) for column in values.T), False
    if names is None and len(columns) < 2:
        raise ValueError("y must have two columns or more, one per response; got 1")
    if names is not None and len(columns) != len(names):
        raise ValueError(f"y must have {q} columns, one per likelihood; got {len(columns)}")
    return Columns(columns, named)


def read_responses(
    model: Any, given: Columns, classes: Any = None
) -> tuple[Likelihood, FloatArray, tuple[Labels | None, ...]]:
    """The likelihood of responses, their values (n, R) and labels (K,), None for numbers.

    A likelihood by names has the names and numbers of classes of the columns.
    """
    law = as_likelihood(model)
    by_name, order = law is not model, {} if classes is None else classes
    check_kind("classes", order, Mapping, "of several responses a table of their labels by name")
    columns = given.columns
    names = (
        [str(c.name) for c in columns] if given.named and by_name else [p.name for p in law.parts]
    )
    values = np.empty((len(given.values), len(names)))
    labels: list[Labels | None] = []
    if unknown := sorted(set(order) - set(names)):
        raise ValueError(f"classes: unknown response {unknown[0]!r}; known: {', '.join(names)}")
    for r, (one, name, column) in enumerate(zip(law.parts, names, columns, strict=True)):
        try:
            if one.likelihood.support is None:
                values[:, r], levels = column.numbers("y"), None
            else:
                K = None if by_name else one.n_classes
                ordered = "levels" in one.likelihood.options
                values[:, r], levels = read_labels(column, K, order.get(name), ordered)
        except ValueError as error:
            raise ValueError(f"response {name!r}: {error}") from None
        labels.append(levels)
    if by_name:
        sizes = [None if levels is None else len(levels) for levels in labels]
        law = with_responses(model, names, sizes)
    return law, values, tuple(labels)


def values_of(
    law: Likelihood, given: Columns, labels: Sequence[Labels | None] | None
) -> FloatArray:
    """Responses (n, R) of new rows: numbers, and positions of the labels that the fit knows."""
    columns = []
    for r, (one, column) in enumerate(zip(law.parts, given.columns, strict=True)):
        known = None if labels is None else labels[r]
        if known is None and one.likelihood.support is not None:
            known = np.arange(1, one.n_classes + 1)
        try:
            columns.append(column.numbers("y") if known is None else positions_of(column, known))
        except ValueError as error:
            raise ValueError(f"response {one.name!r}: {error}") from None
    return np.column_stack(columns)
