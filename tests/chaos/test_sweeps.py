"""Disturbed sweeps; single disturbances are in each run, by test_interruptions and test_damage.

The long one is `python -m tests.chaos --minutes 30`.
"""

from pathlib import Path

import pytest

from tests.chaos.__main__ import run

pytestmark = pytest.mark.skipif(not Path("/proc").is_dir(), reason="reads /proc")


@pytest.mark.slow
def test_a_disturbed_sweep_ends_like_an_undisturbed_one():
    done, compared, failures = run(5, "process", seed=3, kills=2, replicates=40, kind="fit")
    assert failures == []
    # One sweep of 160 cells, or more where one ends before its two kills.
    assert compared >= 160
    assert compared % 160 == 0
    assert sum(done.values()) > 0


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["process", "dask"])
def test_twenty_kills_change_nothing(executor):
    if executor == "dask":
        pytest.importorskip("distributed")
    kills = ("coordinator", "worker")
    done, compared, failures = run(
        60, executor, seed=1, kills=20, replicates=100, kind="fit", actions=kills
    )
    assert failures == []
    assert compared >= 400
    assert sum(done[each] for each in kills) >= 20
