"""One Levenberg-Marquardt step at d = 8, N = 9 against BLAS dsyrk on matrices of the same size.

    OPENBLAS_NUM_THREADS=1 python benchmarks/least_squares.py

A step is the sum of squares with its Gauss-Newton matrix, the damped step, and the sum of squares
at its end.  Peak memory is that of a fresh process, with Python, the imports and the data, that
takes one step: once when its loops are compiled first, and once when they lie in the cache.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np
from results import save
from scipy.linalg.blas import dsyrk

import moestat
from moestat.solvers.least_squares.levenberg_marquardt import _damped_step
from moestat.solvers.problem import Objective, Problem, Request, Rows
from moestat.solvers.squares import CHUNK

GATES = ("sigmoid-quadratic", "softmax-quadratic")
RELU = {"name": "activation", "activation": "relu", "weighted": False}
N_SAMPLES = 100_000
REPEATS = 3


class Step:
    """A data set, a point, and the parts of one step from it."""

    def __init__(self, gate: str) -> None:
        self.family = moestat.family(
            "least-squares", gate=gate, expert=RELU, n_experts=9, n_features=8
        )
        rng = np.random.default_rng(0)
        self.theta = self.family.pin(0.3 * rng.normal(size=self.family.n_params))
        X = rng.uniform(-1, 1, size=(8, N_SAMPLES))
        self.problem = Problem(self.family, Rows(X, rng.normal(size=N_SAMPLES), np.ones(N_SAMPLES)))
        self.rows = int(np.sum(self.family.jacobian_rows >= 0))

    def ask(self, what: str) -> tuple:
        """Answer of one pass over the data."""
        return self.problem.evaluate(Request(what, self.theta))

    def damped(self, here: tuple) -> None:
        """Solve for the step."""
        _damped_step(self.theta, here, 1e-3, *self.family.box_at(self.theta))

    def syrk(self) -> None:
        """Multiply matrices of the sizes of the Jacobian, and do nothing else."""
        chunk = np.random.default_rng(1).normal(size=(self.rows, CHUNK))
        gram = np.zeros((self.rows, self.rows), order="F")
        for _ in range(0, N_SAMPLES, CHUNK):
            gram = dsyrk(1.0, chunk.T, beta=1.0, c=gram, trans=1, overwrite_c=1)


def take(gate: str) -> None:
    """One step, and the largest resident memory of this process, in MB."""
    step = Step(gate)
    step.damped(step.ask(Objective.GAUSS_NEWTON))
    step.ask(Objective.RESIDUALS)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def peak(gate: str, cache: str) -> float:
    """Peak memory of a fresh process that takes one step, in MB."""
    done = subprocess.run(
        [sys.executable, __file__, gate],
        env=os.environ | {"MOESTAT_CACHE_DIR": cache},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)


def best(work) -> float:
    """Least processor time of a few runs, in seconds: other work on the machine hardly counts."""
    times = []
    for _ in range(REPEATS):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return min(times)


def measure() -> list[dict]:
    """One row per gate."""
    peaks, rows = {}, []
    # Before anything grows here: a child's peak begins with that of the process that forks it.
    for gate in GATES:
        with tempfile.TemporaryDirectory() as cache:
            peaks[gate] = peak(gate, cache), peak(gate, cache)
    for gate in GATES:
        step = Step(gate)
        here = step.ask(Objective.GAUSS_NEWTON)
        parts = [
            best(lambda s=step: s.ask(Objective.GAUSS_NEWTON)),
            best(lambda s=step: s.ask(Objective.RESIDUALS)),
            best(lambda s=step, h=here: s.damped(h)),
        ]
        alone = best(step.syrk)
        rows.append(
            {
                "gate": gate,
                "parameters": step.rows,
                "squares": parts[0],
                "value": parts[1],
                "algebra": parts[2],
                "step": sum(parts),
                "dsyrk": alone,
                "step / dsyrk": sum(parts) / alone,
                "gradient alone": best(lambda s=step: s.ask(Objective.GRADIENT)),
                "exact Hessian": best(lambda s=step: s.ask(Objective.NEWTON)),
                "peak MB, compiling": peaks[gate][0],
                "peak MB": peaks[gate][1],
            }
        )
        print(rows[-1], flush=True)
    return rows


if __name__ == "__main__":
    if len(sys.argv) > 1:
        take(sys.argv[1])
    else:
        save("least squares", measure())
