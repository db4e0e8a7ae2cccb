"""Laws of certificates: a fit is certified, or says why it is not; a user's bound is a bound."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import moestat
from tests.laws.cases import Case
from tests.laws.entries import ENTRIES
from tests.laws.laws import FAILS, HOLDS, REFUSED, Cell, asked, compared, law

WHY = {"BoundWarning", "InterruptedWarning", "SeparationWarning", "UncertifiedWarning"}
"""Kinds of warning that say why a fit is no local maximum, and what to do."""


def told(question: str, result: Any) -> Cell:
    """Whether a fit is certified, or has a note that says why it is not."""
    good = result.certificate.certified or WHY & {*result.kinds}
    return Cell(question, HOLDS if good else FAILS, f"warned of {result.kinds}")


@law
def certified_or_warned(case: Case) -> Iterator[Cell]:
    """No fit is uncertified without a warning that says why."""
    yield told("fit", case.result)
    for question, call in ENTRIES.items():
        if question == "lasso_path":
            continue  # a path has no certificate of the likelihood
        found, refusal, foreign = asked(lambda call=call: call(case, dict(case.arguments)))
        if refusal or foreign:
            yield Cell(question, FAILS if foreign else REFUSED, str(foreign or refusal))
        else:
            yield told(question, found)


def _in_memory(case: Case, bounds: Any) -> Any:
    return case.fit(bounds=bounds)


def _parquet(case: Case, bounds: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        case.frame.to_parquet(path)
        return case.fit(str(path), bounds=bounds)


def _select(case: Case, bounds: Any) -> Any:
    given = {**case.arguments, "bounds": bounds}
    family, _ = given.pop("family"), given.pop("n_experts")
    more = {"n_starts": 2, "risk": 1.0, "rng": 0, "threads": 1}
    found = moestat.select(family, case.formula, k=[2], data=case.frame, **given, **more)
    return found.best


DOORS: dict[str, Callable[[Case, Any], Any]] = {
    "fit": _in_memory,
    "Parquet": _parquet,
    "select": _select,
}


@law
def a_bound_of_the_user_is_a_bound(case: Case) -> Iterator[Cell]:
    """A maximum with a scale on a bound that was given is certified, and that of a known scale."""
    family = case.result.family
    if case.option not in ("plain", "weights", "groups", "offset"):
        return
    for block in family.likelihood.scales:
        values = np.asarray(case.result.blocks[block], dtype=np.float64)
        free = np.isfinite(values) & (values > 0.0)
        if not free.any():
            continue
        low = 1.5 * float(values[free].max())
        bounds = {block: (low, 100.0 * low)}
        for question, call in DOORS.items():
            found, refusal, foreign = asked(lambda call=call, b=bounds: call(case, b))
            name = f"{question}, {block}"
            if refusal or foreign:
                yield Cell(name, FAILS if foreign else REFUSED, str(foreign or refusal))
                continue
            yield told(name, found)
            on = np.asarray(found.blocks[block])[free] <= low * (1.0 + 1e-9)
            if not on.all():
                continue
            sound = not found.certificate.collapsed
            yield Cell(f"{name}, collapsed", HOLDS if sound else FAILS, "on a bound that was given")
            if question == "fit" and found.certificate.certified:
                known = {block: {int(i) + 1: low for i in np.flatnonzero(free)}}
                again, refusal, foreign = asked(
                    lambda known=known, found=found: case.fit(fixed=known, starts=found.theta)
                )
                if refusal or foreign:
                    yield Cell(f"{name}, known", FAILS, str(foreign or refusal))
                else:
                    yield compared(f"{name}, known", again.llf, found.llf, rtol=0.0, atol=1e-3)
