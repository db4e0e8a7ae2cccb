"""Compare every kind of loop with plain NumPy, with the instructions of other processors.

    python -m tests.processors [name ...]
    python -m tests.processors --contracts [name ...]

The second command runs the contract tests, too: samplers, symmetries, every solver.  The test
suite itself compiles for the processor that it runs on.  What has other instructions,
such as a 64-bit ARM processor, takes the same tests under emulation or on the machine itself:

    docker run --rm --platform linux/arm64 -v "$PWD":/moestat -w /moestat python:3.11 \\
        sh -c 'pip install -q -e ".[dev]" && python -m pytest tests/test_contracts.py'
"""

from __future__ import annotations

import os
import subprocess
import sys

PROCESSORS = {
    "without-fma": {"NUMBA_CPU_NAME": "generic"},
    "avx2": {
        "NUMBA_CPU_NAME": "haswell",
        "NUMBA_CPU_FEATURES": "+avx2,+fma,+bmi,+bmi2,+f16c,+lzcnt,+popcnt,+movbe",
    },
}
TESTS = ("tests/compiler/test_math.py", "tests/model/test_plain.py")
CONTRACTS = "tests/test_contracts.py"


def main(names: list[str]) -> int:
    """Run the tests once for each processor; 1 if one of them fails."""
    failed, tests = 0, list(TESTS)
    if names[:1] == ["--contracts"]:
        names, tests = names[1:], [*tests, CONTRACTS]
    for name in names or PROCESSORS:
        print(f"processor {name}", flush=True)
        command = [sys.executable, "-m", "pytest", "-q", "-n", "2", *tests]
        failed |= subprocess.run(command, env=os.environ | PROCESSORS[name], check=False).returncode
    return min(failed, 1)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
