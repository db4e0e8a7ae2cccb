"""Laws of numbers of trials: answers about new rows are of the distribution at these numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from tests.laws.cases import Case
from tests.laws.laws import FAILS, HOLDS, Cell, asked, compared, law

DRAWS = 2000

ASKED: dict[str, Callable[..., Any]] = {
    "simulate": lambda result, table, **more: result.simulate(table, rng=0, **more),
    "variance": lambda result, table, **more: result.predict(table, "variance", **more),
    "quantile": lambda result, table, **more: result.predict(table, "quantile", **more),
    "get_prediction": lambda result, table, **more: result.get_prediction(
        table, **more
    ).summary_frame(),
}
"""Answers that depend on numbers of trials."""


@law
def numbers_of_trials(case: Case) -> Iterator[Cell]:
    """A number of trials by argument is one in the table, and all answers are of its masses."""
    if case.member.kind != "trials":
        return
    result, rows = case.result, case.rows
    without = rows.drop(columns=["s", "t"])
    for question, call in ASKED.items():
        want, *lost = asked(lambda call=call: call(result, rows))
        other, *gone = asked(lambda call=call: call(result, without, trials=rows["t"]))
        if any([*lost, *gone]):
            yield Cell(question, FAILS, str([*lost, *gone]))
        else:
            yield compared(f"{question}, by argument", other, want)
    if {"random", "slopes", "nested"} & {*case.options}:
        return  # a row of any group: the masses of several rows are not products
    for at, trials in ((0, 3), (1, 11)):
        yield from _one_number(case, rows.iloc[[at]], trials)


def _one_number(case: Case, row: pd.DataFrame, trials: int) -> Iterator[Cell]:
    """Whether all answers about a row with a number of trials belong to its masses."""
    result, grid = case.result, np.arange(trials + 1)
    many = pd.concat([row] * (trials + 1), ignore_index=True).assign(s=grid, t=trials)
    many["id"] = [f"new {i}" for i in range(len(many))]
    mass = np.asarray(result.predict(many, "density"))
    yield compared("density", mass.sum(), 1.0)
    share, plain = grid / trials, row.drop(columns=["s", "t"])
    mean = float(mass @ share)
    yield compared("mean", np.ravel(result.predict(plain, "mean")), [mean])
    variance = result.predict(plain, "variance", trials=trials)
    yield compared("variance", np.ravel(variance), [float(mass @ (share - mean) ** 2)])
    yield compared("cdf", result.predict(many, "cdf"), np.cumsum(mass))
    levels = [0.0, 0.02, 0.4, 0.9, 1.0]
    ends = np.searchsorted(np.cumsum(mass) + 1e-12, levels[:-1], side="left")
    quantiles = np.ravel(result.predict(plain, "quantile", q=levels, trials=trials))
    yield compared("quantile", quantiles, [*ends, trials])
    interval = result.get_prediction(plain, trials=trials).prediction_interval(0.1)
    below = [np.searchsorted(np.cumsum(mass) + 1e-12, q) / trials for q in (0.05, 0.95)]
    yield compared("prediction_interval", np.ravel(interval), below)
    copies = pd.concat([plain] * DRAWS, ignore_index=True)
    copies["id"] = [f"new {i}" for i in range(DRAWS)]
    drawn = np.asarray(result.simulate(copies, rng=1, trials=trials))
    inside = bool(np.all(drawn >= 0) and np.all(drawn.sum(axis=1) == trials))
    yield Cell("simulate, range", HOLDS if inside else FAILS)
    counts = np.bincount(drawn[:, 0].astype(int), minlength=trials + 1)
    # Each share within five of its standard errors.
    error = np.sqrt(mass * (1.0 - mass) / DRAWS)
    room = 5.0 * error + 3.0 / DRAWS
    far = float(np.max(np.abs(counts / DRAWS - mass) - room))
    yield Cell("simulate", HOLDS if far <= 0.0 else FAILS, f"beyond by {far:.3g}")
