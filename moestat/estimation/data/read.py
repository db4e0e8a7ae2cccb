"""Everything that a user passes to a fit is read here, once, into one record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from inspect import Parameter, signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from moestat.base.registry import configured
from moestat.base.types import FloatArray, TableLike
from moestat.base.validate import (
    as_weights,
    check_keywords,
    is_mapping,
    is_sequence,
    short,
)
from moestat.base.warnings import ConstantColumnWarning, DataWarning, warn_caller
from moestat.estimation.data.data import Data, spans
from moestat.estimation.data.groups import check_groups
from moestat.estimation.data.random_terms import random_likelihood, without_parts
from moestat.estimation.data.rounding import checked_resolution
from moestat.estimation.reading.inputs import Inputs, read_inputs
from moestat.estimation.reading.responses import (
    Columns,
    as_columns,
    classes_of,
    find_classes,
    in_order,
    labels_in,
    law_of,
    named_pair,
    names_of_responses,
    read_columns,
    values_of,
)
from moestat.estimation.reading.table import (
    Column,
    as_column,
    check_aligned,
    check_missing,
)
from moestat.model.axes import family
from moestat.model.by_expert import is_by_expert, with_range
from moestat.model.constraints import named, places_of
from moestat.model.family import Family
from moestat.model.joint import as_likelihood, likelihood_table
from moestat.model.likelihoods import LIKELIHOODS

__all__ = [
    "check_options",
    "check_size",
    "hint_of_shares",
    "holding_constants",
    "in_units_of_inputs",
    "of_two_columns",
    "read_data",
    "with_places",
]

_LARGEST = 1e100
"""Largest number in a column: sums of squares of such numbers, and the product of two of these sums
with a third number of this size, stay within the range of float64."""

_OF_DATA = ("likelihood", "n_features", "n_classes")
"""Arguments of `moestat.family` that follow from the data."""

_NAMED, _READ = ("equal", "fixed"), ("gate_inputs", "expert_inputs")
"""Arguments that name inputs: constraints on coefficients, and the inputs of gate and experts."""


_OF_SURVEYS = frozenset({"survey", "strata", "clusters", "psu"})
"""Arguments that other packages have for samples with a design."""


def check_options(given: Mapping[str, object], *functions: Callable[..., object]) -> None:
    """Raise unless the options are arguments of these functions or of `moestat.family`.

    The first function is the one that the user called.
    """
    if not given:
        return
    if _OF_SURVEYS & {*given}:
        raise ValueError(
            f"{min(_OF_SURVEYS & {*given})}: give sampling weights as sample_weight= (weights= of"
            " a formula), and clusters and strata to"
            " result.get_robustcov_results('survey', groups=..., strata=...)"
        )
    known = [
        name
        for function in (*functions, family)
        for name, parameter in signature(function).parameters.items()
        if parameter.kind is not Parameter.VAR_KEYWORD and name not in _OF_DATA
    ]
    check_keywords(functions[0].__name__, given, dict.fromkeys(known))


def read_data(
    model: Family | str | Mapping[str, Any] | Sequence[Any],
    X: ArrayLike | TableLike | Inputs,
    y: ArrayLike | TableLike | Column | Columns | None,
    sample_weight: ArrayLike | TableLike | None,
    options: Mapping[str, Any],
    *,
    groups: ArrayLike | Column | None = None,
    classes: Any = None,
    missing: str = "raise",
    resolution: Any = None,
    random: Any = None,
) -> tuple[Family, Data]:
    """The family, with coefficients of constant inputs held at 0, and the data of a fit.

    `options` are further arguments of `moestat.family`, for a family by name.
    """
    by_name = _check_model(model, options)
    fitted_family: Any = model
    check_missing(missing)
    law = model.likelihood if isinstance(model, Family) else as_likelihood(model)
    if not law.parts:
        _check_order(X, y)
    parts = {"X": X, "y": y, "sample_weight": sample_weight, "groups": groups}
    check_aligned(parts)
    if isinstance(X, Inputs):
        inputs = X
    else:
        inputs = read_inputs(X, None if by_name else fitted_family.n_features, missing=missing)
    if random is not None:
        fitted_family = random_likelihood(
            fitted_family, random, inputs.features, len(inputs.design)
        )
    series: dict[str, Any] = {
        name: as_column(name, parts[name])
        for name in ("sample_weight", "groups")
        if parts[name] is not None
    }
    names = [one.name for one in law.parts]
    # Without a list or a number of responses the columns say how many there are.
    has_count = is_sequence(model) or (is_mapping(model) and "responses" in model)
    counted = bool(names) and by_name and not has_count
    columns = as_columns(y, None if counted else names) if names else as_column("y", y)
    series = {"y": columns} | series
    if counted:
        fitted_family = {**likelihood_table(law), "responses": len(series["y"].columns)}
    n = inputs.design.shape[1]
    if n == 0:
        raise ValueError("X has no rows")
    for name, column in series.items():
        given = column.values.shape
        if given[0] != n and name == "groups":
            raise ValueError(f"groups must hold one label per row, shape ({n},), got {given}")
        if given[0] != n and name == "sample_weight":
            raise ValueError(f"sample_weight must have shape ({n}), got {given}")
        if given[0] != n:
            raise ValueError(f"X has {n} samples but {name} has {len(column.values)}")
    used = _present(inputs, series, missing)
    complete_rows = None if used is None else np.flatnonzero(used)
    design = (
        inputs.design if complete_rows is None else np.take(inputs.design, complete_rows, axis=1)
    )
    if complete_rows is not None:
        series = {name: column.at(complete_rows) for name, column in series.items()}
    if not names:
        if by_name:
            fitted_family = of_two_columns(fitted_family, series["y"])
        if is_by_expert(fitted_family):
            given = series["sample_weight"].values if "sample_weight" in series else None
            numbers = series["y"].numbers("y")
            used_rows = as_weights(given, numbers.size) > 0.0
            fitted_family = with_range(fitted_family, numbers[used_rows])
        column = series["y"]
        pair = named_pair(law_of(fitted_family), column.parts)
        series["y"] = in_order(column, pair or column.parts)
    fitted_family, values, labels = _read_responses(fitted_family, series["y"], classes)
    if by_name:
        sizes: dict[str, int] = {"n_features": len(design)}
        if not names and labels is not None:
            sizes["n_classes"] = len(labels)
        options = without_parts(options, fitted_family, len(design), inputs.features)
        options = {**with_places(options, inputs.features), **sizes}
        fitted_family = family(fitted_family, **options)
    weight = as_weights(
        series["sample_weight"].values if "sample_weight" in series else None, len(values)
    )
    if by_name:
        fitted_family = in_units_of_inputs(
            fitted_family, options, partial(_variances, design, weight)
        )
    fitted_family = holding_constants(fitted_family, design, weight > 0, inputs.features)
    if fitted_family.held:
        design = design.copy()  # it may be the caller's own
        design[list(fitted_family.held)] = 0.0
    index = (
        inputs.index
        if complete_rows is None or inputs.index is None
        else inputs.index[complete_rows]
    )
    data = Data(
        design.T,
        values,
        weight,
        inputs.features,
        series["y"].name,
        labels,
        inputs.formula,
        index,
        series["groups"].as_labels("groups") if "groups" in series else None,
        complete_rows,
        n - len(values),
        responses=series["y"].parts,
        resolution=checked_resolution(fitted_family, resolution),
    )
    if data.groups is not None:
        check_groups(fitted_family, data)
    return fitted_family, data


def with_places(options: Mapping[str, Any], features: Sequence[str] | None) -> dict[str, Any]:
    """Arguments of `moestat.family` with the default gate, and places in place of names."""
    arguments = {"gate": "softmax", **options}
    arguments |= {name: named(arguments[name], features) for name in _NAMED if name in arguments}
    for name in _READ:
        inputs = arguments.get(name)
        inputs = [inputs] if isinstance(inputs, str) else inputs
        if is_sequence(inputs):
            arguments[name] = _places(inputs, features, name)
    if isinstance(arguments.get("offset"), str):
        places = _places([arguments["offset"]], features, "offset")
        if len(places) > 1:
            raise ValueError(f"offset: {arguments['offset']!r} is a factor; give a numeric input")
        arguments["offset"] = places[0]
    return arguments


def _places(inputs: Sequence[Any], features: Sequence[str] | None, name: str) -> list[Any]:
    """Positions of the inputs, or a list of positions for each expert."""
    if name == "expert_inputs" and inputs and all(map(is_sequence, inputs)):
        return [_places(inputs_of_expert, features, name) for inputs_of_expert in inputs]
    return [at for f in inputs for at in places_of(f, features, name)]


def in_units_of_inputs(
    model: Family, options: Mapping[str, Any], variances: Callable[[Sequence[int]], FloatArray]
) -> Family:
    """The family with known lengths of its gate in standard deviations of the inputs.

    They are the gate's own, such as a temperature of 1 of distances, unless the user gives them;
    the unit is the root mean square of the inputs' standard deviations, the roots of the
    `variances` of the inputs that the family reads.
    """
    gate = options["gate"]
    known = {*(options.get("bounds") or ()), *(gate if is_mapping(gate) else ())}
    names = [n for n in model.gate.units.lengths if n in model.given and n not in known]
    names = [name for name in names if model.box[name][0] == model.box[name][1]]
    if not names or not model.read:
        return model
    length = float(np.sqrt(variances(model.read).mean())) or 1.0
    return replace(model, box={**model.box, **{n: (model.box[n][0] * length,) * 2 for n in names}})


def _variances(design: FloatArray, weight: FloatArray, which: Sequence[int]) -> FloatArray:
    """Weighted variances of some inputs."""
    share = weight / weight.sum()
    return np.array([share @ (x - share @ x) ** 2 for x in design[list(which)]])


def _check_order(X: Any, y: Any) -> None:
    """Refuse one column of inputs with several columns as one response: they are swapped."""
    one, several = _n_columns(X), _n_columns(y)
    if one == 1 and several is not None and several > 2:
        raise ValueError(
            f"y has {several} columns and X has one: X and y look swapped; the order is fit(family,"
            " X, y). For several responses give a list of as many likelihoods"
        )
    # A series and a table of one column are both legal; a series of a response is more usual.
    if np.ndim(X) == 1 and hasattr(X, "index") and np.ndim(y) == 2 and hasattr(y, "columns"):
        warn_caller(
            f"X is the series {short(getattr(X, 'name', None))} and y a table of one column,"
            f" {short(str(y.columns[0]))}: the order is fit(family, X, y). If they are not swapped,"
            " give X as a table",
            DataWarning,
        )


def _n_columns(given: Any) -> int | None:
    """Number of columns of an array or a table; None where this is not known."""
    if isinstance(given, Column | Columns | Inputs) or given is None:
        return None
    if is_mapping(given):
        return len(given)
    shape: Any = getattr(given, "shape", None)
    if shape is None and is_sequence(given):
        try:
            shape = np.shape(np.asarray(given, dtype=object))
        except ValueError:
            return None
    return None if not shape or len(shape) > 2 else 1 if len(shape) == 1 else int(shape[1])


def _check_model(model: object, options: Mapping[str, object]) -> bool:
    """Whether a model is given by name; raise unless it is one."""
    if not isinstance(model, (Family, str, Mapping)) and not is_sequence(model):
        raise ValueError(
            "family must be a family from moestat.family or the name of a likelihood,"
            f" {', '.join(LIKELIHOODS)}; got {short(model)}"
            + "; the order is fit(family, X, y)"
            * hasattr(model, "shape")
        )
    if is_sequence(model) and not (
        model and all(isinstance(m, str) or (is_mapping(m) and "name" in m) for m in model)
    ):
        raise ValueError(
            "family: a list must hold the name, or a table with the name, of a likelihood for each"
            f" response; got {short(model)}"
        )
    if is_mapping(model) and "name" not in model and not is_by_expert(model):
        raise ValueError(
            f"family: a table of a likelihood needs a name, {', '.join(LIKELIHOODS)}, or a list of"
            f" experts; got {short(model)}"
        )
    if options and isinstance(model, Family):
        raise ValueError(
            f"{', '.join(sorted(options))}: allowed only if the family is given by name, such as"
            f" fit({model.likelihood.name!r}, X, y, n_experts={model.n_experts}); got"
            f" {short(model)}"
        )
    return not isinstance(model, Family)


def _present(
    inputs: Inputs, series: Mapping[str, Column | Columns], missing: str
) -> NDArray[np.bool_] | None:
    """A mask of the rows without missing values; None if no value is missing."""
    gaps = np.zeros(inputs.design.shape[1], dtype=bool)
    for name, column in series.items():
        if missing == "raise":
            column.check_missing(name)
        gaps |= column.missing
    if missing == "drop":
        gaps |= np.isnan(inputs.design).any(axis=0)
    if gaps.all() and gaps.size:
        raise ValueError("every row has a missing value")
    return ~gaps if gaps.any() else None


def _read_responses(
    model: Any, given: Column | Columns, classes: Any
) -> tuple[Any, np.ndarray, Any]:
    """The model with names and sizes of its responses, their values, and labels as `Data` has."""
    law, own_names = law_of(model), given.parts if isinstance(given, Columns) else ()
    names = names_of_responses(model, own_names)
    columns = read_columns(law, given, names)
    declared = given.columns if isinstance(given, Columns) else (given,)
    model, labels = find_classes(model, labels_in(law, columns), declared, names, classes)
    return model, values_of(law, columns, labels), classes_of(law, labels)


def of_two_columns(model: str | Mapping[str, Any], column: Column) -> str | Mapping[str, Any]:
    """The likelihood with the option that reads y with two columns; unchanged for one column.

    Two columns are bounds of censored responses, or numbers of successes and failures.
    """
    if is_by_expert(model):
        return model
    make = configured(LIKELIHOODS, model).configure
    known = [] if make is None else list(signature(make).parameters)
    table = {"name": model} if isinstance(model, str) else model
    if column.values.ndim == 2:
        for option, value in (("censored", True), ("trials", "rows")):
            if option in known:
                return {**table, option: value}
    return model


def check_size(name: str, low: FloatArray, high: FloatArray, *, squared: bool = True) -> None:
    """Refuse columns between `low` and `high` that are too large, or too small to be `squared`."""
    size = np.maximum(np.abs(low), np.abs(high))
    if np.any(size > _LARGEST):
        raise ValueError(f"{name} holds values above {_LARGEST:g}, whose squares overflow")
    if squared and np.any((size > 0.0) & (size < 1.0 / _LARGEST)):
        raise ValueError(
            f"{name} holds only values below {1.0 / _LARGEST:g} in a column, whose squares"
            " underflow; give it in other units"
        )


def holding_constants(
    model: Family, design: FloatArray, used: NDArray[np.bool_], features: Sequence[str] | None
) -> Family:
    """The family with the coefficients of constant inputs held at 0, and a warning."""
    if used.sum() < 2:
        return model
    constant = [int(f) for f in np.flatnonzero(spans(design, used) == 0)]
    new = [f for f in constant if f in model.read]
    if not new:
        return model
    names = ", ".join(repr(features[f]) if features else str(f) for f in new)
    what = f"X: column {names} is constant; its slope cannot be distinguished from the intercept"
    try:
        restricted = model.holding([*model.held, *new])
    except ValueError as error:
        raise ValueError(f"{what}, and {error}: leave the column out") from None
    warn_caller(
        f"{what}. Its coefficients are fixed at 0, and the intercepts include its effect",
        ConstantColumnWarning,
    )
    return restricted


def hint_of_shares(total: float, n_rows: int) -> str:
    """What to write if weights are shares of one, not counts, else ""."""
    if n_rows < 2 or not np.isclose(total, 1.0):
        return ""
    return (
        f"; sample_weight sums to 1 over {n_rows} rows: weights are numbers of observations, not"
        f" shares of them, so multiply shares by the number of observations, here"
        f" sample_weight * {n_rows}"
    )
