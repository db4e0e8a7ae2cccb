"""Device functions from the Python source of the CPU's: nothing is written twice.

The functions under ``moestat.compiler.jit.device`` are plain Python over scalars and small views,
so the CUDA target compiles the very same source.  A function is rebuilt with the moestat functions
that it calls, through globals or closure cells, replaced by their device counterparts; the few
primitives that are machine instructions have device instructions in their place.

Exponentials and logarithms stay the polynomials of `moestat.compiler.math`: they are fused
multiply-adds without a branch, which is what a device does best, and results differ from the CPU's
by rounding only, not by the accuracy of another library.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import version
from types import CellType, FunctionType
from typing import Any

from moestat.compiler import math as _math
from moestat.compiler.jit import kernel_cache
from moestat.kernels import views
from moestat.kernels.cuda.target import COMPILES, SIMULATED, cuda
from moestat.kernels.cuda.views import part, row

_counterparts: dict[Any, Any] = {views.part: part, views.row: row}
if COMPILES:
    libdevice = import_module("numba.cuda.libdevice")
    _counterparts[_math.fma] = libdevice.fma
    _counterparts[_math.to_bits] = libdevice.double_as_longlong
    _counterparts[_math.from_bits] = libdevice.longlong_as_double


def on_device(function: Callable[..., Any]) -> Any:
    """The device function of a plain or ``device`` function; the same one for the same function."""
    if function not in _counterparts:
        _counterparts[function] = None  # met again only by recursion, which the loops do not have
        rebuilt = _rebuilt(function, {})
        _counterparts[function] = (
            rebuilt if SIMULATED else cuda.jit(rebuilt, device=True, forceinline=True)
        )
    return _counterparts[function]


def kernel(template: Callable[..., None], name: str, **bound: Callable[..., Any] | int) -> Any:
    """The kernel of a template: a module-level function with placeholders among its globals.

    The name tells it from others of the template.  What is bound in place of placeholders is global
    rather than in closure cells, because numba cannot find kernels that close over compiled
    functions in its cache.
    """
    rebuilt = _rebuilt(
        template,
        {key: v if isinstance(v, int) else on_device(v) for key, v in bound.items()},
    )
    mark = hashlib.sha256(name.encode()).hexdigest()[:16]
    rebuilt.__qualname__ = f"{template.__qualname__}_{mark}"
    if not COMPILES:
        return cuda.jit(rebuilt)
    before = cuda.config.CACHE_DIR
    cuda.config.CACHE_DIR = str(kernel_cache() / f"cuda-{version('numba-cuda')}")
    try:
        return cuda.jit(rebuilt, cache=True)
    finally:
        cuda.config.CACHE_DIR = before


def start_kernel(compiled: Any, grid: Any, threads: Any, shared: int, *arguments: Any) -> None:
    """Launch a kernel on `grid` blocks with `shared` bytes of dynamic shared memory each."""
    with warnings.catch_warnings():
        # Small problems make small grids, and that is as it should be.
        warnings.filterwarnings("ignore", message="Grid size")
        configured = compiled[grid, threads, 0, shared]
    configured(*arguments)


def _rebuilt(function: Callable[..., Any], bound: Mapping[str, Any]) -> FunctionType:
    assert isinstance(function, FunctionType)
    code = function.__code__
    names = {name: value for name, value in function.__globals__.items() if name in code.co_names}
    namespace = {name: _translated(value) for name, value in names.items()} | dict(bound)
    cells = tuple(CellType(_translated(cell.cell_contents)) for cell in function.__closure__ or ())
    rebuilt = FunctionType(
        code,
        {"__name__": function.__module__, "__builtins__": __builtins__, **namespace},
        function.__name__,
        function.__defaults__,
        cells,
    )
    rebuilt.__qualname__ = function.__qualname__
    return rebuilt


def _translated(value: Any) -> Any:
    """The counterpart of a function of moestat; anything else as it is."""
    if isinstance(value, FunctionType) and value.__module__.startswith("moestat."):
        return on_device(value)
    return value
