"""The program of the notebook `readings` on many rows: processor time and memory of each step.

    python benchmarks/readings.py [--rows 1e6 1e7] [--folder DIR] [--picture FILE]

Daily readings of households, eight of each, on Parquet files of a million rows with row groups of
2^17, made one after the other; the row groups end within households.  The steps are those of the
notebook, in its order, with a fit to 24,000 rows before, so that everything is compiled.  Each
number of rows has a process of its own.  Seconds are those of all threads of the process; memory is
that by which its resident set grew at most during the step, without pages of files.  The last
column is the largest resident set of the process up to the end of the step.  The last step is run
for up to ``--most-selected`` rows, 1e6 by default: its third expert, which the data do not have,
takes many passes.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from resident import Growth
from results import FOLDER, markdown

import moestat

_FORMULA = "kwh ~ np.maximum(18 - temperature, 0) + C(region) | dwelling | household"
_SIZED = "kwh ~ np.maximum(18 - temperature, 0) + C(region) + (1 | household) | dwelling"
_READINGS = 8
_GROUP = 1 << 17
_PART = 1_000_000 // _READINGS
"""Households of a file."""


def readings_of(number: int, first: int, count: int) -> pd.DataFrame:
    """Readings of so many households, of which the first has this number."""
    rng = np.random.default_rng([1, number])
    detached = rng.random(count) < 0.4
    electric = rng.random(count) < np.where(detached, 0.5, 0.15)
    region = rng.choice(["coast", "hills", "valley"], count)
    size = rng.normal(0, 0.8, count)
    who = np.repeat(np.arange(count), _READINGS)
    temperature = rng.uniform(-5, 25, who.size)
    cold = np.maximum(18 - temperature, 0)
    kwh = np.where(electric[who], 9 + 1.1 * cold, 7 + 0.1 * cold)
    kwh += 1.5 * (region[who] == "hills") + size[who] + rng.normal(0, 2, who.size)
    return pd.DataFrame(
        {
            "household": first + who,
            "dwelling": np.where(detached, "detached", "flat")[who],
            "region": region[who],
            "temperature": temperature,
            "kwh": kwh,
        }
    )


def write(folder: Path, n: int) -> None:
    """Files of n readings."""
    folder.mkdir()
    households = n // _READINGS
    for number, first in enumerate(range(0, households, _PART)):
        rows = readings_of(number, first, min(_PART, households - first))
        rows.to_parquet(folder / f"part-{number:04d}.parquet", row_group_size=_GROUP)


class _Steps:
    """What each step takes, in order."""

    def __init__(self, n: int) -> None:
        self.rows: list[dict[str, Any]] = []
        self._n = n

    def take(self, name: str, step: Callable[[], Any]) -> Any:
        """The result of a step, which is measured."""
        began = time.process_time()
        with Growth() as growth:
            result = step()
        largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
        self.rows.append(
            {
                "rows": f"{self._n:.0e}".replace("e+0", "e"),
                "step": name,
                "processor, s": round(time.process_time() - began, 1),
                "memory, MB": round(growth.megabytes),
                "largest resident set, MB": round(largest),
            }
        )
        print(self.rows[-1], flush=True)
        return result


def notebook(n: int, folder: Path, picture: Path | None, selects: bool) -> list[dict[str, Any]]:
    """The steps of the notebook, on n rows in a folder, with or without the last one."""
    warnings.simplefilter("ignore")
    options: dict[str, Any] = {"n_experts": 2, "rng": 0}
    write(folder / "small", 24_000)
    for formula in (_FORMULA, _SIZED):
        moestat.fit_formula(formula, folder / "small", **options)
    source, steps = folder / "rows", _Steps(n)

    result = steps.take("fit", lambda: moestat.fit_formula(_FORMULA, source, **options))
    print(result)
    print(f"{result.n_groups:.0f} households; BIC {result.bic:.0f}")
    print(result.tidy().loc[:, ["part", "expert", "term", "estimate", "std_error"]].round(4))
    print(steps.take("explain", result.explain))
    robust = steps.take("robust errors", lambda: result.get_robustcov_results("cluster"))
    errors = {"estimate": result.params, "error": result.bse, "robust": robust.bse}
    print(pd.DataFrame(errors).round(5))
    made = steps.take("predictions", lambda: result.predict(source, to=folder / "predicted"))
    print(f"{len([*made.glob('*.parquet')])} files of predictions")
    if picture is not None:
        _draw(result, source, made, picture)
    better = steps.take("random intercept", lambda: moestat.fit_formula(_SIZED, source, **options))
    print(f"BIC {better.bic:.0f} in place of {result.bic:.0f}; {len(better.notes)} warnings")
    print(better.explain())
    print(better.variance_components().loc[1].round(4))
    if not selects:
        return steps.rows
    selection = steps.take(
        "select of one to three experts",
        lambda: moestat.select("gaussian", _SIZED, data=source, k=(1, 2, 3), n_starts=4, rng=0),
    )
    print(selection.to_frame()[["k", "llf", "df", "bic", "certified"]].round(1))
    return steps.rows


def _draw(result: Any, source: Path, made: Path, picture: Path) -> None:
    """The picture of the notebook, of some readings of the first file."""
    from matplotlib.figure import Figure

    some = pd.read_parquet(next(iter(sorted(source.glob("*.parquet"))))).iloc[:_GROUP]
    predicted = pd.read_parquet(next(iter(sorted(made.glob("*.parquet")))))
    print(some.assign(predicted=predicted["mean"].to_numpy()[: len(some)]).head(3))
    temperature = np.linspace(-5, 25, 61)
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    shown = some.iloc[:: max(1, len(some) // 600)]
    axes.scatter(shown["temperature"], shown["kwh"], s=4, color="0.7", label="some readings")
    for expert in (0, 1):
        slope = result.blocks["a"][expert, 0]
        mean = result.blocks["b"][expert] + slope * np.maximum(18 - temperature, 0)
        axes.plot(temperature, mean, label=f"expert {expert + 1}, valley or coast")
    axes.set(xlabel="temperature in degrees", ylabel="kWh a day")
    axes.legend(frameon=False)
    figure.savefig(picture, dpi=110)


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=float, nargs="*", default=[1e6, 1e7])
    parser.add_argument("--most-selected", type=float, default=1e6, help="rows of a `select`")
    parser.add_argument("--folder", help="where the files are written, and removed")
    parser.add_argument("--picture", type=Path, help="where the picture is saved")
    options = parser.parse_args()
    found: list[dict[str, Any]] = []
    for n in map(int, options.rows):
        with tempfile.TemporaryDirectory(dir=options.folder) as name:
            write(Path(name) / "rows", n)
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                found += pool.submit(
                    notebook, n, Path(name), options.picture, n <= options.most_selected
                ).result()
    text = ["# The notebook `readings` on many rows", "", *(__doc__ or "").splitlines()[4:]]
    (FOLDER / "readings.md").write_text("\n".join([*text, "", markdown(found), ""]))


if __name__ == "__main__":
    main()
