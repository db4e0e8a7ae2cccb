"""The two right-hand sides of a formula: columns for experts and gate, of any data frame."""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from moestat.base.types import FloatArray
from moestat.estimation.data import check_present

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FormulaInputs", "evaluated", "first_dependent", "parsed", "read_columns", "variables"]

_INTERCEPT = "Intercept"


@dataclass(frozen=True)
class FormulaInputs:
    """What it takes to make the inputs of a fit by formula from new data.

    Columns that a transform has learnt from the data, such as the knots of a spline, stay as they
    were in the fit.

    Parameters
    ----------
    formula : str
        The formula of the fit, as given.
    parts : tuple of str
        Right-hand sides: of the experts, of the gate, and of the offset where there is one.
    states : str
        What the transforms of each part have learnt, as JSON.
    names : tuple of str
        Variables of the data.
    levels : tuple of ndarray or None
        Levels of each categorical variable in order, None for a numeric one.
    specimens : tuple of ndarray
        Values of the variables in a few rows, in which every level occurs.
    """

    formula: str
    parts: tuple[str, ...]
    states: str = field(repr=False)
    names: tuple[str, ...]
    levels: tuple[Any, ...] = field(repr=False)
    specimens: tuple[Any, ...] = field(repr=False)

    @property
    def n_specimens(self) -> int:
        """Number of those rows."""
        return len(self.specimens[0]) if self.specimens else 1

    @classmethod
    def of(cls, formula: str, parts: Sequence[Any], data: Any) -> FormulaInputs:
        """The inputs of a formula whose right-hand sides are `parts`, learnt from data."""
        names = variables(parts)
        columns = read_columns(data, names)
        size = n_rows(data)
        if not size:
            raise ValueError("data has no rows")
        levels = [_levels(column) for column in columns.values()]
        frame = _with_levels(columns, levels, size)
        specs = [evaluated(str(part), part, frame).model_spec for part in parts]
        factors = {
            name
            for spec in specs
            for factor in _categorical(spec)
            for name in factor
            if name in names
        }
        rows = {0}
        for name, own in zip(names, levels, strict=True):
            if own is not None or name in factors:
                rows.update(np.unique(np.asarray(columns[name]), return_index=True)[1].tolist())
        at = sorted(rows)
        return cls(
            formula,
            tuple(map(str, parts)),
            json.dumps([_tagged(spec.transform_state) for spec in specs]),
            tuple(names),
            tuple(levels),
            tuple(_plain(columns[name])[at] for name in names),
        )

    @cached_property
    def _specs(self) -> list[Any]:
        """How each part's columns are made, with what was learnt in the fit."""
        from formulaic import Formula, ModelSpec

        columns = dict(zip(self.names, self.specimens, strict=True))
        frame = _with_levels(columns, self.levels, self.n_specimens)
        specs = []
        for part, state in zip(self.parts, json.loads(self.states), strict=True):
            spec = ModelSpec.from_spec(Formula.from_spec(part), transform_state=_untagged(state))
            specs.append(evaluated(part, spec, frame).model_spec)
        return specs

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_specs"}

    def designs(self, data: Any) -> list[pd.DataFrame]:
        """Columns of each part, without the intercept, from a data frame or a table of columns.

        Raises
        ------
        ValueError
            If a variable is missing, has missing values, or a level that the fit has not seen.
        """
        columns = read_columns(data, self.names)
        for name, known in zip(self.names, self.levels, strict=True):
            if known is not None:
                _check_levels(name, columns[name], known)
            elif _levels(columns[name]) is not None:
                value = np.asarray(columns[name])[0]
                raise ValueError(
                    f"data: column {name!r} must hold numbers as in the fit, got {str(value)!r}"
                )
        frame = _with_levels(columns, self.levels, n_rows(data))
        return [
            evaluated(part, spec, frame).drop(columns=_INTERCEPT, errors="ignore")
            for part, spec in zip(self.parts, self._specs, strict=True)
        ]

    def union(self, data: Any) -> pd.DataFrame:
        """Columns of all parts, each once; a column of zeros where no part has any."""
        import pandas as pd

        designs = self.designs(data)
        columns = {name: part[name] for part in designs for name in part.columns}
        return pd.DataFrame(columns or {"1": np.zeros(len(designs[0]))}, dtype=np.float64)


def parsed(formula: Any) -> tuple[str, list[Any]]:
    """The response of a formula, and the right-hand sides of experts and gate.

    Raises
    ------
    ValueError
        If it is not of the form "response ~ terms of the experts | terms of the gate".
    """
    form = 'must be text such as "wage ~ age + C(region) | age": a response, terms of the experts'
    form += " and, after a bar, those of the gate if they are others"
    if not isinstance(formula, str) or not formula.strip():
        raise ValueError(f"formula {form}; got {formula!r}")
    from formulaic import Formula
    from formulaic.errors import FormulaicError

    try:
        read: Any = Formula.from_spec(formula)
        left, right = getattr(read, "lhs", None), getattr(read, "rhs", None)
    except (FormulaicError, SyntaxError, ValueError) as error:
        reason = re.sub("\N{ESCAPE}?\\W\\[1;31m|\N{ESCAPE}?\\W\\[0m\\W?", "", str(error)).strip()
        reason = reason.splitlines()[0] if reason else "it is no formula"
        raise ValueError(f"formula {form}; got {formula!r}: {reason}") from None
    if left is None or right is None or isinstance(left, tuple) or len(list(left)) != 1:
        raise ValueError(f"formula {form}; got {formula!r}, without one response before '~'")
    parts = list(right) if isinstance(right, tuple) else [right, right]
    if len(parts) > 2:
        raise ValueError(f"formula {form}; got {formula!r}, with {len(parts) - 1} bars")
    for part, whose in zip(parts, ("the experts", "the gate"), strict=True):
        if not any(str(term) == "1" for term in part):
            raise ValueError(
                f"formula: the part of {whose} always has an intercept; leave out '0 +' or '- 1'"
                f" in {formula!r}"
            )
    return str(next(iter(left))), parts


def evaluated(where: str, formula: Any, frame: pd.DataFrame) -> Any:
    """The model matrix of a formula, or of what a formula has learnt, with one clear error."""
    from formulaic.errors import DataMismatchWarning, FormulaicError

    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("error", DataMismatchWarning)
            return formula.get_model_matrix(frame, context=None, na_action="ignore")
    except DataMismatchWarning as error:
        found = re.search(r"\{(.*)\}", str(error))
        shown = re.sub(r"np\.\w+\((.*?)\)", r"\1", found[1]) if found else "some"
        raise ValueError(f"data: in {where!r} levels that the fit has not seen: {shown}") from None
    except (FormulaicError, ValueError, TypeError, KeyError, AttributeError) as error:
        text = " ".join(str(error).split())
        raise ValueError(f"formula: cannot evaluate {where!r}: {text}") from None


def variables(parts: Iterable[Any]) -> list[str]:
    """Names of the variables, and of functions that formulas do not know, in terms, sorted.

    A factor is the name of a column or an expression in Python.
    """
    return sorted(
        {
            name
            for part in parts
            for term in part
            for factor in term.factors
            for name in _names(factor)
        }
    )


def _names(factor: Any) -> set[str]:
    from formulaic.transforms import TRANSFORMS

    if factor.eval_method.value == "lookup":
        return {factor.expr}
    if factor.eval_method.value == "literal":
        return set()
    nodes = list(ast.walk(ast.parse(factor.expr, mode="eval")))
    # A function may have the name of a variable, too.
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    known = {*TRANSFORMS, "np"}
    return {
        node.id
        for node in nodes
        if isinstance(node, ast.Name)
        and not (node.id in known and (id(node) in called or node.id == "np"))
    }


def read_columns(data: Any, names: Iterable[str]) -> dict[str, Any]:
    """The named columns of a data frame or a table of columns, pandas series or arrays.

    Raises
    ------
    ValueError
        If there is no such column, or it has missing values.
    """
    known = list(data.columns) if hasattr(data, "columns") else None
    if known is None and isinstance(data, Mapping):
        known = list(data)
    if known is None:
        raise ValueError(
            "data must be a data frame, or a table of columns by their names, got"
            f" {type(data).__name__}"
        )
    import pandas as pd

    columns: dict[str, Any] = {}
    for name in names:
        if name not in known:
            shown = ", ".join(map(repr, known[:12])) + (", ..." if len(known) > 12 else "")
            raise ValueError(
                f"formula: data has no column {name!r}, and there is no such function"
                f" of formulas; columns are {shown}"
            )
        column = data[name]
        column = column if isinstance(column, pd.Series) else pd.Series(np.asarray(column))
        check_present(f"data: column {name!r}", column)
        columns[name] = column.reset_index(drop=True)
    lengths = {len(column) for column in columns.values()}
    if columns:
        lengths.add(n_rows(data))
    if len(lengths) > 1:
        raise ValueError(f"data: columns have different lengths, {sorted(lengths)}")
    return columns


def n_rows(data: Any) -> int:
    """Number of rows of a data frame or of a table of columns."""
    return len(next(iter(data.values()), ())) if isinstance(data, Mapping) else len(data)


def _plain(column: Any) -> Any:
    """A column as an array of numbers or words, which files hold without pickle."""
    values = np.asarray(column)
    return values.astype(str) if values.dtype.kind == "O" else values


def _levels(column: Any) -> Any:
    """Levels of a categorical column that occur, in their order; None for a numeric one."""
    if hasattr(column, "cat"):
        return _plain(column.cat.remove_unused_categories().cat.categories)
    values = np.asarray(column)
    if values.dtype.kind in "biuf":
        return None
    kinds = sorted({type(value).__name__ for value in values.tolist()})
    if kinds != ["str"]:
        raise ValueError(f"data: column {column.name!r} must hold numbers or words, got {kinds}")
    return np.unique(values.astype(str))


def _with_levels(columns: Mapping[str, Any], levels: Sequence[Any], n_rows: int) -> pd.DataFrame:
    """A frame of columns (n_rows,), the categorical ones with their levels."""
    import pandas as pd

    made = {
        name: column if own is None else pd.Categorical(np.asarray(column), categories=own)
        for (name, column), own in zip(columns.items(), levels, strict=True)
    }
    return pd.DataFrame(made, index=range(n_rows))


def _check_levels(name: str, column: Any, known: Any) -> None:
    values = np.asarray(column)
    new = sorted({str(value) for value in values.tolist()} - {str(level) for level in known})
    if new:
        levels = ", ".join(map(str, known[:12])) + (", ..." if len(known) > 12 else "")
        raise ValueError(
            f"data: column {name!r} has {', '.join(map(repr, new[:5]))}, which the fit has not"
            f" seen; its levels are {levels}"
        )


def _categorical(spec: Any) -> list[set[str]]:
    """Variables of each factor of a part that is coded by levels."""
    from formulaic import Formula

    return [
        set(variables([Formula.from_spec(factor)]))
        for factor, (kind, _) in spec.encoder_state.items()
        if kind.value == "categorical"
    ]


def _tagged(value: Any) -> Any:
    """A state in the words of JSON, kinds of containers named."""
    if isinstance(value, Mapping):
        return {"dict": [[_tagged(key), _tagged(part)] for key, part in value.items()]}
    if isinstance(value, np.generic):
        return value.item()
    if hasattr(value, "to_numpy"):
        value = value.to_numpy()
    if isinstance(value, np.ndarray):
        return {"array": value.tolist()}
    if isinstance(value, list | tuple):
        return {"list": [_tagged(part) for part in value]}
    return value


def _untagged(value: Any) -> Any:
    """The inverse of `_tagged`."""
    if not isinstance(value, dict):
        return value
    if "dict" in value:
        return {_untagged(key): _untagged(part) for key, part in value["dict"]}
    if "array" in value:
        return np.array(value["array"])
    return [_untagged(part) for part in value["list"]]


def first_dependent(design: FloatArray) -> int | None:
    """The first column (n, q) that is a linear combination of 1 and those before it."""
    basis = [np.full(len(design), 1.0 / np.sqrt(len(design)))]
    for j, column in enumerate(design.T):
        size = np.linalg.norm(column)
        rest = column
        for _ in range(2):
            Q = np.column_stack(basis)
            rest = rest - Q @ (Q.T @ rest)
        left = np.linalg.norm(rest)
        if left <= 1e-10 * size:
            return j
        basis.append(rest / left)
    return None
