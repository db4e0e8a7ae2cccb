"""More inputs than rows: how often `moestat.lasso_path` finds the inputs of a mixture of lines.

    python benchmarks/lasso.py [SEEDS]

100 rows, 200 normal inputs, two experts ``3 x1 + 3 x2`` and ``-1 - 2 x1 + 3 x3`` with deviation .5
and a gate with slope 3 in x6: four true inputs.  "Chosen" are those that BIC chooses, "exact"
says whether some penalty on the path has the four alone.  How a path is started was designed on
the seeds 0 to 5.  Results: results/lasso.md.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from results import FOLDER, markdown

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
    """A row per seed, and their means."""
    rows = []
    for seed in range(seeds):
        X, y = data(seed)
        began = time.process_time()
        path = moestat.lasso_path("gaussian", X, y, n_experts=2, rng=seed)
        seconds = time.process_time() - began
        inputs = {int(name.split(",")[1][:-1]) for name in path.selected()}
        exact = [set(np.flatnonzero(np.any(own != 0.0, axis=0))) == TRUE for own in _by_input(path)]
        rows.append(
            {
                "seed": seed,
                "true inputs chosen": len(inputs & TRUE),
                "others chosen": len(inputs - TRUE),
                "exact": any(exact),
                "largest residual of KKT": f"{path.table['residual'].max():.0e}",
                "certified": f"{path.table['certified'].mean():.0%}",
                "seconds": seconds,
            }
        )
        print(rows[-1], flush=True)
    all_four = np.mean([row["true inputs chosen"] == len(TRUE) for row in rows])
    others, exact = (np.mean([row[key] for row in rows]) for key in ("others chosen", "exact"))
    text = (
        f"All four true inputs are chosen in {all_four:.0%} of {seeds} data sets, with {others:.1f}"
        f" others on average; {exact:.0%} of the paths have the four alone somewhere."
    )
    doc = (__doc__ or "").replace("    python", "`python").replace("[SEEDS]", "[SEEDS]`")
    page = f"# Paths with more inputs than rows\n\n{text}\n\n{doc}\n{markdown(rows)}\n"
    (FOLDER / "lasso.md").write_text(page)
    print(text)


def _by_input(path):
    """Coefficients (4, d) of gate and experts at each penalty."""
    for theta in path.theta:
        yield theta[path._sparse.penalised].reshape(-1, 200)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
