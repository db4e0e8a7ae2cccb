"""Default calls beside what people use: NumPy EM, JAX with L-BFGS, flexmix; n from 1e3 to 1e6.

    python benchmarks/peers.py [--row PART ...]

Softmax mixtures of lines or of classes, X uniform on [-2, 2]^d, as many experts fitted as the
truth has.  Every tool runs in a process of its own, on one thread, after a small fit that compiles;
seconds are of processor time, memory is what the largest resident set grew by.  moestat.fit and
flexmix (stepFlexmix, nrep = 5) search for their own starts.  NumPy EM, stopped at a relative change
of 1e-6, starts once from a random partition of the rows, as flexmix does, and once from the truth,
which no user has; JAX with L-BFGS (scipy) starts from random numbers and from the truth.

What starts at random is run with five seeds, or with as many as begin within 15 s; the column
"fits" has their numbers, in the order default, NumPy EM, JAX, flexmix.  Seconds, log-likelihood and
how far a peer's lies below that of the default call are medians over the seeds; "worst" is how far
the lowest of the default calls lies below their median.  From the truth the same fit is timed as
often.  A default call is certified where all of its fits are.  A dash marks a peer that failed; no
process of one has more than 40 s.  Where there is no R, flexmix has the seconds and the
log-likelihood of the last run that had it.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np
from results import rows_of, save
from threadpoolctl import threadpool_limits

import moestat

_ROWS = {  # k, n, d, K
    "lines, k = 3, n = 1e3": (3, 1_000, 1, 0),
    "lines, k = 3, n = 1e4": (3, 10_000, 1, 0),
    "lines, k = 3, n = 1e5": (3, 100_000, 1, 0),
    "lines, k = 3, n = 1e6": (3, 1_000_000, 1, 0),
    "lines, k = 2, n = 1e4, d = 5": (2, 10_000, 5, 0),
    "lines, k = 3, n = 1e5, d = 5": (3, 100_000, 5, 0),
    "lines, k = 3, n = 1e4, d = 20": (3, 10_000, 20, 0),
    "lines, k = 8, n = 1e4, d = 2": (8, 10_000, 2, 0),
    "classes, k = 2, n = 1e4, K = 2": (2, 10_000, 1, 2),
    "classes, k = 2, n = 1e4, K = 5": (2, 10_000, 1, 5),
    "classes, k = 2, n = 1e4, K = 20": (2, 10_000, 1, 20),
    "classes, k = 3, n = 1e4, K = 3, d = 10": (3, 10_000, 10, 3),
    "classes, k = 2, n = 1e6, K = 2": (2, 1_000_000, 1, 2),
}
_MOST_SECONDS, _SEEDS, _BEGIN = 40, 5, 15
_FLEXMIX = """
suppressPackageStartupMessages(library(flexmix))
d <- read.csv("data.csv"); all <- 0; seed <- 0
model <- if ({classes} > 0) FLXMRmultinom() else FLXMRglm(family = "gaussian")
if ({classes} > 0) d$y <- factor(d$y)
while (seed < {seeds} && all < {begin}) {{
  set.seed(seed); seed <- seed + 1
  t <- system.time(f <- stepFlexmix(y ~ ., data = d, k = {k}, nrep = 5, verbose = FALSE,
    model = model, concomitant = FLXPmultinom(~ . - y), control = list(minprior = 0)))
  own <- t[["user.self"]] + t[["sys.self"]]; all <- all + own
  cat(own, as.numeric(logLik(f)), "\n")
}}
"""


def problem(name: str) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
    """Family, truth and data of a row."""
    k, n, d, classes = _ROWS[name]
    kind = "multinomial" if classes else "gaussian"
    options: dict[str, Any] = {"n_experts": k, "n_features": d} | (
        {"n_classes": classes} if classes else {}
    )
    family = moestat.family(kind, gate="softmax", **options)
    rng = np.random.default_rng(5)
    blocks = family.unpack(rng.standard_normal(family.n_params))
    blocks = {key: 1.5 * block for key, block in blocks.items()}
    if "nu" in blocks:
        blocks["nu"] = np.abs(blocks["nu"]) + 0.2
    theta = family.pack(blocks)
    X, y = moestat.sample(family, theta, n, rng=6, design=moestat.Uniform(-2, 2))
    return family, theta, X, y


def of_classes(family: Any, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gates (k, p) and experts (k, K, p) of a mixture of classes, intercepts first."""
    blocks = {key: np.asarray(value) for key, value in family.unpack(theta).items()}
    k = blocks["beta0"].shape[0]
    gate = np.concatenate([blocks["beta0"].reshape(k, 1), blocks["beta1"].reshape(k, -1)], axis=1)
    b = blocks["b"].reshape(k, -1)
    a = blocks["a"].reshape(k, b.shape[1], -1)
    experts = np.concatenate([b[:, :, None], a], axis=2)
    return gate, np.concatenate([experts, np.zeros_like(experts[:, :1])], axis=1)


def coded(y: np.ndarray) -> np.ndarray:
    """Classes as whole numbers from 0."""
    return np.unique(y, return_inverse=True)[1]


def by_moestat(name: str, start: str) -> Any:
    """The default call."""
    family, _, X, y = problem(name)
    few = np.arange(min(len(y), 400))
    if _ROWS[name][3]:
        few = np.union1d(few, np.unique(y, return_index=True)[1])
    moestat.fit(family, X[few], y[few], rng=0, threads=1, n_starts=1)

    def solve(seed: int) -> tuple[float, bool]:
        end = moestat.fit(family, X, y, rng=seed, threads=1)
        return end.log_likelihood, bool(end.certificate.certified)

    return solve


def _starting_blocks(name: str, start: str) -> tuple[Any, ...]:
    """Gates, experts, variances (ones for classes) and data."""
    family, theta, X, y = problem(name)
    classes = _ROWS[name][3]
    gate, experts = of_classes(family, theta) if classes else lines(family, theta)
    nu = np.ones(len(gate)) if classes else np.asarray(family.unpack(theta)["nu"]).ravel()
    return gate, experts, nu.astype(float), X, y


def lines(family: Any, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gates (k, p) and lines (k, p), intercepts first."""
    blocks = {key: np.asarray(value) for key, value in family.unpack(theta).items()}
    k = blocks["beta0"].size
    joined = (("beta0", "beta1"), ("b", "a"))
    gate, line = (
        np.concatenate([blocks[one].reshape(k, 1), blocks[two].reshape(k, -1)], axis=1)
        for one, two in joined
    )
    return gate, line


def by_numpy(name: str, start: str) -> Any:
    """NumPy EM from a random partition of the rows, or from the truth."""
    from numpy_em import Fit, _newton_gate, fit, fit_classes

    gate, experts, nu, X, y = _starting_blocks(name, start)
    classes = _ROWS[name][3]
    shown = np.eye(classes)[coded(y)] if classes else None

    def solve(seed: int) -> tuple[float, None]:
        begin, at, variance = gate, experts, nu
        if start == "partition":
            parts = np.random.default_rng(1 + seed).integers(len(gate), size=len(y))
            tau = np.eye(len(gate))[parts]
            rows = np.column_stack([np.ones(len(y)), X])
            begin = np.zeros_like(gate)
            if shown is None:
                at = np.stack(
                    [np.linalg.lstsq(rows[parts == i], y[parts == i])[0] for i in range(len(gate))]
                )
                variance = np.array(
                    [np.var((y - rows @ at[i])[parts == i]) for i in range(len(gate))]
                )
            else:
                at = np.stack(
                    [
                        _newton_gate(np.zeros_like(experts[0]), tau[:, i : i + 1] * shown, rows)
                        for i in range(len(gate))
                    ]
                )
        if shown is None:
            return float(fit(Fit(begin, at, variance), X, y).log_likelihood), None
        return float(fit_classes(begin, at, X, shown)), None

    return solve


def by_jax(name: str, start: str) -> Any:
    """L-BFGS of scipy on value and gradient by JAX, compiled beforehand."""
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    import jax
    import jax.numpy as jnp
    from scipy.optimize import minimize

    jax.config.update("jax_enable_x64", True)
    gate, experts, nu, X, y = _starting_blocks(name, start)
    classes, n = _ROWS[name][3], len(y)
    rows = jnp.asarray(np.column_stack([np.ones(n), X]))
    answers = jnp.asarray(coded(y) if classes else y)
    sizes = np.cumsum([gate.size, experts.size])

    def objective(u):
        one, two, log_nu = u[: sizes[0]], u[sizes[0] : sizes[1]], u[sizes[1] :]
        prior = jax.nn.log_softmax(rows @ one.reshape(gate.shape).T, axis=1)
        if classes:
            scores = jnp.einsum("np,kcp->nkc", rows, two.reshape(experts.shape))
            logs = jax.nn.log_softmax(scores, axis=2)
            given = jnp.take_along_axis(logs, answers[:, None, None], axis=2)[:, :, 0]
        else:
            residual = answers[:, None] - rows @ two.reshape(experts.shape).T
            given = -0.5 * (jnp.log(2 * jnp.pi) + log_nu + residual**2 / jnp.exp(log_nu))
        return -jax.scipy.special.logsumexp(prior + given, axis=1).mean()

    both = jax.jit(jax.value_and_grad(objective))
    truth = np.concatenate([gate.ravel(), experts.ravel(), np.log(nu)])
    both(truth)[0].block_until_ready()

    def solve(seed: int) -> tuple[float, None]:
        drawn = np.random.default_rng(1 + seed).standard_normal(truth.size)
        begin = truth if start == "truth" else drawn
        end = minimize(
            lambda u: tuple(np.asarray(each) for each in both(u)),
            begin,
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 3000, "maxfun": 6000},
        )
        return -float(end.fun) * n, None

    return solve


def flexmix_before(name: str) -> dict[str, Any]:
    """Seconds and log-likelihood of stepFlexmix in the stored row of the same data."""
    (row,) = [row for row in rows_of("peers") if row["problem"] == name]
    fits = row["fits"].rpartition(", ")[2]
    kept = {"seconds": row["flexmix, s"], "fits": int(fits) if fits.isdigit() else fits}
    if "flexmix, below" not in row:
        return kept
    return kept | {"log-likelihood": row["log-likelihood"] - row["flexmix, below"]}


def by_flexmix(name: str) -> dict[str, Any]:
    """Seconds and log-likelihoods of stepFlexmix, as R measures them."""
    k, _, d, classes = _ROWS[name]
    _, _, X, y = problem(name)
    with tempfile.TemporaryDirectory() as folder:
        header = ",".join([f"x{j}" for j in range(d)] + ["y"])
        data = np.column_stack([X, y])
        np.savetxt(Path(folder, "data.csv"), data, header=header, delimiter=",", comments="")
        Path(folder, "run.R").write_text(
            _FLEXMIX.format(k=k, classes=classes, seeds=_SEEDS, begin=_BEGIN)
        )
        run = subprocess.run(
            ["bash", "-c", f"ulimit -t {_MOST_SECONDS}; exec Rscript run.R"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
    ended = np.array(run.stdout.split(), dtype=float).reshape(-1, 2)
    if not len(ended) and run.returncode in (
        -signal.SIGXCPU,
        -signal.SIGKILL,
        128 + signal.SIGXCPU,
        137,
    ):
        return {"seconds": f"> {_MOST_SECONDS}"}
    if not len(ended):
        print("flexmix:", run.stderr.strip().splitlines()[-2:])
        return {"seconds": "-"}
    seconds, height = np.median(ended, axis=0)
    return {"seconds": float(seconds), "fits": len(ended), "log-likelihood": float(height)}


_TOOLS = {
    "default": (by_moestat, ""),
    "NumPy EM": (by_numpy, "partition"),
    "NumPy EM, truth": (by_numpy, "truth"),
    "JAX": (by_jax, "random"),
    "JAX, truth": (by_jax, "truth"),
}


def fits_of(tool: str, name: str) -> dict[str, Any]:
    """Seconds, memory and log-likelihood of one tool, in this process."""
    resource.setrlimit(resource.RLIMIT_CPU, (_MOST_SECONDS, _MOST_SECONDS + 5))
    by, start = _TOOLS[tool]
    with threadpool_limits(1), np.errstate(all="ignore"):
        solve = by(name, start)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        first, times, ends = time.process_time(), [], []
        while len(times) < _SEEDS and time.process_time() - first < _BEGIN:
            began = time.process_time()
            ends.append(solve(len(times)))
            times.append(time.process_time() - began)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory
    heights = [height for height, _ in ends]
    return {
        "seconds": float(np.median(times)),
        "fits": len(times),
        "MB": round(grown / 1e3),
        "log-likelihood": float(np.median(heights)),
        "worst": float(np.median(heights) - min(heights)),
        "certified": all(certified for _, certified in ends),
    }


def measure(name: str) -> dict[str, Any]:
    """The row of one problem."""
    row: dict[str, Any] = {"problem": name}
    heights, found = {}, {}
    for tool in _TOOLS:
        done = subprocess.run(
            [sys.executable, __file__, "--one", tool, name],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == -signal.SIGXCPU:
            found[tool] = {"seconds": f"> {_MOST_SECONDS}"}
        elif done.returncode:
            print(f"{tool}: {done.stderr.strip().splitlines()[-1:]}", flush=True)
            found[tool] = {"seconds": "-"}
        else:
            found[tool] = json.loads(done.stdout)
            heights[tool] = found[tool]["log-likelihood"]
    found["flexmix"] = flexmix_before(name) if which("Rscript") is None else by_flexmix(name)
    if "log-likelihood" in found["flexmix"]:
        heights["flexmix"] = found["flexmix"]["log-likelihood"]
    own = found["default"]
    row |= {"certified": own.get("certified", "-"), "default, MB": own.get("MB", "-")}
    row |= {f"{tool}, s": each["seconds"] for tool, each in found.items()}
    row["fits"] = ", ".join(
        str(found[tool].get("fits", "-")) for tool in ("default", "NumPy EM", "JAX", "flexmix")
    )
    best = heights.get("default", np.nan)
    row |= {"log-likelihood": best, "worst": round(own.get("worst", np.nan), 3)}
    return row | {
        f"{tool}, below": round(best - height, 3)
        for tool, height in heights.items()
        if tool != "default"
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--row", nargs="*", help="Parts of names of problems.")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(fits_of(*options.one)))
    else:
        rows = {row["problem"]: row for row in rows_of("peers")}
        for each in _ROWS:
            if not options.row or any(part in each for part in options.row):
                rows[each] = measure(each)
                print(rows[each], flush=True)
                save("peers", [rows[name] for name in _ROWS if name in rows])
