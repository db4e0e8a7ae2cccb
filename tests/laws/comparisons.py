"""Laws of comparisons: fits that are compared are fits to the same rows."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import moestat
from tests.laws.cases import Case
from tests.laws.laws import FAILS, HOLDS, REFUSED, Cell, asked, compared, law
from tests.laws.questions import response_of

_OPTIONS = ("plain", "weights", "groups", "offset")


def _select(case: Case, data: Any, formulas: list[str]) -> Any:
    given = _given(case)
    family, _ = given.pop("family"), given.pop("n_experts")
    return moestat.select(family, formulas, data=data, k=[2], **given)


def _cross_validated(case: Case, data: Any, formulas: list[str]) -> Any:
    given = _given(case)
    family, _ = given.pop("family"), given.pop("n_experts")
    return moestat.select(family, formulas, data=data, k=[2], criterion="cv", folds=2, **given)


def _parquet(case: Case, data: Any, formulas: list[str]) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        data.to_parquet(path)
        return _select(case, str(path), formulas)


def _stepwise(case: Case, data: Any, formulas: list[str]) -> Any:
    return moestat.stepwise(case.formula, data, start=formulas[0], **_given(case))


def _given(case: Case) -> dict[str, Any]:
    more = {"missing": "drop", "n_starts": 1, "risk": 1.0, "rng": 0, "threads": 1}
    return {**case.arguments, **more}


COMPARISONS: dict[str, Callable[[Case, Any, list[str]], Any]] = {
    "select": _select,
    "select by folds": _cross_validated,
    "select, Parquet": _parquet,
    "stepwise": _stepwise,
}
"""What compares fits of several formulas to one table."""


@law
def fits_compared_have_the_same_rows(case: Case) -> Iterator[Cell]:
    """Rows with a gap for one of the formulas are left out of the fits of all, and said once."""
    if case.option not in _OPTIONS or case.member.expert != "linear":
        return
    frame = case.frame.copy()
    frame.loc[frame.index[3::7], "x"] = np.nan
    frame.loc[frame.index[5::9], "z"] = np.nan
    complete = frame.dropna(subset=["x", "z"])
    formulas = [f"{case.response} ~ {term} | 1" for term in ("x", "z")]
    if "| " not in case.formula and case.member.gate != "softmax":
        formulas = [text.removesuffix(" | 1") for text in formulas]
    for question, call in COMPARISONS.items():
        found, refusal, foreign = asked(lambda call=call: call(case, frame, formulas))
        if refusal or foreign:
            yield Cell(question, FAILS if foreign else REFUSED, str(foreign or refusal))
            continue
        for key, result in found.results.items():
            yield from _on(case, f"{question}, {key}", result, complete)


def _on(case: Case, question: str, result: Any, complete: pd.DataFrame) -> Iterator[Cell]:
    """Whether a fit is to these rows."""
    weight = complete["w"] if "weights" in case.options else np.ones(len(complete))
    yield compared(f"{question}, nobs", result.nobs, float(np.sum(weight)))
    if result.has_rows:
        same = list(result.data.index) == list(complete.index)
        yield Cell(f"{question}, rows", HOLDS if same else FAILS)
    height, refusal, foreign = asked(
        lambda: result.log_likelihood(complete, response_of(case, complete))
    )
    if foreign or refusal:
        yield Cell(question, FAILS, str(foreign or refusal))
    else:
        yield compared(f"{question}, height", height, result.llf)
