"""Several responses beside flexmix: log-likelihoods and coefficients of both on the same data.

    python benchmarks/several_responses.py

Needs Rscript with flexmix.  NPreg is flexmix's own data set and its models of two responses those
of its vignette, Leisch (2004), Sec. 4; items are 500 rows of five binary items of two latent
classes, and mixed ones a normal response, a count and an item.  flexmix has the best of ten random
starts.  Results: results/several_responses.md.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from results import FOLDER

import moestat

_R = r"""
suppressMessages(library(flexmix))
folder <- "FOLDER"
data("NPreg"); write.csv(NPreg, file.path(folder, "NPreg.csv"), row.names = FALSE)
items <- read.csv(file.path(folder, "items.csv"))
set.seed(1)
best <- function(name, form, data, model, ...) {
  fits <- lapply(1:10, function(i) tryCatch(flexmix(form, data = data, k = 2, model = model,
    control = list(tolerance = 1e-10, iter.max = 2000, minprior = 0), ...),
    error = function(e) NULL))
  top <- Reduce(function(a, b) if (is.null(b) || (!is.null(a) && logLik(a) >= logLik(b))) a else b,
    fits)
  first <- parameters(top)
  first <- if (is.list(first)) first[[1]] else first
  cat(sprintf('["%s", %.12f, [%s]]\n', name, as.numeric(logLik(top)),
    paste(sprintf("%.12f", sort(first[1, ])), collapse = ", ")))
}
two <- list(FLXMRglm(yn ~ . + I(x^2)), FLXMRglm(yp ~ ., family = "poisson"))
best("NPreg", ~ x, NPreg, two)
best("NPreg by id1", ~ x | id1, NPreg, two)
best("NPreg, gate", ~ x, NPreg, two, concomitant = FLXPmultinom(~ yb))
best("items", as.matrix(items[, 1:5]) ~ 1, items, FLXMCmvbinary())
best("mixed", ~ x, items, list(FLXMRglm(height ~ .), FLXMRglm(visits ~ ., family = "poisson"),
  FLXMRglm(cbind(i1, 1 - i1) ~ ., family = "binomial")))
"""


def items() -> pd.DataFrame:
    """Five items, a normal response and a count of 500 rows in two classes."""
    rng = np.random.default_rng(0)
    one, x = rng.random(500) < 0.4, rng.normal(size=500)
    chance = np.where(one[:, None], [0.8, 0.7, 0.9, 0.2, 0.6], [0.3, 0.2, 0.4, 0.5, 0.1])
    data = pd.DataFrame(
        (rng.random((500, 5)) < chance).astype(int), columns=[f"i{j}" for j in range(1, 6)]
    )
    data["x"] = x
    data["height"] = np.where(one, 1 + 2 * x, -x) + rng.normal(size=500)
    data["visits"] = rng.poisson(np.exp(np.where(one, 0.5 - 0.5 * x, 1 + 0.3 * x)))
    return data


def ours(folder: str) -> dict[str, Any]:
    """Our fits by name."""
    two: dict[str, Any] = {
        "family": ["gaussian", "poisson"],
        "fixed": {"a_yp": {"I(x ** 2)": 0.0}},
        "rng": 0,
    }
    left = "cbind(yn, yp) ~ x + I(x ** 2)"
    known = pd.read_csv(Path(folder, "NPreg.csv"))
    made = pd.read_csv(Path(folder, "items.csv"))
    five = "cbind(i1, i2, i3, i4, i5) ~ 1"
    mixed = "cbind(height, visits, i1) ~ x | 1"
    return {
        "NPreg": moestat.fit_formula(f"{left} | 1", known, **two),
        "NPreg by id1": moestat.fit_formula(f"{left} | 1 | id1", known, **two),
        "NPreg, gate": moestat.fit_formula(f"{left} | yb", known, **two),
        "items": moestat.fit_formula(five, made, ["binomial"] * 5, rng=0),
        "mixed": moestat.fit_formula(mixed, made, ["gaussian", "poisson", "binomial"], rng=0),
    }


def main() -> None:
    """Run both and write the table."""
    with tempfile.TemporaryDirectory() as folder:
        items().to_csv(Path(folder, "items.csv"), index=False, float_format="%.17g")
        code = _R.replace("FOLDER", folder)
        done = subprocess.run(["Rscript", "-e", code], capture_output=True, text=True, check=True)
        fits = ours(folder)
    lines = [
        "# Several responses beside flexmix",
        "",
        "See benchmarks/several_responses.py. flexmix divides sums of squares by n - p, ours by n:"
        " with a normal response its log-likelihood is a little below the maximum.",
        "",
        "| model | flexmix | moestat | difference | certified |",
        "|---|---|---|---|---|",
    ]
    for name, height, _ in map(json.loads, done.stdout.splitlines()):
        fit = fits[name]
        certified = "yes" if fit.certificate.certified else "no"
        lines.append(
            f"| {name} | {height:.4f} | {fit.llf:.4f} | {fit.llf - height:+.4f} | {certified} |"
        )
    text = "\n".join(lines) + "\n"
    print(text)
    (FOLDER / "several_responses.md").write_text(text)


if __name__ == "__main__":
    main()
