"""The data of a fit: one record with names, groups, units and rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from moestat.base.types import FloatArray, IntArray, Labels
from moestat.base.validate import (
    as_design,
    as_weights,
)
from moestat.model.family import Family

__all__ = ["Data", "spans", "without_rows"]


@dataclass(frozen=True)
class Data:
    """The data of a fit and what their columns, rows and classes are called."""

    X: FloatArray = field(repr=False)  # (n, d): inputs, with 0 in columns that are constant
    # (n,), or (n, R): real responses, or positions of the `class_labels`, from 1; or several
    # of these
    y: np.ndarray = field(repr=False)
    weight: FloatArray = field(repr=False)  # (n,): sample weights
    features: tuple[str, ...] | None = None  # names of the inputs; None for data without names
    response: str | None = None
    # (K,): labels of the classes in order, the last one the reference; None for a continuous
    # response; of several responses a tuple of these
    class_labels: Any = None
    formula: Any = None  # how inputs are computed from a data frame; None for a fit without formula
    index: Any = field(default=None, repr=False)  # labels of the rows, an index of pandas
    # (n,): label of the group of each row, for which an expert is chosen once; None without groups
    groups: Labels | None = field(default=None, repr=False)
    # (n,): positions of the rows among those passed, if rows with missing values were left out
    kept: IntArray | None = field(default=None, repr=False)
    dropped: int = 0  # number of rows that were left out
    # of a fit by formula the columns (n,) that it names, in the order of ``formula.names``
    columns: tuple[np.ndarray, ...] = field(default=(), repr=False)
    # columns that the response was read from: those of a table of several, or of a formula
    responses: tuple[str, ...] = ()
    # of a fit by formula the columns of the table that held the weights and the groups
    weights_column: str | None = None
    groups_column: str | None = None
    # (R,): step in which each response is recorded, 0 for none; None before a fit has sought them
    resolution: tuple[float, ...] | None = None
    # sum of the weights of the groups, if the record does not hold their rows
    group_weight: float | None = None
    drawn: bool = False  # whether the rows are a sample of those of the fit
    # (n,): label of the part of its group that each row belongs to, where groups are nested
    parts: Labels | None = field(default=None, repr=False)
    experts: tuple[str, ...] | None = None  # (k,): names of the experts, in place of numbers

    @classmethod
    def of(cls, model: Family, X: ArrayLike, y: ArrayLike, weight: ArrayLike | None = None) -> Data:
        """Arrays (n, d) and (n,), with weights (n,), as data without names.

        An input that is constant is refused: where `read_data` would hold its coefficient at 0, the
        family would not be the one that a theorem speaks of.
        """
        design = as_design(X, model.n_features)
        response = np.asarray(y)
        n = design.shape[1]
        if len(response) != n:
            raise ValueError(f"X has {n} samples but y has {len(response)}")
        weights = as_weights(weight, n)
        constant = np.flatnonzero(spans(design, weights > 0) == 0)
        if (refused := np.intersect1d(constant, model.read)).size:
            raise ValueError(
                f"X: column {int(refused[0])} is constant; its slope cannot be distinguished"
                " from the intercept"
            )
        return cls(design.T, response, weights)

    def at(self, which: IntArray | NDArray[np.bool_]) -> Data:
        """The data of some rows, positions or a mask, without the columns of a formula."""
        names = ("X", "y", "weight", "index", "groups", "parts")
        parts = {name: getattr(self, name) for name in names}
        selected = {name: None if part is None else part[which] for name, part in parts.items()}
        rows = np.arange(len(self.y)) if self.kept is None else self.kept
        return replace(self, **selected, kept=rows[which], columns=())


def spans(design: FloatArray, used: NDArray[np.bool_]) -> FloatArray:
    """Range, largest minus smallest value, of each input (d,) in the rows of the mask `used`."""
    # Indexing by a mask returns an array that is not contiguous and is ten times slower to reduce.
    return np.ptp(design if used.all() else np.compress(used, design, axis=1), axis=1)


def without_rows(data: Data) -> Data:
    """The data without X and y; names and weights stay, and the fact that there are groups."""
    changes: dict[str, Any] = {"index": None, "kept": None, "columns": ()}
    if data.groups is not None and data.group_weight is None:
        _, first = np.unique(data.groups, return_index=True)
        weight = float(data.weight[first].sum())
        changes |= {"groups": data.groups[:0], "group_weight": weight}
    return replace(data, X=np.empty((0, data.X.shape[1])), y=data.y[:0], **changes)
