"""Nine small classical data sets, as data frames with what is known of them."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["describe", "load", "names"]


@cache
def _known() -> dict[str, Any]:
    return tomllib.loads(files(__name__).joinpath("datasets.toml").read_text(encoding="utf-8"))


def _entry(name: str) -> dict[str, Any]:
    if not isinstance(name, str) or name not in _known():
        raise ValueError(f"name must be one of {', '.join(_known())}; got {str(name)!r:.80}")
    return _known()[name]


def names() -> tuple[str, ...]:
    """The names of the data sets.

    Returns
    -------
    tuple of str
        The names that `load` and `describe` accept.

    Examples
    --------
    >>> from moestat import datasets
    >>> datasets.names()[:4]
    ('engel', 'nile', 'penguins', 'visits')
    """
    return tuple(_known())


def load(name: str) -> pd.DataFrame:
    """Load a data set as a data frame; text columns are categories in alphabetical order.

    Parameters
    ----------
    name : str
        One of `names`.

    Returns
    -------
    pandas.DataFrame
        The data; ``attrs`` holds ``title``, ``use``, ``source``, ``licence`` and ``columns``,
        which `describe` shows.

    Raises
    ------
    ValueError
        If there is no such data set.

    Examples
    --------
    >>> from moestat import datasets
    >>> frame = datasets.load("nile")
    >>> frame.shape, frame.attrs["licence"]
    ((100, 2), 'public domain')
    """
    import pandas as pd

    entry = _entry(name)
    with files(__name__).joinpath(f"{name}.csv").open(encoding="utf-8") as file:
        frame = pd.read_csv(file)
    for column in frame.columns:
        if not pd.api.types.is_numeric_dtype(frame[column]):
            frame[column] = frame[column].astype("category")
    frame.attrs.update(entry)
    return frame


def describe(name: str) -> str:
    """Describe a data set: its columns with their units, its source and its licence.

    Parameters
    ----------
    name : str
        One of `names`.

    Returns
    -------
    str
        Lines of text.

    Raises
    ------
    ValueError
        If there is no such data set.

    Examples
    --------
    >>> from moestat import datasets
    >>> print(datasets.describe("strikes"))
    Durations of 62 strikes in manufacturing in the United States
    For: positive responses: short strikes and long ones
      duration  duration, days
      output    unanticipated industrial production
    Source: Kennan (1985), Journal of Econometrics 28, 5-28; statsmodels.datasets.strikes
    Licence: public domain
    """
    entry = _entry(name)
    width = max(map(len, entry["columns"]))
    columns = [f"  {column:{width}s}  {what}" for column, what in entry["columns"].items()]
    last = [f"Source: {entry['source']}", f"Licence: {entry['licence']}"]
    return "\n".join([entry["title"], f"For: {entry['use']}", *columns, *last])


def __dir__() -> list[str]:
    return sorted(__all__)
