"""Numbers of R's packages beside ours, for the page on coming from them.

``python docs/r_packages.py`` prints the rows of the table in docs/guide/coming_from.md.

It needs Rscript with the packages flexmix, mclust and mixtools.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import moestat

SCRIPT = """
suppressMessages({library(flexmix); library(mclust); library(mixtools)})
set.seed(1); options(digits = 12)
d <- read.csv(commandArgs(TRUE)[1])
show <- function(tool, formula, height, df, parameters, weights)
  cat(tool, formula, height, df, parameters[, order(weights, decreasing = TRUE)], "\\n", sep = ";")
best <- function(call) {
  fits <- lapply(1:5, function(i) eval(call))
  fits[[which.max(sapply(fits, function(f) if (isS4(f)) logLik(f) else f$loglik))]]
}
control <- list(iter.max = 20000, tolerance = 1e-12, minprior = 0)
calls <- list("y ~ x | x" = quote(flexmix(y ~ x, d, k = 2, concomitant = FLXPmultinom(~ x),
                                          control = control)),
              "y ~ x | 1" = quote(flexmix(y ~ x, d, k = 2, control = control)),
              "y ~ 1 | 1" = quote(flexmix(y ~ 1, d, k = 2, control = control)))
for (formula in names(calls)) {
  fit <- best(calls[[formula]])
  show("flexmix", formula, logLik(fit), attr(logLik(fit), "df"), parameters(fit),
       table(factor(clusters(fit), 1:2)))
}
sink(nullfile())
fit <- best(quote(regmixEM(d$y, d$x, k = 2, epsilon = 1e-12, maxit = 20000)))
sink()
show("mixtools", "y ~ x | 1", fit$loglik, 7, rbind(fit$beta, fit$sigma), fit$lambda)
fit <- Mclust(d$y, G = 2, modelNames = "V", verbose = FALSE,
              control = emControl(tol = c(1e-12, 1e-12)))
p <- fit$parameters
show("mclust", "y ~ 1 | 1", fit$loglik, fit$df, rbind(p$mean, sqrt(p$variance$sigmasq)), p$pro)
"""


def data() -> pd.DataFrame:
    """The data of the page."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 400)
    member = rng.uniform(size=400) < 0.6
    y = np.where(member, 1 + 2 * x, -1 - x) + 0.3 * rng.standard_normal(400)
    return pd.DataFrame({"x": x, "y": y})


def main() -> None:
    """Print one row a model and tool: log-likelihood, parameters, lines and deviations."""
    frame = data()
    with tempfile.TemporaryDirectory() as folder:
        frame.to_csv(table := Path(folder, "d.csv"), index=False)
        script = Path(folder, "fit.R")
        script.write_text(SCRIPT)
        command = ["Rscript", str(script), str(table)]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rows = []
    for line in said.splitlines():
        tool, formula, height, df, *values = line.strip(";").split(";")
        lines = np.array(values, dtype=float).reshape(2, -1)
        rows.append((formula, tool, float(height), int(df), lines))
    for formula in dict.fromkeys(row[0] for row in rows):
        result = moestat.fit_formula(formula, frame, rng=0)
        found = result.blocks
        slopes = found["a"] if formula.startswith("y ~ x") else np.empty((2, 0))
        ours = np.column_stack([found["b"], slopes, np.sqrt(found["nu"])])
        rows.append((formula, "moestat", result.llf, result.identified.rank, ours))
    for formula in dict.fromkeys(row[0] for row in rows):
        for _, tool, llf, free, lines in (row for row in rows if row[0] == formula):
            shown = "; ".join(", ".join(f"{value:.4f}" for value in one) for one in lines)
            cell = formula.replace("|", "\\|")
            print(f"| `{cell}` | {tool} | {llf:.3f} | {free} | {shown} |")


if __name__ == "__main__":
    main()
