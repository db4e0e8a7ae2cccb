"""numba's CUDA target, and whether it is the simulator."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

# Half of its names are made at run time, differently in the simulator.
cuda: Any = import_module("numba.cuda")

SIMULATED = bool(cuda.config.ENABLE_CUDASIM)
"""Whether numba runs kernels in plain Python."""

COMPILES = not SIMULATED and find_spec("numba_cuda") is not None
"""Whether kernels can be compiled: by the package numba-cuda, which took the target over."""
