"""Fits by formula: a response, terms of the experts and terms of the gate, from a data frame."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from moestat.base.types import FloatArray
from moestat.base.validate import as_weights
from moestat.estimation.data import check_options
from moestat.estimation.fitting import fit
from moestat.estimation.formula_inputs import (
    FormulaInputs,
    evaluated,
    first_dependent,
    parsed,
    read_columns,
    variables,
)
from moestat.estimation.results import MoEResults

__all__ = ["fit_formula"]


def fit_formula(
    formula: str,
    data: Any,
    family: str | Mapping[str, Any] = "gaussian",
    *,
    n_experts: int = 2,
    weights: str | None = None,
    offset: str | None = None,
    groups: str | None = None,
    **options: Any,
) -> MoEResults:
    """Maximum-likelihood fit of a mixture of experts that a formula describes.

    In ``"wage ~ age + C(region) | age"`` the experts read age and region, the gate age alone.
    Without a bar both read the same terms; ``| 1`` is a constant gate.

    Parameters
    ----------
    formula : str
        Response, ``~``, terms of the experts and, after ``|``, those of the gate, in the grammar
        of the package formulaic: columns of `data`, categories (words, or ``C(x)``), interactions
        ``a:b`` and ``a * b``, functions such as ``log(x)``, ``poly(x, 2)``, ``bs(x, df=4)``.
    data : data frame, or mapping of str to array_like of shape (n,)
        The data, n rows; only columns that are named are read.
    family : str or mapping
        Name of the likelihood, or its table with options, as in `moestat.fit`.
    n_experts : int
        Number of experts k.
    weights : str, optional
        Column of non-negative counts or frequency weights.
    offset : str, optional
        Column, or a function of columns such as ``"log(exposure)"``, that is added to the linear
        predictor of every expert as it is.
    groups : str, optional
        Column of labels of groups, such as subjects, for each of which an expert is chosen once;
        or the third part of the formula, ``"y ~ x | z | id"``.
    **options
        Further arguments of `moestat.fit`: ``gate``, ``expert``, ``bounds``, ``solver``,
        ``n_starts``, ``rng`` and so on.

    Returns
    -------
    MoEResults
        As of `moestat.fit`, with parameters named after the columns of the formula.  ``predict``,
        ``predict_proba`` and ``get_prediction`` take data with the columns that the formula names.
        Coefficients of columns that only the other part of the formula has are 0 and pinned; the
        summary leaves them out.

    Raises
    ------
    ValueError
        If the formula cannot be read, a column is unknown or has missing values, columns of one
        part are linearly dependent, or as `moestat.fit`.

    Notes
    -----
    Grammar and coding of categories are those of Wilkinson and Rogers (1973) as R and formulaic
    have them, first level the reference.  Both parts always have an intercept.

    Examples
    --------
    >>> import numpy as np, pandas as pd, moestat
    >>> age = np.linspace(20, 60, 200)
    >>> south = np.arange(200) % 2 == 0
    >>> wage = np.where(age > 40, 30, age - 10) + 3.0 * south + np.sin(9.0 * np.arange(200))
    >>> data = pd.DataFrame({"wage": wage, "age": age, "region": np.where(south, "S", "N")})
    >>> result = moestat.fit_formula("wage ~ age + region | age", data, n_experts=2, rng=0)
    >>> result.params.index[4], round(float(result.params["a[0,region[T.S]]"]))
    ('a[0,age]', 3)
    >>> result.predict({"age": [30.0], "region": ["S"]}).round().tolist()
    [23.0]
    """
    for name in ("sample_weight", "n_features", "gate_inputs", "expert_inputs"):
        if name in options:
            raise ValueError(f"{name} is for moestat.fit; a formula says it by columns' names")
    check_options(options, fit_formula, fit)
    if not isinstance(family, (str, Mapping)):
        raise ValueError(
            'family must be the name of a likelihood such as "gaussian", got'
            f" {family!r}; sizes are those of the formula"
        )
    written, groups = _group_part(formula, groups)
    response, parts = parsed(written)
    if offset is not None:
        parts = [*parts, _offset_part(offset)]
    inputs = FormulaInputs.of(written, parts, data)
    if groups is not None:
        options["groups"] = read_columns(data, [groups])[groups]
    designs, X = inputs.designs(data), inputs.union(data)
    weight = None
    if weights is not None:
        if not isinstance(weights, str):
            raise ValueError(f"weights must be the name of a column, got {weights!r}")
        weight = np.asarray(read_columns(data, [weights])[weights])
    used = as_weights(weight, len(X)) > 0
    for design, whose in zip(designs, ("experts", "gate"), strict=False):
        _check_rank(design.columns, np.asarray(design, dtype=np.float64)[used], whose)
    columns = X.columns.tolist()
    if offset is not None:
        name = str(offset).replace(" ", "")
        made = [str(column) for column in designs[2].columns]
        if len(made) != 1 or made[0].replace(" ", "") != name:
            raise ValueError(
                f"offset must be one column of numbers, got {offset!r}, which makes the columns"
                f" {', '.join(made)}"
            )
        (name,) = made
        if any(name in design.columns for design in designs[:2]):
            raise ValueError(f"offset: {name!r} is a term of the formula, too")
        options["offset"] = columns.index(name)
    result = fit(
        family,
        X,
        _response(response, data),
        n_experts=n_experts,
        sample_weight=weight,
        expert_inputs=[columns.index(name) for name in designs[0].columns],
        gate_inputs=[columns.index(name) for name in designs[1].columns],
        **options,
    )
    assert result.data is not None
    return replace(result, data=replace(result.data, formula=inputs))


def _group_part(formula: Any, groups: Any) -> tuple[Any, str | None]:
    """A formula without its third part, and the column of labels of groups."""
    parts = formula.split("|") if isinstance(formula, str) else []
    if len(parts) == 3:
        if groups is not None:
            raise ValueError(f"groups: {groups!r} is given, and {formula!r} has a third part, too")
        formula, groups = "|".join(parts[:2]).strip(), parts[2].strip().strip("`")
    if groups is not None and not isinstance(groups, str):
        raise ValueError(f"groups must be the name of a column, got {groups!r}")
    return formula, groups


def _offset_part(offset: Any) -> Any:
    """An offset as a formula with one numeric column."""
    from formulaic import Formula
    from formulaic.errors import FormulaicError

    try:
        read: Any = Formula.from_spec(offset if isinstance(offset, str) else "")
        terms = [term for term in read if str(term) != "1"]
    except (FormulaicError, SyntaxError, ValueError):
        terms = []
    if len(terms) != 1:
        raise ValueError(
            f'offset must be one column or function of columns, such as "log(t)", got {offset!r}'
        )
    return read


def _response(name: str, data: Any) -> Any:
    """The response: a column as it is, or a function of columns."""
    import pandas as pd
    from formulaic import Formula

    if name in (data.columns if hasattr(data, "columns") else data):
        return read_columns(data, [name])[name]
    formula: Any = Formula.from_spec(f"{name} - 1")
    frame = pd.DataFrame(read_columns(data, variables([formula])))
    matrix = evaluated(name, formula, frame)
    if matrix.shape[1] != 1:
        raise ValueError(f"formula: the response {name!r} must be one column of numbers")
    values = np.asarray(matrix, dtype=np.float64)[:, 0]
    if not np.isfinite(values).all():
        raise ValueError(f"formula: the response {name!r} is infinite or undefined in some rows")
    return pd.Series(values, name=name)


def _check_rank(names: Any, design: FloatArray, whose: str) -> None:
    """Raise if the columns of one part, and 1, are linearly dependent."""
    if not np.isfinite(design).all():
        at = int(np.flatnonzero(~np.isfinite(design).all(axis=0))[0])
        raise ValueError(
            f"formula: {names[at]!r} of the {whose} is infinite or undefined in some rows"
        )
    j = first_dependent(design)
    if j is not None:
        others = ", ".join(["1", *names[:j]][:8])
        raise ValueError(
            f"formula: in the part of the {whose} the column {names[j]!r} is a linear combination"
            f" of the columns before it ({others}{', ...' if j > 7 else ''}); leave it out"
        )
