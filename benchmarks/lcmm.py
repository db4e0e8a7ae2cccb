"""Latent class mixed models beside the fits that lcmm's authors keep with their vignette.

    git clone https://github.com/CecileProust-Lima/lcmm
    python benchmarks/lcmm.py lcmm

The vignette on `hlme` (Proust-Lima, Philipps and Liquet 2017) fits normalised test scores of 500
old people, 2,214 rows, by age and its square with a random intercept and two random slopes, in two
and three classes, each the best of 100 starts.  The data are read from those fits.  The
log-likelihood at their estimates is computed by dense covariance matrices, in plain NumPy.

Results: results/lcmm.md.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from results import FOLDER

import moestat

FORMULA = "y ~ age + age2 + cep + (1 + age + age2 | id) | 1"


def read(folder: Path) -> tuple[pd.DataFrame, dict[int, Any]]:
    """The rows of the vignette, and its fits by number of classes."""
    import rdata

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        people = rdata.read_rda(folder / "data" / "paquid.rda")["paquid"]
        kept = rdata.read_rda(folder / "vignettes" / "gridsearch_hlme.RData")
    people = people[people["MMSE"].notna()].reset_index(drop=True)
    fits = {int(one["ng"][0]): one for one in kept.values()}
    seen = pd.DataFrame(fits[2]["pred"])
    assert (seen["ID"].to_numpy() == people["ID"].to_numpy()).all()
    age = (people["age"].to_numpy() - 65.0) / 10.0
    data = {"id": people["ID"], "age": age, "age2": age**2, "cep": people["CEP"]}
    return pd.DataFrame({**data, "y": seen["obs"].to_numpy()}), fits


def dense(data: pd.DataFrame, best: np.ndarray, k: int) -> float:
    """The log-likelihood at parameters in the order of hlme, by covariance matrices of people."""
    logit = np.append(best[: k - 1], 0.0)
    b, a, a2 = best[k - 1 : 4 * k - 1].reshape(3, k)
    cep, D, deviation = best[4 * k - 1], np.zeros((3, 3)), best[-1]
    D[np.tril_indices(3)] = best[4 * k : 4 * k + 6]
    D = D + np.tril(D, -1).T
    share, total = logit - np.logaddexp.reduce(logit), 0.0
    for _, rows in data.groupby("id"):
        Z = np.column_stack([np.ones(len(rows)), rows["age"], rows["age2"]])
        V = Z @ D @ Z.T + deviation**2 * np.eye(len(rows))
        _, determinant = np.linalg.slogdet(2.0 * np.pi * V)
        apart = rows["y"].to_numpy()[:, None] - Z @ np.stack([b, a, a2])
        apart -= cep * rows["cep"].to_numpy()[:, None]
        squares = np.sum(apart * np.linalg.solve(V, apart), axis=0)
        total += np.logaddexp.reduce(share - 0.5 * (determinant + squares))
    return float(total)


def main() -> None:
    """Fit and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="a clone of lcmm")
    data, fits = read(parser.parse_args().folder)
    lines = [
        "# Latent class mixed models beside lcmm",
        "",
        "See benchmarks/lcmm.py. lcmm's column is what its authors keep in"
        " vignettes/gridsearch_hlme.RData, each the best of 100 starts; dense is the log-likelihood"
        " at their estimates by covariance matrices in NumPy. Covariances, residual variances and"
        " the coefficient of education are equal over classes.",
        "",
        "| classes | lcmm | dense | moestat | higher by | certified | starts agree | seconds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for k, other in sorted(fits.items()):
        everyone = [list(range(k))]
        equal = {"l": everyone, "L": everyone, "nu": everyone, "a": [["cep"]]}
        began = time.process_time()
        fit = moestat.fit_formula(FORMULA, data, n_experts=k, equal=equal, rng=0)
        spent = time.process_time() - began
        theirs = float(other["loglik"][0])
        there = dense(data, np.asarray(other["best"], dtype=np.float64), k)
        certified = "yes" if fit.certificate.certified else "no"
        cells = f"{theirs:.4f} | {there:.4f} | {fit.llf:.4f} | {fit.llf - theirs:.1e} | {certified}"
        starts = f"{fit.certificate.agreement:.0%} of {fit.certificate.n_starts}"
        lines.append(f"| {k} | {cells} | {starts} | {spent:.0f} |")
        print(lines[-1], flush=True)
    (FOLDER / "lcmm.md").write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
