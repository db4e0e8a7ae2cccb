"""Numbers of flexmix beside ours for the page on coming from it; ``python docs/flexmix.py``.

It needs Rscript with the package flexmix, and prints the rows of the table in
docs/guide/coming_from.md.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import moestat

SCRIPT = """
suppressMessages(library(flexmix)); set.seed(1)
d <- read.csv(commandArgs(TRUE)[1])
control <- list(iter.max = 20000, tolerance = 1e-12, minprior = 0)
calls <- list(
  quote(flexmix(y ~ x, data = d, k = 2, concomitant = FLXPmultinom(~ x), control = control)),
  quote(flexmix(y ~ x, data = d, k = 2, control = control)),
  quote(flexmix(y ~ 1, data = d, k = 2, control = control)))
for (call in calls) {
  fits <- lapply(1:5, function(i) eval(call))
  fit <- fits[[which.max(sapply(fits, logLik))]]
  order <- order(table(factor(clusters(fit), 1:2)), decreasing = TRUE)
  cat(logLik(fit), attr(logLik(fit), "df"), parameters(fit)[, order], "\\n")
}
"""
FORMULAS = ("y ~ x | x", "y ~ x | 1", "y ~ 1 | 1")


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
    for formula, line in zip(FORMULAS, said.splitlines(), strict=True):
        height, df, *values = map(float, line.split())
        theirs = np.array(values).reshape(2, -1)
        result = moestat.fit_formula(formula, frame, rng=0)
        found = result.blocks
        slopes = found["a"] if formula.startswith("y ~ x") else np.empty((2, 0))
        ours = np.column_stack([found["b"], slopes, np.sqrt(found["nu"])])
        numbers = (result.llf, result.identified.rank, ours)
        for tool, (llf, free, lines) in {
            "flexmix": (height, int(df), theirs),
            "moestat": numbers,
        }.items():
            shown = "; ".join(", ".join(f"{value:.4f}" for value in one) for one in lines)
            cell = formula.replace("|", "\\|")
            print(f"| `{cell}` | {tool} | {llf:.3f} | {free} | {shown} |")


if __name__ == "__main__":
    main()
