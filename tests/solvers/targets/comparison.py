"""The CPU beside a CUDA device, or its simulator: the same comparisons for both.

``python -m tests.solvers.targets.comparison NAME...`` prints one line of JSON per comparison; with
NUMBA_ENABLE_CUDASIM=1 numba runs the kernels in plain Python.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import moestat
from moestat.estimation.data.data import Data
from moestat.estimation.fit.batches import fit_jobs
from moestat.estimation.fit.job import FitJob
from moestat.estimation.starts import TruthStarts
from moestat.kernels.cuda import launch
from moestat.kernels.cuda.target import cuda
from moestat.solvers.driver import Cores
from moestat.solvers.problem import Objective, Problem, Request, Rows
from moestat.solvers.targets import CudaTarget
from moestat.solvers.targets.cuda import kernels_of, shape_of
from moestat.sweep import create_store, open_cells, parse_spec, run_cells
from tests.kinds import KINDS, REGRESSION, kind_id, make, random_response, random_theta

if launch.SIMULATED:
    # Each thread of the simulator costs as much, with a sample of its own or without.
    launch._TILES = launch._TILES[2:]


def problems_of(family, sizes, rng):
    """Problems with weighted data that need not follow the family."""
    found = []
    for n in sizes:
        X = np.ascontiguousarray(rng.normal(size=(family.n_features, n)))
        y = family.likelihood.encode(random_response(family, rng, n), family.n_classes)
        found.append(Problem(family, Rows(X, y, rng.uniform(0.5, 2.0, n), whole=True)))
    return found


def answers(target, problems, thetas, objectives):
    """Everything that a target answers, as one list of arrays per objective."""
    found = []
    with target.session(problems) as answer:
        for objective in objectives:
            batch = [(p, Request(objective, t)) for p, t in zip(problems, thetas, strict=True)]
            for evaluation in answer(batch):
                found += vars(evaluation).values()
    return found


def difference(found, expected):
    """Largest difference, relative to the largest entry of each array, or to 1."""
    worst = 0.0
    for one, other in zip(found, expected, strict=True):
        if np.size(other):
            gap = np.max(np.abs(np.subtract(one, other))) / max(1.0, np.max(np.abs(other)))
            worst = max(worst, float(gap)) if np.isfinite(gap) else np.inf
    return worst


def compare_kind(kind, k, d, K, sizes):
    """Difference of all objectives of one kind of family between CPU and device."""
    rng = np.random.default_rng(0)
    family = make(kind, k, d, K)
    problems = problems_of(family, sizes, rng)
    thetas = [random_theta(family, rng) for _ in problems]
    objectives = (
        Objective.SCORE,
        Objective.OBSERVED,
        Objective.INFORMED,
        Objective.VALUE,
        Objective.EXPECTATION,
        Objective.COMPLETE,
    )
    if family.is_regression:
        objectives = (Objective.GAUSS_NEWTON, Objective.RESIDUALS)
    device = answers(CudaTarget(), problems, thetas, objectives)
    return difference(device, answers(Cores(1), problems, thetas, objectives))


def long_data():
    """More samples than one thread block takes, in the kind with the smallest tile."""
    kind = ("gaussian", "competition-free", {"name": "ffn", "hidden": 3})
    return compare_kind(kind, 3, 2, None, (300, 21))


def given_responsibilities():
    """Complete-data requests for responsibilities that come from the host."""
    rng = np.random.default_rng(1)
    family = make(("multinomial", "softmax", "linear"), 2, 1, 2)
    problems = problems_of(family, (40,), rng)
    problems[0].assign(rng.dirichlet(np.ones(2), 40).T.copy())
    thetas = [random_theta(family, rng)]
    device = answers(CudaTarget(), problems, thetas, (Objective.COMPLETE,))
    return difference(device, answers(Cores(1), problems, thetas, (Objective.COMPLETE,)))


def orders():
    """What one kernel answers at every order, for so many units that a tile makes one slice."""
    rng = np.random.default_rng(2)
    family = make(("gaussian", "sigmoid", "linear"), 3, 2)
    (problem,) = problems_of(family, (70,), rng)
    data, nothing = problem.data, np.zeros(1, dtype=np.int64)
    flat = np.concatenate([data.X.ravel(), data.y, data.weight])
    batch = launch.DeviceBatch(
        cuda.to_device(flat), nothing, np.array([data.size]), cuda.device_array(1), nothing
    )
    shape, kind = shape_of(family), kernels_of(family)
    theta = random_theta(family, rng)[None]
    found = [kind.evaluate(shape, theta, batch, order, launch.OBSERVED) for order in range(4)]
    one, two, three = found[1:]
    return {
        "lengths": [[len(part) for part in answers] for answers in found],
        # Fewer units make more slices, and their sums another order.
        "difference": difference([*one[:2], *three[:3]], [*two[:2], *two[:3]]),
        "same": len({answers.value[0] for answers in found}) == 1
        and np.array_equal(three.score, two.score)
        and np.array_equal(three.hessian, two.hessian),
    }


def _data(name, n, replicates, most):
    """Data sets of a small problem, its truth and its solvers."""
    if name == "regression":
        family = moestat.family("least-squares", gate="softmax", n_experts=2)
        theta = family.pack({"beta0": [0.2, 0], "beta1": [-2, 0], "a": [2, -1], "b": [1, 3]})
        sets = [moestat.sample(family, theta, n, rng=r, noise=0.1) for r in range(replicates)]
        return family, theta, sets, ({"name": "levenberg-marquardt", "max_iterations": most},)
    family = moestat.family("multinomial", gate="sigmoid", n_experts=2, n_classes=2)
    theta = family.pack(
        {
            "gamma": [0.2, -0.3],
            "alpha": [-2, 3],
            "beta": [1.5, 1],
            "a": [[-2, 0], [1.5, 0]],
            "b": [[1, 0], [-1, 0]],
        }
    )
    design = moestat.Uniform(-4, 4)
    sets = [moestat.sample(family, theta, n, rng=r, design=design) for r in range(replicates)]
    return family, theta, sets, ("newton", {"name": "em", "max_iterations": most})


def fits(name, n=40, replicates=1, count=1, most=1):
    """Fits on the CPU and the device by every solver of a small problem."""
    family, theta, sets, solvers = _data(name, n, replicates, most)
    worst, certified = 0.0, []
    for table in solvers:
        options = {
            "solver": moestat.solvers.make_solver(table),
            "starts": [TruthStarts(family, theta, count, 0.02)],
            "rng": 0,
        }
        one = moestat.fit_many(family, sets, target=CudaTarget(), **options)
        other = moestat.fit_many(family, sets, threads=1, **options)
        for device, cpu in zip(one, other, strict=True):
            worst = max(worst, abs(device.log_likelihood - cpu.log_likelihood))
            certified.append([device.certificate.certified, cpu.certificate.certified])
    return {"difference": worst, "certified": certified}


def batching(n=20):
    """Numbers of a fit by itself, in a batch, and in a batch that memory splits."""
    family, theta, sets, _ = _data("multinomial", n, 3, 1)
    options = {
        "solver": moestat.solvers.Newton(max_iterations=2),
        "starts": [TruthStarts(family, theta, 1, 0.05)],
    }
    small = CudaTarget(memory=(1 << 30) + 8 * (3 + 2) * n)
    batches = [
        moestat.fit_many(family, sets, rng=0, target=target, **options)
        for target in (CudaTarget(), small)
    ]

    def jobs():
        # Generators anew: a fit draws its starts from its own.
        return [
            FitJob(family, Data.of(family, *data), rng=child, **options)
            for data, child in zip(sets, np.random.default_rng(0).spawn(3), strict=True)
        ]

    together, alone = fit_jobs(jobs(), CudaTarget()), fit_jobs(jobs()[2:], CudaTarget())
    params = [[list(result.params) for result in batch] for batch in batches]
    return {
        "groups": [len(group) for group in small.plan.groups],
        "summary": small.plan.summary(),
        "split": params[0] == params[1],
        "alone": list(together[2].theta) == list(alone[0].theta),
    }


SPEC = """
title = "A sweep for two targets"
seed = 1
replicates = 1
n = [30]
design = { law = "uniform", low = -4, high = 4 }

[truth.lines]
gate = "softmax"
n_classes = 2
beta0 = [0.2, 0.0]
beta1 = [-2.0, 0.0]
a = [[-2.0, 0.0], [1.5, 0.0]]
b = [[1.0, 0.0], [-1.0, 0.0]]

[[curve]]
name = "k = 2"
truth = "lines"
n_experts = 2
loss = "softmax-D1"
solver = { name = "newton", max_iterations = 3 }
starts = { truth = 1, noise = 0.01 }
"""


def sweep():
    """Cells of a sweep by the executors ``serial`` and ``cuda``; one of them fails by itself."""
    spec = parse_spec(SPEC)
    records = []
    with TemporaryDirectory() as folder:
        for executor in ("serial", "cuda"):
            with create_store(Path(folder) / f"{executor}.sqlite", spec) as store:
                planned = open_cells(spec, store)
                # Fewer samples than parameters: there is no estimate.
                cells = [*planned, replace(planned[0], n=3, replicate=7)]
                found = run_cells(spec, store, cells, executor=executor, workers=1)
                records.append({record.key: record for record in found})
    one, other = records
    done = [key for key in one if one[key].status == "done"]
    return {
        "cells": len(other),
        "statuses": sorted({record.status for record in other.values()}),
        "devices": sorted({record.machine["device"] for record in other.values()}),
        "memory": other[done[0]].machine["device_memory"],
        "same data": {r.key: (r.identity, r.status, r.message) for r in one.values()}
        == {r.key: (r.identity, r.status, r.message) for r in other.values()},
        "difference": difference(
            [other[key].params for key in done], [one[key].params for key in done]
        ),
    }


def comparisons(k=2, d=2, K=3, sizes=(37, 21)):
    """Every comparison by name."""
    kinds = {kind_id(kind): kind for kind in [*KINDS, *REGRESSION]}
    named = {
        name: (lambda kind=kind: compare_kind(kind, k, d, K, sizes)) for name, kind in kinds.items()
    }
    return {
        **named,
        "long data": long_data,
        "given responsibilities": given_responsibilities,
        "orders": orders,
        "fits of a density": lambda: fits("multinomial"),
        "fits of a regression function": lambda: fits("regression"),
        "batching": batching,
        "sweep": sweep,
    }


NAMES = list(comparisons())


if __name__ == "__main__":
    large = sys.argv[1:2] == ["--large"]
    named = comparisons(4, 3, 4, (70, 33)) if large else comparisons()
    asked = NAMES[: len(KINDS) + len(REGRESSION)] if large else sys.argv[1:]
    for name in asked or NAMES:
        print(json.dumps({"name": name, "result": named[name]()}), flush=True)
