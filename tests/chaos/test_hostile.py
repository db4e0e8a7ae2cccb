"""Hostile calls of the quick functions; the long run is `python -m tests.chaos.hostile`."""

import pytest

from tests.chaos.hostile import FATES, Generator
from tests.chaos.trials import run_trials

QUICK = ["designs", "local_slopes", "rates.plots", "losses", "dispatch", "smoe.compete", "noise"]


@pytest.mark.parametrize(
    ("modules", "number"), [(QUICK, 200), pytest.param(None, 2000, marks=pytest.mark.slow)]
)
def test_a_hostile_call_is_refused_in_one_line_or_means_what_it_says(modules, number):
    generator = Generator(7, modules)
    found = run_trials(
        lambda at: generator.hostile(at).fate(), lambda at: str(generator.hostile(at)), number
    )
    assert set(found) <= set(FATES), found
