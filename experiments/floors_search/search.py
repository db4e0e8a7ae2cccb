"""Searching one data set of a floored microscope until independent starts agree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.floors_search.pool import KINDS, draw_start
from moestat.base.types import FloatArray
from moestat.estimation.data.data import Data
from moestat.estimation.fit.batches import fit_jobs
from moestat.estimation.fit.fitted import Fitted
from moestat.estimation.fit.job import FitJob
from moestat.estimation.starts import GivenStarts
from moestat.metrics.expert_errors import expert_errors
from moestat.metrics.losses import cell_errors, make_loss, voronoi_terms
from moestat.solvers import make_solver
from moestat.solvers.driver import Cores
from moestat.sweep.kinds.fit.cell import data_of
from moestat.sweep.kinds.fit.spec import Spec
from moestat.sweep.spec.plan import Cell

__all__ = ["FIRST", "MOST", "SAME", "SHARE", "search"]

SHARE = 0.125
"""A search ends when so many of its independent starts are at the best height, and the last
doubling of starts has raised that by no more than `SAME`."""
SAME = 0.01
FIRST, MOST = 8, 64
"""Starts of the first round, and at most."""
_STREAM = 51
"""Draws apart from those of the shipped starts."""


def search(spec: Spec, cell: Cell) -> dict[str, object]:
    """Fit a cell by its shipped starts, and then from a pool of independent ones.

    Heights are sums over rows of differences to the truth's log-density, so that at n = 1e14, where
    a log-likelihood is known to .01, they are known to .001.

    Parameters
    ----------
    spec : Spec
        A floored microscope of Gaussian experts under softmax.
    cell : Cell
        One of its cells.

    Returns
    -------
    dict
        ``gain``: the best height over that of the shipped starts; ``starts``, ``agree`` and
        ``doubling``: independent starts, their share at the best height, and what the last
        doubling added to it; ``shipped`` and ``found``: errors in cells of several atoms.
    """
    curve = spec.curve(cell.curve)
    truth, fitted = spec.truths[curve.truth], spec.fitted_family(curve)
    X, y, weight = data_of(spec, cell)
    solver, cores = make_solver(dict(curve.solver)), Cores(1)
    base = truth.family.log_density(truth.theta, X, y)

    def fitted_from(starts: Sequence[Any]) -> list[tuple[float, Fitted]]:
        draws = np.random.default_rng(cell.fit_seed).spawn(1)[0]  # as the sweep draws its starts
        data = Data.of(fitted, X, y, weight)
        jobs = [FitJob(fitted, data, solver, rules, draws) for rules in starts]
        ends = [each for each in fit_jobs(jobs, cores) if not isinstance(each, Exception)]
        return [(_height(each, X, y, weight, base), each) for each in ends]

    (shipped,) = fitted_from([spec.start_rules(curve)])
    rng = np.random.default_rng([cell.fit_seed, _STREAM])
    blocks = {name: np.ravel(value) for name, value in truth.family.unpack(truth.theta).items()}
    best, heights, wanted = shipped, [], FIRST
    while True:
        points = [
            fitted.pack(draw_start(blocks, curve.n_experts, cell.n, KINDS[i % len(KINDS)], rng))
            for i in range(len(heights), wanted)
        ]
        ended = fitted_from([[GivenStarts(point[None])] for point in points])
        before = best[0]
        best = max([best, *ended], key=lambda end: end[0])
        heights += [height for height, _ in ended]
        heights += [-math.inf] * (wanted - len(heights))
        agree = float(np.mean(np.array(heights) >= best[0] - SAME))
        doubling = best[0] - before
        done = wanted > FIRST and agree >= SHARE and doubling <= SAME
        if done or wanted >= MOST:
            break
        wanted *= 2
    kinds = [float(np.mean(np.array(heights[i::4]) >= best[0] - SAME)) for i in range(len(KINDS))]
    return {
        "curve": cell.curve, "n": cell.n, "replicate": cell.replicate, "starts": wanted,
        "agree": agree, "kinds": kinds, "doubling": doubling, "gain": best[0] - shipped[0],
        "done": done, "certified": best[1].certificate.certified,
        "bound": bool(best[1].certificate.active),
        "shipped": _cells(spec, cell, shipped[1]), "found": _cells(spec, cell, best[1]),
    }  # fmt: skip


def _height(end: Fitted, X: FloatArray, y: Any, weight: FloatArray, base: FloatArray) -> float:
    """Log-likelihood over that of the truth, without the rounding of either."""
    return math.fsum(weight * (end.family.log_density(end.params, X, y) - base))


def _cells(spec: Spec, cell: Cell, end: Fitted) -> list[dict[str, object]]:
    """Size and largest errors of each Voronoi cell of several atoms."""
    curve = spec.curve(cell.curve)
    truth, target = spec.scored(curve), spec.target(curve)
    terms = voronoi_terms(end.measure, target, make_loss(curve.loss))
    experts = expert_errors(
        end.family, end.params, truth.family, truth.theta, terms.assignment, spec.design
    )
    return [
        {
            "size": int(each.size),
            **{name: float(f"{value:.4g}") for name, value in each.errors.items()},
            "expert": float(f"{expert:.4g}"),
        }
        for each, expert in zip(cell_errors(end.measure, target, terms), experts, strict=True)
        if each.size > 1
    ]
