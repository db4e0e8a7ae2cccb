"""One expert beside R: the same data, log-likelihoods and coefficients of both.

    python benchmarks/r_models.py

Needs Rscript with survival, pscl and MASS.  Results: results/r_models.md.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from results import FOLDER

import moestat

_R = """
d <- read.csv("FILE"); suppressMessages({library(survival); library(pscl); library(MASS)})
out <- function(name, model, coefs) cat(sprintf('["%s", %.12f, [%s]]\\n', name,
  as.numeric(logLik(model)), paste(sprintf("%.12f", coefs), collapse = ", ")))
m <- glm(cbind(s, n - s) ~ x, binomial, d, epsilon = 1e-14); out("binomial", m, coef(m))
m <- survreg(Surv(time, known) ~ x, d, dist = "weibull", rel.tolerance = 1e-14)
out("weibull", m, coef(m))
m <- survreg(Surv(time, known) ~ x, d, dist = "lognormal", rel.tolerance = 1e-14)
out("log-normal", m, coef(m))
m <- survreg(Surv(time, known) ~ x, d, dist = "exponential", rel.tolerance = 1e-14)
out("exponential", m, coef(m))
m <- zeroinfl(y ~ x | 1, d, reltol = 1e-14); out("zero-inflated-poisson", m, coef(m)[1:2])
m <- hurdle(y ~ x | 1, d, reltol = 1e-14); out("hurdle-poisson", m, coef(m)[1:2])
m <- glm.nb(y ~ x, d, control = glm.control(epsilon = 1e-14, maxit = 200))
out("negative-binomial", m, coef(m))
m <- polr(factor(grade) ~ x, d, control = list(reltol = 1e-14)); out("ordinal", m, coef(m))
"""


def table() -> pd.DataFrame:
    """Responses of all kinds over one input."""
    rng = np.random.default_rng(0)
    x, n = rng.normal(size=400), rng.integers(1, 20, 400)
    time, end = np.exp(1 + 0.5 * x) * rng.exponential(size=400) ** 0.7, rng.exponential(8, 400)
    score = x + rng.logistic(size=400)
    return pd.DataFrame(
        {
            "x": x,
            "n": n,
            "s": rng.binomial(n, 1 / (1 + np.exp(-0.5 + x))),
            "time": np.minimum(time, end),
            "known": (time <= end).astype(int),
            "y": np.where(rng.random(400) < 0.3, 0, rng.poisson(np.exp(1 + 0.4 * x))),
            "grade": np.digitize(score, [-1.0, 0.5]) + 1,
        }
    )


def ours(name: str, data: pd.DataFrame) -> tuple[float, np.ndarray]:
    """Log-likelihood and coefficients, the intercept first where R gives one."""
    data = data.assign(high=np.where(data.known == 1, data.time, np.inf))
    left = {"binomial": "cbind(s, n - s)", "ordinal": "grade"}
    if name in {"weibull", "log-normal", "exponential"}:
        left[name] = "cbind(time, high)"
    fit = moestat.fit_formula(f"{left.get(name, 'y')} ~ x", data, name, n_experts=1, rng=0)
    slope = fit.blocks["a"].ravel()
    return fit.llf, slope if name == "ordinal" else np.append(fit.blocks["b"].ravel(), slope)


def main() -> None:
    """Run both and write the table."""
    data = table()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "data.csv")
        data.to_csv(path, index=False, float_format="%.17g")
        code = _R.replace("FILE", str(path))
        read = pd.read_csv(path)
        done = subprocess.run(["Rscript", "-e", code], capture_output=True, text=True, check=True)
    lines = [
        "# One expert beside R",
        "",
        "400 rows of made data, see benchmarks/r_models.py. The last column is the largest"
        " difference of a coefficient.",
        "",
        "| likelihood | R | moestat | coefficients |",
        "|---|---|---|---|",
    ]
    for name, height, coefficients in map(json.loads, done.stdout.splitlines()):
        llf, found = ours(name, read)
        gap = np.abs(found - coefficients).max() if found.size == len(coefficients) else np.nan
        lines.append(f"| {name} | {height:.6f} | {llf:.6f} | {gap:.0e} |")
    text = "\n".join(lines) + "\n"
    print(text)
    (FOLDER / "r_models.md").write_text(text)


if __name__ == "__main__":
    main()
