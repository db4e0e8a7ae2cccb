"""How long a user waits: import, the first fit of a family, and the first in a later process.

    python benchmarks/cold_start.py

Each number is seconds of processor time in a fresh process, less those of starting Python:
`import`, the first fit with an empty cache of compiled code, and the same with a full one.  On a
machine that does nothing else the clock shows the same, because compiling takes one core.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

from results import save

_FIT = """
import time
began = time.process_time()
import moestat
moestat.family, moestat.fit
imported = time.process_time()
import numpy as np
rng = np.random.default_rng(0)
x = rng.random(500)
F = moestat.family({kind})
y = {response}
ready = time.process_time()
moestat.fit(F, x, y, rng=0)
end = time.process_time()
print(imported - began, end - ready)
"""
_KINDS = {
    "gaussian softmax": (
        "'gaussian', gate='softmax', n_experts=2",
        "np.where(rng.random(500) < x, 2 * x, -x) + 0.1 * rng.standard_normal(500)",
    ),
    "multinomial sigmoid": ("'multinomial', gate='sigmoid'", "rng.integers(1, 3, 500)"),
    "least squares, quadratic": (
        "'least-squares', gate='sigmoid-quadratic', n_experts=2, "
        "expert={'name': 'activation', 'activation': 'relu', 'weighted': False}",
        "np.maximum(2 * x - 1, 0) + 0.1 * rng.standard_normal(500)",
    ),
}


def run(kind: str, cache: str) -> list[float]:
    """Seconds of the import and of the fit."""
    family, response = _KINDS[kind]
    code = _FIT.format(kind=family, response=response)
    # Byte code of Python is kept, as it is for users, though a machine may be set not to.
    environment = os.environ | {"MOESTAT_CACHE_DIR": cache, "PYTHONPYCACHEPREFIX": cache}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return [float(word) for word in done.stdout.split()]


def measure() -> list[dict]:
    """One row per kind of family."""
    rows = []
    for kind in _KINDS:
        with tempfile.TemporaryDirectory() as cache:
            _, cold = run(kind, cache)
            warm = [run(kind, cache) for _ in range(5)]
        rows.append(
            {
                "family": kind,
                "import": min(one[0] for one in warm),
                "first fit, empty cache": cold,
                "first fit, full cache": min(one[1] for one in warm),
            }
        )
        print(rows[-1], flush=True)
    return rows


if __name__ == "__main__":
    save("cold start", measure())
