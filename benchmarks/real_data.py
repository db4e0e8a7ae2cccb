"""Default fits of real data against flexmix and against the best of 200 starts.

    python benchmarks/real_data.py [SET ...]

needs Rscript with the packages flexmix, MASS and jsonlite, and the extra `sklearn`.  R exports
its own data sets when the benchmark runs.  For every set and k = 1 to 4 the table in
results/real_data.md has the log-likelihood of the default call, of flexmix (`stepFlexmix`, nrep =
10, multinomial-logit concomitants in the same inputs, the same Gaussian experts) and of the best
of 200 starts (80 from clusters, 60 by splits, 60 at random, each run to its end), with
seconds. Without names of sets all run.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

import moestat
from moestat.base.warnings import MoEWarning
from moestat.estimation.starts import ClusterStarts, RandomStarts, SplitStarts

HERE = Path(__file__).parent
EXPORT = """
suppressMessages({library(flexmix); library(MASS); library(jsonlite)})
data(NPreg, package = "flexmix")
sets <- list(
  faithful = list(faithful, "eruptions", "waiting"),
  mcycle = list(mcycle, "accel", "times"),
  NPreg = list(NPreg, "yn", "x"),
  airquality = list(na.omit(airquality), "Ozone", c("Solar.R", "Wind", "Temp")),
  cars = list(cars, "dist", "speed"),
  mtcars = list(mtcars, "mpg", c("wt", "hp")),
  iris = list(iris, "Petal.Width", c("Sepal.Length", "Petal.Length")),
  quakes = list(quakes, "mag", c("depth", "stations")),
  longley = list(longley, "Employed", c("GNP", "Population")),
  Boston = list(Boston, "medv", c("lstat", "rm")),
  trees = list(trees, "Volume", c("Girth", "Height")),
  women = list(women, "weight", "height"),
  pressure = list(pressure, "pressure", "temperature"),
  swiss = list(swiss, "Fertility", c("Agriculture", "Education")),
  stackloss = list(stackloss, "stack.loss", c("Air.Flow", "Water.Temp")),
  attitude = list(attitude, "rating", c("complaints", "learning")),
  rock = list(rock, "perm", c("area", "peri")),
  LifeCycleSavings = list(LifeCycleSavings, "sr", c("pop15", "dpi")),
  geyser = list(geyser, "waiting", "duration"),
  cats = list(cats, "Hwt", "Bwt"),
  Animals = list(data.frame(brain = log(Animals$brain), body = log(Animals$body)), "brain", "body")
)
out <- list()
wanted <- commandArgs(TRUE)[-1]
for (name in if (length(wanted)) intersect(wanted, names(sets)) else names(sets)) {
  given <- sets[[name]]; frame <- as.data.frame(given[[1]]); inputs <- given[[3]]
  data <- data.frame(y = as.numeric(frame[[given[[2]]]]), frame[inputs])
  names(data) <- c("y", paste0("x", seq_along(inputs)))
  right <- paste(names(data)[-1], collapse = "+")
  fits <- lapply(1:4, function(k) {
    set.seed(k); began <- proc.time()[[3]]
    fit <- tryCatch(suppressMessages(suppressWarnings(stepFlexmix(
      as.formula(paste("y ~", right)), data = data, k = k, nrep = 10, verbose = FALSE,
      concomitant = if (k > 1) FLXPmultinom(as.formula(paste("~", right)))
                    else FLXPconstant()))), error = function(e) NULL)
    list(llf = if (is.null(fit)) NA else as.numeric(logLik(fit)),
         k = if (is.null(fit)) NA else fit@k, seconds = proc.time()[[3]] - began)
  })
  out[[name]] <- list(y = data$y, X = as.matrix(data[-1]), fits = fits)
  write_json(out, commandArgs(TRUE)[1], digits = NA, auto_unbox = TRUE, na = "null")
}
"""


def from_r(wanted: list[str]) -> dict:
    """The data sets of R with flexmix's fits."""
    if shutil.which("Rscript") is None:
        sys.exit("this benchmark needs Rscript with flexmix, MASS and jsonlite")
    with tempfile.TemporaryDirectory() as folder:
        script, out = Path(folder) / "export.R", Path(folder) / "sets.json"
        script.write_text(EXPORT)
        subprocess.run(["Rscript", str(script), str(out), *wanted], check=True)
        return json.loads(out.read_text()) if out.exists() else {}


def from_sklearn() -> dict:
    """Sets of scikit-learn, without fits of flexmix."""
    from sklearn.datasets import load_diabetes, load_linnerud, load_wine

    diabetes, wine, linnerud = load_diabetes(), load_wine(), load_linnerud()
    return {
        "diabetes": {"X": diabetes.data, "y": diabetes.target},
        "wine": {"X": wine.data[:, 1:4], "y": wine.data[:, 0]},
        "linnerud": {"X": linnerud.data[:, :2], "y": linnerud.target[:, 0]},
    }


def best_of_200(k: int, X: np.ndarray, y: np.ndarray) -> float:
    """The highest log-likelihood of 200 starts of three kinds, each run to its end."""
    rules = [ClusterStarts(80), SplitStarts(60), RandomStarts(60)] if k > 1 else [SplitStarts(1)]
    return moestat.fit("gaussian", X, y, n_experts=k, starts=rules, rng=1).log_likelihood


def main() -> None:
    """Fit all sets, print a row of each fit, and write the table."""
    wanted = sys.argv[1:]
    warnings.simplefilter("ignore", MoEWarning)
    lines, counts = [], {"n": 0, "flexmix": 0, "not lower": 0, "near": 0, "ols": 0, "sets": 0}
    for name, given in {**from_r(wanted), **from_sklearn()}.items():
        if wanted and name not in wanted:
            continue
        X, y = np.array(given["X"], dtype=float), np.array(given["y"], dtype=float)
        counts["sets"] += 1
        for k in range(1, 5):
            if y.size < 4 * (k * (2 * X.shape[1] + 3)) and k > 1:
                continue
            start = time.process_time()
            result = moestat.fit("gaussian", X, y, n_experts=k, rng=0)
            seconds = time.process_time() - start
            start = time.process_time()
            best = max(best_of_200(k, X, y), result.log_likelihood)
            long = time.process_time() - start
            other = given.get("fits", [{}] * 4)[k - 1]
            full = other.get("llf") is not None and other.get("k") == k
            counts["n"] += 1
            counts["near"] += result.log_likelihood >= best - 0.01
            counts["flexmix"] += full
            counts["not lower"] += full and result.log_likelihood >= other["llf"] - 0.01
            if k == 1:
                design = np.column_stack([np.ones(y.size), X])
                residual = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
                ols = -0.5 * y.size * (np.log(2 * np.pi * np.mean(residual**2)) + 1)
                counts["ols"] += abs(ols - result.log_likelihood) < 1e-6 * abs(ols)
            theirs = f"{other['llf']:.3f}" if full else f"(k = {other['k']})" if other else ""
            words = "; ".join(note.split(":")[0] for note in result.notes)
            lines.append(
                f"| {name} | {y.size} | {k} | {result.log_likelihood:.3f} | {theirs} | {best:.3f} |"
                f" {seconds:.2f} / {other.get('seconds', np.nan):.2f} / {long:.2f} | {words} |"
            )
            print(lines[-1], flush=True)
    head = [
        "# Real data: default fits, flexmix and the best of 200 starts",
        "",
        f"Gaussian experts, softmax gate, {counts['sets']} sets. The default call is within .01 of"
        f" the best of 200 starts in {counts['near']} of {counts['n']} cases, and not lower than"
        f" flexmix (nrep = 10) in {counts['not lower']} of the {counts['flexmix']} in which flexmix"
        f" kept all k components; k = 1 is ordinary least squares in {counts['ols']} of"
        f" {counts['sets']}. Cases with fewer than four samples per parameter are left out.",
        "Seconds: processor time of the default call, elapsed time of flexmix, processor time of"
        " the 200 starts.",
        "",
        "| set | n | k | default | flexmix | best of 200 | seconds | notes of the fit |",
        "|---|---|---|---|---|---|---|---|",
    ]
    (HERE / "results" / "real_data.md").write_text("\n".join([*head, *lines]) + "\n")


if __name__ == "__main__":
    main()
