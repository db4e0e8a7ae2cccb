"""Laws of the checks of the data: they are made for every shape of response."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from tests.laws.cases import Case
from tests.laws.laws import FAILS, HOLDS, REFUSED, Cell, asked, law


@law
def copied_rows_are_said(case: Case) -> Iterator[Cell]:
    """Rows that are there three times are copies, whatever the response."""
    if case.option not in ("plain", "offset") or case.result.family.likelihood.support is not None:
        return
    frame = pd.concat([case.frame] * 3, ignore_index=True)
    found, refusal, foreign = asked(lambda: case.fit(frame, starts=case.result.theta))
    if refusal or foreign:
        yield Cell("fit", FAILS if foreign else REFUSED, str(foreign or refusal))
        return
    told = "DependentRowsWarning" in found.kinds
    yield Cell("copies", HOLDS if told else FAILS, f"{found.kinds}")


@law
def responses_far_away_are_said(case: Case) -> Iterator[Cell]:
    """Two real responses that lie far from all others are named, bounds or not, of any response."""
    columns = [n for n in ("y", "low", "y1", "y2") if n in case.frame]
    family = case.result.family
    laws = {one.name: one.likelihood for one in family.likelihood.parts} or {
        "y": family.likelihood,
        "low": family.likelihood,
    }
    normal = [n for n in columns if n in laws and laws[n].name == "gaussian"]
    if case.option not in ("plain", "weights") or not normal or case.member.expert != "linear":
        return
    # One expert cannot be made of the outliers themselves.
    frame, more = case.frame.copy(), {"n_experts": 1, "gate": "softmax"}
    at = np.flatnonzero(frame["w"] == 1)[:2]
    move = 40.0 * float(frame[normal[0]].std())
    for name in [normal[0], *(["high"] if normal[0] == "low" else [])]:
        frame[name] = frame[name] + np.where(np.isin(np.arange(len(frame)), at), move, 0.0)
    found, refusal, foreign = asked(lambda: case.fit(frame, **more))
    if refusal or foreign:
        yield Cell("fit", FAILS if foreign else REFUSED, str(foreign or refusal))
        return
    words = [n for k, n in zip(found.kinds, found.notes, strict=True) if k == "MisfitWarning"]
    name = "y" if normal[0] == "low" else normal[0]
    named = any(text.startswith(f"{name} has outliers") for text in words)
    yield Cell("outliers", HOLDS if named else FAILS, f"{words}")
