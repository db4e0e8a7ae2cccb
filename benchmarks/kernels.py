"""Nanoseconds per sample of one pass: moestat, C, NumPy and JAX, side by side.

    python benchmarks/kernels.py [--n 100000] [--repeats 50]

A pass gives the log-likelihood (order 0), with its score (order 1) and its Hessian (order 2).
All of them run in turns on one thread, and the least processor time of the repeats counts: on a
machine that others use, too, it is the one least disturbed.  The C reference, `reference.c`, is
compiled by this script; it and JAX must agree with moestat to 1e-10.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

import numpy as np
from numpy_em import Fit, score_pass
from problems import Example, gaussian_example, sigmoid_example
from reference import compile_reference
from results import save, vectors
from threadpoolctl import threadpool_limits

from moestat.kernels.records import Data, Sums

_ORDERS = {"value": 0, "score": 1, "hessian": 2}
_C_NAMES = {"gaussian": "gaussian_softmax", "multinomial": "multinomial_sigmoid"}


def ours(example: Example, order: int) -> Callable[[], tuple]:
    """The compiled pass of moestat."""
    family, theta, X = example.family, example.theta, np.ascontiguousarray(example.X.T)
    score, hessian = np.empty(theta.size), np.empty((theta.size, theta.size))
    unused = np.empty((0, 0))
    data, sums = Data(X, example.encoded, np.ones(X.shape[1]), unused), Sums(score, hessian, unused)

    def call():
        value = family.loops.log_likelihood(theta, family.coefficients, data, order, sums)
        return value, score, hessian

    return call


def numpy_pass(example: Example) -> Callable[[], tuple]:
    """Log-likelihood and score of the Gaussian mixture in NumPy."""
    rows = example.theta.reshape(-1, 5)
    parameters = Fit(rows[:, :2], rows[:, 2:4], np.exp(rows[:, 4]))
    X = np.column_stack([np.ones(len(example.X)), example.X])
    return lambda: score_pass(parameters, X, example.y)


def jax_pass(example: Example) -> Callable[[], tuple] | None:
    """Log-likelihood and score in JAX, on one thread, where it is installed."""
    os.environ.setdefault(
        "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    )
    try:
        import jax
    except ImportError:
        return None
    jax.config.update("jax_enable_x64", True)
    jnp, log_sigmoid = jax.numpy, jax.nn.log_sigmoid

    def gaussian_softmax(theta, x, y):
        b0, b1, b, a, t = theta.reshape(-1, 5).T[:, :, None]
        scores = b0 + b1 * x
        return scores, -0.5 * (jnp.log(2 * jnp.pi) + t + (y - b - a * x) ** 2 * jnp.exp(-t))

    def multinomial_sigmoid(theta, x, y):
        gamma, beta, alpha, b, a = theta.reshape(-1, 5).T[:, :, None]
        return gamma + log_sigmoid(beta + alpha * x), log_sigmoid((1 - 2 * y) * (b + a * x))

    atoms = {"gaussian": gaussian_softmax, "multinomial": multinomial_sigmoid}
    atom = atoms[example.family.likelihood.name]

    def log_likelihood(theta, x, y):
        scores, densities = atom(theta, x, y)
        logsumexp = jax.scipy.special.logsumexp
        return (logsumexp(scores + densities, axis=0) - logsumexp(scores, axis=0)).sum()

    compiled = jax.jit(jax.value_and_grad(log_likelihood))
    x, y = jnp.asarray(example.X[:, 0]), jnp.asarray(example.encoded)
    return lambda: jax.block_until_ready(compiled(example.theta, x, y))


def fastest(calls: dict[str, Callable[[], tuple]], repeats: int) -> dict[str, float]:
    """Seconds of processor time of the fastest of several runs in turns."""
    seconds = dict.fromkeys(calls, np.inf)
    for call in calls.values():
        call()
    for _ in range(repeats):
        for name, call in calls.items():
            began = time.process_time()
            call()
            seconds[name] = min(seconds[name], time.process_time() - began)
    return seconds


def check(example: Example, order: int, reference: tuple, own: tuple) -> None:
    """Refuse to time two programmes that compute different things."""
    for part, (a, b) in enumerate(zip(reference, own, strict=False)):
        if part <= order:
            error = np.abs(np.asarray(a) - b).max() / np.abs(b).max()
            if error > 1e-10:
                raise SystemExit(f"{example.name}: the reference is off by {error:.1e} ({part})")


def measure(n: int, repeats: int) -> list[dict]:
    """One row per problem and order."""
    widths = {"C": compile_reference(256)}
    if vectors() == "AVX-512":
        widths["C, 512 bits"] = compile_reference(512)
    rows = []
    for example in (gaussian_example(n), sigmoid_example(n)):
        name = _C_NAMES[example.family.likelihood.name]
        x, weight = example.X[:, 0], np.ones(n)
        in_c = {
            label: reference.function(name, x, example.encoded, weight, example.theta)
            for label, reference in widths.items()
        }
        for label, order in _ORDERS.items():
            calls = {"moestat": ours(example, order)}
            for width, call in in_c.items():
                calls[width] = lambda call=call, order=order: call(order)
            check(example, order, calls["C"](), calls["moestat"]())
            if order == 1 and name == "gaussian_softmax":
                calls["NumPy"] = numpy_pass(example)
            if order == 1 and (by_jax := jax_pass(example)) is not None:
                check(example, order, by_jax(), calls["moestat"]())
                calls["JAX"] = by_jax
            seconds = fastest(calls, repeats)
            row = {"problem": example.name, "pass": label}
            row |= {tool: round(1e9 * value / n, 2) for tool, value in seconds.items()}
            row["moestat / C"] = round(seconds["moestat"] / seconds["C"], 2)
            rows.append(row)
            print(row, flush=True)
    for row in rows:
        score = next(r for r in rows if r["problem"] == row["problem"] and r["pass"] == "score")
        row["of own score pass"] = round(row["moestat"] / score["moestat"], 2)
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=50)
    options = parser.parse_args()
    with threadpool_limits(1):
        save("kernels", measure(options.n, options.repeats))
