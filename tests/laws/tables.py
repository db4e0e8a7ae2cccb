"""Laws of tables: a fit is the same whichever library holds the columns, and in whichever type."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from tests.laws.cases import Case
from tests.laws.laws import FAILS, HOLDS, Cell, asked, compared, law
from tests.laws.questions import response_of


def _polars(frame: pd.DataFrame) -> Any:
    import polars

    plain = frame.assign(level=frame["level"].astype(str))
    made = polars.from_pandas(plain)
    if frame["level"].dtype != "category":
        return made
    levels = polars.Enum(frame["level"].cat.categories.tolist())
    return made.with_columns(polars.col("level").cast(levels))


def _arrow(frame: pd.DataFrame) -> Any:
    import pyarrow

    return pyarrow.Table.from_pandas(frame)


def _columns(frame: pd.DataFrame) -> dict[str, Any]:
    return {str(name): frame[name].array for name in frame.columns}


TABLES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "polars": _polars,
    "pyarrow": _arrow,
    "columns by name": _columns,
}
"""Libraries, each with the same rows."""


@law
def tables_are_alike(case: Case) -> Iterator[Cell]:
    """A table of another library has the same fit, names, reference levels and answers."""
    if case.option not in ("plain", "weights, groups", "missing", "factor, groups"):
        return
    frame = case.frame.assign(level=pd.Categorical(case.frame["level"], ["c", "a", "b"]))
    start = case.result.theta
    base, refusal, foreign = asked(lambda: case.fit(frame, starts=start))
    if refusal or foreign:
        yield Cell("fit", FAILS, str(foreign or refusal))
        return
    rows = frame.loc[case.rows.index]
    want, _, _ = asked(lambda: base.score_samples(rows, response_of(case, rows)))
    for question, make in TABLES.items():
        other, refusal, foreign = asked(lambda make=make: case.fit(make(frame), starts=start))
        if refusal or foreign:
            yield Cell(question, FAILS, str(foreign or refusal))
            continue
        same = list(other.param_names) == list(base.param_names)
        yield Cell(f"{question}, names", HOLDS if same else FAILS, f"{other.param_names}")
        yield compared(question, other.llf, base.llf)
        if want is None:
            continue
        scores, refusal, foreign = asked(
            lambda make=make, other=other: other.score_samples(
                make(rows), response_of(case, rows).reset_index(drop=True)
            )
        )
        if refusal or foreign:
            yield Cell(f"{question}, scores", FAILS, str(foreign or refusal))
        else:
            yield compared(f"{question}, scores", scores, want)


@law
def types_of_columns_do_not_matter(case: Case) -> Iterator[Cell]:
    """Whole numbers of few bits are computed with as numbers: none wraps around."""
    if case.option not in ("plain", "weights", "groups"):
        return
    rng = np.random.default_rng(0)
    codes = pd.Series(rng.integers(100, 250, len(case.frame)), case.frame.index)
    if "groups" in case.options:
        codes = codes.groupby(case.frame["id"]).transform("first")
    terms = "I(u ** 2 - 1e4) + I(-u) + x"
    formula = f"{case.response} ~ {terms}" + case.formula[len(case.formula.split(" | ")[0]) :]
    wide = case.frame.assign(u=codes.astype(np.float64))
    base, refusal, foreign = asked(lambda: case.fit(wide, formula=formula))
    if refusal or foreign:
        return  # said by other laws
    for kind in (np.uint8, np.int16, np.uint64):
        narrow = case.frame.assign(u=codes.astype(kind), w=case.frame["w"].astype(np.uint8))
        other, refusal, foreign = asked(
            lambda narrow=narrow: case.fit(narrow, starts=base.theta, formula=formula)
        )
        question = np.dtype(kind).name
        if refusal or foreign:
            yield Cell(question, FAILS, str(foreign or refusal))
            continue
        designs = [r.data.X for r in (base, other)]
        yield compared(f"{question}, inputs", *designs)
        yield compared(f"{question}, nobs", other.nobs, base.nobs)
