"""The same formulas in memory, from Parquet, dask, polars and pyarrow: are the fits the same?

    python benchmarks/sources.py [--rows 300000] [--large 1e7]

Flats in two segments, with a factor of 12 regions, years, buildings (groups) and missing areas,
written as three files with row groups of 49,999 rows that end within buildings.  Each formula is
fitted to the table in memory, which is read from the same files, and to every kind of source: from
the estimate in memory, which shows whether the maximum is the same, and by a default call, whose
search sees another sample of the rows and may end at another maximum, as another seed may in
memory.  The second table is of one process for each number of rows: by how much its
resident memory, without pages of files, grew at most during a fit
to Parquet, after a small fit has compiled everything, beside the bytes that inputs and response of
all rows would take.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from resident import Growth
from results import FOLDER, markdown

import moestat

_FORMULA = "log(price) ~ area + region + C(year) | area"

_CASES: dict[str, dict[str, Any]] = {
    _FORMULA: {},
    "sales ~ area + region | area": {"family": "poisson", "offset": "log(months)"},
    "sold ~ area + region": {"family": "multinomial", "n_experts": 1},
    "log(price) ~ 0 + area + region": {"weights": "count", "equal": {"a": [["region"]]}},
    "rent ~ area + region | heated | building": {},
    "cbind(won, lost) ~ area + region | area": {"family": "binomial"},
    "cbind(log(price), sales) ~ area | area": {"family": ["gaussian", "poisson"]},
    "log(price) ~ scale(area) + poly(year, 2) | area": {},
}
"""Formulas, and further arguments of the fit; each drops rows with missing values."""

_PART, _MOST = 49_999, 1_500_000
"""Rows of a row group, and of three files."""


def flats(n: int, seed: int = 0) -> pd.DataFrame:
    """Prices, sales and more of n flats."""
    rng = np.random.default_rng(seed)
    area, year = rng.uniform(20, 200, n), rng.integers(2018, 2022, n)
    region = rng.integers(0, 12, n)
    cheap = rng.random(n) < 1 / (1 + np.exp(0.05 * (area - 90)))
    level = np.where(cheap, 1 + 0.01 * area, 3 + 0.004 * area) + 0.05 * region
    rows = pd.DataFrame(
        {
            "price": np.exp(level + 0.05 * (year - 2020) + 0.3 * rng.normal(size=n)),
            "area": area,
            "region": np.array([f"region {i:02d}" for i in range(12)])[region],
            "year": year,
            "months": rng.uniform(1, 3, n),
            "count": rng.integers(1, 4, n),
            "sold": np.where(rng.random(n) < 1 / (1 + np.exp(-0.04 * (area - 90))), "yes", "no"),
            "not named": rng.normal(size=n),
        }
    )
    mean = np.where(cheap, 1.0, 4.0) * np.exp(0.03 * region) * rows["months"]
    rows["sales"] = rng.poisson(mean)
    # Buildings of five flats, which are new or old as a whole; no building is in two files.
    building = np.arange(n) // 5
    heated = rng.random(building[-1] + 1) < 0.5
    new = rng.random(heated.size) < np.where(heated, 0.7, 0.3)
    rows["building"] = building + 10_000_000 * seed
    rows["heated"] = np.where(heated, "yes", "no")[building]
    rows["rent"] = np.where(new[building], 4 + 0.06 * area, 2 + 0.09 * area) + rng.normal(size=n)
    rows["won"] = rng.binomial(5, np.where(cheap, 0.3, 0.7))
    rows["lost"] = 5 - rows["won"]
    rows.loc[rng.random(n) < 0.01, "area"] = np.nan
    return rows


def write(folder: Path, n: int) -> None:
    """Three files of flats, or more of many."""
    ends = np.linspace(0, n, 3 * -(-n // _MOST) + 1).astype(int)
    for number, (begin, end) in enumerate(pairwise(ends)):
        rows = flats(int(end - begin), seed=number)
        rows.to_parquet(folder / f"flats-{number:02d}.parquet", row_group_size=_PART)


def sources(folder: Path) -> dict[str, Any]:
    """The rows of a folder as each kind of source."""
    import dask.dataframe as dd
    import polars as pl
    from pyarrow import dataset

    return {
        "Parquet": folder,
        "pyarrow": dataset.dataset(folder),
        "dask": dd.read_parquet(folder, split_row_groups=True),
        "polars": pl.scan_parquet(folder / "*.parquet"),
    }


def equality(n: int) -> list[dict[str, Any]]:
    """A row for each formula and source."""
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(name)
        write(folder, n)
        table = pd.read_parquet(folder)
        for formula, given in _CASES.items():
            options = {"n_experts": 2, "rng": 0, "missing": "drop", **given}
            whole = moestat.fit_formula(formula, table, **options)
            errors = np.where(whole.theta_bse > 0, whole.theta_bse, np.inf)
            for kind, source in sources(folder).items():
                default = moestat.fit_formula(formula, source, **options)
                starts = [moestat.starts.GivenStarts([whole.theta])]
                fit = moestat.fit_formula(formula, source, starts=starts, **options)
                apart = np.abs(fit.theta - whole.theta)
                height = abs(fit.llf / whole.llf - 1.0)
                found.append(
                    {
                        "formula": f"`{formula}`".replace("|", "\\|"),
                        "source": kind,
                        "log-likelihood, relative": f"{height:.0e}",
                        "estimates": f"{apart.max():.0e}",
                        "in standard errors": f"{(apart / errors).max():.0e}",
                        "names": _yes(list(fit.params.index) == list(whole.params.index)),
                        "warnings": _yes(_kinds(fit) == _kinds(whole)),
                        "rows dropped": _yes(fit.data.dropped == whole.data.dropped),
                        "certified": _yes(
                            fit.certificate.certified and whole.certificate.certified
                        ),
                        "default call, relative": f"{1.0 - default.llf / whole.llf:+.0e}",
                    }
                )
                print(found[-1], flush=True)
    return found


def _kinds(fit: Any) -> set[str]:
    """Kinds of warnings but that of the search; a note on transforms has no kind."""
    return {*fit.kinds} - {"DisagreementWarning", ""}


def _yes(same: Any) -> str:
    return "yes" if same else "no"


def memory(n: int, folder: Path) -> dict[str, Any]:
    """The row of n rows in a folder."""
    options: dict[str, Any] = {"n_experts": 2, "rng": 0, "missing": "drop"}
    warnings.simplefilter("ignore")
    small = folder / "small"
    small.mkdir()
    write(small, 30_000)
    moestat.fit_formula(_FORMULA, small, **options)
    began = time.process_time()
    with Growth() as growth:
        result = moestat.fit_formula(_FORMULA, str(folder / "*.parquet"), **options)
    return {
        "rows": n,
        "dropped": result.data.dropped,
        "parameters": result.family.n_params,
        "passes of the best": round(result.certificate.passes, 2),
        "certified": bool(result.certificate.certified),
        "processor, s": round(time.process_time() - began),
        "memory, MB": round(growth.megabytes),
        "designs of all rows, MB": round(8e-6 * n * (len(result.data.features) + 1)),
    }


def main() -> None:
    """Write both tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=float, default=300_000)
    parser.add_argument("--large", type=float, nargs="*", default=[1e6, 1e7])
    options = parser.parse_args()
    same = equality(int(options.rows))
    large: list[dict[str, Any]] = []
    for n in map(int, options.large):
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), n)
            # In a process of its own, whose memory holds nothing of the sampling.
            with get_context("spawn").Pool(1) as pool:
                large.append(pool.apply(memory, (n, Path(folder))))
        print(large[-1], flush=True)
    text = [
        "# Formulas on sources beside the same table in memory",
        "",
        f"See benchmarks/sources.py; {int(options.rows):,} rows. Differences are the largest of any"
        " parameter, absolute and in standard errors; both fits end within the solver's tolerance"
        " of the maximum. The first columns are from the estimate in memory; the last one is of a"
        " default call, positive where it is higher. Centres of `scale` and `poly` are those of a"
        " sample: the model is the same, and its coefficients are not.",
        "",
        markdown(same),
        "",
        "Memory of a default fit to Parquet of the first formula, on two threads.",
        "",
        markdown(large),
        "",
    ]
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "sources.md").write_text("\n".join(text))


if __name__ == "__main__":
    main()
