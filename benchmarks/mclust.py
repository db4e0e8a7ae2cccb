"""Correlated normal responses beside mclust, and beside an EM of its own with inputs.

    python benchmarks/mclust.py

Needs Rscript with mclust.  iris and faithful are R's own and the standard examples of mclust, which
runs to 1e-10 from its hierarchical clustering.  The rows with inputs are compared with EM in NumPy
for a constant gate, the best of 20 random starts: means by weighted least squares, covariance
matrices by weighted residuals.  Ours are one default call each and one with ``maximum="highest"``,
``rng=0``.  Results: results/mclust.md.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from results import FOLDER
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

import moestat

_R = r"""
suppressMessages(library(mclust))
folder <- "FOLDER"
write.csv(iris[, 1:4], file.path(folder, "iris.csv"), row.names = FALSE)
write.csv(faithful, file.path(folder, "faithful.csv"), row.names = FALSE)
for (name in c("iris", "faithful")) {
  data <- if (name == "iris") iris[, 1:4] else faithful
  for (kind in c("VVV", "EEE", "VVI", "EEI", "VII", "EII")) for (k in 2:3) {
    f <- Mclust(data, G = k, modelNames = kind, verbose = FALSE,
      control = emControl(tol = c(1e-10, 1e-10)))
    cat(sprintf('["%s", "%s", %d, %.12f, %d]\n', name, kind, k, f$loglik, f$df))
  }
}
"""


def em(x: np.ndarray, y: np.ndarray, k: int, common: bool, starts: int = 20) -> float:
    """The highest log-likelihood of a mixture of k regressions of y (n, q) on x (n,)."""
    A, best, rng = np.column_stack([np.ones_like(x), x]), -np.inf, np.random.default_rng(0)
    for _ in range(starts):
        share, before = rng.dirichlet(np.ones(k), size=len(x)).T, -np.inf
        for _ in range(3000):
            logs, sums = [], np.zeros((y.shape[1], y.shape[1]))
            fits = []
            for w in share:
                B = np.linalg.lstsq(A * np.sqrt(w)[:, None], y * np.sqrt(w)[:, None], rcond=None)[0]
                S = (w[:, None] * (y - A @ B)).T @ (y - A @ B)
                fits.append((w.mean(), y - A @ B, S / w.sum()))
                sums += S
            for mass, error, S in fits:
                logs.append(
                    np.log(mass)
                    + multivariate_normal.logpdf(error, cov=sums / len(x) if common else S)
                )
            total = logsumexp(logs, axis=0)
            share = np.exp(logs - total)
            if total.sum() - before < 1e-10:
                break
            before = total.sum()
        best = max(best, before)
    return float(best)


def ours(data: pd.DataFrame, right: str, kind: str, k: int) -> list[moestat.MoEResults]:
    """The default call, and the search for the highest maximum."""
    names = [name for name in data if name != "x"]
    law = {"name": "multivariate-gaussian", "covariance": kind}
    formula = f"cbind({', '.join(names)}) ~ {right}"
    options: list[dict[str, Any]] = [{}, {"maximum": "highest"}]
    return [
        moestat.fit_formula(formula, data, law, n_experts=k, rng=0, **option) for option in options
    ]


def row(
    name: str, kind: str, k: int, other: float, df: int | str, fits: list[moestat.MoEResults]
) -> str:
    """One line of the table."""
    heights = " | ".join(f"{fit.llf:.4f} | {fit.llf - other:+.4f}" for fit in fits)
    certified = ", ".join("yes" if fit.certificate.certified else "no" for fit in fits)
    return (
        f"| {name} | {kind} | {k} | {df} | {fits[0].family.n_free_params} | {other:.4f} |"
        f" {heights} | {certified} |"
    )


def main() -> None:
    """Run both and write the table."""
    warnings.simplefilter("ignore")
    lines = [
        "# Correlated normal responses beside mclust",
        "",
        "See benchmarks/mclust.py.",
        "",
        "| data | covariance | k | their df | ours | theirs | default | difference |"
        " highest | difference | certified |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        code = _R.replace("FOLDER", folder)
        done = subprocess.run(["Rscript", "-e", code], capture_output=True, text=True, check=True)
        data = {name: pd.read_csv(Path(folder, f"{name}.csv")) for name in ("iris", "faithful")}
    data["iris"].columns = ["SL", "SW", "PL", "PW"]
    for name, kind, k, height, df in map(json.loads, done.stdout.splitlines()):
        lines.append(row(name, kind, k, height, df, ours(data[name], "1", kind, k)))
    flowers = data["iris"].rename(columns={"PW": "x"})
    waits = data["faithful"].assign(x=np.sin(np.arange(len(data["faithful"])) / 20.0))
    for name, frame in (("iris on PW, NumPy", flowers), ("faithful on x, NumPy", waits)):
        y = frame.drop(columns="x").to_numpy()
        for kind in ("VVV", "EEE"):
            for k in (1, 2, 3):
                height = em(frame["x"].to_numpy(), y, k, kind == "EEE", 1 if k == 1 else 20)
                fits = ours(frame, "x | 1", kind, k)
                lines.append(row(name, kind, k, height, "", fits))
    text = "\n".join(lines) + "\n"
    print(text)
    (FOLDER / "mclust.md").write_text(text)


if __name__ == "__main__":
    main()
