"""Over-specified fits at n = 1e14 from starts near the truth and far from it.

    OPENBLAS_NUM_THREADS=1 python benchmarks/start_distance.py [--replicates 20] [SPEC ...]

Starts lie around mixing measures that are the truth's, at a distance of 1.8 n^-1/4, of 0.1 or of 1,
as many in each case, and all fit the same data.  Shown are how far the best log-likelihood is below
the highest of the three, on average; geometric means of the loss, in units of that from 0.1: a loss
that the distance of the starts decides would differ by the ratio of the distances; and the share of
fits with a light atom, one of less than 1e-3 of the mean gate weight
(`moestat.rates.local_slopes.lightest_weight`).
"""

from __future__ import annotations

import numpy as np
from microscopes import cells_of, parser, text_of
from results import save
from threadpoolctl import threadpool_limits

from moestat.rates.local_slopes import lightest_weight
from moestat.sweep.run.cell import run_cell
from moestat.sweep.spec.read import parse_spec
from moestat.sweep.store.record import Record

SPECS = ("mlmoe", "mlmoe_four", "gaussian")
DISTANCES = {"n^-1/4": "noise = 1.8, decay = 0.25", "0.1": "noise = 0.1", "1": "noise = 1.0"}
BOTH = "noise = [0.1, 1.0]"
SIZE, LIGHT = 1e14, 1e-3


def fits(text: str, curve: str, replicates: int) -> list[Record]:
    """The records of the replicates of a curve at the largest size."""
    cells = cells_of(text)
    return [run_cell(text, cells[curve, SIZE, replicate]) for replicate in range(replicates)]


def measure(name: str, replicates: int) -> list[dict]:
    """One row per over-specified curve of a spec whose starts have a distance to choose."""
    given = text_of(name)
    texts = {label: given.replace(BOTH, noise) for label, noise in DISTANCES.items()}
    spec = parse_spec(given)
    rows = []
    for curve in spec.curves:
        if curve.starts["noise"] != [0.1, 1.0]:
            continue
        family = spec.fitted_family(curve)
        found = {label: fits(text, curve.name, replicates) for label, text in texts.items()}
        height = np.array([[fit.log_likelihood for fit in own] for own in found.values()])
        below = (height.max(axis=0) - height).mean(axis=1)
        loss = np.array([[fit.loss for fit in own] for own in found.values()])
        ratio = np.exp(np.log(loss / loss[list(found).index("0.1")]).mean(axis=1))
        row = {"experiment": name, "curve": curve.name}
        for i, (label, own) in enumerate(found.items()):
            lightest = [lightest_weight(family, fit.params, spec.design) for fit in own]
            row |= {
                f"below the best, {label}": round(float(below[i]), 2),
                f"loss, {label}": round(float(ratio[i]), 2),
                f"light, {label}": round(float(np.mean(np.array(lightest) < LIGHT)), 2),
                f"certified, {label}": sum(bool(fit.certified) for fit in own),
                f"seconds, {label}": round(float(np.mean([fit.seconds for fit in own])), 3),
            }
        rows.append(row)
        print(row, flush=True)
    return rows


if __name__ == "__main__":
    arguments = parser(__doc__, SPECS)
    options = arguments.parse_args()
    with threadpool_limits(1):
        rows = [measure(name, options.replicates) for name in options.specs]
    save("start distance", [row for own in rows for row in own])
