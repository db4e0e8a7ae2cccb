"""Wald tests of all coefficients of a term, one test for each term of experts and gate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from moestat.base.types import FloatArray
from moestat.estimation.inference.hypotheses import chi_square
from moestat.estimation.results.summary import estimates

if TYPE_CHECKING:
    import pandas as pd

    from moestat.estimation.results.criteria import Criteria

__all__ = ["estimated_terms", "wald_test_terms"]

_UNDETERMINED = ("on a bound", "not identified", "no finite value")
"""Statuses of coefficients without a standard error that have no known value either."""


def wald_test_terms(result: Criteria) -> pd.DataFrame:
    """One row per term of the gate and of the experts, see `MoEResults.wald_test_terms`."""
    import pandas as pd

    from moestat.estimation.columns import EstimateTable

    positions, unknown = _positions_by_term(result)
    rows = [_test(result, positions[key], key in unknown) for key in positions]
    index = pd.MultiIndex.from_tuples([*positions], names=["part", "term"])
    return EstimateTable(rows, index=index, columns=["statistic", "df", "p_value"]).astype(
        {"df": int}
    )


def estimated_terms(result: Criteria) -> dict[str, list[str]]:
    """Names of the estimated coefficients of each term, in the gate and in the experts."""
    formula = None if result.data is None else result.data.formula
    terms_of = {} if formula is None else formula.terms_by_column()
    names: dict[str, list[str]] = {}
    for each in estimates(result):
        if each.status == "estimated":
            term = each.term
            own = {term.label, terms_of.get((term.part, term.label), term.label)}
            for label in own:
                names.setdefault(label, []).append(term.name)
    return names


Key = tuple[str, str]
"""Part of the model, "gate" or "expert", and term."""


def _positions_by_term(result: Criteria) -> tuple[dict[Key, list[int]], set[Key]]:
    """Positions of the estimated coefficients of each term, and terms with one without an error."""
    family, data = result.family, result.data
    if family.expert.block is not None:
        raise ValueError(
            "wald_test_terms: available for experts that are linear in their coefficients, got"
            f" expert {family.expert.name!r}"
        )
    coefficients = {
        symbol
        for c in family.channels
        if c.slope is not None or c.products is not None
        for symbol in (c.intercept, c.slope, c.products)
    }
    formula = None if data is None else data.formula
    terms_of = {} if formula is None else formula.terms_by_column()
    place = {name: j for j, name in enumerate(result.param_names)}
    positions: dict[Key, list[int]] = {}
    unknown: set[Key] = set()
    for each in estimates(result):
        term = each.term
        if term.symbol not in coefficients:
            continue
        key = term.part, terms_of.get((term.part, term.label), term.label)
        if each.status in _UNDETERMINED:
            unknown.add(key)
        if each.status == "estimated" or each.status in _UNDETERMINED:
            positions.setdefault(key, []).append(place[term.name])
    return positions, unknown


def _test(result: Criteria, positions: list[int], unknown: bool) -> tuple[float, int, float]:
    """Statistic, degrees of freedom and p-value; NaN where the statistic does not exist."""
    rows = np.zeros((len(positions), result.family.n_params))
    rows[np.arange(len(positions)), positions] = 1.0
    covariance = result._spread(rows)
    error = np.sqrt(np.diag(covariance))
    if unknown or not np.all(error > 0.0):
        return np.nan, len(positions), np.nan
    return _quadratic(result.theta[positions] / error, covariance / np.outer(error, error))


def _quadratic(z: FloatArray, correlation: FloatArray) -> tuple[float, int, float]:
    """``z' R^- z`` where coefficients may be equal by equal=, so that R is singular."""
    values, vectors = np.linalg.eigh(correlation)
    kept = values > len(values) * np.finfo(float).eps * values[-1]
    along = vectors.T @ z
    # Coefficients that are equal differ by nothing; with too few groups they would.
    if not np.allclose(along[~kept], 0.0, atol=np.sqrt(np.finfo(float).eps) * np.abs(z).max()):
        return np.nan, len(z), np.nan
    test = chi_square("Wald", float(np.sum(along[kept] ** 2 / values[kept])), int(kept.sum()))
    return test.statistic, test.df, test.pvalue
