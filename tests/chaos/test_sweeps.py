"""A short chaos in CI; the long one is `python -m tests.chaos --minutes 30`."""

from pathlib import Path

import pytest

from tests.chaos.__main__ import run

pytestmark = pytest.mark.skipif(not Path("/proc").is_dir(), reason="reads /proc")


def test_a_disturbed_sweep_ends_like_an_undisturbed_one():
    done, compared, failures = run(0.2, "process", seed=3, replicates=40, kind="fit")
    assert failures == []
    # One sweep of 160 cells, or more where the machine ends one before the time is over.
    assert compared >= 160
    assert compared % 160 == 0
    assert sum(done.values()) > 0
