"""Run a benchmark without vectors of 512 bits, as on a processor with AVX2 only.

    python benchmarks/avx2.py kernels.py [--n 100000]

Compiled loops of moestat, the reference in C, NumPy, OpenBLAS and XLA are all told to leave AVX-512
out.  The results are kept as sections of their own.  This is the code that an AVX2 processor runs,
at the clock, and with the caches, of the machine that it runs on.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

ENVIRONMENT = {
    "BENCHMARK_VECTORS": "AVX2",
    "NUMBA_CPU_NAME": "haswell",
    "NUMBA_CPU_FEATURES": "+avx2,+fma,+bmi,+bmi2,+f16c,+lzcnt,+popcnt,+movbe",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
    "OPENBLAS_CORETYPE": "Haswell",
    "XLA_FLAGS": "--xla_cpu_max_isa=AVX2 --xla_cpu_multi_thread_eigen=false"
    " intra_op_parallelism_threads=1",
}

if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit("avx2.py: name a benchmark, such as kernels.py")
    script = Path(__file__).with_name(sys.argv[1])
    os.execve(
        sys.executable, [sys.executable, str(script), *sys.argv[2:]], os.environ | ENVIRONMENT
    )
