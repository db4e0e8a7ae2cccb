"""Tables of any library as named columns, and results in the type of the original table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral, Number
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from moestat.base.types import FloatArray, IntArray, Labels
from moestat.base.validate import as_numbers, as_plain_array, hint_of_text, listed, short
from moestat.base.warnings import LimitWarning, warn_caller
from moestat.estimation.reading.hints import hint_of_words

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Column",
    "Table",
    "as_column",
    "as_table",
    "check_aligned",
    "check_missing",
    "column_names",
    "index_of",
    "is_missing",
    "is_table",
    "levels_of_arrow",
    "missing_values",
]

MISSING = ("raise", "drop")

_LARGEST_WHOLE = 2.0 ** (np.finfo(np.float64).nmant + 1)
"""Whole numbers up to this one are exact in float64."""


def missing_values(label: str, count: int, first: int) -> ValueError:
    """The refusal of a column with `count` missing values, the first in row `first`."""
    return ValueError(
        f"{label} has {count} missing values, the first in row {first} (from 0); leave these rows"
        ' out (in a fit: missing="drop"), or impute the values'
    )


def _is_whole(value: object) -> bool:
    """Whether this is a whole number, and no truth value."""
    return isinstance(value, Integral) and not isinstance(value, bool)


@dataclass(frozen=True)
class Column:
    """One column: its values, which of them are missing, and its name."""

    values: np.ndarray  # (n,): values; those of missing rows have no meaning
    missing: np.ndarray  # (n,)
    name: str | None = None
    levels: Labels | None = None  # declared categories, in their order
    ordered: bool = False  # whether the user has declared this order
    kind: str = ""  # name of the type in the library of the column
    categorical: bool = False  # whether it holds categories or words
    parts: tuple[str, ...] = ()  # names of the two columns of values (n, 2), where they have names

    def check_missing(self, label: str) -> None:
        """Raise if anything is missing."""
        if self.missing.any():
            count, first = int(self.missing.sum()), int(np.flatnonzero(self.missing)[0])
            raise missing_values(label, count, first)

    def at(self, rows: IntArray | NDArray[np.bool_]) -> Column:
        """The column at some rows."""
        return replace(self, values=self.values[rows], missing=self.missing[rows])

    def as_labels(self, label: str) -> Labels:
        """Labels (n,) of groups, as numbers or as words; equal values have equal labels."""
        if self.values.dtype.kind != "O":
            return self.values
        known = self.values[~self.missing].tolist()
        if len(known) == len(self.values) and all(map(_is_whole, known)):
            return self.values.astype(np.int64)
        words = self.values.astype(str)
        if all(isinstance(value, str) for value in known):
            return words
        pairs = {*zip(known, words[~self.missing].tolist(), strict=True)}
        if not len({value for value, _ in pairs}) == len(pairs) == len({word for _, word in pairs}):
            raise ValueError(
                f"{label} must hold labels of one type, got values of several types that are equal"
                " or look alike, such as 1 and '1'"
            )
        return words

    def numbers(self, label: str) -> FloatArray:
        """Values (n,) as float64, NaN where missing; refuses categories and infinite ones."""
        words = sorted({str(v) for v in self.values[~self.missing]}) if self.categorical else []
        hint = hint_of_words(self.name, words)
        cell = hint_of_text(self.values) if self.categorical and self.levels is None else ""
        # Where other rows are numbers, one text is a slip and not a way to write numbers.
        if cell and (not hint or not all(isinstance(v, str) for v in self.values[~self.missing])):
            raise ValueError(f"{label} must hold numbers{cell}")
        if self.categorical and (hint or not label.startswith("X")):
            whose = "" if self.name is None or repr(self.name) in label else f" {self.name!r}"
            raise ValueError(
                f"{label} must hold numbers, got words or categories ({self.kind})"
                f"{f' in column{whose}' * bool(whose)}{f'; {hint}' * bool(hint)}"
                + "; for classes use family='multinomial'"
                * (label == "y" and not hint)
            )
        if self.categorical:
            first = listed(words, 3)
            raise ValueError(
                f"{label} is categorical ({self.kind}: {first}); use moestat.fit_formula, or code"
                " it by columns of 0 and 1, one for each level but one, such as"
                " pandas.get_dummies(X, drop_first=True, dtype=float)"
            )
        numbers = self.numbers_or_infinite(label)
        if np.isinf(numbers).any():
            raise ValueError(f"{label} holds {np.isinf(numbers).sum()} infinite values")
        return numbers

    def numbers_or_infinite(self, label: str) -> FloatArray:
        """Values as float64, NaN where they are missing."""
        numbers = np.full(self.values.shape, np.nan)
        numbers[~self.missing] = as_numbers(label, self.values[~self.missing])
        if self.values.dtype.kind in "iu" and np.any(np.abs(numbers) > _LARGEST_WHOLE):
            warn_caller(
                f"{label} holds whole numbers above 2**53, which float64 rounds; subtract a"
                " constant first if their last digits matter",
                LimitWarning,
            )
        return numbers


@dataclass(frozen=True)
class Table:
    """Columns of a table."""

    columns: tuple[Column, ...] = field(repr=False)
    named: bool  # whether their names are words; numbers are positions
    n_rows: int
    index: pd.Index | None = field(default=None, repr=False)  # labels of the rows
    native: ModuleType | None = field(default=None, repr=False)  # library of the original table

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(str(column.name) for column in self.columns)

    def __getitem__(self, name: str) -> Column:
        return self.columns[self.names.index(name)]

    def chosen(self, names: Sequence[str]) -> Table:
        """Its columns of these names, in this order; others are refused."""
        missing = [name for name in names if name not in self.names]
        extra = [name for name in self.names if name not in names]
        if missing or extra:
            raise ValueError(
                f"X must have the columns of the fit, {', '.join(names)};"
                f" missing: {', '.join(missing) or 'none'}; unknown: {', '.join(extra) or 'none'}"
            )
        return replace(self, columns=tuple(self[name] for name in names))

    def some(self, names: Sequence[str]) -> Table:
        """Its columns of these names, in this order, without the others."""
        return replace(self, columns=tuple(self[name] for name in names))

    def at(self, rows: IntArray) -> Table:
        """The table at some rows."""
        index = None if self.index is None else self.index[rows]
        columns = tuple(column.at(rows) for column in self.columns)
        return replace(self, columns=columns, n_rows=len(rows), index=index)

    def like(self, values: np.ndarray, columns: Any = None) -> Any:
        """Values (n,) or (n, m) in the type of the original table: a series or frame with index.

        For a mapping of columns they are an array; `columns` are the names of the m columns.
        """
        if (self.native is None and self.index is None) or values.ndim > 2:
            return values
        if self.index is not None:
            import pandas as pd

            if values.ndim == 1:
                return pd.Series(values, index=self.index, name=columns)
            return pd.DataFrame(values, index=self.index, columns=columns)
        import narwhals as nw

        assert self.native is not None
        if values.ndim == 1:
            result = nw.new_series(str(columns or ""), values, backend=self.native)
        else:
            names = range(values.shape[1]) if columns is None else columns
            parts = {str(name): values[:, j] for j, name in enumerate(names)}
            result = nw.from_dict(parts, backend=self.native)
        return result.to_native()


def column_names(given: object) -> list[str]:
    """Names of the columns of a table; no column is read."""
    import narwhals as nw

    if isinstance(given, Mapping | Table):
        return list(map(str, given.names if isinstance(given, Table) else given))
    frame = _frame_of("data", given)
    if not isinstance(frame, nw.DataFrame | nw.LazyFrame):
        raise ValueError(
            f"data must be a data frame, or a table of columns by their names, got"
            f" {type(given).__name__}"
        )
    return list(map(str, frame.collect_schema().names()))


def as_table(name: str, given: Any, only: Sequence[str] | None = None) -> Table | None:
    """A table of pandas, polars, pyarrow or another library that narwhals knows, or a mapping.

    A lazy frame is collected; a series is a table of one column.  None of anything else.
    """
    if given is None or isinstance(given, np.ndarray | list | tuple | Table):
        return given if isinstance(given, Table) else None
    if isinstance(given, Mapping):
        return _of_mapping(name, given, only)
    import narwhals as nw

    frame = _frame_of(name, given)
    if isinstance(frame, nw.LazyFrame):
        frame = (frame.select(list(only)) if only else frame).collect()
    if isinstance(frame, nw.Series):
        series = [frame]
    elif isinstance(frame, nw.DataFrame):
        series = [*frame.iter_columns()] if only is None else _named(frame, only)
    else:
        return None
    names = [each.name for each in series]
    named = not any(each in ("", None) for each in names)
    named = named and not all(isinstance(each, Integral) for each in names)
    index = given.index if _has_index(given) else None
    native = nw.get_native_namespace(frame)
    return Table(tuple(map(_column_of, series)), named, len(frame), index, native)


def _named(frame: Any, names: Sequence[str]) -> list[Any]:
    """Columns of a frame of narwhals by their names as text; labels of pandas may be numbers."""
    if all(name in frame.columns for name in names):
        return [frame[name] for name in names]
    columns = {str(each.name): each for each in frame.iter_columns()}
    return [columns[name] for name in names]


def is_table(given: object) -> bool:
    """Whether this may hold columns with names: a frame, a series or a mapping."""
    return given is not None and not isinstance(given, np.ndarray | list | tuple | Number | str)


def _frame_of(name: str, given: Any) -> Any:
    """A frame or series of narwhals; objects that narwhals does not know are returned unchanged."""
    import narwhals as nw
    from narwhals.exceptions import DuplicateError

    if hasattr(given, "to_struct_array"):  # a record batch of pyarrow
        import pyarrow as pa

        given = pa.table(given)
    try:
        return nw.from_native(given, pass_through=True, allow_series=True)
    except DuplicateError:
        names = list(map(str, getattr(given, "column_names", given.columns)))
        twice = next(each for each in names if names.count(each) > 1)
        raise ValueError(f"{name}: two columns are called {twice!r}") from None


def _of_mapping(name: str, given: Mapping[str, Any], only: Sequence[str] | None) -> Table:
    """Columns by name; pandas series among them must have one index."""
    keys = {str(key): key for key in given}
    chosen = given if only is None else {name: given[keys[name]] for name in only}
    check_aligned(chosen)
    columns = [as_column(f"{name}: column {key!r}", v, str(key)) for key, v in chosen.items()]
    lengths = {len(column.values) for column in columns}
    lengths.update(len(v) for v in [*given.values()][:1])
    if len(lengths) > 1:
        raise ValueError(f"{name}: columns have different lengths, {sorted(lengths)}")
    indexes = [v.index for v in chosen.values() if _has_index(v)]
    return Table(tuple(columns), True, max(lengths, default=0), indexes[0] if indexes else None)


def as_column(label: str, given: Any, name: object = None) -> Column:
    """A column of an array, a series, or a table with one column."""
    if isinstance(given, Column):
        return given
    table = None if isinstance(given, Mapping) else as_table(label, given)
    if table is not None and len(table.columns) == 1:
        return table.columns[0] if name is None else replace(table.columns[0], name=name)
    bounds = label == "y"  # two columns are those of a response that may be censored
    parts: tuple[str, ...] = ()
    if table is not None and len(table.columns) == 2 and bounds:
        parts = table.names if table.named else ()
        given = np.column_stack([column.numbers_or_infinite("y") for column in table.columns])
    elif table is not None:
        raise ValueError(f"{label} must be one column, got {len(table.columns)}")
    values = as_plain_array(label, given)
    if values.dtype.kind == "f":
        values = values.astype(np.float64, copy=False)  # of float128, too
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim == 2 and values.shape[1] == 2 and bounds:
        missing = np.any(is_missing(values), axis=1)
        return Column(values, np.asarray(missing), kind=str(values.dtype), parts=parts)
    if values.ndim != 1:
        raise ValueError(f"{label} must have shape (n,), got {values.shape}")
    # A pandas.Categorical is an array with declared levels.
    levels = getattr(getattr(given, "dtype", None), "categories", None)
    declared = None if levels is None else np.asarray(levels)
    words = values.dtype.kind in "US" or declared is not None or _has_words(values)
    return Column(
        values,
        is_missing(values),
        None if name is None else str(name),
        declared,
        getattr(getattr(given, "dtype", None), "ordered", False) or _is_arranged(declared),
        str(values.dtype),
        words,
    )


def _column_of(series: Any) -> Column:
    """A column of a narwhals series."""
    import narwhals as nw

    dtype = series.dtype
    values = series.to_numpy()
    missing = series.is_null().to_numpy() | (values.dtype.kind == "f" and is_missing(values))
    categorical = dtype in (nw.Categorical, nw.Enum, nw.String)
    levels, ordered = None, dtype == nw.Enum
    native_series = series.to_native()
    native = getattr(native_series, "dtype", None)
    if dtype == nw.Enum or (dtype == nw.Categorical and hasattr(native, "categories")):
        # Categories of polars have no order of the user's.
        categories = getattr(native, "categories", None)
        if hasattr(categories, "to_numpy") or isinstance(categories, list):
            levels = np.asarray(categories)
            ordered = ordered or _is_arranged(levels)
    elif dtype == nw.Categorical and hasattr(native_series, "unify_dictionaries"):
        levels, ordered = levels_of_arrow(native_series)
    return Column(
        values,
        np.asarray(missing),
        str(series.name) if series.name not in (None, "") else None,
        levels,
        ordered and levels is not None,
        str(native or dtype),
        categorical or _has_words(values),
    )


def levels_of_arrow(column: Any) -> tuple[np.ndarray, bool]:
    """Levels of a column of dictionaries of pyarrow, as pandas reads them, and whether in order."""
    unified = column.unify_dictionaries()
    parts = unified.chunks if hasattr(unified, "chunks") else [unified]
    levels = (
        np.asarray(parts[0].dictionary.to_numpy(zero_copy_only=False)) if parts else np.empty(0)
    )
    return levels, bool(unified.type.ordered)


def _is_arranged(levels: Labels | None) -> bool:
    """Whether the categories have another order than the ascending one, the default of pandas."""
    if levels is None:
        return False
    known = np.asarray(levels).tolist()
    return known != sorted(known, key=str)


def _has_words(values: np.ndarray) -> bool:
    return values.dtype.kind == "O" and any(isinstance(value, str) for value in values)


def is_missing(values: np.ndarray) -> np.ndarray:
    """A mask of what is missing: NaN of floats, and None, NaN and the like of objects."""
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind != "O":
        return np.zeros(values.shape, dtype=bool)
    import pandas as pd

    return np.asarray(pd.isna(values))


def _has_index(given: object) -> bool:
    """Whether this is a frame or series of pandas, or one like it."""
    known = hasattr(given, "iloc") or isinstance(given, Table)
    return known and hasattr(getattr(given, "index", None), "equals")


def index_of(given: object) -> Any:
    """The index of a frame or series of pandas; None of anything else."""
    return given.index if _has_index(given) else None  # pyright: ignore[reportAttributeAccessIssue]


def check_aligned(given: Mapping[str, Any]) -> None:
    """Refuse pandas objects with the same number of rows but different indexes."""
    first: tuple[str, Any] | None = None
    for name, part in given.items():
        if not _has_index(part):
            continue
        if first is None:
            first = name, part.index
        elif len(part.index) == len(first[1]) and not part.index.equals(first[1]):
            raise ValueError(
                f"{first[0]} and {name} have different indexes: align their rows, such as"
                f" {name}.reindex({first[0]}.index), or pass arrays"
            )


def check_missing(missing: object) -> None:
    """Raise unless this is a way to treat missing values."""
    if missing not in MISSING:
        raise ValueError(f"missing must be one of {', '.join(MISSING)}, got {short(missing)}")
