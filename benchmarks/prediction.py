"""Held-out predictions beside scikit-learn: where a mixture of experts is, and is not, the tool.

    python benchmarks/prediction.py

Five folds, twice, of the data sets of `moestat.datasets` and of made data that two regressions and
a gate generate.  The numbers are means over the ten held-out parts: R squared of the conditional
mean for real responses, minus the log loss for classes, so that higher is better in every column.
`moestat` has two experts and a softmax gate with all inputs, by the default call, whose prior is
weak, and with ``prior=None``.  Inputs and options are fixed here, and none was tuned.
Results: results/prediction.md.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
from results import FOLDER
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import (
    RepeatedKFold,
    RepeatedStratifiedKFold,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import moestat

SETS = {
    "penguins": ("body_mass_g", ["bill_length_mm", "bill_depth_mm", "flipper_length_mm"]),
    "engel": ("food", ["income"]),
    "nile": ("volume", ["year"]),
    "election": ("vote", ["age", "education", "income", "news", "population"]),
    "travel": ("mode", ["income", "party_size"]),
}


def sets() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Inputs (n, d) and responses (n,) by name."""
    found = {}
    for name, (response, inputs) in SETS.items():
        frame = moestat.datasets.load(name)[[response, *inputs]].dropna()
        found[name] = frame[inputs].to_numpy(float), frame[response].to_numpy()
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(500, 2))
    first = rng.random(500) < 1 / (1 + np.exp(-6 * X[:, 1]))
    y = np.where(first, 1 + 2 * X[:, 0], -1 - 2 * X[:, 0]) + 0.3 * rng.normal(size=500)
    found["made: two regressions and a gate"] = X, y
    return found


def scores(X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """The mean score of each tool over ten held-out parts."""
    classes = y.dtype.kind not in "fi"
    folds = RepeatedStratifiedKFold if classes else RepeatedKFold
    parts = folds(n_splits=5, n_repeats=2, random_state=0)
    ours = moestat.MoEClassifier if classes else moestat.MoERegressor
    boosting = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    plain = make_pipeline(StandardScaler(), LogisticRegression()) if classes else LinearRegression()
    tools = {
        "linear or logistic regression": plain,
        "moestat, default": ours(n_experts=2, random_state=0),
        "moestat, prior=None": ours(n_experts=2, random_state=0, prior=None),
        "gradient boosting": boosting(random_state=0),
    }
    rule = "neg_log_loss" if classes else "r2"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", moestat.base.warnings.MoEWarning)
        return {
            name: float(cross_val_score(tool, X, y, cv=parts, scoring=rule).mean())
            for name, tool in tools.items()
        }


def main() -> None:
    """Write the table."""
    rows = []
    for name, (X, y) in sets().items():
        kind = "classes" if y.dtype.kind not in "fi" else "real"
        rows.append({"data": name, "n": len(y), "inputs": X.shape[1], "response": kind})
        rows[-1] |= {tool: round(score, 3) for tool, score in scores(X, y).items()}
    table = pd.DataFrame(rows)
    lines = [" | ".join(table.columns), " | ".join("---" for _ in table.columns)]
    lines += [" | ".join(map(str, row)) for row in table.itertuples(index=False)]
    text = (
        "# Held-out predictions beside scikit-learn\n\nSee benchmarks/prediction.py. Means over ten"
        " held-out parts: R squared for real responses, minus the log loss for classes; higher is"
        " better. No option was tuned.\n\n" + "\n".join(f"| {line} |" for line in lines) + "\n"
    )
    (FOLDER / "prediction.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
