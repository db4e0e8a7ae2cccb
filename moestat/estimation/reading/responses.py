"""Responses as columns: of a table, an array or a block, with names and labels of classes.

Wherever rows are, responses are read in three steps: `read_columns` checks those of some rows and
leaves labels as they are, `find_classes` puts all labels into an order, and `values_of` has their
positions in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from moestat.base.types import IntArray, Labels, TableLike
from moestat.base.validate import as_plain_array, check_kind
from moestat.estimation.reading.labels import order_labels, plain_labels, positions_of
from moestat.estimation.reading.table import Column, as_column, as_table
from moestat.model.family import Family
from moestat.model.joint import as_likelihood, with_responses
from moestat.model.members import Likelihood

__all__ = [
    "Columns",
    "as_columns",
    "classes_of",
    "find_classes",
    "in_order",
    "labels_in",
    "labels_of",
    "law_of",
    "named_pair",
    "names_of_responses",
    "read_columns",
    "values_of",
]

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


def named_pair(likelihood: Likelihood, parts: Sequence[str]) -> tuple[str, ...] | None:
    """The order of two columns with telling names, such as successes and failures; else None."""
    for option, pairs in PAIRS.items():
        for names in pairs:
            if option in likelihood.options and set(names) == set(parts):
                return names
    return None


def law_of(model: Any) -> Likelihood:
    """The likelihood of a family, or by name."""
    return model.likelihood if isinstance(model, Family) else as_likelihood(model)


@contextmanager
def _of_response(name: str) -> Iterator[None]:
    """Say of an error in which of several responses it lies."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"response {name!r}: {error}") from None


def names_of_responses(model: Any, given: Sequence[str]) -> list[str]:
    """Names of several responses: those that are `given`, of a model by name, else its own."""
    by_name = not isinstance(model, Family)
    return list(given) if given and by_name else [one.name for one in law_of(model).parts]


def read_columns(
    law: Likelihood, given: Column | Columns, names: Sequence[str] = ()
) -> tuple[np.ndarray, ...]:
    """Responses as columns (n,) of numbers, or of labels as they are; of bounds two columns.

    Of several responses errors have these `names`.
    """
    given.check_missing("y")
    if isinstance(given, Columns):
        responses: list[np.ndarray] = []
        for one, name, column in zip(law.parts, names, given.columns, strict=True):
            with _of_response(name):
                is_number = one.likelihood.support is None
                responses.append(column.numbers("y") if is_number else plain_labels(column))
        return tuple(responses)
    if given.values.ndim != 1 and law.dtype is not np.complex128:
        two = "; two columns are bounds, or successes and failures, of likelihoods that have them"
        raise ValueError(
            f"y must have shape (n,) for {law.name}, got {given.values.shape}"
            + two * (given.values.ndim == 2 and given.values.shape[1] == 2)
        )
    if law.support is not None:
        return (plain_labels(given),)
    values = given.numbers_or_infinite("y") if "censored" in law.options else given.numbers("y")
    return (values,) if values.ndim == 1 else tuple(map(np.ascontiguousarray, values.T))


def labels_in(law: Likelihood, columns: Sequence[np.ndarray]) -> tuple[Labels | None, ...]:
    """Labels of each response in some rows, ascending, None of numbers; () without classes."""
    if not any(one.support is not None for one in law.laws):
        return ()
    return tuple(
        None if one.support is None else np.unique(column)
        for one, column in zip(law.laws, columns, strict=True)
    )


def find_classes(
    model: Any,
    occurring: Sequence[Labels | None],
    declared: Sequence[Column | None],
    names: Sequence[str],
    classes: Any,
) -> tuple[Any, tuple[Labels | None, ...]]:
    """The model for several responses with their names and sizes, and the labels of the classes.

    Of a model by name these are the `names` of responses, and the numbers of labels that occur.
    The labels (K,) of each response are in the order of `order_labels`, None of numbers; `declared`
    are its columns.
    """
    law, by_name = law_of(model), not isinstance(model, Family)
    if not law.parts:
        if law.support is None and classes is not None:
            raise ValueError(f"classes: the {law.name} likelihood has no classes")
        if law.support is None or not occurring or occurring[0] is None:
            return model, ()
        K, ordered = None if by_name else model.n_classes, "levels" in law.options
        return model, (order_labels(occurring[0], declared[0], K, classes, ordered),)
    orders = {} if classes is None else classes
    check_kind("classes", orders, Mapping, "of several responses a table of their labels by name")
    if unknown := sorted(set(orders) - set(names)):
        raise ValueError(f"classes: unknown response {unknown[0]!r}; known: {', '.join(names)}")
    labels: list[Labels | None] = [None] * len(names)
    for r, (one, name) in enumerate(zip(law.parts, names, strict=True)):
        found = occurring[r] if occurring else None
        if found is None:
            continue
        K, ordered = None if by_name else one.n_classes, "levels" in one.likelihood.options
        with _of_response(name):
            labels[r] = order_labels(found, declared[r], K, orders.get(name), ordered)
    if by_name:
        sizes = [None if found is None else len(found) for found in labels]
        model = with_responses(model, names, sizes)
    return model, tuple(labels)


def values_of(
    law: Likelihood, columns: Sequence[np.ndarray], labels: Sequence[Labels | None]
) -> np.ndarray:
    """Responses as a fit reads them: numbers, or positions, from 1, of the labels of classes.

    They are (n,), or (n, R) for several; `labels` are those of `find_classes`.
    """
    values: list[np.ndarray] = []
    for r, column in enumerate(columns):
        classes = labels[r] if labels else None
        with _of_response(law.parts[r].name) if law.parts else nullcontext():
            values.append(column if classes is None else positions_of(column, classes))
    if law.parts:
        return np.column_stack(values).astype(np.float64)
    return values[0] if len(values) == 1 else np.column_stack(values)


def classes_of(law: Likelihood, labels: tuple[Labels | None, ...]) -> Any:
    """The labels of `find_classes` as `Data` has them: of one response alone, or None."""
    return labels if law.parts else labels[0] if labels else None


def labels_of(law: Likelihood, classes: Any, n_classes: int) -> tuple[Labels | None, ...]:
    """The inverse of `classes_of`; where no labels are known they are 1..K."""
    if not any(one.support is not None for one in law.laws):
        return ()
    known = classes if law.parts else None if classes is None else (classes,)
    sizes = [one.n_classes for one in law.parts] or [n_classes]
    return tuple(
        None
        if one.support is None
        else (np.arange(1, K + 1) if known is None or known[r] is None else known[r])
        for r, (one, K) in enumerate(zip(law.laws, sizes, strict=True))
    )
