"""Tables of estimates: names of their columns, and older names for one release."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd

from moestat.base.warnings import warn_of_old_name

__all__ = ["OLD_NAMES", "EstimateTable"]

OLD_NAMES = {
    **{"error": "std_error", "bse": "std_error", "std err": "std_error", "coef": "estimate"},
    **{"z": "statistic", "pvalue": "p_value", "P>|z|": "p_value"},
    **{"lower": "conf_low", "upper": "conf_high"},
    **{"Conf. Int. Low": "conf_low", "Conf. Int. Upp.": "conf_high"},
}
"""Present names of the columns of version 0.2."""


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

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, list):
            return super().__getitem__([self._present(name) for name in key])
        return super().__getitem__(self._present(key))

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
        """The present name of a column."""
        new = OLD_NAMES.get(name) if isinstance(name, str) else None
        if new is None or name in self.columns or new not in self.columns:
            return name
        warn_of_old_name(f"the column {name!r}", repr(new))
        return new
