"""Calls that people make often, or on much: whether time and memory are in proportion.

    python benchmarks/proportion.py [PART ...]

Each row has a process of its own, on one thread, in which a first call compiles; seconds are of
processor time, the median of the calls that begin within 6 s, five at least where a call takes less
than that.  Peers are on the same data in the same process: EM in NumPy from one random partition
(numpy_em.py), scikit-learn's Gaussian mixture, statsmodels' summary.  Memory is what the resident
set grew by at its peak beyond the data (Linux).  PART chooses rows whose names hold one of the
parts.  The goals are those that were set before any of it was measured.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from results import rows_of, save

Call = Callable[[int], Any]
Row = dict[str, Any]


def seconds(call: Call, most: float = 6.0) -> float:
    """Median processor time of a call by seed, after a first one."""
    call(99)
    first, times = time.process_time(), list[float]()
    while not times or (time.process_time() - first < most and len(times) < 25):
        began = time.process_time()
        call(len(times))
        times.append(time.process_time() - began)
    return float(np.median(times))


def drawn(likelihood: str, n: int, d: int, k: int, classes: int = 0, number: int = 0) -> Any:
    """A family and data, as in search.py."""
    from search import drawn as problem

    more = {"n_classes": classes} if classes else {}
    return problem("", likelihood, n, d, k, number, **more)


def fitting(case: Any, starts: Any = None) -> Call:
    """The default call."""
    import moestat

    return lambda seed: moestat.fit(case.family, case.X, case.y, starts=starts, rng=seed, threads=1)


def hessian(case: Any) -> Call:
    """A pass for value, score and Hessian."""
    from moestat.kernels.records import Data, Sums

    n, P = len(case.X), case.family.n_params
    data = Data(np.ascontiguousarray(case.X.T), case.y, np.ones(n), np.empty((0, 0)))
    sums, theta = Sums(np.empty(P), np.empty((P, P)), np.empty((P, P))), case.truth
    loops, coefficients = case.family.loops, case.family.coefficients
    return lambda seed: loops.log_likelihood(theta, coefficients, data, 2, sums)


def em(case: Any) -> Call:
    """EM in NumPy from a random partition."""
    from numpy_em import Fit, fit

    k, (n, d) = case.family.n_experts, case.X.shape
    rows = np.column_stack([np.ones(n), case.X])

    def solve(seed: int) -> Any:
        part = np.random.default_rng(seed).integers(k, size=n)
        line = np.stack([np.linalg.lstsq(rows[part == i], case.y[part == i])[0] for i in range(k)])
        spread = np.array([np.var(case.y[part == i] - rows[part == i] @ line[i]) for i in range(k)])
        return fit(Fit(np.zeros((k, d + 1)), line, spread), case.X, case.y)

    return solve


def cluster(case: Any) -> Call:
    """scikit-learn's mixture of inputs and response."""
    from sklearn.mixture import GaussianMixture

    joined = np.column_stack([case.X, case.y])
    return lambda seed: GaussianMixture(case.family.n_experts, random_state=seed).fit(joined)


def small() -> Iterator[Row]:
    """The commonest fit."""
    import moestat

    case = drawn("gaussian", 500, 3, 2)
    yield {
        "call": "fit, d = 3, k = 2, n = 500",
        "seconds": seconds(fitting(case)),
        "goal": "0.015",
        "peers": f"NumPy EM {seconds(em(case)):.4f}, sklearn {seconds(cluster(case)):.4f}",
    }
    data = [(case.X, case.y)] * 20
    many = seconds(lambda seed: moestat.fit_many(case.family, data, rng=seed, threads=1))
    yield {"call": "fit_many, a fit of 20", "seconds": many / 20, "goal": "0.017"}
    for n in (3990, 4010):
        one = seconds(fitting(drawn("gaussian", n, 3, 2)))
        yield {"call": f"fit, d = 3, k = 2, n = {n}", "seconds": one, "goal": "no cliff"}


def wide() -> Iterator[Row]:
    """Twenty inputs."""
    case = drawn("gaussian", 10_000, 20, 3)
    yield {
        "call": "fit, d = 20, k = 3, n = 1e4",
        "seconds": seconds(fitting(case)),
        "goal": "<= EM",
        "peers": f"NumPy EM {seconds(em(case)):.3f}",
    }
    for d in (10, 20):
        case = drawn("gaussian", 20_000, d, 3)
        family, (n, _) = case.family, case.X.shape
        rng, channels = np.random.default_rng(0), 2 * family.n_experts
        # The Hessian is a sum over rows of weights of pairs of channels times products of inputs.
        pairs = rng.normal(size=(channels * (channels + 1) // 2, n))
        products = rng.normal(size=(n, (d + 1) * (d + 2) // 2))
        own, floor = seconds(hessian(case)), seconds(lambda _, a=pairs, b=products: a @ b)
        yield {
            "call": f"score and Hessian, d = {d}, k = 3, n = 2e4",
            "seconds": own,
            "goal": "1.2 dgemm",
            "peers": f"dgemm of its sums alone {floor:.5f}, {own / floor:.2f} times",
        }


def growth() -> Iterator[Row]:
    """Classes and experts doubled."""
    for size in ((1, 2, 5), (1, 2, 10)):
        one = seconds(fitting(drawn("multinomial", 10_000, *size)))
        yield {"call": f"fit, K = {size[2]}, n = 1e4", "seconds": one, "goal": "as the work"}
    for k in (4, 8):
        one = seconds(fitting(drawn("gaussian", 10_000, 2, k)))
        yield {"call": f"fit, d = 2, k = {k}, n = 1e4", "seconds": one, "goal": "as the work"}


def large() -> Iterator[Row]:
    """Hundreds of parameters, against the fit that starts at the truth."""
    from moestat.estimation.starts import GivenStarts

    for k, d, K, goal in ((8, 8, 8, "30"), (8, 15, 8, "90")):
        case = drawn("multinomial", 20_000 if d == 8 else 30_000, d, k, K)
        known = fitting(case, [GivenStarts([case.truth])])(0).log_likelihood
        began = time.process_time()
        found = fitting(case)(1)
        yield {
            "call": f"fit, P = {case.family.n_params}",
            "seconds": time.process_time() - began,
            "goal": goal,
            "also": f"{known - found.log_likelihood:.1f} below the fit from the truth, goal 5",
        }


def inference() -> Iterator[Row]:
    """What follows a fit."""
    import moestat

    case = drawn("gaussian", 500, 3, 2)
    options: Any = {"threads": 1}
    choice = seconds(lambda s: moestat.select(case.family, case.X, case.y, range(1, 7), rng=s))
    yield {"call": "select(1..6), n = 500", "seconds": choice, "goal": "1"}
    one, two = (
        moestat.fit(case.family.with_experts(k), case.X, case.y, rng=0, **options) for k in (1, 2)
    )
    test = seconds(lambda seed: moestat.bootstrap_lrt(one, two, 199, rng=seed, **options))
    yield {"call": "bootstrap_lrt(199), n = 500", "seconds": test, "goal": "5"}
    many = drawn("gaussian", 100_000, 3, 2)
    fit = fitting(many)(0)
    yield {
        "call": "influence, n = 1e5",
        "seconds": seconds(lambda seed: fitting(many)(seed).influence()) - seconds(fitting(many)),
        "goal": "0.5",
    }
    asked = seconds(lambda seed: fit.get_prediction(many.X))
    yield {
        "call": "get_prediction, n = 1e5",
        "seconds": asked,
        "goal": "0.2",
    }
    drawing = seconds(lambda seed: fit.bootstrap(20, rng=seed)) / 20
    yield {"call": "a resample of bootstrap, n = 1e5", "seconds": drawing, "goal": "0.015"}


def summary() -> Iterator[Row]:
    """The first summary of a process."""
    import moestat

    case = drawn("gaussian", 500, 3, 2)
    fit = moestat.fit(case.family, case.X, case.y, rng=0, threads=1)
    began = time.process_time()
    str(fit.summary())
    own = time.process_time() - began
    import statsmodels.api as sm

    model = sm.OLS(case.y, sm.add_constant(case.X)).fit()
    began = time.process_time()
    str(model.summary())
    peer = f"OLS {time.process_time() - began:.3f}"
    yield {"call": "first summary", "seconds": own, "goal": "0.1", "peers": peer}


def memory() -> Iterator[Row]:
    """Ten million rows."""
    case = drawn("gaussian", 10_000_000, 1, 2)
    fitting(drawn("gaussian", 500, 1, 2))(0)

    def resident(key: str) -> float:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(key)) / 1e3

    Path("/proc/self/clear_refs").write_text("5")  # the sampling's peak is forgotten
    before, began = resident("VmRSS"), time.process_time()
    fitting(case)(0)
    yield {
        "call": "fit, n = 1e7",
        "seconds": time.process_time() - began,
        "also": f"{resident('VmHWM') - before:.0f} MB beyond the data, goal 300",
    }


def sweeps() -> Iterator[Row]:
    """A cell whose fit takes milliseconds, and what is promised of many."""
    from large_sweeps import spec_text

    with tempfile.TemporaryDirectory() as folder:
        path, store = Path(folder, "tiny.toml"), Path(folder, "tiny.sqlite")
        path.write_text(spec_text(2000))
        run = [sys.executable, "-m", "moestat.sweep", "run", str(path), "--out", str(store)]
        run += ["--workers", "1"]
        subprocess.run([*run, "--check"], check=True, capture_output=True)
        plan = subprocess.run([*run, "--check"], check=True, capture_output=True, text=True)
        began, used = time.monotonic(), os.times().children_user
        subprocess.run(run, check=True, capture_output=True)
        clock, spent = time.monotonic() - began, os.times().children_user - used
        said = next((line for line in plan.stdout.splitlines() if "about" in line), "unknown")
        yield {
            "call": "a tiny cell of 2,000",
            "seconds": spent / 2000,
            "goal": "0.005",
            "also": f"{clock:.0f} s by the clock; said before: {said.strip()}",
        }


def cold() -> Iterator[Row]:
    """The first fit on a machine."""
    code = "import moestat, numpy as np; x = np.random.default_rng(0).normal(size=(400, 1));"
    code += "moestat.fit('gaussian', x, x[:, 0] * 2 + np.sin(9 * x[:, 0]), rng=0, threads=1)"
    with tempfile.TemporaryDirectory() as folder:
        # Byte code of Python is kept, as it is for users, though a machine may be set not to.
        environment = os.environ | {"MOESTAT_CACHE_DIR": folder, "PYTHONPYCACHEPREFIX": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for name in ("first", "second"):
            used = os.times().children_user
            subprocess.run(
                [sys.executable, "-c", code],
                env=environment,
                check=True,
                capture_output=True,
            )
            spent = os.times().children_user - used
            goal = "3" if name == "first" else ""
            yield {"call": f"{name} process of a machine", "seconds": spent, "goal": goal}


ROWS = (small, wide, growth, large, inference, summary, memory, sweeps, cold)


def main() -> None:
    """Measure rows, each kind in a process of its own, and write results/cpu.md."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("parts", nargs="*", help="Parts of names of kinds of rows.")
    parser.add_argument("--alone", action="store_true", help="Measure here, and print JSON.")
    given = parser.parse_args()
    chosen = [row for row in ROWS if not given.parts or any(p in row.__name__ for p in given.parts)]
    if given.alone:
        warnings.simplefilter("ignore")
        for make in chosen:
            for row in make():
                print(json.dumps(row), flush=True)
        return
    known = {row["call"]: row for row in rows_of("proportion")}
    for make in chosen:
        own = [sys.executable, __file__, make.__name__, "--alone"]
        one = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "MKL", "OPENBLAS")}
        with subprocess.Popen(own, stdout=subprocess.PIPE, text=True, env=os.environ | one) as run:
            assert run.stdout is not None
            for line in run.stdout:
                row = json.loads(line)
                known[row["call"]] = row
                print(row, flush=True)
        save("proportion", list(known.values()))


if __name__ == "__main__":
    main()
