"""Third steps: bias and coverage on simulated data, and estimates beside StepMix.

    python benchmarks/three_step.py [--sets 200]

Designs: two regression lines of which a sixth, or a fourteenth, of the rows is assigned wrongly,
and three latent classes with six binary items, as in Bakk and Kuha (2018), whose items are answered
rightly with probability 0.8 or 0.9.  An outcome is normal with means 1, 2 (and 3); the log-odds of
class 1 against the last one have the slope 1 in a covariate.  Beside the three methods: rows
assigned to their most probable class as if that were known, and a gate that reads the covariate, in
one step.  With the package stepmix (Morin et al., 2025) at hand, estimates are compared.

Results: results/three_step.md.
"""

from __future__ import annotations

import argparse
import importlib.util
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import statsmodels.api as sm
from results import FOLDER

import moestat

METHODS = ("bch", "ml", "two-step")
SIZE = 500


def members(age: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """Classes (n,) from 0: log-odds against the last one of age in the first, 0 in others."""
    eta = np.zeros((age.size, k))
    eta[:, 0] = age
    chance = np.exp(eta) / np.exp(eta).sum(axis=1, keepdims=True)
    return np.sum(rng.random(age.size)[:, None] > np.cumsum(chance, axis=1)[:, :-1], axis=1)


def lines(height: float) -> Callable[[np.random.Generator], tuple[Any, ...]]:
    """Two regression lines that cross where x is -height."""

    def draw(rng: np.random.Generator) -> tuple[Any, ...]:
        age, x = rng.normal(size=(2, SIZE))
        who = members(age, 2, rng)
        y = np.where(who == 0, height + x, -height - x) + rng.normal(size=SIZE)
        return who, age, pd.DataFrame({"x": x, "y": y}), "y ~ x | {}", "gaussian"

    return draw


def items(right: float) -> Callable[[np.random.Generator], tuple[Any, ...]]:
    """Three classes: all items likely, the first three, none; Bakk and Kuha (2018), Sec. 4."""

    def draw(rng: np.random.Generator) -> tuple[Any, ...]:
        age = rng.normal(size=SIZE)
        who = members(age, 3, rng)
        likely = np.array([[1] * 6, [1] * 3 + [0] * 3, [0] * 6])[who]
        table = pd.DataFrame(
            rng.random((SIZE, 6)) < np.where(likely, right, 1 - right), columns=list("abcdef")
        ).astype(float)
        return who, age, table, "cbind(a, b, c, d, e, f) ~ 1 | {}", ["binomial"] * 6

    return draw


DESIGNS = {
    "lines, near": lines(1.0),
    "lines, apart": lines(2.0),
    "items, 0.8": items(0.8),
    "items, 0.9": items(0.9),
}


def labelled(fit: Any, who: np.ndarray, k: int) -> Any:
    """The fit with the labels of the truth, by the classes of most rows."""
    from scipy.optimize import linear_sum_assignment

    table = np.zeros((k, k))
    np.add.at(table, who, np.asarray(fit.responsibilities))
    return fit.relabel((1 + linear_sum_assignment(-table)[1]).tolist())


def naive(z: np.ndarray, age: np.ndarray, own: np.ndarray, k: int) -> Iterator[tuple[str, Any]]:
    """Estimates and errors with assignments as if they were known."""
    mean = np.array([z[own == t].mean() for t in range(k)])
    error = np.array([z[own == t].std(ddof=1) / np.sqrt(np.sum(own == t)) for t in range(k)])
    yield "mean", (mean, error)
    logit = sm.MNLogit(k - 1 - own, sm.add_constant(age)).fit(disp=0)
    yield "slope", (logit.params[1, -1:], logit.bse[1, -1:])


def estimates(draw: Any, seed: int) -> Iterator[tuple[str, str, Any, Any, Any]]:
    """Quantity, method, estimate, error and truth in one data set; nothing where a fit fails."""
    rng = np.random.default_rng(seed)
    who, age, table, formula, family = draw(rng)
    k = int(who.max()) + 1
    z = who + 1.0 + rng.normal(size=SIZE)
    table["age"] = age
    options = {"n_experts": k, "rng": seed}
    fit = moestat.fit_formula(formula.format(1), table, family, **options)
    fit = labelled(fit, who, k)
    truth = {"mean": np.arange(1.0, k + 1.0), "slope": np.ones(1)}
    own = np.asarray(fit.responsibilities).argmax(axis=1)
    for name, (value, error) in naive(z, age, own, k):
        yield name, "assigned", value, error, truth[name]
    for method in METHODS:
        found = fit.distal(z, method)
        value, error = (s.xs("mean", level=1).to_numpy() for s in (found.params, found.bse))
        yield "mean", method, value, error, truth["mean"]
        found = fit.covariates(table[["age"]], method)
        value, error = (s[1, "age"] for s in (found.params, found.bse))
        yield "slope", method, np.array([value]), np.array([error]), truth["slope"]
    one = labelled(moestat.fit_formula(formula.format("age"), table, family, **options), who, k)
    at = one.param_names.index("beta1[1,age]")
    yield "slope", "one step", one.theta[[at]], one.theta_bse[[at]], truth["slope"]


def simulated(sets: int) -> list[str]:
    """Lines of the table of bias and coverage."""
    found = []
    for name, draw in DESIGNS.items():
        kept: dict[tuple[str, str], list[Any]] = {}
        lost = 0
        for seed in range(sets):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    rows = list(estimates(draw, seed))
                except ValueError:
                    lost += 1
                    continue
            for quantity, method, value, error, truth in rows:
                kept.setdefault((quantity, method), []).append((value - truth, error))
        for (quantity, method), each in kept.items():
            gap, error = (np.array([one[j] for one in each]) for j in (0, 1))
            held = np.mean(np.abs(gap) < 1.959964 * error)
            worst = np.abs(gap.mean(axis=0)).max()
            ratio = np.sqrt(np.mean(error**2) / np.mean((gap - gap.mean(axis=0)) ** 2))
            cells = f"{worst:.3f} | {np.sqrt(np.mean(gap**2)):.3f} | {ratio:.2f} | {held:.1%}"
            found.append(f"| {name} | {quantity} | {method} | {cells} | {lost} |")
            print(found[-1], flush=True)
    return found


def beside_stepmix() -> list[str]:
    """Largest differences from StepMix over ten data sets of each design of items."""
    from stepmix.stepmix import StepMix

    options = {"abs_tol": 1e-13, "rel_tol": 0.0, "max_iter": 5000, "n_init": 20}
    options |= {"random_state": 0, "progress_bar": 0, "measurement": "bernoulli"}
    cases = (
        ("mean", "bch", {"n_steps": 3, "correction": "BCH", "structural": "gaussian_unit"}),
        ("slope", "bch", {"n_steps": 3, "correction": "BCH", "structural": "covariate"}),
        ("slope", "ml", {"n_steps": 3, "correction": "ML", "structural": "covariate"}),
        ("slope", "two-step", {"n_steps": 2, "structural": "covariate"}),
    )
    worst = dict.fromkeys([case[:2] for case in cases], 0.0)
    for design in ("items, 0.8", "items, 0.9"):
        for seed in range(5):
            rng = np.random.default_rng(seed)
            who, age, table, formula, family = DESIGNS[design](rng)
            z = who + 1.0 + rng.normal(size=SIZE)
            fit = moestat.fit_formula(formula.format(1), table, family, n_experts=3, rng=seed)
            tau = np.asarray(fit.responsibilities)
            for quantity, method, own in cases:
                given = z[:, None] if quantity == "mean" else age[:, None]
                if quantity == "slope":
                    steps = 200 if method == "bch" else 1
                    own = own | {
                        "structural_params": {
                            "method": "newton-raphson",
                            "max_iter": steps,
                            "lr": 1.0,
                        }
                    }
                other = StepMix(n_components=3, assignment="modal", **options, **own)
                other.fit(table.to_numpy(), given)
                # Their classes in the order of ours, by what rows they are likely for.
                measured = np.asarray(other.get_parameters()["measurement"]["pis"])
                ours = np.array([tau[:, t] @ table / tau[:, t].sum() for t in range(3)])
                order = [int(np.argmin(np.abs(measured - each).sum(axis=1))) for each in ours]
                parts = other.get_parameters()["structural"]
                if quantity == "mean":
                    theirs = np.ravel(parts["means"])[order]
                    mine = fit.distal(z, method).params.to_numpy()
                else:
                    beta = np.asarray(parts["beta"])[order]
                    theirs = (beta - beta[-1])[:-1].ravel()
                    mine = fit.covariates({"age": age}, method).params.to_numpy()
                gap = float(np.abs(mine - theirs).max())
                worst[quantity, method] = max(worst[quantity, method], gap)
    return [f"| {quantity} | {method} | {gap:.1e} |" for (quantity, method), gap in worst.items()]


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=200)
    sets = parser.parse_args().sets
    text = [
        "# Third steps",
        "",
        f"{sets} data sets of {SIZE} rows for each design, see benchmarks/three_step.py. Bias is"
        " the largest of the classes; ratio is the root mean square of the standard errors over"
        " the standard deviation of the estimates; covered is the share of 95% intervals that hold"
        " the truth. Data sets in which a method has no estimate are left out, and counted.",
        "",
        "| design | quantity | method | bias | RMSE | ratio | covered | left out |",
        "|---|---|---|---|---|---|---|---|",
        *simulated(sets),
    ]
    if importlib.util.find_spec("stepmix") is not None:
        text += [
            "",
            "Largest difference of estimates from those of StepMix 3.0.0, ten data sets of items:",
            "",
            "| quantity | method | difference |",
            "|---|---|---|",
            *beside_stepmix(),
        ]
    (FOLDER / "three_step.md").write_text("\n".join([*text, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
