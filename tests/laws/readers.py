"""Laws of what is asked with further columns of the rows: these are read by their labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from tests.laws.cases import Case
from tests.laws.laws import FAILS, HOLDS, REFUSED, Cell, asked, compared, law


def _errors(result: Any) -> np.ndarray:
    return np.nan_to_num(np.asarray(result.theta_bse))


READERS: dict[str, Callable[[Any, Any], Any]] = {
    "distal": lambda result, each: result.distal(each % 7).params,
    "covariates": lambda result, each: result.covariates(each).params,
    "covariates by frame": lambda result, each: result.covariates(each.to_frame("new")).params,
    "clusters": lambda result, each: _errors(result.get_robustcov_results("cluster", each % 11)),
    "clusters of a survey": lambda result, each: _errors(
        result.get_robustcov_results("survey", each % 11)
    ),
    "strata": lambda result, each: _errors(result.get_robustcov_results("survey", strata=each % 3)),
    "bootstrap": lambda result, each: (
        result.bootstrap(2, "cluster", groups=each % 11, rng=0).replicates
    ),
    "classification table": lambda result, each: result.classification_table(each % 3).to_numpy(),
}
"""What takes a column of the rows of a fit: rows have labels, and may be those left out, too."""

SURVEYS = ("clusters of a survey", "strata")


@law
def columns_of_rows_are_read_by_labels(case: Case) -> Iterator[Cell]:
    """A column of all rows passed says what one of the rows used says; no order changes answers."""
    if case.option not in ("plain", "groups", "missing", "missing, groups"):
        return
    code = pd.Series(np.random.default_rng(0).integers(0, 77, len(case.frame)), case.frame.index)
    if "groups" in case.options:
        code = code.groupby(case.frame["id"]).transform("first")
    used = code.loc[case.rows.index]
    others = {
        "all rows": code,
        "all rows, shuffled": code.sample(frac=1.0, random_state=1),
        "rows used, shuffled": used.sample(frac=1.0, random_state=1),
    }
    for question, call in READERS.items():
        want, refusal, foreign = asked(lambda call=call: call(case.result, used))
        if refusal or foreign:
            yield Cell(question, FAILS if foreign else REFUSED, str(foreign or refusal))
            continue
        for how, given in others.items():
            if question in SURVEYS:
                # Rows that were left out are in the design, unless they have no label.
                given = given.where(given.index.isin(used.index))
            found, refusal, foreign = asked(lambda call=call, g=given: call(case.result, g))
            if refusal and how != "all rows":
                told = "index" in refusal
                yield Cell(f"{question}, {how}", HOLDS if told else FAILS, refusal)
            elif refusal or foreign:
                yield Cell(f"{question}, {how}", FAILS, str(foreign or refusal))
            else:
                yield compared(f"{question}, {how}", found, want)
