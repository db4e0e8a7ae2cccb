"""More inputs than rows: how often `moestat.lasso_path` finds the inputs of a mixture of lines.

100 rows, 200 normal inputs, two experts ``3 x1 + 3 x2`` and ``-1 - 2 x1 + 3 x3`` with deviation .5
and a gate with slope 3 in x6.  ``python benchmarks/lasso.py [SEEDS]`` prints one line per seed.
"""

import sys
import time

import numpy as np

import moestat

TRUE = {0, 1, 2, 5}


def data(seed, n=100, d=200):
    """Inputs and responses."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    first = rng.random(n) < 1.0 / (1.0 + np.exp(-3.0 * X[:, 5]))
    lines = np.where(first, 3.0 * X[:, 0] + 3.0 * X[:, 1], -2.0 * X[:, 0] + 3.0 * X[:, 2] - 1.0)
    return X, lines + 0.5 * rng.normal(size=n)


def main(seeds):
    """One line per seed, and a summary."""
    rows = []
    for seed in range(seeds):
        X, y = data(seed)
        began = time.process_time()
        path = moestat.lasso_path("gaussian", X, y, n_experts=2, rng=seed)
        seconds = time.process_time() - began
        inputs = {int(name.split(",")[1][:-1]) for name in path.selected()}
        exact = [set(np.flatnonzero(np.any(own != 0.0, axis=0))) == TRUE for own in _by_input(path)]
        rows.append((inputs >= TRUE, len(inputs - TRUE), any(exact), seconds))
        worst = path.table["residual"].max()
        print(
            f"seed {seed:2d}: {len(inputs & TRUE)} of 4 true inputs, {len(inputs - TRUE)} others;"
            f" exact on the path: {'yes' if any(exact) else 'no'}; worst KKT {worst:.0e};"
            f" {path.table['certified'].mean():.0%} certified; {seconds:.1f} s",
            flush=True,
        )
    found, others, exact, seconds = (
        np.array(column, dtype=float) for column in zip(*rows, strict=True)
    )
    print(
        f"all four true inputs by BIC in {found.mean():.0%} of {seeds}, others {others.mean():.1f};"
        f" exactly these somewhere on the path {exact.mean():.0%};"
        f" processor time {np.median(seconds):.1f} s (median)"
    )


def _by_input(path):
    """Coefficients (4, d) of gate and experts at each penalty."""
    for theta in path.theta:
        yield theta[path._sparse.penalised].reshape(-1, 200)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
