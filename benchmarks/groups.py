"""Processor time of a pass with groups beside one without, in pairs, one after the other.

    python benchmarks/groups.py [--pairs 60]

Results: results/groups.md, the shortest times of each.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from results import FOLDER, machine

import moestat
from moestat.solvers.problem import Objective, Problem, Request, Rows

_CASES = (
    ("gaussian", 720, 12, 1, 2),
    ("gaussian", 12_000, 12, 1, 2),
    ("gaussian", 12_000, 12, 4, 3),
    ("gaussian", 12_000, 4, 2, 2),
    ("poisson", 12_000, 12, 1, 2),
)
_PASSES = {"value": Objective.VALUE, "score": Objective.SCORE, "Hessian": Objective.OBSERVED}


def shortest(name: str, n: int, size: int, d: int, k: int, pairs: int) -> list[str]:
    """Cells of one line: nanoseconds per row of rows and of groups, and their ratio."""
    family = moestat.family(name, gate="softmax", n_experts=k, n_features=d, gate_inputs=[])
    theta = family.typical(0)
    X, y = moestat.sample(family, theta, n, rng=1)
    parts = np.ascontiguousarray(X.T), family.likelihood.encode(y, family.n_classes), np.ones(n)
    problems = [Problem(family, Rows(*parts, whole=True))]
    problems.append(Problem(family, Rows(*parts, begin=np.arange(0, n, size))))
    cells = []
    for objective in _PASSES.values():
        best = [np.inf, np.inf]
        for _ in range(pairs + 1):
            for which, problem in enumerate(problems):
                began = time.process_time()
                problem.evaluate(Request(objective, theta))
                best[which] = min(best[which], time.process_time() - began)
        rows, groups = (1e9 * t / n for t in best)
        cells.append(f"{rows:.0f}, {groups:.0f}, {groups / rows:.1f}")
    return cells


def main() -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=60)
    pairs = parser.parse_args().pairs
    lines = [
        "# Passes with groups",
        "",
        f"Nanoseconds per row of rows, of groups, and the ratio. {machine()['processor']}.",
        "",
        f"| likelihood | rows | group | d | k | {' | '.join(_PASSES)} |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for case in _CASES:
        cells = [*map(str, case), *shortest(*case, pairs)]
        lines.append(f"| {' | '.join(cells)} |")
    text = "\n".join(lines) + "\n"
    print(text)
    (FOLDER / "groups.md").write_text(text)


if __name__ == "__main__":
    main()
