"""Exposures of counts: the time, or the number of persons, in which events were counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from moestat.base.types import FloatArray
from moestat.base.validate import is_sequence, short
from moestat.base.warnings import MisfitWarning
from moestat.estimation.data.data import Data
from moestat.estimation.reading.inputs import Inputs, read_inputs
from moestat.estimation.reading.table import Column, Table, as_column, as_table, check_aligned
from moestat.model.family import Family
from moestat.model.joint import as_likelihood
from moestat.model.links import links_of

__all__ = [
    "LOG_EXPOSURE",
    "OFFSET",
    "is_values",
    "offset_of_exposure",
    "question_offset",
    "with_exposure",
    "with_offset",
    "with_offset_column",
]

LOG_EXPOSURE, OFFSET = "log(exposure)", "offset"
"""Names of the inputs that an exposure, and the values of an offset, become."""

_EVIDENCE = np.log(1e3)
"""Difference of two log-likelihoods from which an offset is questioned: the responses are a
thousand times as probable if the offset was an exposure."""


def check_exposure(family: Any, offset: object) -> None:
    """Raise unless an exposure can be an offset of the family."""
    if offset is not None:
        raise ValueError(
            f"exposure: the fit has an offset, too, {short(offset)}; give one of them, an offset"
            " that is the sum of yours and the logarithm of the exposure"
        )
    if isinstance(family, Family):
        raise ValueError(
            "exposure: allowed only if the family is given by name; with a family from"
            " moestat.family pass the logarithm of the exposure as a column of X, and offset="
            " of the family as its position"
        )
    law = as_likelihood(family)
    if links_of(law) != {"log"}:
        raise ValueError(
            "exposure is for likelihoods with a log link, such as 'poisson' and"
            f" 'negative-binomial', got {law.name!r}; for others use offset="
        )


def offset_of_exposure(exposure: object, family: Any, offset: str | None, columns: Any) -> str:
    """The offset of a formula, the logarithm of an exposure: a column or a function of columns."""
    if not isinstance(exposure, str) or not exposure.strip():
        raise ValueError(
            "exposure must be the name of a column or a function of columns, such as"
            f' "days / 365", got {short(exposure)}'
        )
    check_exposure(family, offset)
    quoted = exposure in columns and not exposure.isidentifier()
    return f"log(`{exposure}`)" if quoted else f"log({exposure})"


def with_exposure(
    X: Any, exposure: Any, family: Any, offset: object, missing: str
) -> tuple[Inputs, int]:
    """Inputs with the logarithm of an exposure (n,) as their last column, and its position."""
    check_exposure(family, offset)
    return _with_column(X, exposure, "exposure", missing)


def with_offset(X: Any, offset: Any, family: Any, missing: str) -> tuple[Inputs, int]:
    """Inputs with an offset (n,) as their last column, and its position."""
    if isinstance(family, Family):
        raise ValueError(
            "offset: values of the rows are allowed only if the family is given by name; with a"
            " family from moestat.family pass them as a column of X, and offset= of the family as"
            " its position"
        )
    return _with_column(X, offset, OFFSET, missing)


def is_values(offset: object) -> bool:
    """Whether an offset is given by its values, not by the name or position of a column."""
    return is_sequence(offset) or (hasattr(offset, "__array__") and np.ndim(offset) > 0)  # type: ignore[arg-type]


def with_offset_column(data: Any, offset: Any, names: Sequence[str]) -> Table:
    """A table with the values (n,) of an offset as one more column."""
    table = as_table("data", data)
    assert table is not None  # `column_names` has refused what is no table
    check_aligned({"data": table, "offset": offset})
    column = as_column(OFFSET, offset)
    if column.values.shape != (table.n_rows,):
        raise ValueError(f"offset must have shape ({table.n_rows},), got {column.values.shape}")
    if OFFSET in names:
        raise ValueError(f"offset: data have a column {OFFSET!r}; give it by name")
    values = Column(column.numbers(OFFSET), column.missing, OFFSET)
    return replace(table, columns=(*table.columns, values))


def _with_column(X: Any, given: Any, argument: str, missing: str) -> tuple[Inputs, int]:
    """Inputs with the offset that values (n,) are, or give, as their last column."""
    check_aligned({"X": X, argument: given})
    inputs = X if isinstance(X, Inputs) else read_inputs(X, missing=missing)
    column = as_column(argument, given)
    if missing == "raise":
        column.check_missing(argument)
    d, n = inputs.design.shape
    if column.values.shape != (n,):
        raise ValueError(f"{argument} must have shape ({n},), got {column.values.shape}")
    values, name = column.numbers(argument), argument
    if argument == "exposure":
        if (wrong := np.flatnonzero(values <= 0.0)).size:
            raise ValueError(
                f"exposure must be positive, got {values[wrong[0]]:g} in row {wrong[0]} (from 0)"
            )
        values, name = np.log(values), LOG_EXPOSURE
    table, features = inputs.table, inputs.features
    if features is not None:
        if name in features:
            raise ValueError(f"{argument}: X has a column {name!r}; give it as offset=")
        features = (*features, name)
    if table is not None:
        called = name if features is not None else None
        table = replace(table, columns=(*table.columns, Column(values, column.missing, called)))
    design = np.vstack([inputs.design, values])
    return replace(inputs, design=design, features=features, table=table), d


def question_offset(family: Family, data: Data) -> list[tuple[type[MisfitWarning], str]]:
    """A warning if the offset of a log link looks like an exposure without its logarithm.

    Given their sum, counts with rates ``e^o`` are multinomial with probabilities proportional to
    ``e^o``, and with rates proportional to an exposure ``o`` to o.  Where all offsets are positive,
    these two log-likelihoods are compared, divided by the dispersion under the second (McCullagh
    and Nelder 1989, Sec. 6.4 and 9.2).
    """
    if family.offset_input is None or family.is_regression or np.ndim(data.y) != 1:
        return []
    if data.y.dtype.kind != "f" or links_of(family.likelihood) != {"log"}:
        return []
    place, slope = family.offset_input
    used = data.weight > 0.0
    o, y, w = data.X[used, place] * slope, data.y[used], data.weight[used]
    if not np.all(o > 0.0) or np.ptp(o) == 0.0 or not y.sum() > 0.0:
        return []
    as_log, as_exposure = _share(o, y, w), _share(np.log(o), y, w)
    mean = o * (w @ y) / (w @ o)
    dispersion = max(1.0, float(w @ ((y - mean) ** 2 / mean)) / max(w.sum() - 1.0, 1.0))
    if not as_exposure - as_log > _EVIDENCE * dispersion:
        return []
    name = f"x[{place}]" if data.features is None else data.features[place]
    message = (
        f"the offset {name!r} looks like an exposure without its logarithm: all its values are"
        f" positive, {o.min():.4g} to {o.max():.4g}, and the responses are more nearly proportional"
        " to it than to its exponential. If it is an exposure, use exposure= in place of offset=,"
        " or its logarithm as the offset"
    )
    return [(MisfitWarning, message)]


def _share(log_rate: FloatArray, y: FloatArray, w: FloatArray) -> float:
    """Log-likelihood of responses given their sum, at rates known up to a factor."""
    top = log_rate.max()
    return float((w * y) @ log_rate - (w @ y) * (top + np.log(w @ np.exp(log_rate - top))))
