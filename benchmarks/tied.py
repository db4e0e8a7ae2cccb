"""Responses that are recorded in steps: spans of five seeds with and without the steps' bound.

    python benchmarks/tied.py

Ten real sets whose responses repeat each other, Gaussian experts, k = 3.  `off` is the default call
with ``resolution=0``, so that a variance is bounded by a millionth of that of the residuals of
linear regression alone; `on` is the default call, which finds the step h and bounds variances by
h^2 / 12.  A span is the difference between the highest and the lowest log-likelihood of five seeds,
the narrowest expert is that of the highest.  Results: results/tied.md.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from results import FOLDER

import moestat
from moestat.datasets import load
from moestat.estimation.data.rounding import step_of

SEEDS, EXPERTS = 5, 3


def sets() -> dict[str, tuple[Any, Any]]:
    """Inputs and responses by name."""
    from sklearn.datasets import load_diabetes, load_iris, load_linnerud, load_wine
    from statsmodels import datasets

    def table(name: str) -> Any:
        return getattr(datasets, name).load_pandas().data.dropna()

    nile, penguins = load("nile"), load("penguins").dropna()
    iris, wine, body, gym = load_iris(), load_wine(), load_diabetes(), load_linnerud()
    spots, modes, crime = table("sunspots"), table("modechoice"), table("statecrime")
    spouses = table("fair")[::10]
    found = {
        "nile volume": (nile[["year"]], nile["volume"]),
        "penguins' mass": (penguins[["flipper_length_mm"]], penguins["body_mass_g"]),
        "penguins' bills": (penguins[["bill_depth_mm"]], penguins["bill_length_mm"]),
        "iris sepals": (iris.data[:, [2]], iris.data[:, 1]),
        "wine proline": (wine.data[:, [0]], wine.data[:, 12]),
        "diabetes": (body.data[:, [2]], body.target),
        "sunspots": (spots[["SUNACTIVITY"]][:-1], spots["SUNACTIVITY"][1:]),
        "mode costs": (modes[["ttme"]], modes["gc"]),
        "marriages": (spouses[["yrs_married"]], spouses["rate_marriage"]),
        "murder": (crime[["poverty"]], crime["murder"]),
        "chins": (gym.data[:, [1]], gym.data[:, 0]),
    }
    plain = {
        name: (np.asarray(X, float), np.asarray(y, float).ravel()) for name, (X, y) in found.items()
    }
    return {name: (X, y) for name, (X, y) in plain.items() if len(y) >= 50}


def main() -> None:
    """Fit the sets, and write the page."""
    warnings.simplefilter("ignore")
    lines = []
    for name, (X, y) in sets().items():
        cells = [name, str(y.size), str(np.unique(y).size), f"{step_of(y):.4g}"]
        for option in ({"resolution": 0}, {}):
            fits = [
                moestat.fit("gaussian", X, y, n_experts=EXPERTS, rng=seed, threads=1, **option)
                for seed in range(SEEDS)
            ]
            heights = np.array([fit.llf for fit in fits])
            best = fits[int(np.argmax(heights))]
            narrow = np.sqrt(best.blocks["nu"].min())
            hit = int(np.sum(heights > heights.max() - 0.01))
            cells += [f"{heights.max():.2f}", f"{np.ptp(heights):.2f}", f"{hit}", f"{narrow:.3g}"]
            cells += [f"{best.bic:.1f}"]
        lines.append(cells)
        print(f"| {' | '.join(cells)} |", flush=True)
    head = ["set", "n", "values of y", "step"]
    for way in ("off", "on"):
        head += [f"best, {way}", "span", "seeds at it", "narrowest", "BIC"]
    text = "# Responses recorded in steps\n\n" + str(__doc__).split("\n\n", 2)[2].strip() + "\n\n"
    rows = [head, ["---"] * len(head), *lines]
    text += "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"
    (FOLDER / "tied.md").write_text(text)


if __name__ == "__main__":
    main()
