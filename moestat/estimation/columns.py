"""Tables and series of estimates: names of their columns and rows, older ones for one release."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any

import pandas as pd

from moestat.base.warnings import warn_of_old_name
from moestat.model.numbering import in_current_names

__all__ = ["OLD_NAMES", "EstimateSeries", "EstimateTable"]

OLD_NAMES = {
    **{"error": "std_error", "bse": "std_error", "std err": "std_error", "coef": "estimate"},
    **{"z": "statistic", "pvalue": "p_value", "P>|z|": "p_value"},
    **{"lower": "conf_low", "upper": "conf_high"},
    **{"Conf. Int. Low": "conf_low", "Conf. Int. Upp.": "conf_high"},
}
"""Present names of the columns of version 0.2."""

_NAMING = {
    "sort_values": "by",
    "groupby": "by",
    "set_index": "keys",
    "drop": "columns",
    "rename": "columns",
    "dropna": "subset",
    "drop_duplicates": "subset",
    "agg": "func",
    "pop": "item",
}
"""Methods of a data frame with the argument that names columns."""


def _present_labels(key: Any, index: pd.Index) -> Any:
    """A label, or a list of labels, with names that count experts from 1.

    Until version 0.2 names counted from 0.  A list with a name of an expert 0 is read in that way.
    """
    if isinstance(key, tuple):
        return tuple(_present_labels(each, index) for each in key)
    labels = key if isinstance(key, list) else [key]
    words = [label for label in labels if isinstance(label, str)]
    if not any("[0" in label and label not in index for label in words):
        return key
    names = [str(name) for name in index]
    new = in_current_names("\n".join(words), names, names).split("\n")
    present = dict(zip(words, new, strict=True))
    found = [present.get(label, label) if isinstance(label, str) else label for label in labels]
    return found if isinstance(key, list) else found[0]


def _present_name(name: Any, columns: pd.Index) -> Any:
    """The present name of a column; anything else as it is."""
    new = OLD_NAMES.get(name) if isinstance(name, str) else None
    if new is None or name in columns or new not in columns:
        return name
    warn_of_old_name(f"the column {name!r}", repr(new))
    return new


class _Located:
    """``loc`` of a series or frame, by present or older labels."""

    def __init__(self, values: Any, located: Any) -> None:
        self._values, self._located = values, located

    def _present(self, key: Any) -> Any:
        if not isinstance(key, tuple):
            return _present_labels(key, self._values.index)
        columns = [self._values._present(each) for each in key[1:]]
        return (_present_labels(key[0], self._values.index), *columns)

    def __getitem__(self, key: Any) -> Any:
        return self._located[self._present(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._located[self._present(key)] = value

    def __call__(self, axis: Any = None) -> Any:
        return self._located(axis)

    def __getattr__(self, name: str) -> Any:  # what pandas asks of its own indexers
        return getattr(self._located, name)


class EstimateSeries(pd.Series):  # pyright: ignore[reportMissingTypeArgument]
    """A series by names of parameters, which may be asked for by the names of version 0.2.

    These count experts from 0; a FutureWarning writes the present name.

    Examples
    --------
    >>> import warnings
    >>> series = EstimateSeries([1.0, 2.0], index=["a[1,x]", "a[2,x]"])
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", FutureWarning)
    ...     float(series["a[0,x]"]), series[["a[0,x]", "a[1,x]"]].tolist()
    (1.0, [1.0, 2.0])
    """

    @property
    def _constructor(self) -> type[EstimateSeries]:
        return EstimateSeries

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(_present_name(_present_labels(key, self.index), self.index))

    @property
    def loc(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Values by label, as ``Series.loc``."""
        return _Located(self, super().loc)

    def _present(self, name: Any) -> Any:
        return name


def _by_present_names(method: str, argument: str) -> Callable[..., Any]:
    """A method of a data frame whose argument may have older names."""
    whole = getattr(pd.DataFrame, method)
    arguments = signature(whole)

    @wraps(whole)
    def named(self: EstimateTable, *given: Any, **options: Any) -> Any:
        call = arguments.bind(self, *given, **options)
        if argument in call.arguments:
            call.arguments[argument] = self._present(call.arguments[argument])
        return whole(*call.args, **call.kwargs)

    return named


class EstimateTable(pd.DataFrame):
    """A data frame whose columns may be asked for by their names of version 0.2, with a warning.

    The columns are ``estimate``, ``std_error``, ``statistic``, ``p_value``, ``conf_low`` and
    ``conf_high``.

    Examples
    --------
    >>> table = EstimateTable({"estimate": [1.0], "std_error": [0.5]})
    >>> table[["estimate", "std_error"]].shape
    (1, 2)
    """

    @property
    def _constructor(self) -> type[EstimateTable]:
        return EstimateTable

    @property
    def _constructor_sliced(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
    ) -> type[EstimateSeries]:
        return EstimateSeries

    def __contains__(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, key: object
    ) -> bool:
        return super().__contains__(self._present(key))

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(self._present(key))

    @property
    def loc(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Rows and columns by label, as ``DataFrame.loc``."""
        return _Located(self, super().loc)

    @property
    def at(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """One value by labels, as ``DataFrame.at``."""
        return _Located(self, super().at)

    def __getattr__(self, name: str) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        if name in OLD_NAMES and self._present(name) != name:
            return self[OLD_NAMES[name]]
        return super().__getattr__(name)

    def query(self, expr: str, **options: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Rows that meet a condition, as ``DataFrame.query``."""
        for old in OLD_NAMES:
            if re.fullmatch(r"\w+", old) and re.search(rf"(?<![\w'\"]){old}(?![\w'\"])", expr):
                expr = re.sub(rf"(?<![\w'\"]){old}(?![\w'\"])", self._present(old), expr)
        return super().query(expr, **options)

    def _present(self, name: Any) -> Any:
        """The present name of a column, or the names of a list, or of the keys of a mapping."""
        if isinstance(name, list):
            name = [self._present(each) for each in name if not isinstance(each, list)]
        elif isinstance(name, dict):
            return {self._present(each): value for each, value in name.items()}
        return _present_name(_present_labels(name, self.columns), self.columns)


for _method, _argument in _NAMING.items():
    setattr(EstimateTable, _method, _by_present_names(_method, _argument))
