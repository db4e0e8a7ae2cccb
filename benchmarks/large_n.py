"""Formulas on many rows: seconds, memory and bytes of a fit to Parquet, and on dask's workers.

    python benchmarks/large_n.py [--rows 1e6] [--plain-rows 1e7] [--how parquet dask] [--folder DIR]

The rows have a response, d = 5 inputs in float32 and a factor of 50 levels; the model has k = 3
normal experts, ``y ~ x1 + x2 + x3 + x4 + x5 + region | x1``, and for ``--plain-rows`` no factor,
``y ~ x1 + x2 + x3 + x4 + x5 | x1``.  "parquet" writes files with row groups of 2^18 rows, and one
process reads them on two threads.  "dask" has a cluster of two workers of one thread, which
generate the rows themselves in partitions of 2^17 and keep them.  Each number of rows has processes
of its own, and fits 20,000 rows before, so that everything is compiled; workers compile nothing,
but load what is compiled in the first pass.  Seconds are those of the clock and of the processors.
Memory is that by which the resident set of the process grew, without pages of files, and of a
worker its largest resident set.  Bytes are those of the sums that workers have sent to the client
and to each other, as their logs tell, over the number of passes: pickled, each sum has as many.
Writing files is not counted; that workers generate rows is, once.
"""

from __future__ import annotations

import argparse
import logging
import pickle
import resource
import tempfile
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from resident import Growth
from results import FOLDER, markdown

import moestat

_INPUTS = tuple(f"x{j}" for j in range(1, 6))
_FORMULA = f"y ~ {' + '.join(_INPUTS)} + region | x1"
_PLAIN = f"y ~ {' + '.join(_INPUTS)} | x1"
_GROUP = 1 << 18
_PART = 1 << 20
_PARTITION = 1 << 17
"""Rows of a row group, of a file and of a partition."""


def rows_of(number: int, n: int) -> pd.DataFrame:
    """The rows of a part."""
    rng = np.random.default_rng([7, number])
    X = rng.standard_normal((n, 5), dtype=np.float32)
    region = rng.integers(0, 50, n)
    score = np.column_stack([1.5 * X[:, 0], -1.5 * X[:, 0], np.zeros(n)])
    kind = np.argmax(score + rng.gumbel(size=score.shape), axis=1)
    slopes = np.array([[2, 1, 0, 0, 1], [-2, 0, 1, 0, 1], [0, -1, 0, 2, -1]], dtype=float)
    level = np.array([3.0, -3.0, 0.0])[kind] + 0.02 * (region - 25) * np.array([1, -1, 0])[kind]
    y = level + np.sum(slopes[kind] * X, axis=1) + 0.7 * rng.standard_normal(n)
    found = pd.DataFrame(X, columns=[*_INPUTS])
    names = [f"region {j:02d}" for j in range(50)]
    found["region"] = pd.Categorical.from_codes(region, names)
    found["y"] = y.astype(np.float32)
    return found


def sizes(n: int, most: int = _PART) -> list[int]:
    """Rows of each part of n rows."""
    return [min(most, n - begin) for begin in range(0, n, most)]


class _Passes(logging.Handler):
    """When passes with second derivatives begin."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.began: list[float] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Note the time of a message that a pass begins."""
        if str(record.msg).startswith("pass over"):
            self.began.append(time.perf_counter())


def nothing_sent() -> tuple[int, int]:
    """Sums that workers send to the client and to each other where there are none."""
    return 0, 0


def _largest_sum() -> list[int]:
    """A list that will hold the bytes of the largest sum of any pass on workers."""
    from moestat.estimation.rows import sources

    largest, add = [0], sources.sum_on_workers

    def weighed(*given: Any) -> Any:
        total = add(*given)
        largest[0] = max(largest[0], len(pickle.dumps(total)))
        return total

    sources.sum_on_workers = weighed
    return largest


def measured(
    formula: str, source: Any, resume: Path, processors: Any, sent: Any = nothing_sent
) -> dict[str, Any]:
    """What a fit takes."""
    from moestat.estimation.progress import LOG

    warnings.simplefilter("ignore")
    options: dict[str, Any] = {"n_experts": 3, "rng": 0, "threads": 2}
    with tempfile.TemporaryDirectory() as folder:
        rows_of(0, 20_000).to_parquet(Path(folder) / "small.parquet")
        moestat.fit_formula(formula, folder, n_starts=2, **options)
    made, largest = _Passes(), _largest_sum()
    LOG.addHandler(made)
    LOG.setLevel(logging.INFO)
    with Growth() as growth:
        work, clock, before = processors(), time.perf_counter(), sent()
        result = moestat.fit_formula(formula, source, resume=resume, **options)
        whole, busy = time.perf_counter() - clock, processors() - work
        answers = largest[0] * np.subtract(sent(), before) / max(1, len(made.began))
    passes = np.diff(made.began)
    n = result.nobs
    return {
        "rows": f"{n:.0e}".replace("e+0", "e"),
        "parameters": result.family.n_free_params,
        "seconds": round(whole),
        "of processors": round(busy),
        "passes": len(made.began),
        "seconds of a pass": round(float(np.mean(passes)), 1) if passes.size else np.nan,
        "memory, MB": round(growth.megabytes),
        "KB to the client a pass": round(answers[0] / 1e3),
        "KB between workers a pass": round(answers[1] / 1e3),
        "rows in memory, MB": round(8e-6 * n * (len(result.data.features) + 1)),
        "certified": _yes(result.certificate.certified),
    }


def on_parquet(n: int, formula: str, folder: Path) -> dict[str, Any]:
    """A fit to files."""
    return measured(formula, folder / "rows", folder / "fit.json", time.process_time)


def _transfers(dask_worker: Any) -> list[tuple[str, int, int]]:
    """To whom a worker has sent values, how many sums among them, and how many answers of parts."""

    def count(name: str, keys: Any) -> int:
        return sum(key.startswith(name) for key in keys)

    return [
        (str(each["who"]), count("_added_together", each["keys"]), count("_on_part", each["keys"]))
        for each in dask_worker.transfer_outgoing_log
    ]


def on_dask(n: int, formula: str, folder: Path) -> dict[str, Any]:
    """A fit to partitions that two workers generate."""
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    def of_worker() -> tuple[float, float]:
        own = resource.getrusage(resource.RUSAGE_SELF)
        return own.ru_utime + own.ru_stime, own.ru_maxrss / 1e3

    options: Any = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        parts = sizes(n, _PARTITION)
        meta = rows_of(0, 2)
        frame = dd.from_map(rows_of, range(len(parts)), parts, meta=meta)

        def processors() -> float:
            workers = sum(seconds for seconds, _ in client.run(of_worker).values())
            return time.process_time() + workers

        def sent() -> tuple[int, int]:
            logs = client.run(_transfers)
            each = [(who in logs, *counts) for log in logs.values() for who, *counts in log]
            between = sum(sums + parts for to_worker, sums, parts in each if to_worker)
            # What parts answer to the client itself are no sums of passes.
            return sum(sums for to_worker, sums, _ in each if not to_worker), between

        row = measured(formula, frame, folder / "fit.json", processors, sent)
        most = max(most for _, most in client.run(of_worker).values())
    return {**row, "memory of a worker, MB": round(most)}


def _yes(value: Any) -> str:
    return "yes" if value else "no"


_HOW = {"parquet": on_parquet, "dask": on_dask}


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=float, nargs="*", default=[1e6])
    parser.add_argument("--plain-rows", type=float, nargs="*", default=[1e7])
    parser.add_argument("--how", nargs="*", choices=_HOW, default=[*_HOW])
    parser.add_argument("--out", type=Path, help="the page, of benchmarks/results by default")
    parser.add_argument("--folder", help="where the files are written, and removed")
    options = parser.parse_args()
    found: list[dict[str, Any]] = []
    asked = [(_FORMULA, int(n)) for n in options.rows]
    asked += [(_PLAIN, int(n)) for n in options.plain_rows]
    for formula, n in asked:
        for how in options.how:
            with tempfile.TemporaryDirectory(dir=options.folder) as name:
                folder = Path(name)
                if how == "parquet":
                    (folder / "rows").mkdir()
                    for number, count in enumerate(sizes(n)):
                        rows_of(number, count).to_parquet(
                            folder / f"rows/{number:04d}.parquet", row_group_size=_GROUP
                        )
                with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                    row = pool.submit(_HOW[how], n, formula, folder).result()
                    found.append({"how": how, "factor": _yes(formula == _FORMULA), **row})
                print(found[-1], flush=True)
    text = [
        "# Formulas on many rows",
        "",
        *(__doc__ or "").splitlines()[4:],
        "",
        markdown(found),
        "",
    ]
    (options.out or FOLDER / "large_n.md").write_text("\n".join(text))


if __name__ == "__main__":
    main()
