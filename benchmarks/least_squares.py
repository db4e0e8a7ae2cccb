"""One Levenberg-Marquardt pass at d = 8, N = 9 against BLAS dsyrk on matrices of the same size.

OPENBLAS_NUM_THREADS=1 python benchmarks/least_squares.py [n]
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np
from scipy.linalg.blas import dsyrk

import moestat
from moestat.solvers._driver import Problem, Request, Sample
from moestat.solvers._squares import CHUNK
from moestat.solvers.levenberg_marquardt import _damped_step

RELU = {"name": "activation", "activation": "relu", "weighted": False}
REPEATS = 3


def best(work) -> float:
    """Least processor time of a few runs, in seconds: other work on the machine hardly counts."""
    times = []
    for _ in range(REPEATS):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return min(times)


def peak() -> float:
    """Largest resident memory of the process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Print times, their ratio and the memory that a pass adds."""
    n = int(float(sys.argv[1])) if len(sys.argv) > 1 else 100_000
    print(f"memory of the interpreter with its imports {peak():.0f} MB")
    for gate in ("sigmoid-quadratic", "softmax-quadratic"):
        family = moestat.family("least-squares", gate=gate, expert=RELU, n_experts=9, n_features=8)
        rng = np.random.default_rng(0)
        theta = family.pin(0.3 * rng.normal(size=family.n_params))
        X = np.ascontiguousarray(rng.uniform(-1, 1, size=(8, n)))
        problem = Problem(family, Sample(X, rng.normal(size=n), np.ones(n)))
        warm = Problem(family, Sample(X[:, :600].copy(), np.zeros(600), np.ones(600)))
        warm.evaluate(Request("squares", theta))
        before = peak()
        evaluate = best(lambda p=problem, t=theta: p.evaluate(Request("squares", t)))
        added = peak() - before
        value = best(lambda p=problem, t=theta: p.evaluate(Request("residuals", t)))
        here = problem.evaluate(Request("squares", theta))
        lower, upper = family.box_at(theta)
        algebra = best(lambda t=theta, h=here, a=lower, b=upper: _damped_step(t, h, 1e-3, a, b))
        slopes = best(lambda p=problem, t=theta: p.evaluate(Request("slopes", t)))
        curvature = best(lambda p=problem, t=theta: p.evaluate(Request("curvature", t)))
        rows = int(np.sum(family.jacobian_rows >= 0))
        chunk = rng.normal(size=(rows, CHUNK))

        def syrk(chunk=chunk, rows=rows) -> None:
            gram = np.zeros((rows, rows), order="F")
            for _ in range(0, n, CHUNK):
                gram = dsyrk(1.0, chunk.T, beta=1.0, c=gram, trans=1, overwrite_c=1)

        alone = best(syrk)
        step = evaluate + value + algebra
        print(
            f"{gate}: {rows} parameters, n = {n}: step {step:.3f} s (squares {evaluate:.3f}, "
            f"value {value:.4f}, algebra {algebra:.4f}), dsyrk {alone:.3f} s, ratio "
            f"{step / alone:.2f}; gradient alone {slopes:.4f} s, exact Hessian {curvature:.3f} s; "
            f"memory of a pass {added:.1f} MB, of the process {peak():.0f} MB"
        )


if __name__ == "__main__":
    main()
