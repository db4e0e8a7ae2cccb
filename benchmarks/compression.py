"""Compression of classes by the number of inputs: points, their error, and when they pay.

    python benchmarks/compression.py

Two experts of two classes with a softmax gate, 1e6 rows, X uniform on the unit cube, the gate's
slope the same along every input.  With one input the points are Gauss nodes of the rows of a panel,
with two some of the rows of a cell.  With three, for which moestat has none, they are the cheapest
that could take their place: 4 Chebyshev nodes per axis of a cell, to which each row gives the
values of Lagrange's polynomials.  Panels per axis are doubled until the error of the log-likelihood
at the truth is below a hundredth.  What making them costs is told in passes for log-likelihood and
score over all rows.  The last columns are of the default call on these rows, with points where
there are some and without: seconds in all, and passes over all rows.
"""

from __future__ import annotations

import time
import warnings
from functools import partial
from typing import Any
from unittest import mock

import numba
import numpy as np
from results import save

import moestat
from moestat.model.compression import gauss_compress
from moestat.model.recombination import recombine
from moestat.solvers.problem import Objective, Problem, Request, Rows

_N, _SLOPES, _NODES = 1_000_000, (3.0, 10.0, 30.0), 4
_ERROR, _MOST_NODES = 1e-2, 4_000_000


@numba.njit
def _share(X: Any, y: Any, panels: int, places: Any, weight: Any) -> None:
    """Add to weight (classes, cells, nodes of a cell) what each row gives."""
    d, m = X.shape[0], places.size
    along = np.empty((d, m))
    for t in range(X.shape[1]):
        cell = 0
        for axis in range(d):
            place = X[axis, t] * panels
            panel = min(int(place), panels - 1)
            cell = cell * panels + panel
            local = 2.0 * (place - panel) - 1.0
            for j in range(m):
                value = 1.0
                for i in range(m):
                    if i != j:
                        value *= (local - places[i]) / (places[j] - places[i])
                along[axis, j] = value
        for node in range(weight.shape[2]):
            rest, value = node, 1.0
            for axis in range(d - 1, -1, -1):
                value *= along[axis, rest % m]
                rest //= m
            weight[y[t], cell, node] += value


def nodes_of(X: np.ndarray, y: np.ndarray, panels: int) -> Rows:
    """Weighted nodes in place of the rows X (d, n), y (n,)."""
    d = len(X)
    if d == 2:
        return Rows(*recombine(X, y, np.ones(y.size), panels))
    if d == 1:
        x, label, weight = gauss_compress(X[0], y, np.ones(y.size), panels, _NODES)
        return Rows(np.ascontiguousarray(x[None]), label, weight)
    places = np.cos((2 * np.arange(_NODES) + 1) * np.pi / (2 * _NODES))
    weight = np.zeros((2, panels**d, _NODES**d))
    _share(X, y, panels, places, weight)
    axis = ((np.arange(panels)[:, None] + (places + 1.0) / 2.0) / panels).ravel()
    grid = np.array(np.meshgrid(*[axis] * d, indexing="ij")).reshape((d,) + (panels, _NODES) * d)
    order = (0, *(1 + 2 * j for j in range(d)), *(2 + 2 * j for j in range(d)))
    grid = grid.transpose(order).reshape(d, -1)
    full = weight.reshape(2, -1) != 0.0
    points = np.concatenate([grid[:, full[label]] for label in (0, 1)], axis=1)
    labels = np.repeat([0, 1], full.sum(axis=1))
    return Rows(np.ascontiguousarray(points), labels, weight.reshape(2, -1)[full])


def seconds(call: Any) -> tuple[float, Any]:
    """Processor time of the quickest of three calls, and what it returned."""
    taken = []
    for _ in range(3):
        began = time.process_time()
        answer = call()
        taken.append(time.process_time() - began)
    return min(taken), answer


def row(d: int, slope: float) -> dict[str, Any]:
    """Nodes and times for one number of inputs and one slope."""
    family = moestat.family("multinomial", gate="softmax", n_experts=2, n_features=d, n_classes=2)
    gate, expert = np.full(d, slope), np.full((2, 1, d), 2.0)
    blocks = {"beta0": [-slope * d / 2, 0.0], "beta1": [gate, 0.0 * gate]}
    theta = family.pack(blocks | {"a": expert * [[[1.0]], [[-1.0]]], "b": [[-1.0], [1.0]]})
    X, y = moestat.sample(family, theta, _N, rng=6, design=moestat.Uniform(0, 1))
    rows = Rows(np.ascontiguousarray(X.T), y - 1, np.ones(_N))
    request = Request(Objective.SCORE, theta)
    on_rows, exact = seconds(partial(Problem(family, rows).evaluate, request))
    panels, error = 2, np.inf
    while error > _ERROR and 2 * (panels * 2 * _NODES) ** d <= _MOST_NODES:
        panels *= 2
        making, nodes = seconds(partial(nodes_of, rows.X, rows.y, panels))
        on_nodes, near = seconds(partial(Problem(family, nodes).evaluate, request))
        error = abs(near.value - exact.value)
    found = {
        "inputs": d,
        "slope": slope,
        "panels per axis": panels,
        "points": nodes.size,
        "rows / points": round(_N / nodes.size, 1),
        "error": float(f"{error:.1g}"),
        "pass over rows, s": round(on_rows, 4),
        "over points, s": round(on_nodes, 4),
        "making them, passes": round(making / on_rows, 1),
    }
    if d < 3:
        found |= default_call(family, X, y, "default call")
    with (
        mock.patch.object(moestat.solvers.problem, "_PANELS", ()),
        mock.patch.object(moestat.solvers.problem, "_CELLS", (_N,)),
    ):
        return found | default_call(family, X, y, "without points")


def default_call(family: Any, X: Any, y: Any, name: str) -> dict[str, Any]:
    """Seconds and passes over all rows of the default call."""
    visited, compute = [0.0], Problem.evaluate_part

    def counted(self: Problem, request: Any, part: slice) -> Any:
        if self.data.levels[request.level].size == _N:
            visited[0] += (part.stop - part.start) / _N
        return compute(self, request, part)

    with mock.patch.object(Problem, "evaluate_part", counted), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        moestat.fit(family, X[:2000], y[:2000], rng=0, threads=1)
        began = time.process_time()
        fit = moestat.fit(family, X, y, rng=0, threads=1)
        taken = time.process_time() - began
    return {
        f"{name}, s": round(taken, 2),
        f"{name}, passes": round(visited[0]),
        f"{name}, log-likelihood": round(fit.log_likelihood, 1),
    }


if __name__ == "__main__":
    found = [row(d, slope) for d in (1, 2, 3) for slope in _SLOPES]
    print(*found, sep="\n")
    save("compression", found)
