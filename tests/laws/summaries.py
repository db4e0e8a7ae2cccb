"""Laws of what is read from a result: a summary, an interval or a test makes no fit."""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import patch

from moestat.solvers import driver
from tests.laws.cases import Case
from tests.laws.laws import FAILS, HOLDS, Cell, asked, law
from tests.laws.questions import OTHERS

READ = ("summary", "tidy", "conf_int", "cov_params", "pvalues", "wald", "t_test", "explain")
"""Questions whose answers follow from a fit."""


@law
def reading_makes_no_fit(case: Case) -> Iterator[Cell]:
    """No solver takes a step while a result is read."""
    begun = driver.attempt
    for question in READ:
        steps: list[int] = []

        def counted(*given, steps=steps, **more):
            steps.append(1)
            return begun(*given, **more)

        places = ("solvers.driver", "estimation.inference.simpler")
        first, second = (patch(f"moestat.{place}.attempt", counted) for place in places)
        with first, second:
            _, _, foreign = asked(lambda q=question: OTHERS[q](case, case.result))
        verdict = FAILS if steps or foreign else HOLDS
        yield Cell(question, verdict, foreign or f"{len(steps)} batches of fits")
