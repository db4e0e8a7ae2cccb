"""Makes what `test_kept.py` opens; run once, with the code of the version that the names say.

PYTHONPATH=checkout python make.py VERSION
"""

import sys
from pathlib import Path

import numpy as np

import moestat
from moestat.sweep.__main__ import main

SPEC = """
title = "A store that is kept"
seed = 7
replicates = 3
n = [200, 400]

[design]
low = -4
high = 4

[truth.t]
gate = "softmax"
beta0 = [-2.0, 0.0]
beta1 = [3.0, 0.0]
a = [[1.0, 0.0], [1.0, 0.0]]
b = [[-3.0, 0.0], [2.5, 0.0]]

[[curve]]
name = "newton"
truth = "t"
n_experts = 2
loss = "softmax-D1"
theory = -0.5
panel = "a"
starts = { truth = 1, noise = 0.1 }
"""


def data():
    """Two lines with a soft switch, (120, 2) and (120,)."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, (120, 2))
    first = X[:, 0] + rng.normal(size=120) > 0.3
    y = np.where(first, 2.0 * X[:, 1], 1.0 - X[:, 1]) + 0.3 * rng.normal(size=120)
    return X, y


if __name__ == "__main__":
    here, version = Path(__file__).parent, sys.argv[1]
    family = moestat.family("gaussian", gate="softmax", n_experts=2, n_features=2)
    moestat.fit(family, *data(), rng=0).save(here / f"result-{version}.npz")
    (here / "kept.toml").write_text(SPEC)
    store = here / f"store-{version}.sqlite"
    sys.argv = (
        f"sweep run {here / 'kept.toml'} --out {store} --executor serial --limit-cells 4".split()
    )
    main()
