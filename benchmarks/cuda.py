"""Fits and passes per second on a CUDA device beside two cores, and shares of the device's peaks.

    python benchmarks/cuda.py [--n 10000 100000] [--batch 1 64 256] [--seconds 20]

Needs a CUDA device; numba's simulator is none.  Exit code 0: done, and results/cuda.json and
results/cuda.md are written, with the device's name; 3: there is no device, and nothing is written.

A pass gives the log-likelihood with score and Hessian, or half the sum of squares with gradient and
Gram matrix, of every data set of the batch.  Peaks are measured here, by a kernel of fused
multiply-adds and one that copies.  The operations of a pass are those of its sums over samples
alone, two per product, and its bytes are the data, read once: the shares are lower bounds.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from problems import Example, gaussian_example, sigmoid_example, two_lines
from results import machine, markdown

# NVIDIA's own package is called cuda, too: without this line it could not be found from here.
sys.path = [entry for entry in sys.path if Path(entry).resolve() != Path(__file__).parent.resolve()]

import moestat
from moestat.estimation.starts import TruthStarts
from moestat.kernels.cuda import mixture
from moestat.kernels.cuda.target import SIMULATED, cuda
from moestat.solvers.driver import Cores
from moestat.solvers.problem import Objective, Problem, Request, Rows, Target
from moestat.solvers.targets import CudaTarget, device_name, missing

NO_DEVICE = 3
_RESULTS = Path(__file__).with_name("results")
_CORES = 2
_FITTED_ON_CORES = 4  # data sets; more would take the time of the whole benchmark


def attention_example(n: int) -> Example:
    """Regression with a quadratic softmax gate, d = 8, k = 3, ReLU experts."""
    family = moestat.family(
        "least-squares",
        gate="softmax-quadratic",
        expert={"name": "activation", "activation": "relu"},
        n_experts=3,
        n_features=8,
    )
    theta = family.pin(0.5 * np.random.default_rng(7).normal(size=family.n_params))
    X, y = moestat.sample(family, theta, n, rng=1, noise=0.01)
    return Example("softmax-quadratic ReLU, d = 8, k = 3", family, theta, X, y)


EXAMPLES: dict[str, Callable[[int], Example]] = {
    "gaussian": gaussian_example,
    "multinomial": sigmoid_example,
    "regression": attention_example,
}


def data_sets(example: Example, n: int, count: int) -> list[tuple[np.ndarray, Any]]:
    """Replicates of the example's data."""
    family, theta = example.family, example.theta
    if family.likelihood.name == "gaussian":
        lines = (two_lines(n, seed) for seed in range(count))
        return [(x[:, None], y) for x, y in lines]
    options: dict[str, Any] = {"design": moestat.Uniform(-4, 4)}
    if family.is_regression:
        options = {"noise": 0.01}
    return [moestat.sample(family, theta, n, rng=seed, **options) for seed in range(count)]


def timed(call: Callable[[], Any], seconds: float, most: int = 20) -> float:
    """Seconds of the fastest call, after one to warm up."""
    call()
    times = list[float]()
    while len(times) < 3 or (sum(times) < seconds and len(times) < most):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return min(times)


def pass_seconds(target: Target, problems: list[Problem], theta: Any, seconds: float) -> float:
    """Seconds of one pass over all problems."""
    is_regression = problems[0].family.is_regression
    objective = Objective.GAUSS_NEWTON if is_regression else Objective.OBSERVED
    with target.session(problems) as answer:
        batch = [(problem, Request(objective, theta)) for problem in problems]
        return timed(lambda: list(answer(batch)), seconds)


def fit_seconds(target: Target, example: Example, sets: list[Any]) -> tuple[float, float]:
    """Seconds of three-start fits of all data sets, and the share that is certified."""
    starts = [TruthStarts(example.family, example.theta, 3, 0.05)]
    began = time.perf_counter()
    found = moestat.fit_many(example.family, sets, starts=starts, rng=0, target=target)
    seconds = time.perf_counter() - began
    return seconds, float(np.mean([result.certificate.certified for result in found]))


def _multiply_add(out: Any, rounds: Any) -> None:
    at = cuda.grid(1)
    a = b = c = d = e = f = g = h = 1.0 + 1e-9 * at
    x = 1.0 - 1e-9 * at
    for _ in range(rounds):
        a = a * x + 1e-9
        b = b * x + 1e-9
        c = c * x + 1e-9
        d = d * x + 1e-9
        e = e * x + 1e-9
        f = f * x + 1e-9
        g = g * x + 1e-9
        h = h * x + 1e-9
    out[at] = ((a + b) + (c + d)) + ((e + f) + (g + h))


def _copy(source: Any, out: Any) -> None:
    step = cuda.gridsize(1)
    for at in range(cuda.grid(1), source.size, step):
        out[at] = source[at]


def peaks(seconds: float) -> tuple[float, float]:
    """Double-precision operations and bytes per second that simple kernels reach."""
    blocks, threads, rounds = 4096, 256, 4096
    out = cuda.device_array(blocks * threads)
    arithmetic, copying = cuda.jit(_multiply_add), cuda.jit(_copy)

    def compute() -> None:
        arithmetic[blocks, threads](out, rounds)
        cuda.synchronize()

    operations = 16.0 * blocks * threads * rounds / timed(compute, seconds)
    source, target = (cuda.device_array(1 << 28) for _ in range(2))

    def copy() -> None:
        copying[blocks, threads](source, target)
        cuda.synchronize()

    return operations, 16.0 * source.size / timed(copy, seconds)


def pass_operations(example: Example) -> float:
    """Operations per sample of the sums of a pass."""
    family = example.family
    if family.is_regression:
        rows = int(np.sum(family.jacobian_rows >= 0)) + 1
        return 1.0 * rows * (rows + 1)
    units = mixture.units_of(family.n_experts, family.width, family.n_features, order=2)
    return 6.0 * len(units)


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 64, 256])
    parser.add_argument("--seconds", type=float, default=2.0, help="of each timing, at least")
    options = parser.parse_args()
    reason = missing() or ("numba runs its simulator, not a device" if SIMULATED else "")
    if reason:
        print(f"no CUDA device: {reason}; nothing was measured", file=sys.stderr)
        return NO_DEVICE
    operations, bandwidth = peaks(options.seconds)
    print(f"{device_name()}: {operations / 1e12:.3g} TFLOP/s, {bandwidth / 1e12:.3g} TB/s")
    rows = []
    for make in EXAMPLES.values():
        for n in options.n:
            example = make(n)
            sets = data_sets(example, n, max(options.batch))
            cpu: dict[str, float] = {}
            for batch in options.batch:
                rows.append(measure(example, n, sets[:batch], cpu, options.seconds))
                speed = rows[-1]["samples/s device"]
                rows[-1]["of FP64 peak"] = speed * pass_operations(example) / operations
                data = 8.0 * (example.family.n_features + 2)
                rows[-1]["of memory peak"] = speed * data / bandwidth
                print(json.dumps(rows[-1]), flush=True)
    save(rows, operations, bandwidth)
    return 0


def measure(
    example: Example, n: int, sets: list[Any], cpu: dict[str, float], seconds: float
) -> dict[str, Any]:
    """One row: passes and fits of a batch on the device, and once per problem on two cores."""
    target, cores = CudaTarget(), Cores(_CORES)
    encode = example.family.likelihood.encode
    problems = [
        Problem(
            example.family,
            Rows(
                np.ascontiguousarray(X.T),
                encode(y, example.family.n_classes),
                np.ones(n),
                whole=True,
            ),
        )
        for X, y in sets
    ]
    if not cpu:
        cpu["pass"] = (
            n * _CORES / pass_seconds(cores, [problems[0]] * _CORES, example.theta, seconds)
        )
        few = data_sets(example, n, _FITTED_ON_CORES)
        fit_seconds(cores, example, few[:1])  # compiles
        spent, cpu["certified"] = fit_seconds(cores, example, few)
        cpu["fits"] = len(few) / spent
    on_device = n * len(sets) / pass_seconds(target, problems, example.theta, seconds)
    fit_seconds(target, example, sets[:1])  # compiles
    spent, certified = fit_seconds(target, example, sets)
    fits = len(sets) / spent
    return {
        "problem": example.name,
        "n": n,
        "B": len(sets),
        "samples/s device": on_device,
        "samples/s 2 cores": cpu["pass"],
        "pass speed-up": on_device / cpu["pass"],
        "fits/s device": fits,
        "fits/s 2 cores": cpu["fits"],
        "fit speed-up": fits / cpu["fits"],
        "certified device": certified,
        "certified 2 cores": cpu["certified"],
    }


def save(rows: list[dict[str, Any]], operations: float, bandwidth: float) -> None:
    """results/cuda.json and results/cuda.md."""
    facts = {
        "device": device_name(),
        "TFLOP/s (FP64, measured)": operations / 1e12,
        "TB/s (measured)": bandwidth / 1e12,
        **machine(),
    }
    _RESULTS.mkdir(exist_ok=True)
    (_RESULTS / "cuda.json").write_text(json.dumps({"machine": facts, "rows": rows}, indent=1))
    line = ", ".join(f"{name} {value}" for name, value in facts.items())
    (_RESULTS / "cuda.md").write_text(
        f"# {facts['device']} beside two cores\n\n{markdown(rows)}\n\n{line}\n"
    )


if __name__ == "__main__":
    sys.exit(main())
