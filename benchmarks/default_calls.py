"""Default calls of `moestat.fit` beyond the easy sizes: more inputs, classes, atoms and rows.

    python benchmarks/default_calls.py [PART ...]

Each problem has a process of its own, where a fit of the same family to few rows compiles first.
Seconds are of processor time on one thread, the median of five fits with seeds 0 to 4, or of as
many as begin within 20 s; memory is what the process's resident set grew by, at most, in the first
of them, beyond the data (on Linux).  Log-likelihood and how far the lowest lies below it are of the
same fits; a problem is certified where all of them are.  Least squares has one expert more than the
truth: a flat ridge.  PART chooses the problems whose names hold one of the parts; the rows of the
others stay as they are.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys

from results import rows_of, save

_FIT = """
import json, resource, sys, time
import numpy as np
import moestat

kind, k, n, d, classes = json.loads(sys.argv[1])
limit = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
options = {"n_experts": k, "n_features": d} | ({"n_classes": classes} if classes else {})
gate, more = "softmax", {}
if kind == "least-squares":
    options["expert"] = {"name": "activation", "activation": "tanh", "weighted": False}
    gate, more = "softmax-quadratic", {"noise": 0.1}
family = moestat.family(kind, gate=gate, **options)
fitted = family.with_experts(k + 1) if more else family
rng = np.random.default_rng(5)
theta = family.pack({
    name: np.abs(block) + 0.2 if name == "nu" else 1.5 * block
    for name, block in family.unpack(rng.standard_normal(family.n_params)).items()
})
X, y = moestat.sample(family, theta, n, rng=6, design=moestat.Uniform(-2, 2), **more)
few = max(400, 3 * theta.size)
few = moestat.sample(family, 0.1 * theta, few, rng=7, design=moestat.Uniform(-2, 2), **more)
moestat.fit(fitted, *few, rng=0, threads=1, n_starts=1)
def resident(key):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(key))
with open("/proc/self/clear_refs", "w") as peak:
    peak.write("5")  # the sampling's peak is forgotten
memory = resident("VmRSS")
first, times, ends = time.process_time(), [], []
while len(times) < 5 and time.process_time() - first < 20:
    began = time.process_time()
    ends.append(moestat.fit(fitted, X, y, rng=len(times), threads=1))
    times.append(time.process_time() - began)
    if len(times) == 1:
        grown = resident("VmHWM") - memory
heights = [end.log_likelihood for end in ends]
print(json.dumps([np.median(times), len(times), grown / 1e3,
                  X.nbytes / 1e6 + y.nbytes / 1e6, np.median(heights),
                  np.median(heights) - min(heights),
                  all(bool(end.certificate.certified) for end in ends), fitted.n_params]))
"""
_PROBLEMS = {
    "gaussian, k = 3, n = 1e4": ("gaussian", 3, 10_000, 1, 0),
    "gaussian, k = 3, n = 1e4, d = 20": ("gaussian", 3, 10_000, 20, 0),
    "multinomial, n = 1e4, d = 10": ("multinomial", 4, 10_000, 10, 3),
    "multinomial, n = 1e4, d = 20": ("multinomial", 4, 10_000, 20, 3),
    "multinomial, n = 1e4, K = 10": ("multinomial", 2, 10_000, 1, 10),
    "multinomial, n = 1e4, K = 20": ("multinomial", 2, 10_000, 1, 20),
    "multinomial, k = 4, n = 2e4, K = 5, d = 4": ("multinomial", 4, 20_000, 4, 5),
    "multinomial, k = 8, n = 2e4, d = 8, K = 8": ("multinomial", 8, 20_000, 8, 8),
    "multinomial, k = 8, n = 3e4, d = 15, K = 8": ("multinomial", 8, 30_000, 15, 8),
    "least squares, k = 3 of 2, n = 1e4": ("least-squares", 2, 10_000, 1, 0),
    "least squares, k = 3 of 2, n = 1e4, d = 2": ("least-squares", 2, 10_000, 2, 0),
    "multinomial, n = 1e7": ("multinomial", 2, 10_000_000, 1, 2),
    "gaussian, n = 1e7": ("gaussian", 2, 10_000_000, 1, 0),
}
_MOST_SECONDS = 400


def measure(name: str) -> dict:
    """The row of one problem."""
    row: dict = {"problem": name}
    done = subprocess.run(
        [sys.executable, "-c", _FIT, json.dumps(_PROBLEMS[name]), str(_MOST_SECONDS)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, -signal.SIGXCPU):  # that of the limit
        raise SystemExit(f"{name}: exit {done.returncode}\n{done.stderr}")
    if done.returncode:
        return row | {"seconds": f"more than {_MOST_SECONDS}"}
    found = json.loads(done.stdout)
    seconds, fits, grown, data, height, worst, certified, n_params = found
    return row | {
        "parameters": n_params,
        "seconds": round(seconds, 2),
        "fits": fits,
        "memory beyond the data, MB": round(grown),
        "data, MB": round(data, 1),
        "log-likelihood": height,
        "worst": round(worst, 3),
        "certified": certified,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("parts", nargs="*", help="Parts of names of problems.")
    chosen = parser.parse_args().parts
    rows = {row["problem"]: row for row in rows_of("default calls")}
    for name in _PROBLEMS:
        if not chosen or any(part in name for part in chosen):
            rows[name] = measure(name)
            print(rows[name], flush=True)
            save("default calls", [rows[name] for name in _PROBLEMS if name in rows])
