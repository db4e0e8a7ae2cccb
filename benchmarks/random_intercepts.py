"""Random intercepts of counts and binary responses beside brute force, for scales from .1 to 100.

    python benchmarks/random_intercepts.py

Forty data sets of 40 groups of five rows, with standard deviations of the intercepts from .1 to 100
in logarithmic steps, in turn binary responses and counts (up to a deviation of 3, beyond which
counts have no use).  The log-likelihood of each fit is computed again by a sum over equidistant
nodes, at most .2 / sd apart; the table has the differences.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
import pandas as pd
from scipy.special import gammaln, logsumexp

import moestat


def data_set(number: int) -> tuple[pd.DataFrame, str, float]:
    """Rows, the name of the likelihood and the standard deviation of one data set."""
    rng = np.random.default_rng(number)
    name = "poisson" if number % 2 else "binomial"
    sd = float(np.geomspace(0.1, 3.0 if name == "poisson" else 100.0, 20)[number // 2])
    owner, x = np.repeat(np.arange(40), 5), rng.normal(size=200)
    eta = 0.3 + 0.5 * x + sd * rng.normal(size=40)[owner]
    y = rng.poisson(np.exp(eta)) if name == "poisson" else rng.random(200) < 1 / (1 + np.exp(-eta))
    return pd.DataFrame({"id": owner, "x": x, "y": y.astype(float)}), name, sd


def height(table: pd.DataFrame, name: str, theta: np.ndarray) -> float:
    """The log-likelihood at an intercept, a slope and a standard deviation, by brute force."""
    b, a, sd = theta
    # Counts make peaks of width 1 / (sd sqrt(count)).
    step = 0.005 if name == "poisson" else 0.2 / np.clip(abs(sd), 2.0, 1000.0)
    v = np.arange(-9.0, 9.0 + step, step)
    y, x = (table[column].to_numpy().reshape(40, 5).T[:, :, None] for column in ("y", "x"))
    total: np.ndarray = np.zeros((40, v.size)) - 0.5 * v**2
    for responses, inputs in zip(y, x, strict=True):
        eta = b + a * inputs + sd * v
        if name == "poisson":
            total += responses * eta - np.exp(np.minimum(eta, 700.0)) - gammaln(responses + 1.0)
        else:
            total += responses * eta - np.logaddexp(0.0, eta)
    value = logsumexp(total, axis=1).sum() + 40 * np.log(step)
    return float(value) - 40 * 0.5 * np.log(2.0 * np.pi)


def main() -> None:
    """Print a line for each data set, and the largest differences."""
    differences = list[float]()
    for number in range(40):
        table, name, sd = data_set(number)
        began = time.process_time()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            fit = moestat.fit_formula("y ~ x + (1 | id)", table, name, n_experts=1, rng=0)
        seconds = time.process_time() - began
        own = np.array([fit.params[key] for key in ("b[0]", "a[0,x]", "l[0,0]")])
        said = sorted({w.category.__name__ for w in told if issubclass(w.category, UserWarning)})
        differences.append(abs(height(table, name, own) - fit.llf))
        print(
            f"{number:2d} {name:8s} sd {sd:7.2f} estimate {abs(own[2]):9.3f} llf {fit.llf:11.5f}"
            f" difference {differences[-1]:.1e}"
            f" {seconds:5.2f} s {' '.join(said)}",
            flush=True,
        )
    print(f"largest difference {max(differences):.1e}")


if __name__ == "__main__":
    main()
