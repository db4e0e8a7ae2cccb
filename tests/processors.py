"""Compare every kind of loop with plain NumPy, with the instructions of other processors.

    python -m tests.processors [name ...]
    python -m tests.processors --sample [name ...]
    python -m tests.processors --contracts [name ...]
    python -m tests.processors --costs [name ...]

The second command takes one family of each kind of code, for the time that CI has.  The third one
runs the contract tests, too: samplers, symmetries, every solver.  The fourth one runs the tests of
passes over the data, with OpenBLAS's kernels for the processor.  The test suite itself compiles for
the processor that it runs on.  What has other instructions, such as a 64-bit ARM processor, takes
the same tests under emulation or on the machine itself:

    docker run --rm --platform linux/arm64 -v "$PWD":/moestat -w /moestat python:3.11 \\
        sh -c 'pip install -q -e ".[dev]" && python -m pytest tests/test_contracts.py'
"""

from __future__ import annotations

import os
import subprocess
import sys

PROCESSORS = {
    "without-fma": {"NUMBA_CPU_NAME": "generic", "OPENBLAS_CORETYPE": "Prescott"},
    "avx2": {
        "NUMBA_CPU_NAME": "haswell",
        "OPENBLAS_CORETYPE": "Haswell",
        "NUMBA_CPU_FEATURES": "+avx2,+fma,+bmi,+bmi2,+f16c,+lzcnt,+popcnt,+movbe",
    },
    "avx512": {"NUMBA_CPU_NAME": "skylake-avx512", "OPENBLAS_CORETYPE": "SkylakeX"},
}
TESTS = ("tests/compiler/test_math.py", "tests/model/test_plain.py")
# Gates with and without a score of the response, top and Euclidean ones, experts of all shapes,
# and the likelihoods with special functions, with thresholds and with two parts.
SAMPLE = (
    "multinomial-sigmoid-euclidean-linear",
    "gaussian-softmax-linear",
    "gaussian-competition-free-ffn+3",
    "gaussian-competition-top+2+silu-polynomial+3",
    "gaussian-laplace-linear",
    "student-t-softmax-linear",
    "beta-binomial-softmax-linear",
    "ordinal-softmax-linear",
    "hurdle-negative-binomial-softmax-linear",
    "least-squares-sigmoid-quadratic-ffn+2",
    "least-squares-softmax-partial-linear",
)
MORE = {"--contracts": "tests/test_contracts.py", "--costs": "tests/solvers/test_costs.py"}


def main(names: list[str]) -> int:
    """Run the tests once for each processor; 1 if one of them fails."""
    failed, tests = 0, list(TESTS)
    if names[:1] == ["--sample"]:
        loops = f"{TESTS[1]}::test_loops_of_every_kind_pass"
        names, tests = names[1:], [TESTS[0], *(f"{loops}[{kind}]" for kind in SAMPLE)]
    while names[:1] and names[0] in MORE:
        names, tests = names[1:], [*tests, MORE[names[0]]]
    for name in names or PROCESSORS:
        print(f"processor {name}", flush=True)
        command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-m", "not slow", *tests]
        failed |= subprocess.run(command, env=os.environ | PROCESSORS[name], check=False).returncode
    return min(failed, 1)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
