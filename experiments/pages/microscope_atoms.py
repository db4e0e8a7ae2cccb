"""Where over-specified fits put the atoms that the truth does not have, from the microscopes.

    python -m experiments.pages.microscope_atoms [FOLDER]

reads the stores microscope_*.sqlite in FOLDER (or beside this script), those that are there, and
writes microscope_atoms.json and its page microscope_atoms.md into it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from experiments.folders import FIGURES
from experiments.pages.microscope import CELLS, Series, series
from experiments.quantities import entering
from moestat.rates.local_slopes import exponents_seen, lightest_weight
from moestat.sweep.kinds.fit.spec import Curve, Spec, as_fits
from moestat.sweep.store.record import Record
from moestat.sweep.store.store import Store, open_store

SIZES = (1e5, 1e8, 1e11, 1e14)
HEAD = ["curve", *(f"light at {size:.0e}".replace("e+", "e") for size in SIZES)]
HEAD += ["weight, light fits", "expert errors, light fits", "expert errors, merged fits"]
TEXT = """# Where over-specified fits put their extra atoms

An atom that the truth does not have can share the place of a true one: the two have weight, merge,
and their errors fall like n^-1/4 or slower, as the theorems say.  Or it can fit noise at any other
place, with a weight of order n^-1/2 (see `moestat.rates.local_slopes.lightest_weight`): then its
error need not fall at all, the theorems' losses give it the weight that it has, and they fall like
n^-1/2. The theorems take a compact parameter space, in which no mass vanishes.  The boxes of these
fits are compact, too: log-masses may go down to -10 with mlmoe's sigmoid gates and with Gaussian
experts, which a sample larger than e^20 = 5e8 feels, so that slopes of the lightest weight there
are bent by the box; and to -30 elsewhere, with Gaussian experts in a wide box too, which none of
these sizes feels.  A fit counts as *light* where the mean gate weight of some atom is below
n^-1/4, and as *merged* otherwise.  Slopes are over the last four decades, n = 1e10 to 1e14, with
95% intervals: of the lightest weight in light fits, and of the errors of experts in Voronoi cells
with more than one atom.  A dash stands for too few fits.
"""


def slope(found: Series) -> str:
    """Slope of the mean logarithm over the last four decades."""
    n, value = found
    late = n >= 1e-4 * n.max(initial=0.0)
    if n.size == 0 or np.unique(n[late]).size < 3:
        return "-"
    middle, interval, _ = exponents_seen(n, value)
    if not np.isfinite(interval).all():
        return "-"
    return "{:.2f} [{:.2f}, {:.2f}]".format(middle, *interval)


def row(spec: Spec, curve: Curve, every: list[Record]) -> list[str] | None:
    """One curve: shares of light fits, and slopes in light ones and merged ones."""
    family = spec.fitted_family(curve)
    records = entering(curve, [record for record in every if record.curve == curve.name])
    if not records:
        return None
    n = np.array([record.n for record in records], dtype=float)
    weight = np.array([lightest_weight(family, r.params, spec.design) for r in records])
    light = weight < n**-0.25
    shares = [f"{light[n == size].mean():.2f}" if (n == size).any() else "-" for size in SIZES]
    errors = []
    for kind in (light, ~light):
        own = [record for record, chosen in zip(records, kind, strict=True) if chosen]
        found = (slope(series(own, (size, "expert"))) for size in CELLS if size > 1)
        errors.append("; ".join(f"{CELLS[i]} {s}" for i, s in enumerate(found, 2) if s != "-"))
    return [curve.name, *shares, slope((n[light], weight[light])), *(e or "-" for e in errors)]


def table(store: Store) -> list[list[str]]:
    """The over-specified curves of one store, where gates have weights of their own."""
    spec, every = as_fits(store.spec), list(store.records())
    rows = [
        row(spec, curve, every)
        for curve in spec.curves
        if curve.n_experts > spec.truths[curve.truth].family.n_experts
        and spec.fitted_family(curve).mass_column is not None
    ]
    return [line for line in rows if line is not None]


def page(found: Mapping[str, Mapping[str, Any]]) -> str:
    """The page of the kept tables, one by title of an experiment."""
    parts = [TEXT.rstrip()]
    for title, table in sorted(found.items()):
        head, rows = table["head"], table["rows"]
        lines = [head, ["---"] * len(head), *rows]
        parts.append(f"## {title}")
        parts.append("\n".join("| " + " | ".join(line) + " |" for line in lines))
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Read the stores, keep their tables, write the page; what has no store stays as it is."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FIGURES
    kept, out = folder / "microscope_atoms.json", folder / "microscope_atoms.md"
    found = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    for path in sorted(folder.glob("microscope_*.sqlite")):
        with open_store(path) as store:
            if rows := table(store):
                found[store.spec.title] = {"head": HEAD, "rows": rows}
    kept.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    out.write_text(page(found), encoding="utf-8")
    print(out)


if __name__ == "__main__":
    main()
