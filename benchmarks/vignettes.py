"""Models of flexmix's vignettes beside ours: log-likelihoods on the same data.

    python benchmarks/vignettes.py

Needs Rscript with flexmix, of which the data and the models are: Leisch (2004) and Gruen and Leisch
(2008).  flexmix has the best of ten random starts, ours is one default call.  Two responses are in
several_responses.py.  Results: results/vignettes.md.
"""

from __future__ import annotations

import subprocess
import tempfile
import warnings
from pathlib import Path

import pandas as pd
from results import FOLDER

import moestat
from moestat.base.warnings import MoEWarning

_POISSON = 'model = FLXMRglm(family = "poisson")'
_FIXED = 'model = FLXMRglmfix(family = "{}", fixed = ~ {})'
_GATE = ", concomitant = FLXPmultinom(~ {})"
_NESTED = (
    'model = FLXMRglmfix(family = "poisson", nested = list(k = 1:2, formula = c(~lgRD, ~lgRD)))'
)
_SCIENCE = "fem + mar + kid5 + phd + ment"

# Data; flexmix's formula, number of components, model; ours, family, options.
MODELS = [
    ("NPreg", "yn ~ x + I(x^2)", 2, "", "yn ~ x + I(x^2) | 1", "gaussian", {}),
    ("NPreg", "yn ~ x + I(x^2) | id2", 2, "", "yn ~ x + I(x^2) | 1 | id2", "gaussian", {}),
    (
        "fabricfault",
        "Faults ~ 1",
        2,
        _FIXED.format("poisson", "log(Length)"),
        "Faults ~ log(Length) | 1",
        "poisson",
        {"equal": ["a"]},
    ),
    (
        "patent",
        "Patents ~ lgRD",
        3,
        _POISSON + _GATE.format("RDS"),
        "Patents ~ lgRD | RDS",
        "poisson",
        {},
    ),
    (
        "patent",
        "Patents ~ 1",
        3,
        _NESTED + _GATE.format("RDS"),
        "Patents ~ lgRD | RDS",
        "poisson",
        {"equal": {"a": [[1, 2]]}},
    ),
    (
        "betablocker",
        "cbind(Deaths, Total - Deaths) ~ 1 | Center",
        3,
        _FIXED.format("binomial", "Treatment"),
        "cbind(Deaths, Total - Deaths) ~ Treatment | 1 | Center",
        "binomial",
        {"equal": ["a"]},
    ),
    (
        "betablocker",
        "cbind(Deaths, Total - Deaths) ~ Treatment | Center",
        2,
        'model = FLXMRglm(family = "binomial")',
        "cbind(Deaths, Total - Deaths) ~ Treatment | 1 | Center",
        "binomial",
        {},
    ),
    (
        "seizure",
        "Seizures ~ Treatment * log(Day)",
        2,
        'model = FLXMRglm(family = "poisson", offset = log(seizure$Hours))',
        "Seizures ~ Treatment * log(Day) + offset(log(Hours)) | 1",
        "poisson",
        {},
    ),
    (
        "tribolium",
        "cbind(Remaining, Total - Remaining) ~ 1",
        2,
        _FIXED.format("binomial", "Species") + _GATE.format("Replicate"),
        "cbind(Remaining, Total - Remaining) ~ Species | C(Replicate)",
        "binomial",
        {"equal": ["a"]},
    ),
    (
        "trypanosome",
        "cbind(Dead, 1 - Dead) ~ 1",
        2,
        _FIXED.format("binomial", "log(Dose)"),
        "Dead ~ log(Dose) | 1",
        "binomial",
        {"equal": ["a"]},
    ),
    (
        "salmonellaTA98",
        "y ~ 1",
        2,
        _FIXED.format("poisson", "x + log(x + 10)"),
        "y ~ x + log(x + 10) | 1",
        "poisson",
        {"equal": ["a"]},
    ),
    (
        "candy",
        "Packages ~ 1",
        5,
        _POISSON + ", weights = ~ Freq",
        "Packages ~ 1 | 1",
        "poisson",
        {"weights": "Freq"},
    ),
    ("dmft", "End ~ 1", 2, _POISSON, "End ~ 1 | 1", "poisson", {}),
    (
        "dmft",
        "End ~ Gender + Ethnic + Treatment",
        2,
        'model = FLXMRziglm(family = "poisson")',
        "End ~ Gender + Ethnic + Treatment | 1",
        "zero-inflated-poisson",
        {"n_experts": 1},
    ),
    (
        "bioChemists",
        f"art ~ {_SCIENCE}",
        2,
        _POISSON,
        f"art ~ {_SCIENCE} | 1",
        "poisson",
        {},
    ),
    (
        "bioChemists",
        f"art ~ {_SCIENCE}",
        2,
        'model = FLXMRziglm(family = "poisson")',
        f"art ~ {_SCIENCE} | 1",
        "zero-inflated-poisson",
        {"n_experts": 1},
    ),
]


def of_r(folder: str) -> list[tuple[float, int]]:
    """Log-likelihood and degrees of freedom of flexmix; the data go to the folder."""
    code = "suppressMessages(library(flexmix)); set.seed(1)\n"
    for name in dict.fromkeys(model[0] for model in MODELS):
        code += f'data("{name}"); write.csv({name}, "{folder}/{name}.csv", row.names = FALSE)\n'
    for name, formula, k, model, *_ in MODELS:
        given = f", {model}" if model else ""
        code += (
            f"m <- stepFlexmix({formula}, data = {name}, k = {k}, nrep = 10, verbose = FALSE,"
            f" control = list(tolerance = 1e-10, iter.max = 5000, minprior = 0){given})\n"
            'cat(sprintf("%.9f %d\\n", as.numeric(logLik(m)), attr(logLik(m), "df")))\n'
        )
    done = subprocess.run(["Rscript", "-e", code], capture_output=True, text=True, check=True)
    pairs = (line.split() for line in done.stdout.splitlines())
    return [(float(height), int(df)) for height, df in (p for p in pairs if len(p) == 2)]


def main() -> None:
    """Run both and write the table."""
    lines = [
        "# Models of flexmix's vignettes",
        "",
        "See benchmarks/vignettes.py. Where a response is normal flexmix divides sums of squares by"
        " n - p, ours by n, and its log-likelihood is a little below the maximum.",
        "",
        "| data | our formula | k | df | flexmix | moestat | difference | certified |",
        "|---|---|---|---|---|---|---|---|",
    ]
    warnings.simplefilter("ignore", MoEWarning)
    with tempfile.TemporaryDirectory() as folder:
        for model, (height, df) in zip(MODELS, of_r(folder), strict=True):
            name, _, k, _, formula, family, options = model
            data = pd.read_csv(Path(folder, f"{name}.csv"))
            given = {"n_experts": k, "rng": 0, **options}
            fit = moestat.fit_formula(formula, data, family, **given)
            both = f"{df}" if df == fit.edf else f"{df}, {fit.edf:g}"
            certified = "yes" if fit.certificate.certified else "no"
            shown = f"`{formula}`, {family}".replace("|", "\\|")
            lines.append(
                f"| {name} | {shown} | {given['n_experts']} | {both} | {height:.4f} | {fit.llf:.4f}"
                f" | {fit.llf - height:+.4f} | {certified} |"
            )
            print(lines[-1], flush=True)
    (FOLDER / "vignettes.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
