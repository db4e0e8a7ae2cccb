"""The two ways in which kernels are compiled give the same fits."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from moestat.compiler.jit import LOWERING, _choose_lowering

PROGRAM = """
import json
import moestat
F = moestat.family("gaussian", gate="softmax", n_experts=2)
X, y = moestat.sample(F, [0.5, 0.0, 2.0, 0.0, 1.0, -1.0, 2.0, 0.5, -1.0, -0.5], n=400, rng=0)
fitted = moestat.fit(F, X, y, rng=0)
print(json.dumps([fitted.log_likelihood, fitted.certificate.passes, *fitted.solution.theta]))
"""


def fitted(lowering):
    environment = {**os.environ, "MOESTAT_LOWERING": lowering}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.slow  # both paths are compiled anew
@pytest.mark.skipif(LOWERING != "lean", reason="numba's version has one path only")
def test_fits_agree_on_both_paths():
    lean, standard = fitted("lean"), fitted("standard")
    assert lean[1] == standard[1]
    assert np.allclose(lean, standard, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("version", "chosen", "lowering"),
    [
        ("0.68.1", None, "lean"),
        ("0.68.0", "standard", "standard"),
        ("0.67.0", None, "standard"),
        ("0.69.0rc1", None, "standard"),
        ("1.0.0", "standard", "standard"),
    ],
)
def test_the_lean_path_is_taken_where_it_knows_numba(version, chosen, lowering):
    assert _choose_lowering(version, chosen) == lowering


@pytest.mark.parametrize(("version", "chosen"), [("0.67.0", "lean"), ("0.68.1", "quick")])
def test_a_path_that_cannot_be_taken_is_refused(version, chosen):
    with pytest.raises(ValueError, match="MOESTAT_LOWERING"):
        _choose_lowering(version, chosen)
