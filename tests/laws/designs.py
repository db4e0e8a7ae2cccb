"""Laws of samples with a design: clusters outside of the part that is studied stay in it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.laws.cases import GROUPS, Case
from tests.laws.laws import FAILS, REFUSED, Cell, asked, compared, law


@law
def clusters_of_weight_0_are_in_the_design(case: Case) -> Iterator[Cell]:
    """A sum of 0 adds nothing to the squares of one stratum, and 1 to the number of clusters.

    Rows that are left out because of a missing value are rows of weight 0.
    """
    if case.option not in ("weights", "weights, groups") or case.result.family.has_jumps:
        return
    codes = case.frame["id"].str[1:].astype(int)
    outside = codes % 3 == 0
    frame = case.frame.assign(w=np.where(outside, 0, case.frame["w"] + 1))
    inside = frame[~outside]
    part, refusal, foreign = asked(lambda: case.fit(inside))
    if refusal or foreign:
        yield Cell("fit", FAILS if foreign else REFUSED, str(foreign or refusal))
        return
    whole, refusal, foreign = asked(lambda: case.fit(frame, starts=part.theta))
    again, *_ = asked(lambda: case.fit(inside, starts=part.theta))
    gaps = frame.assign(x=frame["x"].where(~outside))
    dropped, *lost = asked(lambda: case.fit(gaps, starts=part.theta, missing="drop"))
    if refusal or foreign or any(lost):
        yield Cell("fit", FAILS, str([refusal, foreign, *lost]))
        return
    if not (whole.certificate.certified and again.certificate.certified):
        return
    if not whole.certificate.condition < 1e6 or whole.certificate.collapsed:
        return
    answers = []
    for result, rows in ((whole, frame), (again, inside), (dropped, gaps)):
        found, refusal, foreign = asked(
            lambda result=result, rows=rows: result.get_robustcov_results("survey", rows["id"])
        )
        if refusal or foreign:
            yield Cell("survey", FAILS if foreign else REFUSED, str(foreign or refusal))
            return
        answers.append(np.nan_to_num(found.theta_bse) ** 2)
    few = int(np.unique(codes[~outside]).size)
    factor = (GROUPS / (GROUPS - 1)) / (few / (few - 1))
    yield compared("survey", answers[0], answers[1] * factor, rtol=1e-4, atol=1e-9)
    yield compared("survey, rows with gaps", answers[2], answers[0], rtol=1e-4, atol=1e-9)
