"""Standard errors of two-component fits beside those of flexmix's `refit`.

    python benchmarks/flexmix_refit.py [--out benchmarks/results]

writes flexmix_refit.md; needs Rscript with the package flexmix.  Both fit a mixture of two normal
regressions with a softmax gate (flexmix: ``FLXPmultinom``) to the same rows.  flexmix starts at the
most probable experts of our fit, so that both are at one maximum; its `refit` then maximises the
likelihood again, with `optim`, and takes a numerical Hessian there.  Ours is the exact one.
Deviations are flexmix's sigma on the logarithmic scale; ours are half the logarithm of a variance.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import moestat

_R = r"""
suppressMessages(library(flexmix))
library(jsonlite)
folder <- commandArgs(TRUE)[1]
data <- read.csv(file.path(folder, "data.csv"))
rhs <- paste(grep("^x", names(data), value = TRUE), collapse = " + ")
fitted <- flexmix(as.formula(paste("y ~", rhs)), data = data, k = 2,
  cluster = cbind(data$z == 0, data$z == 1) * 1,
  concomitant = FLXPmultinom(as.formula(paste("~", rhs))),
  control = list(tolerance = 1e-15, iter.max = 100000, minprior = 0))
again <- refit(fitted, method = "optim", optim_control = list(maxit = 5000, reltol = 1e-16))
found <- list(name = names(again@coef), coef = unname(again@coef),
  se = unname(sqrt(diag(again@vcov))), version = as.character(packageVersion("flexmix")))
write(toJSON(found, digits = 17, auto_unbox = TRUE), file.path(folder, "found.json"))
"""


def lines() -> tuple[Any, Any]:
    """Two lines that cross, 500 rows of one input."""
    model = moestat.family("gaussian", gate="softmax", n_experts=2)
    blocks = {"beta0": [0.3, 0], "beta1": [1, 0], "a": [2, -1.5], "b": [1, -1], "nu": [0.25, 0.16]}
    return moestat.sample(model, model.pack(blocks), 500, 1, moestat.Uniform(-2, 2))


def plane() -> tuple[Any, Any]:
    """Two planes that overlap, 2000 rows of three inputs."""
    model = moestat.family("gaussian", gate="softmax", n_experts=2, n_features=3)
    blocks = {
        "beta0": [0.2, 0.0],
        "beta1": [[1.0, -0.5, 0.0], [0.0, 0.0, 0.0]],
        "a": [[1.0, 0.5, 0.0], [-0.5, 0.5, 1.0]],
        "b": [1.0, -0.5],
        "nu": [0.5, 0.3],
    }
    return moestat.sample(model, model.pack(blocks), 2000, 2, moestat.Uniform(-2, 2))


def rows_of(name: str, X: Any, y: Any) -> list[list[str]]:
    """The table's rows for one data set."""
    d = X.shape[1]
    result = moestat.fit("gaussian", X, y, n_experts=2, rng=0)
    family = result.family
    z = np.argmax(moestat.responsibilities(family, result.theta, X, y), axis=1)
    with tempfile.TemporaryDirectory() as folder:
        head = ",".join([*(f"x{j}" for j in range(d)), "y", "z"])
        table = np.column_stack([X, y, z])
        np.savetxt(f"{folder}/data.csv", table, "%.17g", ",", header=head, comments="")
        script = Path(folder, "refit.R")
        script.write_text(_R)
        subprocess.run(["Rscript", str(script), folder], check=True)
        found = json.loads(Path(folder, "found.json").read_text())
    theirs = dict(zip(found["name"], zip(found["coef"], found["se"], strict=True), strict=True))
    theta, bse = result.theta, result.theta_bse
    rows = []
    for i in range(2):
        inputs = ["(Intercept)", *(f"x{j}" for j in range(d))]
        at = [family.blocks["b"][i], *family.blocks["a"][i]]
        pairs = [
            (f"model.1_Comp.{i + 1}_coef.{v}", p, 1.0) for v, p in zip(inputs, at, strict=True)
        ]
        pairs.append((f"model.1_Comp.{i + 1}_log(sigma)", family.blocks["nu"][i], 0.5))
        if i == 1:
            # Our reference is the last expert, flexmix's the first.
            at = [family.blocks["beta0"][0], *family.blocks["beta1"][0]]
            pairs += [(f"concomitant_Comp.2.{v}", p, -1.0) for v, p in zip(inputs, at, strict=True)]
        for label, position, factor in pairs:
            value, error = factor * theta[position], abs(factor) * bse[position]
            other, other_error = theirs[label]
            numbers = [f"{v:.7f}" for v in (value, other, error, other_error)]
            ratio = f"{error / other_error - 1:+.1e}"
            rows.append([name, label.removeprefix("model.1_"), *numbers, ratio])
    rows[0].append(found["version"])
    return rows


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    out = parser.parse_args().out
    if shutil.which("Rscript") is None:
        sys.exit("this benchmark needs Rscript with flexmix and jsonlite")
    rows = [*rows_of("two lines", *lines()), *rows_of("two planes", *plane())]
    version = rows[0][7]
    worst = max(abs(float(row[6])) for row in rows)
    head = ["data", "parameter", "moestat", "flexmix", "s.e. moestat", "s.e. flexmix", "ratio - 1"]
    lines_ = [head, ["---"] * len(head), *(row[:7] for row in rows)]
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines_)
    text = (
        "# Standard errors beside flexmix's refit\n\n"
        f"`python benchmarks/flexmix_refit.py`, moestat {moestat.__version__}, flexmix {version}."
        "  Two normal regressions under a softmax gate, the same rows, one maximum.  moestat's"
        " errors are of the exact Hessian, flexmix's of `optim`'s numerical one; the largest"
        f" relative difference is {worst:.1e}.\n\n{table}\n"
    )
    (out / "flexmix_refit.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
