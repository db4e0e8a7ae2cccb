import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moestat.networks.smoe.schedule import CompetitionSchedule

CASES = {
    "n_layers": st.integers(1, 8),
    "n_steps": st.integers(1, 60),
    "rate": st.floats(0, 1),
    "limit": st.integers(1, 8),
    "warm_up": st.floats(0, 1),
    "rng": st.integers(0, 2**32),
}


@settings(deadline=None, max_examples=200)
@given(**CASES)
def test_limit_is_kept_and_counts_are_preserved_or_the_case_is_refused(**case):
    first = round(case["warm_up"] * case["n_steps"])
    free = CompetitionSchedule(**{**case, "limit": None}).drawn
    try:
        schedule = CompetitionSchedule(**case)
    except ValueError:
        # Refused only where a step would have been over the limit.
        assert free.sum(axis=0).max() > case["limit"]
        return
    np.testing.assert_array_equal(schedule.drawn, free)
    assert schedule.active.sum(axis=0).max(initial=0) <= case["limit"]
    np.testing.assert_array_equal(schedule.active.sum(axis=1), schedule.drawn.sum(axis=1))
    assert not schedule.active[:, :first].any()


def test_too_many_for_the_limit_is_refused():
    with pytest.raises(ValueError, match="no admissible step is left for layer 1"):
        CompetitionSchedule(2, 10, rate=1.0, limit=1, rng=0)


def test_steps_under_the_limit_stay():
    schedule = CompetitionSchedule(3, 1000, rate=0.1, limit=3, rng=1)
    np.testing.assert_array_equal(schedule.active, schedule.drawn)


def test_a_deferred_step_goes_to_the_next_admissible_one():
    schedule = CompetitionSchedule(2, 400, rate=0.2, limit=1, rng=3)
    below, row, drawn = schedule.active[0], schedule.active[1], schedule.drawn[1]
    for step in np.flatnonzero(drawn & below)[:1]:
        later = np.flatnonzero(~below & ~drawn)
        assert row[later[later > step][0]]
        assert not row[step]


def test_share_of_competing_steps_is_the_rate():
    active = CompetitionSchedule(5, 20000, rate=0.07, limit=2, rng=0).active
    assert active.mean() == pytest.approx(0.07, abs=4 * np.sqrt(0.07 * 0.93 / active.size))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"limit": 0}, "limit must be an integer >= 1"),
        ({"rate": -0.1}, "rate must be a number in"),
        ({"rate": 1.1}, "rate must be a number in"),
        ({"warm_up": -1}, "warm_up must be a number in"),
        ({"n_steps": 0}, "n_steps must be an integer >= 1"),
    ],
)
def test_bad_input_is_one_line(change, message):
    with pytest.raises(ValueError, match=message):
        CompetitionSchedule(**{"n_layers": 2, "n_steps": 5, "rate": 0.1, **change})
