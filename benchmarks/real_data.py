"""Default fits of real data against flexmix and against the best of 200 starts.

    python benchmarks/real_data.py [--seconds 60] [SET ...]

needs Rscript with flexmix, MASS, boot and mclust, and the extra `sklearn`; statsmodels serves k = 1
for classes.  R exports its data sets when the benchmark runs, all in one process, and fits each
with flexmix in a process of its own that has a limit of elapsed seconds: the multinomial-logit
concomitants of flexmix take minutes where there are a thousand samples.  For every set and k = 1
to 4 the table in results/real_data.md has the log-likelihood of the default call, of flexmix
(`stepFlexmix`, nrep = 10, the same experts and, as concomitants, the same softmax gate in the same
inputs: the same model), of the call with ``maximum="highest"``, and of the best of 200 starts (80
from clusters, 60 by splits, 60 at random, each run to its end), with seconds.  Without names of
sets all run; each set's rows take the place of its old ones.
"""

from __future__ import annotations

import argparse
import csv
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import moestat
from moestat.base.warnings import MoEWarning
from moestat.estimation.starts import ClusterStarts, RandomStarts, SplitStarts

HERE = Path(__file__).parent
EXPERTS = (1, 2, 3, 4)

R_SETS = """
suppressMessages({library(flexmix); library(MASS); library(boot); library(mclust)})
data(NPreg, package = "flexmix"); data(fabricfault, package = "flexmix")
set.seed(1); prices <- data.frame(x = runif(300, 500, 4000))
prices$y <- 50000 + 150 * prices$x + rnorm(300, 0, 20000)
sets <- list(
  prices = list(prices, "y", "x"),
  NPreg = list(NPreg, "yn", "x"),
  faithful = list(faithful, "eruptions", "waiting"),
  Boston = list(Boston, "medv", c("lstat", "rm")),
  mcycle = list(mcycle, "accel", "times"),
  airquality = list(na.omit(airquality), "Ozone", c("Solar.R", "Wind", "Temp")),
  longley = list(longley, "Employed", c("GNP", "Population")),
  quakes = list(quakes, "mag", c("depth", "stations")),
  iris = list(iris, "Petal.Width", c("Sepal.Length", "Petal.Length")),
  mtcars = list(mtcars, "mpg", c("wt", "hp")),
  cars = list(cars, "dist", "speed"),
  trees = list(trees, "Volume", c("Girth", "Height")),
  swiss = list(swiss, "Fertility", c("Agriculture", "Education")),
  stackloss = list(stackloss, "stack.loss", c("Air.Flow", "Water.Temp")),
  attitude = list(attitude, "rating", c("complaints", "learning")),
  rock = list(rock, "perm", c("area", "peri")),
  LifeCycleSavings = list(LifeCycleSavings, "sr", c("pop15", "dpi")),
  geyser = list(geyser, "waiting", "duration"),
  cats = list(cats, "Hwt", "Bwt"),
  whiteside = list(whiteside, "Gas", "Temp"),
  GAGurine = list(GAGurine, "GAG", "Age"),
  crabs = list(crabs, "FL", c("RW", "CW")),
  UScrime = list(UScrime, "y", c("Po1", "Ineq")),
  cloth = list(cloth, "y", "x"),
  motor = list(motor, "accel", "times"),
  fabricfault = list(fabricfault, "Faults", "Length"),
  `iris species` = list(iris, "Species", c("Petal.Length", "Petal.Width")),
  `birthwt low` = list(birthwt, "low", c("age", "lwt")),
  `Pima.tr type` = list(Pima.tr, "type", c("glu", "bmi")),
  `diabetes class` = list(mclust::diabetes, "class", c("glucose", "insulin"))
)
classes <- c("iris species", "birthwt low", "Pima.tr type", "diabetes class")
table_of <- function(name) {
  given <- sets[[name]]; frame <- as.data.frame(given[[1]])
  y <- frame[[given[[2]]]]
  y <- if (name %in% classes) as.integer(as.factor(y)) else as.numeric(y)
  data <- data.frame(y, frame[given[[3]]])
  names(data) <- c("y", paste0("x", seq_along(given[[3]])))
  data
}
"""
EXPORT = """
for (name in names(sets))
  write.csv(format(table_of(name), digits = 17), file.path(folder, paste0(name, ".csv")),
            row.names = FALSE, quote = FALSE)
writeLines(classes, file.path(folder, "classes.txt"))
"""
FLEXMIX = """
data <- read.csv(file.path(folder, paste0(name, ".csv")))
right <- paste(names(data)[-1], collapse = "+")
formula <- as.formula(paste("y ~", right))
is_class <- name %in% readLines(file.path(folder, "classes.txt"))
if (is_class) data$y <- factor(data$y)
for (k in 1:4) {
  set.seed(k); began <- proc.time()[["elapsed"]]
  model <- if (!is_class) FLXMRglm(formula)
           else if (nlevels(data$y) == 2) FLXMRglm(as.formula(paste(
             "cbind(as.integer(y) - 1, 2 - as.integer(y)) ~", right)), family = "binomial")
           else FLXMRmultinom(formula)
  gate <- if (k > 1) FLXPmultinom(as.formula(paste("~", right))) else FLXPconstant()
  fit <- tryCatch(suppressMessages(suppressWarnings(stepFlexmix(
    formula, data = data, k = k, nrep = 10, verbose = FALSE, model = model,
    concomitant = gate))), error = function(e) NULL)
  kept <- if (is.null(fit)) 0 else fit@k
  llf <- if (is.null(fit)) NA else as.numeric(logLik(fit))
  cat(paste(k, kept, format(llf, digits = 17), proc.time()[["elapsed"]] - began, sep = ","), "\\n",
      file = file.path(folder, paste0(name, ".fits")), append = TRUE)
}
"""


@dataclass(frozen=True)
class DataSet:
    """Inputs (n, d), responses (n,), and whether these are classes."""

    X: np.ndarray
    y: np.ndarray
    classes: bool = False

    @property
    def likelihood(self) -> str:
        """Name of the likelihood that fits the responses."""
        return "multinomial" if self.classes else "gaussian"


@dataclass(frozen=True)
class Theirs:
    """A fit of flexmix: components that it kept, log-likelihood, elapsed seconds."""

    kept: int
    llf: float
    seconds: float


def run_r(source: str, folder: Path, seconds: float | None = None, **values: str) -> bool:
    """Whether an R process with these values ended within a limit of elapsed seconds."""
    given = {"folder": str(folder), **values}
    lines = [f'{key} <- "{value}"' for key, value in given.items()]
    script = folder / "script.R"
    script.write_text("\n".join([*lines, source]))
    try:
        subprocess.run(["Rscript", str(script)], check=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def from_r(folder: Path) -> dict[str, DataSet]:
    """The data sets of R, as its one process writes them to a folder."""
    run_r(R_SETS + EXPORT, folder)
    classes = (folder / "classes.txt").read_text().splitlines()
    sets = {}
    for path in sorted(folder.glob("*.csv")):
        table = np.loadtxt(path, delimiter=",", skiprows=1)
        sets[path.stem] = DataSet(table[:, 1:], table[:, 0], path.stem in classes)
    return sets


def from_python() -> dict[str, DataSet]:
    """Sets of scikit-learn and statsmodels."""
    from sklearn.datasets import load_breast_cancer, load_diabetes, load_linnerud, load_wine
    from statsmodels.datasets import anes96, engel, spector, star98

    diabetes, wine, linnerud = load_diabetes(), load_wine(), load_linnerud()
    cancer = load_breast_cancer()
    food, votes = engel.load_pandas().data, anes96.load_pandas().data
    grades, schools = spector.load_pandas().data, star98.load_pandas().data
    return {
        "diabetes": DataSet(diabetes.data, diabetes.target),
        "wine": DataSet(wine.data[:, 1:4], wine.data[:, 0]),
        "linnerud": DataSet(linnerud.data[:, :2], linnerud.target[:, 0]),
        "engel": DataSet(food[["income"]].to_numpy(), food["foodexp"].to_numpy()),
        "star98": DataSet(
            schools[["LOWINC", "PERASIAN"]].to_numpy(), schools["NABOVE"].to_numpy(float)
        ),
        "anes96 vote": DataSet(votes[["age", "selfLR"]].to_numpy(), votes["vote"], True),
        "spector grade": DataSet(grades[["GPA", "TUCE"]].to_numpy(), grades["GRADE"], True),
        "wine cultivar": DataSet(wine.data[:, [0, 6]], wine.target, True),
        "breast cancer": DataSet(cancer.data[:, [1, 4]], cancer.target, True),
    }


def flexmix_fits(name: str, data: DataSet, folder: Path, seconds: float) -> dict[int, Theirs]:
    """What flexmix finds for each k within a limit of elapsed seconds for all of them."""
    np.savetxt(
        folder / f"{name}.csv",
        np.column_stack([data.y, data.X]),
        delimiter=",",
        fmt="%.17g",
        comments="",
        header=",".join(["y", *(f"x{j + 1}" for j in range(data.X.shape[1]))]),
    )
    (folder / "classes.txt").write_text(f"{name}\n" if data.classes else "none\n")
    run_r("suppressMessages(library(flexmix))\n" + FLEXMIX, folder, seconds, name=name)
    path = folder / f"{name}.fits"
    if not path.exists():
        return {}
    with path.open() as lines:
        rows = list(csv.reader(lines))
    return {
        int(k): Theirs(int(kept), float(llf.replace("NA", "nan")), float(elapsed))
        for k, kept, llf, elapsed in rows
    }


def best_of_200(k: int, data: DataSet):
    """The highest fit of 200 starts of three kinds, each run to its end."""
    rules = [ClusterStarts(80), SplitStarts(60), RandomStarts(60)] if k > 1 else [SplitStarts(1)]
    return moestat.fit(data.likelihood, data.X, data.y, n_experts=k, starts=rules, rng=1)


def improper(result) -> str:
    """Why a fit is no finite maximum in the interior; nothing where it is a certified one."""
    kinds = ("on a default bound", "the likelihood has no finite maximum")
    found = [note.split(":")[0] for note in result.notes if note.startswith(kinds)]
    if result.certificate.collapsed:
        found.append("an expert of a few samples")
    if not (found or result.certificate.certified):
        found.append("not certified")
    return "; ".join(found)


def one_expert(data: DataSet) -> float:
    """Log-likelihood of ordinary least squares, or of statsmodels' MNLogit."""
    design = np.column_stack([np.ones(data.y.size), data.X])
    if data.classes:
        from statsmodels.discrete.discrete_model import MNLogit

        scaled = design / np.abs(design).max(axis=0)
        fitted = MNLogit(data.y, scaled).fit(method="newton", maxiter=200, disp=0)
        return float(fitted.llf)
    residual = data.y - design @ np.linalg.lstsq(design, data.y, rcond=None)[0]
    return float(-0.5 * data.y.size * (np.log(2 * np.pi * np.mean(residual**2)) + 1))


def enough(data: DataSet, k: int) -> bool:
    """Whether there are four samples per parameter; with one expert least squares always runs."""
    width, classes = 1 + data.X.shape[1], np.unique(data.y).size if data.classes else 0
    parameters = (k - 1) * width + k * (width * (classes - 1) if classes else width + 1)
    return k == 1 or data.y.size >= 4 * parameters


def timed(call, *given):
    """What a call returns, and its processor time."""
    start = time.process_time()
    value = call(*given)
    return value, time.process_time() - start


def fit(k: int, data: DataSet, maximum: str):
    """A call with one seed, by default but for the maximum that it looks for."""
    options = {"n_experts": k, "rng": 0, "maximum": maximum}
    return moestat.fit(data.likelihood, data.X, data.y, **options)


def main() -> None:
    """Fit the sets, print a row of each fit, and write the rows into the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="*", metavar="SET")
    parser.add_argument("--seconds", type=float, default=60.0, help="limit of flexmix for a set")
    given = parser.parse_args()
    if shutil.which("Rscript") is None:
        sys.exit("this benchmark needs Rscript with flexmix, MASS, boot and mclust")
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as name_of_folder:
        folder = Path(name_of_folder)
        sets = {**from_r(folder), **from_python()}
        unknown = set(given.sets) - set(sets)
        if unknown:
            sys.exit(f"unknown sets: {', '.join(sorted(unknown))}; known: {', '.join(sets)}")
        for name in given.sets or sets:
            theirs = flexmix_fits(name, sets[name], folder, given.seconds)
            rows = []
            for k in EXPERTS:
                if enough(sets[name], k):
                    rows.append(row(name, sets[name], k, theirs.get(k), given.seconds))
                    print(f"| {' | '.join(rows[-1])} |", flush=True)
            write(rows)


def row(name: str, data: DataSet, k: int, theirs: Theirs | None, limit: float) -> list[str]:
    """A row of the table."""
    result, seconds = timed(fit, k, data, "regular")
    highest, longer = timed(fit, k, data, "highest")
    best, long = timed(best_of_200, k, data)
    shown, elapsed = f"limit of {limit:g} s", "-"
    if theirs is not None:
        elapsed = f"{theirs.seconds:.2f}"
        shown = f"(k = {theirs.kept})" if theirs.kept else "(error)"
        if theirs.kept == k and np.isfinite(theirs.llf):
            shown = f"{theirs.llf:.3f}"
    alone = "" if k > 1 else f"{one_expert(data):.6f}"
    words = "; ".join(note.split(":")[0] for note in result.notes)
    llf = f"{result.log_likelihood:.6f}" if k == 1 else f"{result.log_likelihood:.3f}"
    times = f"{seconds:.2f} / {longer:.2f} / {elapsed} / {long:.2f}"
    heights = [f"{each.log_likelihood:.3f}" for each in (highest, best)]
    known = [name, str(data.y.size), str(k), llf, alone, shown]
    return [*known, *heights, times, words, improper(best)]


def write(rows: list[list[str]]) -> None:
    """Put the rows of a set into the table, in place of its old ones, and count again."""
    path = HERE / "results" / "real_data.md"
    lines = path.read_text().splitlines() if path.exists() else []
    table = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line[:1] == "|"]
    table = [kept for kept in table[2:] if kept[0] != rows[0][0]] + rows
    proper = [line for line in table if not line[10]]
    others = [line for line in table if line[10]]
    kept = [line for line in table if line[5][-1].isdigit()]

    def reach(lines: list[list[str]], column: int, other: int) -> int:
        """In how many lines a column is at most .01 below another one."""
        return sum(float(line[column]) >= float(line[other]) - 0.01 for line in lines)

    alone = [(float(line[3]), float(line[4])) for line in table if line[4]]
    equal = sum(abs(llf - other) <= 1e-6 * max(abs(other), 1.0) for llf, other in alone)
    head = f"""# Real data: default fits, flexmix and the best of 200 starts

{len({line[0] for line in table})} sets, softmax gates, Gaussian or multinomial-logit experts. The \
default call looks for a regular maximum: not for the highest one, which may have an expert of a \
few rows or a gate that diverges. It is within .01 of the best of 200 starts in \
{reach(proper, 3, 7)} of the {len(proper)} cases in which that is a certified maximum in the \
interior, and in {reach(others, 3, 7)} of the {len(others)} in which the likelihood has no finite \
maximum there or the best lies on a bound, which the last column says; with `maximum="highest"` \
in {reach(proper, 6, 7)} and {reach(others, 6, 7)}. flexmix (nrep = 10) kept all k components in \
{len(kept)}: the default is not lower in {reach(kept, 3, 5)} of them, with `maximum="highest"` in \
{reach(kept, 6, 5)}. With k = 1 the default is ordinary least squares or MNLogit, to 1e-6, in \
{equal} of {len(alone)}. Cases with \
fewer than four samples per parameter are left out.

With k = 1 flexmix divides the variance by n less the number of coefficients, so its \
log-likelihood is below that of least squares. Its components of less than 5% of the samples are \
dropped, which the column says. `limit`: flexmix had not ended after these seconds with all k up \
to this one. Seconds: processor time of the default call and of the one for the highest maximum, \
elapsed time of flexmix, processor time of the 200 starts.

| set | n | k | default | OLS, MNLogit | flexmix | highest | best of 200 | seconds | notes of the \
fit | the best is |
|---|---|---|---|---|---|---|---|---|---|---|
"""
    lines = [f"| {' | '.join(line)} |" for line in table]
    path.write_text(head + "\n".join(lines) + "\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore", MoEWarning)
    main()
