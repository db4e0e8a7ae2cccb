"""Compile `reference.c` for this machine and call it."""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np

__all__ = ["Reference", "compile_reference"]

_SOURCE = Path(__file__).with_name("reference.c")
_MACHINE = "haswell" if os.environ.get("BENCHMARK_VECTORS") == "AVX2" else "native"
_COMPILE = ("gcc", "-O3", f"-march={_MACHINE}", "-ffast-math", "-fPIC", "-c")


class Reference:
    """The C functions at one vector width."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library

    def function(self, name: str, x, y, weight, theta):
        """``call(order) -> (value, score, hessian)`` on the given arrays."""
        function = getattr(self._library, name)
        function.restype = ctypes.c_double
        function.argtypes = [
            ctypes.c_ssize_t,
            *[ctypes.c_void_p] * 4,
            ctypes.c_int,
            *[ctypes.c_void_p] * 2,
        ]
        score, hessian = np.zeros(theta.size), np.zeros((theta.size, theta.size))
        inputs = [np.ascontiguousarray(array) for array in (x, y, weight, theta)]
        pointers = [array.ctypes.data for array in inputs]

        def call(order: int):
            value = function(x.size, *pointers, order, score.ctypes.data, hessian.ctypes.data)
            return value, score, hessian

        call.keep = inputs  # type: ignore[attr-defined]
        return call


def compile_reference(width: int) -> Reference:
    """The reference compiled for vectors of `width` bits, which gcc prefers to be 256.

    -ffast-math is for the compiler only: to the linker it would mean that loading the library
    turns subnormal numbers off in the whole process, Python's included.
    """
    folder = Path(tempfile.mkdtemp())
    compiled, library = folder / "reference.o", folder / "reference.so"
    option = f"-mprefer-vector-width={width}"
    subprocess.run([*_COMPILE, option, _SOURCE, "-o", compiled], check=True)
    subprocess.run(["gcc", "-shared", compiled, "-o", library, "-lmvec", "-lm"], check=True)
    return Reference(ctypes.CDLL(str(library)))
