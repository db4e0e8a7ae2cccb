"""The variables of the data of a fit: the columns that a formula names, or the inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from moestat.base.figures import CURVE_POINTS, spread_out
from moestat.base.types import FloatArray, IntArray, Labels
from moestat.base.validate import as_floats, listed, short
from moestat.estimation.data.data import Data

__all__ = ["Along", "Variables"]

_HALF_WIDTH = 0.35
"""Half the width of the line of a level in pictures; neighbouring levels have distance 1."""

_EFFECT_POINTS = 50
"""Points of the curve of an average over rows, each of which takes a pass over them."""


_MOST_HELD = 3
"""Variables that are held whose values pictures show."""


def plain(name: str) -> str:
    """The name of a column without the back-ticks that formulas have."""
    return name.replace("`", "")


def _shown(value: Any) -> str:
    """A value as pictures show it."""
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)


@dataclass(frozen=True)
class Along:
    """Inputs along one variable, and where pictures draw them and the rows of the data."""

    name: str
    inputs: FloatArray = field(repr=False)  # (m, d)
    x: FloatArray = field(repr=False)  # (m,): places of the inputs; NaN between the levels
    rows: FloatArray = field(repr=False)  # (n,): places of the rows
    levels: Labels | None = None  # of a categorical variable, at the places 0, 1, ...
    held: Mapping[str, Any] = field(default_factory=dict)  # the values of the other variables
    averaged: tuple[str, ...] = ()  # variables that keep the values of the rows
    # (r, m, d): inputs with these values, of some rows; (1, m, d) without such variables
    cloud: FloatArray = field(default_factory=lambda: np.empty((0, 0, 0)), repr=False)
    share: FloatArray = field(default_factory=lambda: np.ones(1), repr=False)  # (r,), of sum 1

    def label(self, axes: Any) -> None:
        """Write the name of the variable and its levels on the x-axis, what is held above."""
        held = listed([f"{plain(n)} = {_shown(v)}" for n, v in self.held.items()], _MOST_HELD)
        over = listed([plain(name) for name in self.averaged], _MOST_HELD)
        words = [f"at {held}"] * bool(held) + [f"averaged over {over}"] * bool(over)
        axes.set_xlabel(plain(self.name))
        if words:
            axes.set_title("; ".join(words), fontsize="small", wrap=True)
        if self.levels is not None:
            axes.set_xticks(range(len(self.levels)), [str(level) for level in self.levels])


@dataclass(frozen=True)
class Variables:
    """Columns of the data by name, and the inputs of the model that follow from them.

    Inputs that are functions of one column, such as a spline, a polynomial, or the indicators of
    the levels of a category, change together.
    """

    values: dict[str, np.ndarray] = field(repr=False)  # by name, (n,)
    # of those that experts or gate read; levels of a categorical one, None for a numeric one
    levels: dict[str, Labels | None]
    formula: Any = field(default=None, repr=False)
    # inputs that do not change alone: of the sample of a source, which lacks the columns
    bound: frozenset[str] = field(default=frozenset(), repr=False)

    @classmethod
    def of(cls, rows: Data) -> Variables:
        """The variables of these rows."""
        if not rows.columns:
            names = rows.features or [f"x[{j}]" for j in range(rows.X.shape[1])]
            formula: Any = rows.formula
            alone = formula.alone_in_terms() if formula and formula.names else names
            columns = dict(zip(names, rows.X.T, strict=True))
            return cls(columns, dict.fromkeys(names), bound=frozenset(names) - {*alone})
        values = dict(zip(rows.formula.names, rows.columns, strict=True))
        levels = {
            name: np.array([False, True]) if values[name].dtype.kind == "b" else known
            for name, known in rows.formula.variables().items()
        }
        return cls(values, levels, rows.formula)

    def inputs(self, columns: Mapping[str, np.ndarray]) -> FloatArray:
        """Inputs (m, d) of these columns (m,), which are all that `values` holds."""
        if self.formula is not None:
            return self.formula.union(columns)
        return np.column_stack([columns[name] for name in self.values]).astype(np.float64)

    def changed(self, name: str, value: ArrayLike) -> FloatArray:
        """Inputs (n, d) of the rows with other values, (n,) or one for all, of one variable."""
        new = np.broadcast_to(np.asarray(value), self.values[name].shape)
        return self.inputs({**self.values, name: new})

    def with_values(self, values: Mapping[str, Any]) -> Variables:
        """The same rows with one value of each of these variables."""
        new = {name: np.full(self.values[name].shape, value) for name, value in values.items()}
        return replace(self, values={**self.values, **new})

    def one_row(self, values: Mapping[str, Any]) -> Variables:
        """One row, with a value of each variable."""
        return replace(self, values={name: np.array([values[name]]) for name in self.values})

    def check_unbound(self, what: str) -> None:
        """Raise if an input changes with others, as a term of a formula without its columns."""
        if self.bound:
            raise ValueError(
                f"{what}: {', '.join(sorted(self.bound))} are terms of the formula, whose columns"
                " the sample of a source lacks; fit a part of the data in memory"
            )

    def name_of(self, feature: object) -> str:
        """The name of a variable that is given by name or number."""
        names = [name for name in self.levels if name not in self.bound]
        if not names:
            self.check_unbound("feature")
        if isinstance(feature, str) and feature in names:
            return feature
        if isinstance(feature, bool) or not isinstance(feature, int | np.integer):
            raise ValueError(f"feature must be one of {', '.join(names)}, got {short(feature)}")
        if not 0 <= feature < len(names):
            raise ValueError(f"feature must be in 0..{len(names) - 1}, got {short(feature)}")
        return names[int(feature)]

    def along(self, feature: object, at: object, weight: FloatArray) -> Along:
        """Inputs along one variable; others are as in `at`, or at means or most frequent levels."""
        name, fixed = self.name_of(feature), {**self.typical(weight), **self.checked(at)}
        grid, x = self._grid(name, CURVE_POINTS)
        columns = {one: np.full(grid.size, value) for one, value in fixed.items()}
        held = {one: value for one, value in fixed.items() if one != name and one in self.levels}
        line = self._along(name, {**columns, name: grid}, x)
        return replace(line, held=held, cloud=line.inputs[None])

    def averaged(
        self, line: Along, names: Sequence[str], rows: IntArray, weight: FloatArray
    ) -> Along:
        """The same line, with the values of these rows (r,) of some of the held variables."""
        typical = self.typical(weight)
        grid, _ = self._grid(line.name, CURVE_POINTS)
        columns = {one: np.full(rows.size * grid.size, typical[one]) for one in self.values}
        columns |= {one: np.repeat(self.values[one][rows], grid.size) for one in names}
        inputs = self.inputs({**columns, line.name: np.tile(grid, rows.size)})
        held = {name: value for name, value in line.held.items() if name not in names}
        cloud = inputs.reshape(rows.size, grid.size, -1)
        share = weight[rows] / weight[rows].sum()
        return replace(line, held=held, averaged=tuple(names), cloud=cloud, share=share)

    def effects(self, feature: object, rows: IntArray) -> Along:
        """Inputs of these rows (r,) at values of one variable, shape (m r, d), value by value."""
        name = self.name_of(feature)
        grid, x = self._grid(name, _EFFECT_POINTS)
        columns = {one: np.tile(values[rows], grid.size) for one, values in self.values.items()}
        return self._along(name, {**columns, name: np.repeat(grid, rows.size)}, x)

    def _along(self, name: str, columns: Mapping[str, np.ndarray], x: FloatArray) -> Along:
        return Along(name, self.inputs(columns), x, self._places(name), self.levels[name])

    def _grid(self, name: str, count: int) -> tuple[np.ndarray, FloatArray]:
        """Values of a variable from the smallest to the largest, and their places on an axis.

        Each level of a categorical variable occurs three times: at both ends of a short line, and
        in the gap after it, which has the place NaN.
        """
        levels, values = self.levels[name], self.values[name]
        if levels is None:
            grid = np.linspace(values.min(), values.max(), count)
            return grid, grid
        ends = [-_HALF_WIDTH, _HALF_WIDTH, np.nan]
        return np.repeat(levels, 3), np.ravel(np.add.outer(np.arange(len(levels)), ends))

    def _places(self, name: str) -> FloatArray:
        """Where the rows are on an axis (n,): their numbers, or spread around their level."""
        levels, values = self.levels[name], self.values[name]
        if levels is None:
            return values
        position = {level: float(place) for place, level in enumerate(levels.tolist())}
        at = np.array([position[value] for value in values.tolist()])
        return at + 2.0 * _HALF_WIDTH * spread_out(at.size)

    def typical(self, weight: FloatArray) -> dict[str, Any]:
        """The mean of each numeric column, and the most frequent value of any other."""
        typical: dict[str, Any] = {}
        for name, values in self.values.items():
            if values.dtype.kind in "iuf" and self.levels.get(name) is None:
                typical[name] = np.average(values, weights=weight)
            else:
                found, place = np.unique(values, return_inverse=True)
                typical[name] = found[np.argmax(np.bincount(place, weight))]
        return typical

    def checked(self, at: object, argument: str = "at") -> dict[str, Any]:
        """Values of variables by name, checked."""
        if at is None:
            return {}
        if isinstance(at, Mapping):
            for name in at:
                if name not in self.values:
                    raise ValueError(
                        f"{argument}: no variable {short(name)}; there are {listed(self.values)}"
                    )
            return {name: self._checked(name, value, argument) for name, value in at.items()}
        if self.formula is not None:
            raise ValueError(
                "at must hold values of columns by name for a fit by formula, such as"
                f" {{{next(iter(self.values))!r}: ...}}, got {short(at)}"
            )
        numbers = as_floats("at", at, (len(self.values),))
        return dict(zip(self.values, numbers, strict=True))

    def _checked(self, name: str, value: Any, argument: str) -> Any:
        known = self.levels.get(name)
        if known is not None:
            if value not in known.tolist():
                raise ValueError(
                    f"{argument}: {name} has the levels {listed(known)}, got {short(value)}"
                )
            return value
        return float(as_floats(f"{argument}: {name}", value, ()))
