"""Default calls beside EM and L-BFGS from random starts, repeated until one has probably arrived.

    python benchmarks/repeated.py run [--part gaussian] [--minutes 30]
    python benchmarks/repeated.py page

One run of a local method is fast, and often ends too low.  What a user needs is the time after
which the maximum has been found with a probability of 97%: the mean time of a run, times
ln(.03) / ln(1 - h) runs, where h is the share of runs that arrive.  A run arrives if its
log-likelihood is at most .01 below that of the highest of the default calls, so that ends at
infinity and on few rows count in favour of the peers.  Nobody who runs them knows h beforehand; a
default call decides by what it sees.  `run` adds a line for each problem (three
truths for each kind) to results/repeated.jsonl, `page` writes results/repeated.md.

EM is in NumPy, with one Newton step for the gate (and for experts of counts and classes) in each
iteration, from a random partition, to a relative change of 1e-8.  L-BFGS is that of scipy on the
gradient of JAX where it can be imported, from random numbers; its compilation is not counted.
Processor time, one thread, after a call that compiles.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import gammaln

import moestat
from moestat.base.warnings import MoEWarning

HERE = Path(__file__).parent / "results"
ROWS = (  # likelihood, n, d, k, classes
    ("gaussian", 500, 2, 2, 1),
    ("gaussian", 1_000, 2, 3, 1),
    ("gaussian", 1_000, 1, 4, 1),
    ("gaussian", 3_000, 3, 4, 1),
    ("gaussian", 10_000, 5, 4, 1),
    ("gaussian", 10_000, 2, 6, 1),
    ("poisson", 1_000, 2, 3, 1),
    ("poisson", 3_000, 1, 4, 1),
    ("multinomial", 2_000, 2, 2, 3),
    ("multinomial", 2_000, 2, 3, 3),
)
TRUTHS, CALLS = 3, 4
"""Truths of each kind, and default calls of each."""
MOST_RUNS, SECONDS = 16, 6.0
"""Runs of a peer: so many, or as many as begin within these seconds, and four at least."""
NEAR, SURE = 0.01, 0.97


def softmax(scores: np.ndarray) -> np.ndarray:
    """Probabilities (n, k)."""
    weight = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weight / weight.sum(axis=1, keepdims=True)


def log_sum(scores: np.ndarray) -> np.ndarray:
    """Logarithms (n,) of sums of exponentials."""
    top = scores.max(axis=1)
    return top + np.log(np.exp(scores - top[:, None]).sum(axis=1))


def draw(
    kind: str, n: int, d: int, k: int, classes: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Inputs (n, d) and responses (n,) of a random truth."""
    rng = np.random.default_rng([84, n, d, k, seed])
    X = rng.normal(size=(n, d))
    Z = np.column_stack([np.ones(n), X])
    gate = rng.normal(size=(k, d + 1)) * np.r_[0.5, np.full(d, 2.2 / np.sqrt(d))]
    lines = rng.normal(size=(k, classes, d + 1)) * np.r_[1.0, np.full(d, 1.5 / np.sqrt(d))]
    expert = (softmax(Z @ gate.T).cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1)
    expert = np.minimum(expert, k - 1)
    if kind == "multinomial":
        shares = softmax(1.5 * np.einsum("np,ncp->nc", Z, lines[expert]))
        y = (shares.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1)
        return X, np.minimum(y, classes - 1)
    mean = np.einsum("np,np->n", Z, lines[expert, 0])
    if kind == "poisson":
        return X, rng.poisson(np.exp(np.clip(0.5 * mean + 0.5, -6.0, 4.0)))
    return X, mean + rng.uniform(0.3, 0.7, k)[expert] * rng.normal(size=n)


def newton_step(B: np.ndarray, shares: np.ndarray, Z: np.ndarray, steps: int) -> np.ndarray:
    """Newton steps of a multinomial regression of shares (n, c), the last the reference."""
    c, p, total = len(B), Z.shape[1], shares.sum(axis=1)
    for _ in range(steps):
        fitted = softmax(Z @ B.T)
        gradient = ((shares - total[:, None] * fitted)[:, :-1].T @ Z).ravel()
        hessian = np.zeros(((c - 1) * p, (c - 1) * p))
        for i in range(c - 1):
            for j in range(i + 1):
                weight = total * fitted[:, i] * ((i == j) - fitted[:, j])
                block = (Z * weight[:, None]).T @ Z
                hessian[i * p : i * p + p, j * p : j * p + p] = block
                hessian[j * p : j * p + p, i * p : i * p + p] = block
        ridge = 1e-8 * np.trace(hessian) / len(hessian) * np.eye(len(hessian))
        step = np.linalg.solve(hessian + ridge, gradient)
        step *= min(1.0, 3.0 / np.abs(step).max())
        B = B.copy()
        B[:-1] += step.reshape(c - 1, p)
    return B


def em(kind: str, X: np.ndarray, y: np.ndarray, k: int, classes: int, seed: int) -> float:
    """The log-likelihood where EM from a random partition ends."""
    n, d = X.shape
    Z, rng = np.column_stack([np.ones(n), X]), np.random.default_rng(seed)
    tau, gate = np.eye(k)[rng.integers(k, size=n)], np.zeros((k, d + 1))
    lines = np.zeros((k, classes, d + 1))
    shown = np.eye(classes)[y] if kind == "multinomial" else np.empty((0, 0))
    if kind == "poisson":
        lines[:, 0, 0] = np.log(y.mean())
    height, began = -np.inf, time.process_time()
    for iteration in range(5_000):
        joint, steps = np.empty((n, k)), 1 if iteration else 6
        for i, w in enumerate(tau.T):
            if kind == "gaussian":
                weighted = Z * w[:, None]
                lines[i, 0] = np.linalg.solve(weighted.T @ Z, weighted.T @ y)
                square = (y - Z @ lines[i, 0]) ** 2
                variance = w @ square / w.sum()
                joint[:, i] = -0.5 * (np.log(2.0 * np.pi * variance) + square / variance)
            elif kind == "poisson":
                for _ in range(steps):
                    mean = np.exp(np.clip(Z @ lines[i, 0], -20.0, 20.0))
                    hessian = (Z * (w * mean)[:, None]).T @ Z
                    lines[i, 0] += np.linalg.solve(hessian, Z.T @ (w * (y - mean)))
                eta = Z @ lines[i, 0]
                joint[:, i] = y * eta - np.exp(eta) - gammaln(y + 1.0)
            else:
                lines[i] = newton_step(lines[i], w[:, None] * shown, Z, steps)
                eta = Z @ lines[i].T
                joint[:, i] = eta[np.arange(n), y] - log_sum(eta)
        gate = newton_step(gate, tau, Z, 5 if not iteration else 1)
        scores = Z @ gate.T
        joint += scores - log_sum(scores)[:, None]
        density = log_sum(joint)
        before, height = height, float(density.sum())
        if not np.isfinite(height):
            return -np.inf
        is_flat = height - before < 1e-8 * (abs(height) + 0.1)
        if (is_flat and iteration > 2) or time.process_time() - began > 20.0:
            return height
        tau = np.exp(joint - density[:, None])
    return height


def lbfgs(
    kind: str, X: np.ndarray, y: np.ndarray, k: int, classes: int
) -> Callable[[int], float] | None:
    """A function of the seed: the log-likelihood where L-BFGS ends; None without JAX."""
    threads = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    os.environ["XLA_FLAGS"] = threads
    try:
        import jax
    except ImportError:
        return None
    jax.config.update("jax_enable_x64", True)
    jnp, (n, d) = jax.numpy, X.shape
    p, free = d + 1, max(1, classes - 1)
    Z, seen, n_gate = jnp.asarray(np.column_stack([np.ones(n), X])), jnp.asarray(y), (k - 1) * p
    constant = jnp.asarray(gammaln(y + 1.0)) if kind == "poisson" else 0.0
    size = n_gate + k * free * p + k * (kind == "gaussian")

    def loss(u: Any) -> Any:
        gate = jnp.concatenate([u[:n_gate].reshape(k - 1, p), jnp.zeros((1, p))])
        joint = jax.nn.log_softmax(Z @ gate.T, axis=1)
        lines = u[n_gate : n_gate + k * free * p].reshape(k, free, p)
        if kind == "multinomial":
            lines = jnp.concatenate([lines, jnp.zeros((k, 1, p))], axis=1)
            logs = jax.nn.log_softmax(jnp.einsum("np,kcp->nkc", Z, lines), axis=2)
            joint += jnp.take_along_axis(logs, seen[:, None, None], axis=2)[:, :, 0]
        elif kind == "poisson":
            eta = Z @ lines[:, 0].T
            joint += seen[:, None] * eta - jnp.exp(jnp.minimum(eta, 50.0)) - constant[:, None]
        else:
            v = u[-k:]
            square = (seen[:, None] - Z @ lines[:, 0].T) ** 2
            joint -= 0.5 * (jnp.log(2.0 * jnp.pi) + v + square * jnp.exp(-v))
        return -jax.nn.logsumexp(joint, axis=1).sum() / n

    both = jax.jit(jax.value_and_grad(loss))
    both(np.zeros(size))[0].block_until_ready()

    def run(seed: int) -> float:
        start = 0.6 * np.random.default_rng(100 + seed).normal(size=size)
        options = {"maxiter": 3000, "maxfun": 6000, "ftol": 1e-12, "gtol": 1e-7}

        def objective(u: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = both(u)
            return float(value), np.asarray(gradient)

        found = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
        return -float(found.fun) * n

    return run


def timed(run: Callable[[int], float], most: int) -> tuple[list[float], list[float]]:
    """Heights and seconds of runs with seeds 0, 1, ...: `most`, or those that begin in time."""
    heights: list[float] = []
    seconds: list[float] = []
    while len(heights) < most and (sum(seconds) < SECONDS or len(heights) < 4):
        began = time.process_time()
        heights.append(run(len(heights)))
        seconds.append(time.process_time() - began)
    return heights, seconds


def problem(kind: str, n: int, d: int, k: int, classes: int, seed: int) -> dict[str, Any]:
    """The runs of all tools on one problem."""
    X, y = draw(kind, n, d, k, classes, seed)
    moestat.fit(kind, X, y, n_experts=k, rng=99, threads=1)  # compiles
    chances: list[float | None] = []

    def default(seed: int) -> float:
        result = moestat.fit(kind, X, y, n_experts=k, rng=seed, threads=1)
        chances.append(result.certificate.p_higher)
        return result.llf

    tools = {"moestat": timed(default, CALLS)}
    tools["EM"] = timed(lambda seed: em(kind, X, y, k, classes, seed), MOST_RUNS)
    if (run := lbfgs(kind, X, y, k, classes)) is not None:
        tools["L-BFGS"] = timed(run, MOST_RUNS)
    return {
        "row": [kind, n, d, k, classes, seed],
        "p_higher": chances,
        "tools": {
            name: {"heights": [round(h, 3) for h in heights], "seconds": np.round(s, 4).tolist()}
            for name, (heights, s) in tools.items()
        },
    }


def until_sure(line: dict[str, Any], tool: str) -> tuple[float, float, float]:
    """Seconds of a run, share of runs that arrive, and seconds until 97% are sure."""
    target = max(line["tools"]["moestat"]["heights"])
    heights = np.array(line["tools"][tool]["heights"])
    share, seconds = float(np.mean(heights >= target - NEAR)), line["tools"][tool]["seconds"]
    each = float(np.median(seconds) if tool == "moestat" else np.mean(seconds))
    if not share:
        return each, share, np.inf
    runs = 1.0 if share >= SURE else np.log(1.0 - SURE) / np.log(1.0 - share)
    return each, share, each * max(1.0, runs)


def page(lines: list[dict[str, Any]]) -> str:
    """The page of all lines."""
    doc = (__doc__ or "").split("\n\n")
    text = ["# Time until the maximum is found with a probability of 97%", ""]
    text += [" ".join(part.split()) for part in doc[2:3]]
    text += ["", " ".join(doc[3].split()), ""]
    text += [
        "| problem | moestat, s | arrives | EM, s a run | arrives | until 97% | L-BFGS, s a run |"
        " arrives | until 97% | ratio | a higher end |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    ratios = []
    for line in sorted(lines, key=lambda line: [ROWS.index(tuple(line["row"][:5])), line["row"]]):
        kind, n, d, k, _, seed = line["row"]
        own = until_sure(line, "moestat")
        peers = [until_sure(line, tool) for tool in ("EM", "L-BFGS") if tool in line["tools"]]
        best = min(peer[2] for peer in peers)
        target = max(line["tools"]["moestat"]["heights"])
        tops = [max(one["heights"]) for name, one in line["tools"].items() if name != "moestat"]
        lead = max(tops) - target
        ratios.append(own[2] / best)
        cells = [f"{kind}, n = {n:,}, d = {d}, k = {k}, truth {seed}"]
        cells += [f"{own[0]:.3f}", f"{own[1]:.0%}"]
        for each, share, total in peers:
            cells += [f"{each:.3f}", f"{share:.0%}", f"{total:.2f}" if total < np.inf else "never"]
        cells += ["-"] * (3 * (2 - len(peers)))
        cells += [f"{ratios[-1]:.2f}", f"+{lead:.2f}" if lead > NEAR else ""]
        text.append(f"| {' | '.join(cells)} |")
    quartiles = np.quantile(ratios, [0.25, 0.5, 0.75])
    text += [
        "",
        "The ratio is the time of moestat until 97% over the smaller one of the peers; 0 where no"
        " run of a peer arrived. Median"
        f" {quartiles[1]:.2f}, quartiles {quartiles[0]:.2f} and {quartiles[2]:.2f}, largest"
        f" {max(ratios):.2f}; above 1 in {sum(r > 1.0 for r in ratios)} of {len(ratios)} problems,"
        f" above 2 in {sum(r > 2.0 for r in ratios)}. The last column says by how much the highest"
        " end of a peer, proper or not, is above the default call.",
    ]
    return "\n".join(text) + "\n"


def main() -> None:
    """Run a command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("run", "page"))
    parser.add_argument("--part", default="")
    parser.add_argument("--minutes", type=float, default=30.0)
    given = parser.parse_args()
    path = HERE / "repeated.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    if given.command == "run":
        warnings.simplefilter("ignore", MoEWarning)
        np.seterr(all="ignore")
        until = time.monotonic() + 60.0 * given.minutes
        for seed in range(1, TRUTHS + 1):
            for row in ROWS:
                if given.part not in row[0] or time.monotonic() > until:
                    continue
                lines = [line for line in lines if line["row"] != [*row, seed]]
                lines.append(problem(*row, seed))
                path.write_text("".join(json.dumps(line) + "\n" for line in lines))
                print(lines[-1]["row"], until_sure(lines[-1], "moestat"), flush=True)
    text = page(lines)
    (HERE / "repeated.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
