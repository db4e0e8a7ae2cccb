"""Values that other threads' use of memory must not touch; the long run is `tests.chaos.memory`."""

import os
import subprocess
import sys

import pytest

from tests.chaos.memory import __name__ as memory


@pytest.mark.thorough
def test_losses_and_distances_are_the_same_on_poisoned_memory():
    environment = os.environ | {"MALLOC_ARENA_MAX": "1", "MALLOC_PERTURB_": "165"}
    done = subprocess.run(
        [sys.executable, "-m", memory, "--evaluations", "2000"],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 differ" in done.stdout
