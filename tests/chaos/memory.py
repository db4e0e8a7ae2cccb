"""Losses and distances on poisoned memory: many threads, random order, scribbled-over scratch.

    MALLOC_ARENA_MAX=1 MALLOC_PERTURB_=165 python -m tests.chaos.memory --evaluations 1000000

One thread computes every value once; then threads compute them again, in random order, while
others ask for memory of all sizes, fill it with NaN and give it back.  One arena for all threads
makes freed memory change hands at once; `MALLOC_PERTURB_` fills it besides.
"""

import argparse
import ctypes
import random
import sys
import threading
import time
from itertools import count

import numpy as np

from moestat import family
from moestat.metrics.distances import hellinger, regression_error, total_variation
from moestat.metrics.expert_errors import expert_errors
from moestat.metrics.losses import make_loss, voronoi_terms

_SIZES = (256, 512, 768, 1024, 2048, 4096, 6144, 8192, 12288, 32768)


def cases(seed=0):
    """Name -> function without arguments that returns numbers."""
    rng, found = np.random.default_rng(seed), {}
    pairs = {
        "sigmoid": (family("multinomial", gate="sigmoid", n_experts=2, n_classes=3), 3),
        "softmax": (family("multinomial", gate="softmax", n_experts=2, n_classes=2), 3),
        "gaussian": (family("gaussian", gate="softmax", n_experts=2), 3),
        "regression": (family("least-squares", gate="softmax", n_experts=2), 3),
    }
    losses = {"sigmoid": "D1", "softmax": "softmax-D1"}
    for name, (truth, k) in pairs.items():
        fitted = truth.with_experts(k)
        for draw in range(4):
            at, theta = (
                np.clip(rng.normal(size=f.n_params), f.lower, f.upper) for f in (truth, fitted)
            )
            arguments = fitted, theta, truth, at
            distances = (regression_error,) if truth.is_regression else (hellinger, total_variation)
            for distance in distances:
                nodes = 16 if truth.likelihood.support is None else 64

                def value(distance=distance, arguments=arguments, nodes=nodes):
                    result = distance(*arguments, n_nodes=nodes)
                    return np.array([result.value, result.error])

                found[f"{distance.__name__} {name} {draw}"] = value
            if name in losses:
                measure, target = fitted.measure(theta), truth.measure(at)

                def loss(measure=measure, target=target, name=losses[name]):
                    return np.array([voronoi_terms(measure, target, make_loss(name)).value])

                def expert(arguments=arguments):
                    return expert_errors(*arguments, [0, 1, 1], n_nodes=65)

                found[f"loss {name} {draw}"] = loss
                found[f"experts {name} {draw}"] = expert
            X, y = np.linspace(0, 1, 300)[:, None], np.ones(300)

            def density(fitted=fitted, theta=theta, X=X, y=y):
                if fitted.is_regression:
                    return fitted.mean(theta, X)
                return fitted.log_density(theta, X, y)

            found[f"rows {name} {draw}"] = density
    return found


def _poison(stop, seed):
    """Ask for memory, fill it with NaN, give it back, until told to stop."""
    c, pick = ctypes.CDLL(None), random.Random(seed)
    c.malloc.restype, c.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    c.free.argtypes = [ctypes.c_void_p]
    c.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
    while not stop.is_set():
        held = []
        for _ in range(32):
            size = pick.choice(_SIZES) + 64 * pick.randrange(4)
            held.append(c.malloc(size))
            c.memset(held[-1], 0xFF, size)
        for pointer in held:
            c.free(pointer)


def differences(evaluations, threads=8, poisoners=2, seed=0, seconds=float("inf")):
    """Evaluations made, and the names of those that differ from the undisturbed ones."""
    functions = cases(seed)
    names = sorted(functions)
    expected = {name: functions[name]() for name in names}
    stop, numbers, found = threading.Event(), count(), []
    done, ends = [0] * threads, time.monotonic() + seconds

    def work(i):
        pick = random.Random(seed + i)
        while next(numbers) < evaluations and time.monotonic() < ends:
            name = pick.choice(names)
            if functions[name]().tobytes() != expected[name].tobytes():
                found.append(name)
            done[i] += 1

    poison = [threading.Thread(target=_poison, args=(stop, i)) for i in range(poisoners)]
    workers = [threading.Thread(target=work, args=(i,)) for i in range(threads)]
    for thread in (*poison, *workers):
        thread.start()
    for thread in workers:
        thread.join()
    stop.set()
    for thread in poison:
        thread.join()
    return sum(done), found


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.memory")
    parser.add_argument("--evaluations", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    options = parser.parse_args()
    done, found = differences(options.evaluations, seconds=options.seconds)
    print(f"{done} evaluations, {len(found)} differ: {sorted(set(found))}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
