"""Seconds and log-likelihood of one fit: moestat's solvers, NumPy EM, scipy, flexmix.

    python benchmarks/fits.py [--n 100000] [--repeats 3]

The data are two crossing lines; three atoms are fitted, one too many.  The first row is the default
call `moestat.fit`, which searches for its starts itself; the others all begin at the same start,
near the truth, and search for nothing.  NumPy EM and flexmix stop at a relative change of 1e-6, as
is usual; scipy's optimisers get moestat's own likelihood, score and Hessian.  stepFlexmix searches
for its own starts, five random ones, with flexmix's own stopping rule.  One thread, one process,
everything in turns.  Seconds are of processor time, the least of the repeats: what others do on the
machine then matters less.  Where there is no R, the rows of flexmix are those of the last run that
had it.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from numpy_em import Fit
from numpy_em import fit as numpy_fit
from problems import Example, gaussian_example
from results import rows_of, save
from scipy.optimize import Bounds, minimize
from threadpoolctl import threadpool_limits

import moestat
from moestat.kernels.records import Data, Sums
from moestat.solvers import EM, SQUAREM, Newton, Solver
from moestat.solvers.driver import drive
from moestat.solvers.problem import Problem, Rows

_FLEXMIX = """
suppressPackageStartupMessages(library(flexmix))
d <- read.csv("data.csv"); start <- as.matrix(read.csv("start.csv"))
t <- system.time(f <- flexmix(y ~ x, data = d, k = 3, cluster = start,
  model = FLXMRglm(family = "gaussian"), concomitant = FLXPmultinom(~x),
  control = list(iter.max = 3000, minprior = 0, tolerance = 1e-6, classify = "weighted")))
cat(t[["user.self"]] + t[["sys.self"]], as.numeric(logLik(f)), f@iter)
"""
_STEPFLEXMIX = """
suppressPackageStartupMessages(library(flexmix))
d <- read.csv("data.csv"); set.seed(0)
t <- system.time(f <- stepFlexmix(y ~ x, data = d, k = 3, nrep = 5, verbose = FALSE,
  model = FLXMRglm(family = "gaussian"), concomitant = FLXPmultinom(~x),
  control = list(minprior = 0)))
cat(t[["user.self"]] + t[["sys.self"]], as.numeric(logLik(f)), f@iter)
"""


def sample_of(example: Example) -> Rows:
    """The data as the solvers read them; a preview is drawn anew for every fit."""
    X = np.ascontiguousarray(example.X.T)
    return Rows(X, example.encoded, np.ones(X.shape[1]))


def by_moestat(example: Example, solver: Solver) -> dict:
    """One of moestat's solvers."""
    problem = Problem(example.family, sample_of(example))
    (end,) = drive([solver.steps(problem, example.theta)], [problem], threads=1)
    passes = round(end.certificate.passes, 1)
    return {"log-likelihood": end.log_likelihood, "passes": passes} | {
        "certified": end.certificate.certified
    }


def by_fit(example: Example) -> dict:
    """The public fit with its default starts."""
    end = moestat.fit(example.family, example.X, example.y, rng=0, threads=1)
    return {"log-likelihood": end.log_likelihood, "certified": end.certificate.certified}


def by_numpy(example: Example) -> dict:
    """The NumPy EM."""
    rows = example.theta.reshape(-1, 5)
    start = Fit(rows[:, :2], rows[:, 2:4], np.exp(rows[:, 4]))
    end = numpy_fit(start, example.X[:, 0], example.y)
    return {"log-likelihood": float(end.log_likelihood), "passes": float(end.iterations)}


def by_scipy(example: Example, method: str) -> dict:
    """One of scipy's optimisers on moestat's likelihood."""
    family, data = example.family, sample_of(example)
    free = family.lower < family.upper
    start = example.theta

    score, hessian = np.empty(start.size), np.empty((start.size, start.size))
    unused, passes = np.empty((0, 0)), 0

    def evaluate(u, order):
        nonlocal passes
        passes += 1
        theta = start.copy()
        theta[free] = u
        rows, sums = Data(data.X, data.y, data.weight, unused), Sums(score, hessian, unused)
        return family.loops.log_likelihood(theta, family.coefficients, rows, order, sums)

    def curvature(u):
        evaluate(u, 2)
        return -hessian[np.ix_(free, free)]

    def objective(u):
        return -evaluate(u, 1), -score[free]

    options: dict = {"bounds": Bounds(family.lower[free], family.upper[free])}
    if method == "trust-constr":
        options["hess"] = curvature
    options["options"] = {"maxiter": 3000}

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        end = minimize(objective, start[free], jac=True, method=method, **options)
    return {"log-likelihood": -float(end.fun), "passes": float(passes)}


def by_flexmix(example: Example, program: str) -> dict | None:
    """R's flexmix, where it is installed; the seconds are its own."""
    if shutil.which("Rscript") is None:
        print("flexmix: no Rscript on this machine")
        return None
    X, y = np.ascontiguousarray(example.X.T), example.encoded
    tau = example.family.rowwise(example.theta, X, y)[1].T
    with tempfile.TemporaryDirectory() as folder:
        data = np.column_stack([example.X[:, 0], example.y])
        csv = {"delimiter": ",", "comments": ""}
        np.savetxt(Path(folder, "data.csv"), data, header="x,y", **csv)
        np.savetxt(Path(folder, "start.csv"), tau, header="a,b,c", **csv)
        Path(folder, "run.R").write_text(program)
        run = subprocess.run(
            ["Rscript", "run.R"], cwd=folder, capture_output=True, text=True, check=False
        )
    if run.returncode != 0:
        print("flexmix:", run.stderr.strip().splitlines()[-1:])
        return None
    seconds, height, iterations = map(float, run.stdout.split()[-3:])
    return {"seconds": seconds, "log-likelihood": height, "passes": iterations}


def measure(n: int, repeats: int) -> list[dict]:
    """One row per solver."""
    example = gaussian_example(n)
    solvers = {
        "moestat.fit, default": lambda: by_fit(example),
        "moestat Newton": lambda: by_moestat(example, Newton()),
        "moestat SQUAREM": lambda: by_moestat(example, SQUAREM()),
        "moestat EM, 1e-6": lambda: by_moestat(example, EM()),
        "NumPy EM, 1e-6": lambda: by_numpy(example),
        "scipy L-BFGS-B": lambda: by_scipy(example, "L-BFGS-B"),
        "scipy trust-constr": lambda: by_scipy(example, "trust-constr"),
    }
    small = gaussian_example(2_000)
    for solver in (Newton(), SQUAREM(max_iterations=4), EM(max_iterations=2)):
        by_moestat(small, solver)  # compiles
    by_fit(small)
    rows = {name: {"solver": name, "seconds": np.inf} for name in solvers}
    for repeat in range(repeats):
        for name, solve in solvers.items():
            if repeat and rows[name]["seconds"] > 20.0:
                continue
            began = time.process_time()
            outcome = solve()
            seconds = time.process_time() - began
            rows[name] |= outcome | {"seconds": min(seconds, rows[name]["seconds"])}
            print(f"{name}: {seconds:.3f} s, {outcome}", flush=True)
    programs = {"flexmix, 1e-6": _FLEXMIX, "stepFlexmix, 5 random starts": _STEPFLEXMIX}
    before = {row["solver"]: row for row in rows_of("fits")}
    for name, program in programs.items():
        if (outcome := by_flexmix(example, program)) is not None:
            rows[name] = {"solver": name} | outcome
        elif name in before:
            rows[name] = before[name] | {"note": "of an earlier run, with R"}
    own = rows["moestat.fit, default"]["seconds"]
    for row in rows.values():
        row["times the default's"] = row["seconds"] / own
    return list(rows.values())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    with threadpool_limits(1):
        save("fits", measure(options.n, options.repeats))
