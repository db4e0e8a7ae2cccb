"""Loops that separate processes put into one cache directory run side by side in a third."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import sys
import moestat
for activation in sys.argv[1:]:
    expert = {"name": "activation", "activation": activation}
    F = moestat.family("gaussian", gate="softmax", expert=expert, n_experts=1)
    print(*F.log_density([0.0, 0.0, 0.3, 1.0, 1.0, 0.0], [0.5], [0.0]))
"""


@pytest.mark.slow
def test_closures_of_one_line_keep_apart(tmp_path):
    # One order of hashes makes the processes give functions the same numbers and options.
    environment = {**os.environ, "MOESTAT_CACHE_DIR": str(tmp_path), "PYTHONHASHSEED": "0"}

    def run(*activations):
        command = [sys.executable, "-c", PROGRAM, *activations]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.split()

    alone = run("tanh") + run("softplus")
    assert alone[0] != alone[1]
    assert run("tanh", "softplus") == alone
    assert run("softplus", "tanh") == alone[::-1]
