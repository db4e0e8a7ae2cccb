"""Linear functions of parameters one by one, and average effects of inputs on predictions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from moestat.base.types import FloatArray, IntArray
from moestat.base.validate import listed, short
from moestat.estimation.data.naming import present_names
from moestat.estimation.data.variables import Variables
from moestat.estimation.fit.delta import (
    Quantity,
    gate_weights,
    gradients,
    means_of_experts,
    normal_reach,
    predictions,
)
from moestat.estimation.inference.constraints import equations, linear_constraints
from moestat.estimation.reading.table import as_table
from moestat.estimation.rows.sources import as_source
from moestat.solvers.rules import DIFFERENCE_STEP

if TYPE_CHECKING:
    import pandas as pd

    from moestat.estimation.fit.fitted import Fitted


__all__ = ["Effects", "averages", "comparisons", "errors_of", "marginal_effects", "t_test"]


@dataclass(frozen=True, repr=False)
class Effects:
    """Estimates with standard errors and separate tests."""

    names: list[str]
    """Name of each estimate."""
    effect: FloatArray
    sd: FloatArray
    """Estimates and their standard errors; shape (m,)."""
    null: FloatArray = field(repr=False)
    """Values under the hypotheses; shape (m,)."""
    keys: tuple[Mapping[str, object], ...] = field(default=(), repr=False)
    """Columns and values that tell the estimates apart, such as ``{"term": "age"}``."""

    @property
    def tvalue(self) -> FloatArray:
        """Estimates minus hypothetical values, divided by standard errors (m,)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return (self.effect - self.null) / self.sd

    @property
    def pvalue(self) -> FloatArray:
        """Two-sided normal p-values (m,)."""
        from scipy.stats import norm

        return 2.0 * norm.sf(np.abs(self.tvalue))

    def conf_int(self, alpha: float = 0.05) -> FloatArray:
        """Normal intervals (m, 2) of level ``1 - alpha``."""
        half = normal_reach(alpha) * self.sd
        return np.column_stack([self.effect - half, self.effect + half])

    def summary_frame(self, alpha: float = 0.05) -> pd.DataFrame:
        """A pandas frame with the columns of `MoEResults.tidy`, one row per estimate."""
        from moestat.estimation.columns import EstimateTable

        ends = self.conf_int(alpha)
        columns = {
            **{"estimate": self.effect, "std_error": self.sd, "statistic": self.tvalue},
            **{"p_value": self.pvalue, "conf_low": ends[:, 0], "conf_high": ends[:, 1]},
        }
        return EstimateTable(columns, index=self.names)

    def tidy(self, alpha: float = 0.05) -> pd.DataFrame:
        """The table `summary_frame` with columns in place of its index of names.

        They are term, contrast, class or expert, and the variables of ``by`` and ``at``.
        """
        frame = self.summary_frame(alpha).reset_index(drop=True)
        keys = self.keys or tuple({"term": name} for name in self.names)
        columns = dict.fromkeys(column for key in keys for column in key)
        for place, column in enumerate(columns):
            frame.insert(place, column, [key.get(column) for key in keys])
        return frame

    def __repr__(self) -> str:
        return self.summary_frame().to_string(float_format="{:.4g}".format)


def t_test(result: Fitted, constraints: str) -> Effects:
    """Tests of linear functions of parameters one by one, see `MoEResults.t_test`."""
    constraints = present_names(constraints, result.family, result.data)
    matrix, value = linear_constraints(constraints, result.param_names, terms=result._terms)
    error = np.sqrt(np.diag(result._spread(matrix)))
    names = [part.strip() for part in equations(constraints)]
    return Effects(names, matrix @ result.theta, error, value)


@dataclass(frozen=True)
class _Population:
    """Rows that say what typical values of variables, and their ranges, are."""

    variables: Variables
    weight: FloatArray  # (n,)
    of_fit: bool  # False if they are the new rows


@dataclass(frozen=True)
class _Setting:
    """The rows that effects are averaged over: those of the fit, or new ones, with changes."""

    variables: Variables
    weight: FloatArray  # (n, G): weights of the rows in each cell, of sum 1
    cells: tuple[dict[str, object], ...]  # what each of the G cells is called


def marginal_effects(
    result: Fitted,
    dummy: bool = False,
    *,
    which: str | None = None,
    variables: Sequence[str] | None = None,
    newdata: Any = None,
    at: Mapping[str, object] | str | None = None,
    by: Any = None,
) -> Effects:
    """Average effects of inputs on predictions, see `MoEResults.get_margeff`."""
    quantity, labels = _quantity(result, which)
    population = _population_of(result, "get_margeff", newdata)
    chosen = _chosen(result, population.variables, variables)
    found = _Found(result, quantity, labels)
    read = np.setdiff1d(np.arange(result.family.n_params), result.family.hidden_positions)
    for rows in _settings(result, population, newdata, at, by):
        for term, contrast, sides, width in _changes(rows.variables, population, chosen, dummy):
            low, high = (found.averages(X, rows.weight / width) for X in sides)
            slope = high[1] - low[1]
            if variables is None and not slope[read].any():
                continue  # what is asked for does not read the variable
            found.add(rows, {"term": term} | contrast, high[0] - low[0], slope)
    return found.effects()


def comparisons(
    result: Fitted,
    first: Mapping[str, object],
    second: Mapping[str, object],
    *,
    which: str | None = None,
    newdata: Any = None,
    by: Any = None,
    ratio: bool = False,
) -> Effects:
    """Differences, or ratios, of average predictions, see `MoEResults.comparisons`."""
    quantity, labels = _quantity(result, which)
    population = _population_of(result, "comparisons", newdata)
    of_fit = population.variables
    for name, setting in (("first", first), ("second", second)):
        if not isinstance(setting, Mapping) or not setting:
            raise ValueError(
                f"{name} must hold values of variables by name, such as"
                f" {{{next(iter(of_fit.values))!r}: ...}}, got {short(setting)}"
            )
    found = _Found(result, quantity, labels, 1.0 if ratio else 0.0)
    words = [", ".join(f"{k} = {v}" for k, v in each.items()) for each in (second, first)]
    if max(len(first), len(second)) > 1:
        words = [f"({each})" for each in words]
    key: dict[str, object] = {"contrast": (" / " if ratio else " - ").join(words)}
    for rows in _settings(result, population, newdata, None, by):
        each = [
            rows.variables.with_values(of_fit.checked(setting, name))
            for name, setting in (("first", first), ("second", second))
        ]
        (low, low_slope), (high, high_slope) = (
            found.averages(one.inputs(one.values), rows.weight) for one in each
        )
        value, slope = high - low, high_slope - low_slope
        if ratio:
            value, slope = high / low, high_slope / low - low_slope * high / low**2
        found.add(rows, key, value, slope)
    return found.effects()


class _Found:
    """Averages of one quantity, with names and errors, as they are found."""

    def __init__(
        self, result: Fitted, quantity: Quantity, labels: list[dict[str, object]], null: float = 0.0
    ) -> None:
        self.result, self.quantity, self.labels, self.null = result, quantity, labels, null
        self.keys: list[dict[str, object]] = []
        self.values: list[FloatArray] = [np.empty(0)]
        self.errors: list[FloatArray] = [np.empty(0)]

    def averages(self, X: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Averages (m, G) over rows with weights (n, G), and their derivatives (P, m, G)."""
        return averages(self.result, X, weight, self.quantity)

    def add(
        self, rows: _Setting, key: dict[str, object], value: FloatArray, slope: FloatArray
    ) -> None:
        """Estimates (m, G) with derivatives (P, m, G)."""
        self.values.append(value.T.ravel())
        self.errors.append(errors_of(self.result, np.swapaxes(slope, 1, 2)).ravel())
        self.keys += [{**key, **label, **cell} for cell in rows.cells for label in self.labels]

    def effects(self) -> Effects:
        """All estimates, in their order."""
        estimate = np.concatenate(self.values)
        names = [_name_of(key) for key in self.keys]
        null = np.full(estimate.size, self.null)
        return Effects(names, estimate, np.concatenate(self.errors), null, tuple(self.keys))


def averages(
    result: Fitted, X: FloatArray, weight: FloatArray, quantity: Quantity
) -> tuple[FloatArray, FloatArray]:
    """Weighted sums (m, G) over rows (n, d) with weights (n, G), and derivatives (P, m, G)."""
    value = slope = np.zeros(1)
    for rows, values, gradient in gradients(result.family, result.theta, X, quantity):
        value = value + values @ weight[rows]
        slope = slope + gradient @ weight[rows]
    return value, slope


def errors_of(result: Fitted, slope: FloatArray) -> FloatArray:
    """Standard errors (...) of estimates with derivatives (P, ...); NaN where there is none."""
    rows = slope.reshape(len(slope), -1).T
    error = result._errors_of(rows)
    error[result._open(rows) | ~np.isfinite(error)] = np.nan
    return error.reshape(slope.shape[1:])


def _quantity(result: Fitted, which: str | None) -> tuple[Quantity, list[dict[str, object]]]:
    """What effects are on, and what each of its m values is called."""
    classes = result.family.likelihood.support is not None
    outcomes: list[dict[str, object]] = [{}]
    if classes:
        outcomes = [{"class": label} for label in result._labels or ()]
    experts: list[dict[str, object]] = [{"expert": key} for key in result.experts.keys]
    if which in (None, "mean", "proba"):
        return predictions, outcomes
    if which == "gate":
        result._check_experts()
        return gate_weights, experts
    if which == "experts":
        result._check_experts()
        return means_of_experts, [{**one, **other} for one in experts for other in outcomes]
    raise ValueError(
        f"which must be None (the mean, or probabilities), 'gate' or 'experts', got {short(which)}"
    )


def _name_of(key: Mapping[str, object]) -> str:
    """What an estimate is called in the index of a table."""
    term, contrast = key.get("term"), key.get("contrast")
    words = [f"{term}: {contrast}" if term and contrast else str(term or contrast)]
    words += [str(value) for name, value in key.items() if name == "class"]
    others = {n: v for n, v in key.items() if n not in ("term", "contrast", "class")}
    return ", ".join([*words, *(f"{name} = {value}" for name, value in others.items())])


def _chosen(result: Fitted, variables: Variables, names: Sequence[str] | None) -> list[str]:
    """Variables with an effect that is asked for: those that the model reads."""
    read = [*variables.levels]
    if variables.formula is None:
        read = [read[f] for f in result.family.read]
    if names is None:
        return read
    for name in [names] if isinstance(names, str) else names:
        if name not in read:
            raise ValueError(f"variables: no variable {short(name)}; there are {listed(read)}")
    return [names] if isinstance(names, str) else [*names]


def _population_of(result: Fitted, what: str, newdata: Any) -> _Population:
    """The rows of the fit, or, where their variables are not in memory, the new rows."""
    if newdata is not None and as_source(newdata) is not None:
        raise ValueError(f"newdata: {what} reads a table in memory, got {short(newdata)}")
    if result.has_rows:
        variables = Variables.of(result.rows)
        if not variables.bound:
            return _Population(variables, result.weight, True)
    if newdata is None or result.data is None:
        raise ValueError(
            f"{what}: the variables of the rows of the fit are not in memory; give newdata=, a"
            " table of rows to average over"
            + ("" if result.has_rows or result.source is None else ", or use result.at_sample()")
        )
    variables = _of_new(result, newdata)
    return _Population(variables, np.ones(len(next(iter(variables.values.values())))), False)


def _settings(
    result: Fitted, population: _Population, newdata: Any, at: Any, by: Any
) -> Iterator[_Setting]:
    """The rows to average over, once for each combination of values in `at`."""
    variables, weight, of_fit = population.variables, population.weight, population.variables
    if newdata is not None:
        variables, weight = _of_new(result, newdata), None
    if isinstance(at, str):
        if at != "mean" or by is not None:
            what = "and by= needs rows" if by is not None else f"got {short(at)}"
            raise ValueError(f"at must be values of variables by name, or 'mean'; {what}")
        typical = of_fit.typical(population.weight)
        variables, weight, at = variables.one_row(typical), None, None
    n = len(next(iter(variables.values.values())))
    share = np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64)
    groups, cells = _cells(result, variables, newdata, by, n)
    of_cell = np.where(groups[:, None] == np.arange(len(cells)), share[:, None], 0.0)
    if not np.all(of_cell.sum(axis=0) > 0.0):
        empty = int(np.argmin(of_cell.sum(axis=0)))
        raise ValueError(f"by: the rows of {short(cells[empty])} have the weight 0")
    of_cell = of_cell / of_cell.sum(axis=0)
    if at is not None and not isinstance(at, Mapping):
        raise ValueError(f"at must hold values of variables by name, got {short(at)}")
    lists = {
        k: v if isinstance(v, list | tuple | np.ndarray) else [v] for k, v in (at or {}).items()
    }
    for values in product(*lists.values()):
        setting = dict(zip(lists, values, strict=True))
        changed = variables.with_values(of_fit.checked(setting))
        yield _Setting(changed, of_cell, tuple({**cell, **setting} for cell in cells))


def _of_new(result: Fitted, newdata: Any) -> Variables:
    """The variables of new rows."""
    data = result.data
    assert data is not None  # `_known` has refused results without names of the variables
    formula = data.formula
    if formula is None:
        return Variables.of(replace(data, X=result._inputs(newdata).matrix, columns=()))
    table = as_table("newdata", newdata)
    if table is None or not table.named:
        raise ValueError(f"newdata must be a table with columns by name, got {short(newdata)}")
    formula.union(newdata)  # with its checks of levels and missing values
    return Variables.of(replace(data, columns=formula.plain_columns(table)))


def _cells(
    result: Fitted, variables: Variables, newdata: Any, by: Any, n: int
) -> tuple[IntArray, list[dict[str, object]]]:
    """The cell (n,) of each row by the variables `by`, and what each cell is called."""
    if by is None:
        return np.zeros(n, dtype=np.int64), [{}]
    names = [by] if isinstance(by, str) else by
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"by must be the name of a column, or several, got {short(by)}")
    columns = [_column(result, variables, newdata, name) for name in names]
    keys = list(zip(*(column.tolist() for column in columns), strict=True))
    found = sorted(set(keys), key=lambda key: [(str(type(part)), part) for part in key])
    place = {key: j for j, key in enumerate(found)}
    cells = [dict(zip(names, key, strict=True)) for key in found]
    return np.array([place[key] for key in keys], dtype=np.int64), cells


def _column(result: Fitted, variables: Variables, newdata: Any, name: str) -> np.ndarray:
    """A column of the rows by its name."""
    if name in variables.values:
        return np.asarray(variables.values[name])
    if newdata is None:
        return np.asarray(result._of_rows("by", name))
    table = as_table("newdata", newdata)
    if table is None or name not in table.names:
        raise ValueError(f"by: newdata has no column {short(name)}")
    return np.asarray(table[name].values)


def _changes(
    variables: Variables, population: _Population, names: Sequence[str], dummy: bool
) -> Iterator[tuple[str, dict[str, object], list[FloatArray], FloatArray]]:
    """Changes of variables: term, contrast, inputs (n, d) before and after, and widths (n, 1)."""
    for name in names:
        levels, values = population.variables.levels[name], variables.values[name]
        those, one = population.variables.values[name], np.ones((len(values), 1))
        constant = levels is None and np.ptp(those) == 0.0
        if constant and population.of_fit:
            continue
        if levels is None and dummy and np.isin(those, (0.0, 1.0)).all():
            yield name, {}, [variables.changed(name, side) for side in (0, 1)], one
        elif levels is None:
            half = DIFFERENCE_STEP * float(np.std(those) or 1.0)
            low, high = min(those.min(), values.min()), max(those.max(), values.max())
            if constant:
                low, high = -np.inf, np.inf
            # Splines are defined only between the smallest and the largest value.
            ends = [np.clip(values + side, low, high) for side in (-half, half)]
            sides = [variables.changed(name, end) for end in ends]
            yield name, {}, sides, np.asarray(ends[1] - ends[0])[:, None]
        else:
            before = variables.changed(name, levels[0])
            for level in levels[1:]:
                after = variables.changed(name, level)
                yield name, {"contrast": f"{level} - {levels[0]}"}, [before, after], one
