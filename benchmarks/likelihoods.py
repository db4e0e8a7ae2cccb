"""Processor time per row of each likelihood, beside the Gaussian: one pass, and one fit.

    python benchmarks/likelihoods.py

Every likelihood of the registry with a density, and two, three and four correlated normal
responses; softmax gate, two experts, two inputs, rows drawn from a typical truth.  A pass gives
the log-likelihood, or that with score and Hessian.  Passes of a likelihood and of the Gaussian are
run in turns on one thread, and the ratio is of the least processor times.  Results:
results/likelihoods.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from results import FOLDER

import moestat
from moestat.kernels.records import Data, Sums
from moestat.model.likelihoods import LIKELIHOODS

N, TURNS = 20_000, 15


def passes(law: Any) -> list[Callable[[], Any]]:
    """A pass of each order, 0 and 2."""
    model = moestat.family(law, gate="softmax", n_experts=2, n_features=2)
    theta = model.typical(0)
    X, y = moestat.sample(model, theta, N, 1)
    coded = model.likelihood.encode(y, model.n_classes)
    score, hessian, unused = np.empty(theta.size), np.empty((theta.size,) * 2), np.empty((0, 0))
    data = Data(np.ascontiguousarray(X.T), coded, np.ones(N), unused)
    sums = Sums(score, hessian, unused)

    def at(order: int) -> Callable[[], Any]:
        return lambda: model.loops.log_likelihood(theta, model.coefficients, data, order, sums)

    return [at(0), at(2)]


def seconds(call: Callable[[], Any]) -> float:
    """Processor time of a call."""
    before = time.process_time()
    call()
    return time.process_time() - before


def main() -> None:
    """Measure, and write the table."""
    several = [
        {"name": "multivariate-gaussian", "covariance": kind, "responses": q}
        for q in (2, 3, 4)
        for kind in ("VVI", "VVV")
    ]
    laws = [name for name, one in LIKELIHOODS.items() if one.block and not one.parts]
    gaussian = passes("gaussian")
    lines = [
        "# Time per row of each likelihood",
        "",
        f"See benchmarks/likelihoods.py. Two experts, two inputs, {N:,} rows, ns per row of"
        " processor time on one thread; the ratio is to the Gaussian in the same turns.",
        "",
        "| likelihood | value | ratio | with score and Hessian | ratio |",
        "|---|---|---|---|---|",
    ]
    for law in [*laws, *several]:
        cells = []
        for own, other in zip(passes(law), gaussian, strict=True):
            own(), other()
            turns = np.array([[seconds(own), seconds(other)] for _ in range(TURNS)])
            least = turns.min(axis=0)
            cells += [f"{1e9 * least[0] / N:.0f}", f"{least[0] / least[1]:.1f}"]
        name = law if isinstance(law, str) else f"{law['covariance']}, {law['responses']} responses"
        lines.append(f"| {name} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    (FOLDER / "likelihoods.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
