"""Formulas: columns for experts and gate from any table, computed by formulaic.

A formula is parsed once.  Its terms, and the parameters of their transforms, are kept and used for
all further data; no term is parsed again.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Number
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from moestat.base.types import FloatArray, Labels
from moestat.base.validate import did_you_mean, hint_of_text, listed, short
from moestat.estimation.reading.allowed import BUILTINS, check_expression
from moestat.estimation.reading.hints import FEW_LEVELS, hint_of_words
from moestat.estimation.reading.inputs import Inputs
from moestat.estimation.reading.labels import NO_PART, codes_of_labels
from moestat.estimation.reading.parse import Parsed
from moestat.estimation.reading.responses import Columns
from moestat.estimation.reading.table import Column, Table, as_table, column_names

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FormulaInputs", "UnknownColumnError", "used_names"]

_INTERCEPT = "Intercept"

_OF_TWO_COLUMNS = ("cbind(", "Surv(")
"""Functions whose values are the two columns of one response."""

_FILTERS = Lock()
"""Lock for evaluating designs: the filters of warnings are shared by all threads."""


def used_names(
    factors: Iterable[tuple[str, str]], columns: Sequence[str], scope: Mapping[str, object]
) -> tuple[list[str], dict[str, Any]]:
    """Columns that factors name, sorted, and what they take from the caller's scope."""
    from formulaic.transforms import TRANSFORMS
    from formulaic.utils.variables import Variable, get_required_variables

    names, from_scope = set(), {}
    for method, text in factors:
        if method == "literal":
            continue
        if method != "lookup":
            check_expression(text, columns, scope)
        try:
            variables = (
                {Variable(text, roles=["value"])}
                if method == "lookup"
                else get_required_variables(text, {})
            )
        except SyntaxError as error:
            raise ValueError(f"formula: cannot evaluate {text!r}: {error.msg}") from None
        for variable in variables:
            name = _column_of(variable, columns)
            called = {role.value for role in variable.roles} == {"callable"}
            if name in columns and not called:
                names.add(name)
            elif name in TRANSFORMS:
                continue
            elif name in scope:
                from_scope[name] = scope[name]
            elif name not in _FUNCTIONS and name not in BUILTINS and name != "numpy":
                raise _unknown(name, columns)
    return sorted(names), from_scope


def _column_of(variable: Any, columns: Sequence[str]) -> str:
    """The column, or the first name, that formulaic's variable reads; columns may hold dots."""
    return str(variable) if str(variable) in columns else str(variable.root)


class UnknownColumnError(ValueError):
    """A formula names a column that the table lacks."""


def _unknown(name: str, columns: Sequence[str]) -> UnknownColumnError:
    names = listed(map(repr, columns))
    return UnknownColumnError(
        f"formula: data has no column {short(name)}, and there is no such function"
        f" of formulas; columns are {names}{did_you_mean(name, columns)}"
    )


@dataclass(frozen=True)
class FormulaInputs:
    """Everything that is needed to compute the inputs of a fit by formula from new data.

    Columns that a transform has learnt from the data, such as the knots of a spline, stay as they
    were in the fit.
    """

    formula: str  # the formula of the fit, as given
    parts: tuple[Any, ...] = field(repr=False)  # right-hand sides, see `Parsed`
    response: tuple[str, str] = field(repr=False)  # the response
    states: str = field(repr=False)  # what the transforms of each part have learnt, as JSON
    names: tuple[str, ...]  # columns of the data
    # levels of each categorical column in order, None for a numeric one
    levels: tuple[Labels | None, ...] = field(repr=False)
    # values of the columns in a few rows, in which every level occurs
    specimens: tuple[np.ndarray, ...] = field(repr=False)
    # the column with the parts of groups, where these are nested, and the name of its input
    within: tuple[str, str] | None = None
    # functions and values of the user's that the formula names.  Files do not hold them.
    scope: Mapping[str, object] | None = field(
        default=None, repr=False, compare=False, metadata={"stored": False}
    )

    @classmethod
    def of(
        cls,
        formula: str,
        terms: Parsed,
        table: Table,
        scope: Mapping[str, object],
        within: tuple[str, str] | None = None,
    ) -> FormulaInputs:
        """The inputs of a formula, learnt from a table without missing values."""
        if not table.n_rows:
            raise ValueError("data has no rows")
        factors = [factor for part in terms.parts for term in part for factor in term]
        names, from_scope = used_names(factors, table.names, scope)
        _check_words({text for how, text in factors if how == "lookup"} & {*names}, table)
        _, also = used_names([terms.response], table.names, scope)
        columns = _columns(table, names, factors)
        levels = [_levels(column) for column in columns]
        frame = _frame(columns, levels, table.n_rows)
        specs = [
            _evaluated(_text(part), _formula_of(part), frame, {**from_scope, **also}).model_spec
            for part in terms.parts
        ]
        _check_names(specs)
        coded = {name for spec in specs for name in _categorical(spec, names)}
        rows = {0}
        for column, known_levels in zip(columns, levels, strict=True):
            if known_levels is not None or column.name in coded:
                rows.update(np.unique(_plain(column.values), return_index=True)[1].tolist())
        inputs = cls(
            formula,
            terms.parts,
            terms.response,
            json.dumps([_tagged(spec.transform_state) for spec in specs]),
            tuple(names),
            tuple(levels),
            tuple(_plain(column.values)[sorted(rows)] for column in columns),
            within,
            {**from_scope, **also},
        )
        inputs.__dict__["_specs"] = specs
        return inputs

    @cached_property
    def _specs(self) -> list[Any]:
        """Model specifications of the parts; for a stored result, rebuilt from terms and states."""
        from formulaic import ModelSpec

        size = len(self.specimens[0]) if self.specimens else 1
        columns = [Column(v, np.zeros(size, bool)) for v in self.specimens]
        frame = _frame(columns, self.levels, size, self.names)
        specs = []
        for part, state in zip(self.parts, json.loads(self.states), strict=True):
            spec = ModelSpec.from_spec(_formula_of(part), transform_state=_untagged(state))
            specs.append(_evaluated(_text(part), spec, frame, self._scope).model_spec)
        return specs

    @property
    def _scope(self) -> Mapping[str, Any]:
        if self.scope is None:  # of a stored result, which holds no functions of the user's
            used_names([f for part in self.parts for term in part for f in term], self.names, {})
        return self.scope or {}

    @property
    def _factors(self) -> list[tuple[str, str]]:
        """Factors of all terms."""
        parts = [part for part in self.parts if not isinstance(part, str)]
        return [factor for part in parts for term in part for factor in term]

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "_specs"}

    def designs(self, data: object) -> list[pd.DataFrame]:
        """Columns of each part, without the intercept, from a table.

        Where groups are nested the last one is the code of the part of a group.
        """
        table = data if isinstance(data, Table) else self._table_of(data)
        columns = [
            column if known is not None else _of_type(column, specimen.dtype)
            for column, known, specimen in zip(
                _columns(table, self.names, self._factors), self.levels, self.specimens, strict=True
            )
        ]
        for column, known in zip(columns, self.levels, strict=True):
            if known is not None:
                _check_levels(column, known)
            elif _levels(column) is not None:
                raise ValueError(
                    f"data: column {column.name!r} must hold numbers as in the fit, got"
                    f" {str(column.values[0])!r}"
                )
        frame = _frame(columns, self.levels, table.n_rows)
        designs = [
            _evaluated(_text(part), spec, frame, self._scope).drop(
                columns=_INTERCEPT, errors="ignore"
            )
            for part, spec in zip(self.parts, self._specs, strict=True)
        ]
        return designs if self.within is None else [*designs, self._codes(table)]

    def _table_of(self, data: object) -> Table:
        """The columns of new data that the formula names, and parts of groups if it has them."""
        known = column_names(data)
        for name in self.names:
            if name not in known:
                factors = [f for part in self.parts for term in part for f in term]
                places = [
                    f[1] for f in factors if name in used_names([f], self.names, self._scope)[0]
                ]
                where = "".join(f" in {text!r}" for text in places[:1] if text != name)
                raise UnknownColumnError(
                    f"formula: data has no column {short(name)}, which the fit reads{where};"
                    f" columns are {listed(map(repr, known))}{did_you_mean(name, known)}"
                )
        column = () if self.within is None else (self.within[0],)
        return table_of(data, [*self.names, *(c for c in column if c in known)])

    def _codes(self, table: Table) -> pd.DataFrame:
        """The code of the part of its group that each row belongs to, or of none."""
        import pandas as pd

        assert self.within is not None
        column, name = self.within
        codes: FloatArray = np.full(table.n_rows, NO_PART)
        if column in table.names:
            codes = codes_of_labels(table[column].as_labels(f"data: column {column!r}"))
        return pd.DataFrame({name: codes})

    def columns_of(self, parts: Sequence[Any], table: Table) -> list[list[str]]:
        """Names of the columns of other right-hand sides in the columns of the formula."""
        columns = _columns(table, self.names, self._factors)
        frame = _frame(columns, self.levels, table.n_rows)
        matrices = [
            _evaluated(_text(part), _formula_of(part), frame, self._scope) for part in parts
        ]
        return [[str(name) for name in matrix.columns if name != _INTERCEPT] for matrix in matrices]

    def inputs_of(self, table: Table, designs: Sequence[pd.DataFrame] | None = None) -> Inputs:
        """Columns of all parts, each once; a column of zeros where no part has any."""
        parts = self.designs(table) if designs is None else designs
        columns = {str(name): part[name] for part in parts for name in part.columns}
        design = np.empty((max(len(columns), 1), table.n_rows))
        for j, column in enumerate(columns.values() if columns else [0.0]):
            design[j] = column
        return Inputs(design, tuple(columns) or ("1",), table, self)

    def plain_columns(self, table: Table) -> tuple[np.ndarray, ...]:
        """Copies of the columns that the formula names, numbers or words."""
        columns = _columns(table, self.names, ())
        return tuple(np.array(_plain(column.values)) for column in columns)

    def inputs(self, data: object) -> Inputs:
        """Inputs of new data with the columns that the formula names."""
        return self.inputs_of(self._table_of(data))

    def union(self, data: object) -> FloatArray:
        """Inputs (n, d) of new data."""
        return self.inputs(data).matrix

    def variables(self) -> dict[str, Labels | None]:
        """Columns in terms of experts or gate, as they come; levels of those coded by levels."""
        factors = [factor for part in self.parts[:2] for term in part for factor in term]
        used = dict.fromkeys(
            name for factor in factors for name in used_names([factor], self.names, self._scope)[0]
        )
        coded = {name for spec in self._specs for name in _categorical(spec, self.names)}
        levels = dict(zip(self.names, self.levels, strict=True))
        values = dict(zip(self.names, self.specimens, strict=True))
        return {
            name: np.unique(values[name])
            if levels[name] is None and name in coded
            else levels[name]
            for name in used
        }

    def terms_by_column(self) -> dict[tuple[str, str], str]:
        """The term of each column of the experts and of the gate, by part and column."""
        return {
            (part, str(column)): str(row.term)
            for part, spec in zip(("expert", "gate"), self._specs, strict=False)
            for row in spec.structure
            for column in row.columns
            if column != _INTERCEPT
        }

    def alone_in_terms(self) -> list[str]:
        """Numeric columns that are inputs as they are, and in no other term."""
        terms = {term for part in self.parts[:2] for term in part}
        used = [used_names(term, self.names, self._scope)[0] for term in terms]
        alone = [term[0][1] for term in terms if len(term) == 1 and term[0][0] == "lookup"]
        levels = self.variables()
        return [n for n in alone if levels[n] is None and sum(n in u for u in used) == 1]

    def response_in(self, given: Table, names: Sequence[str], several: bool) -> Column | Columns:
        """The response in a table of responses: by the names that the formula reads, or as it is.

        The table holds the columns `names`, from which the formula makes the response, or the
        response itself under the name that the formula gives it.
        """
        own_names = [text for _, text in beside(self.response)]
        if set(own_names) <= set(given.names):
            if several:
                return Columns(tuple(given[name] for name in own_names), True)
            return given[own_names[0]]
        if set(names) <= set(given.names):
            return self.response_of(given, several)
        given_names = ", ".join(map(repr, given.names))
        raise ValueError(
            f"y: the fit computes {self.response[1]!r} from {', '.join(map(repr, names))}; got"
            f" {given_names}. Give a table with these columns, or an array of values of"
            f" {self.response[1]!r}"
        )

    def response_of(self, data: object, several: bool = False) -> Column | Columns:
        """The response in new data, or several of them."""
        known = data.names if isinstance(data, Table) else column_names(data)
        names, _ = used_names([self.response], known, self._scope)
        table = data if isinstance(data, Table) else table_of(data, names)
        if several:
            return response_columns(self.response, table, self._scope)
        return response_column(self.response, table, self._scope)

    def alone(self, position: int) -> FormulaInputs:
        """The same inputs with one of several responses."""
        return replace(self, response=beside(self.response)[position])


def table_of(data: object, names: Sequence[str]) -> Table:
    """The named columns of a table, without missing values."""
    known = column_names(data)
    for name in names:
        if name not in known:
            raise _unknown(name, known)
    table = as_table("data", data, names)
    assert table is not None
    for column in table.columns:
        column.check_missing(f"data: column {column.name!r}")
    return table


def response_column(factor: tuple[str, str], table: Table, scope: Mapping[str, object]) -> Column:
    """The response: a column as it is, or a function of columns."""
    method, text = factor
    if method == "lookup":
        return table[text]
    names, _ = used_names([factor], table.names, scope)
    columns = _columns(table, names, [factor])
    frame = _frame(columns, [_levels(column) for column in columns], table.n_rows)
    matrix = _evaluated(text, _formula_of(((factor,),)), frame, scope)
    two = text.startswith(_OF_TWO_COLUMNS)
    if matrix.shape[1] != 1 + two:
        needed = "two columns" if two else "one column"
        raise ValueError(f"formula: the response {text!r} must be {needed} of numbers")
    try:
        values = np.asarray(matrix, dtype=np.float64)
    except (TypeError, ValueError):
        worded = ", ".join(repr(name) for name in names if table[name].categorical)
        raise ValueError(
            f"formula: the response {text!r} must be numbers; words or categories are in column"
            f" {worded}"
        ) from None
    values = values if two else values[:, 0]
    if np.isnan(values).any() or (not two and np.isinf(values).any()):
        raise ValueError(f"formula: the response {text!r} is infinite or undefined in some rows")
    return Column(values, np.zeros(len(values), bool), text)


def response_columns(factor: tuple[str, str], table: Table, scope: Mapping[str, object]) -> Columns:
    """Several responses, the arguments of ``cbind``, each a column or a function of columns."""
    responses = []
    for each in beside(factor):
        column = response_column(each, table, scope)
        responses.append(replace(column, name=each[1]))
    return Columns(tuple(responses), True)


def beside(factor: tuple[str, str]) -> list[tuple[str, str]]:
    """The arguments of ``cbind`` as factors; a response without it by itself."""
    method, text = factor
    if method == "lookup" or not text.startswith("cbind("):
        return [factor]
    # Python's parser knows no back-ticks: quoted names are replaced while it parses.
    quoted = re.findall("`[^`]*`", text)
    for j, name in enumerate(quoted):
        text = text.replace(name, f"_quoted_{j}_", 1)
    factors = []
    call = ast.parse(text, mode="eval").body
    assert isinstance(call, ast.Call)
    for each in call.args:
        argument = ast.unparse(each)
        for j, name in enumerate(quoted):
            argument = argument.replace(f"_quoted_{j}_", name)
        plain = isinstance(each, ast.Name)
        factors.append(("lookup", argument.strip("`")) if plain else ("python", argument))
    return factors


def _two(one: ArrayLike, other: ArrayLike) -> pd.DataFrame:
    """``cbind`` of formulas: two columns of a response."""
    import pandas as pd

    return pd.DataFrame({"0": one, "1": other})


def _survival(*given: ArrayLike) -> pd.DataFrame:
    """``Surv(time, event)`` of R: bounds of responses that are seen, or censored from above."""
    import pandas as pd

    if len(given) == 3:
        raise ValueError(
            "Surv(start, stop, event): times of entry are not modelled (start-stop rows,"
            " truncation from the left); give Surv(time, event), one row for each subject"
        )
    if len(given) != 2:
        raise ValueError(
            "Surv takes a time and an event, for censoring from above; intervals are"
            " cbind(low, high), and times of entry are not modelled"
        )
    words = sorted({v for v in np.ravel(given[1]).tolist() if isinstance(v, str)})
    if words:
        raise ValueError(
            f"the event of Surv must be 1, or True, where it was seen and 0 where the time is"
            f" censored, got the words {listed(map(repr, words), 4)}; write which of them is the"
            f" event, such as Surv(time, event == {words[-1]!r})"
        )
    time, event = (np.asarray(each, dtype=np.float64) for each in given)
    known = event[~np.isnan(event)]
    if not np.isin(known, (0.0, 1.0)).all():
        raise ValueError(
            "the event of Surv must be 1, or True, where it was seen and 0 where the time is"
            f" censored, got {short(np.unique(known).tolist())}; a code of 2 is event == 2"
        )
    high = np.where(event == 1.0, time, np.where(np.isnan(event), np.nan, np.inf))
    return pd.DataFrame({"0": time, "1": high})


def _factor(values: Any) -> Any:
    """R's name of ``C``."""
    from formulaic.transforms import TRANSFORMS

    return TRANSFORMS["C"](values)


_FUNCTIONS = {
    **{name: getattr(np, name) for name in ("sqrt", "sin", "cos", "tan", "log1p", "expm1")},
    **{"pmin": np.minimum, "pmax": np.maximum, "cbind": _two, "factor": _factor},
    "Surv": _survival,
}
"""Functions of R's that formulaic does not have."""


def _formula_of(part: Any) -> Any:
    """A part as formulaic's terms."""
    from formulaic import Formula, SimpleFormula
    from formulaic.parser.types import Factor
    from formulaic.parser.types import Term as Product

    if isinstance(part, str):  # of a file that an earlier version wrote
        return Formula.from_spec(part)
    terms: Any = [Product([Factor(text, eval_method=how) for how, text in term]) for term in part]
    return SimpleFormula(terms, _ordering="none")


def _text(part: Any) -> str:
    """A part in words, for messages."""
    return part if isinstance(part, str) else " + ".join(":".join(t for _, t in x) for x in part)


def _evaluated(term: str, formula: Any, frame: pd.DataFrame, scope: Mapping[str, object]) -> Any:
    """The model matrix of a formula or of its specification, with one clear error."""
    from formulaic.errors import DataMismatchWarning, FormulaicError

    try:
        with _FILTERS, warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("error", DataMismatchWarning)
            return formula.get_model_matrix(
                frame, context={**_FUNCTIONS, **scope}, na_action="ignore"
            )
    except DataMismatchWarning as error:
        match = re.search(r"\{(.*)\}", str(error))
        levels = re.sub(r"np\.\w+\((.*?)\)", r"\1", match[1]) if match else "some"
        raise ValueError(
            f"data: in {term!r} levels that are not in the data of the fit: {levels}"
        ) from None
    except (FormulaicError, ArithmeticError, AttributeError, LookupError, NameError) as error:
        reason: Exception = error
    except (SyntaxError, TypeError, ValueError) as error:
        reason = error
    text = " ".join(str(reason).split())
    if own := re.search(r"\[ValueError: (.*Surv.*)\]$", text):
        raise ValueError(f"formula: {own[1]}")
    words = [name for name in frame.columns if frame[name].dtype == "category"]
    hints = [
        f"column {name!r} holds words; {hint}"
        for name in words
        if (hint := hint_of_words(name, frame[name].cat.categories))
    ]
    raise ValueError(f"formula: cannot evaluate {term!r}: {'. '.join([*hints, text])}")


def _columns(
    table: Table, names: Sequence[str], factors: Iterable[tuple[str, str]]
) -> list[Column]:
    """Columns of a table, objects that are numbers as numbers.

    Numbers have 64 bits, and those that factors compute with are float64: whole numbers of eight
    bits would wrap around without a warning, as the square of 200 does.
    """
    computed = _computed(factors)
    columns = [table[name] for name in names]
    for j, column in enumerate(columns):
        values = column.values
        if values.dtype.kind == "O" and all(isinstance(value, Number) for value in values):
            truth = all(isinstance(value, bool | np.bool_) for value in values)
            values = values.astype(bool if truth else np.float64)
        if values.dtype.kind == "f" or (values.dtype.kind in "iu" and column.name in computed):
            values = values.astype(np.float64, copy=False)
        elif values.dtype.kind in "iu":
            wide = values.dtype == np.uint64 and np.any(values > np.iinfo(np.int64).max)
            values = values.astype(np.float64 if wide else np.int64, copy=False)
        columns[j] = replace(column, values=values)
    return columns


def _of_type(column: Column, known: np.dtype[Any]) -> Column:
    """Numbers and truth values in the type of the fit, where it holds them exactly.

    The value 1 of a whole number is the level ``True`` of a fit to truth values, and the reverse.
    """
    values = column.values
    if values.dtype.kind not in "biuf" or values.dtype == known:
        return column
    with np.errstate(invalid="ignore"):
        same = values.astype(known)
    return replace(column, values=same) if np.array_equal(same, values) else column


_CATEGORIES = {"C", "factor"}
"""Functions that code a column by levels, which are named by the values of the column."""

_OF_BITS = (ast.BitAnd, ast.BitOr, ast.BitXor, ast.Invert, ast.LShift, ast.RShift)
"""Operations that floating-point numbers do not have."""


def _computed(factors: Iterable[tuple[str, str]]) -> set[str]:
    """Names of columns in arithmetic expressions, except those that must stay integers."""
    computed: set[str] = set()
    integral: set[str] = set()
    for method, text in factors:
        if method != "python":
            continue
        quoted = re.findall("`([^`]*)`", text)
        for i, name in enumerate(quoted):
            text = text.replace(f"`{name}`", f"_quoted_{i}_", 1)
        try:
            tree = ast.parse(text, mode="eval")
        except SyntaxError:
            continue  # formulaic has the words for it
        for node in ast.walk(tree):
            called = node.func if isinstance(node, ast.Call) else None
            names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
            names |= {name for i, name in enumerate(quoted) if f"_quoted_{i}_" in names}
            if isinstance(called, ast.Name) and called.id in _CATEGORIES:
                integral |= names
            elif isinstance(node, ast.BinOp | ast.UnaryOp):
                (integral if isinstance(node.op, _OF_BITS) else computed).update(names)
    return computed - integral


def _plain(values: np.ndarray) -> np.ndarray:
    """Numbers or words, which files hold without pickle."""
    return values.astype(str) if values.dtype.kind == "O" else values


def _levels(column: Column) -> Labels | None:
    """Levels of a categorical column that occur, in their order; None for a numeric one."""
    values = _plain(column.values)
    if column.levels is not None:
        present = set(values.tolist())
        declared = _plain(np.asarray(column.levels))
        return np.array([level for level in declared if level.item() in present])
    if column.values.dtype.kind in "biuf":
        return None
    kinds = sorted({type(value).__name__ for value in column.values.tolist()})
    if kinds != ["str"]:
        dates = "; convert dates to a number such as days since the first"
        raise ValueError(
            f"data: column {column.name!r} must hold numbers or words, got {kinds}"
            f"{hint_of_text(column.values)}"
            f"{dates * any('date' in kind or 'time' in kind for kind in kinds)}"
        )
    return np.unique(values)


def _check_words(names: Iterable[str], table: Table) -> None:
    """Refuse as categories columns of many words that all look like amounts or dates."""
    for name in names:
        column = table[name]
        if not column.categorical or column.levels is not None:
            continue
        words = np.unique(_plain(column.values))
        slip = not all(isinstance(v, str) for v in column.values[~column.missing])
        if words.size > FEW_LEVELS and not slip and (hint := hint_of_words(name, words)):
            raise ValueError(
                f"data: column {name!r} has {words.size} different words; {hint}. To use it as a"
                f" category all the same, write C({name})"
            )
        if words.size > FEW_LEVELS and (cell := hint_of_text(column.values)):
            raise ValueError(
                f"data: column {name!r} has {words.size} different words{cell}. To use it as a"
                f" category all the same, write C({name})"
            )


def _frame(
    columns: Sequence[Column],
    levels: Sequence[Labels | None],
    n_rows: int,
    names: Sequence[str] = (),
) -> pd.DataFrame:
    """A frame of columns (n_rows,), the categorical ones with their levels."""
    import pandas as pd

    values = {
        name: column.values if known_levels is None else _categories(column, known_levels)
        for name, column, known_levels in zip(
            names or [str(column.name) for column in columns], columns, levels, strict=True
        )
    }
    return pd.DataFrame(values, index=range(n_rows))


def _categories(column: Column, known: Labels) -> pd.Categorical:
    """A categorical column with the levels of the fit; words are looked up as they are."""
    import pandas as pd

    if column.values.dtype.kind == "O":
        words = pd.Index(column.values, dtype=object)
        codes = pd.Index(known, dtype=object).get_indexer(words)
        if (codes >= 0).all():
            return pd.Categorical.from_codes(codes, categories=known)
    return pd.Categorical(_plain(column.values), categories=known)


def _check_levels(column: Column, known: Labels) -> None:
    import pandas as pd

    new = sorted(set(map(str, pd.unique(column.values))) - set(map(str, known.tolist())))
    if new:
        levels = listed(known)
        raise ValueError(
            f"data: column {column.name!r} has {', '.join(map(repr, new[:5]))}, which is not in"
            f" the data of the fit; its levels are {levels}"
        )


def _check_names(specs: Iterable[Any]) -> None:
    """Refuse a column that has the name of another term: one of the two would be lost."""
    terms: dict[str, Any] = {}
    for spec in specs:
        for row in spec.structure:
            own = tuple((factor.eval_method.value, factor.expr) for factor in row.term.factors)
            for name in map(str, row.columns):
                if terms.setdefault(name, own) != own:
                    raise ValueError(
                        f"formula: two terms have the name {name!r}, and one of them is a column of"
                        " data; rename this column"
                    )


def _categorical(spec: Any, columns: Sequence[str]) -> set[str]:
    """Columns in factors that are coded by levels."""
    return {
        _column_of(variable, columns)
        for factor, variables in spec.factor_variables.items()
        if spec.encoder_state.get(factor.expr, (None,))[0] is factor.Kind.CATEGORICAL
        for variable in variables
    }


def _tagged(value: Any) -> Any:
    """A state as JSON, with the types of containers as tags."""
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
