"""The numba switchboard: one place that decides how moestat's functions are compiled.

Two decorators carry the kernel idiom:

``device``
    per-sample and per-block math, plain module-level Python that stays callable as such;
``compile_loop``
    a loop over the data, compiled once per process and cached on disk (`moestat.compiler.cache`).

Code is made in one of two ways, which agree to rounding: by the short one of
`moestat.compiler.lean` where it knows numba's version, else by `moestat.compiler.standard`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, overload

import numba
from numba.core import config
from numba.extending import lower_builtin, type_callable

from moestat.compiler.cache import cache_directory, numba_cache_at
from moestat.compiler.identity import named
from moestat.compiler.layout import COMPACT
from moestat.compiler.notice import announce

F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")

BLOCK = 192
"""Samples per block at most: its working rows stay in the first two cache levels.

A multiple of 32, four vectors of 512 bits.
"""

FASTMATH = frozenset({"reassoc", "contract", "nsz"})
"""Reductions may be reordered so that LLVM vectorises them; NaN and inf keep their meaning."""

_LEAN_VERSIONS = ("0.68",)
_ERROR_MODEL = "numpy"


def _choose_lowering(version: str, chosen: str | None) -> str:
    """How code is made: as chosen, or "lean" for the versions of numba that it knows."""
    if chosen is None:
        return "lean" if version.rsplit(".", 1)[0] in _LEAN_VERSIONS else "standard"
    if chosen not in ("lean", "standard"):
        raise ValueError(f"MOESTAT_LOWERING is {chosen!r}: it must be 'lean' or 'standard'")
    if chosen == "lean" and version.rsplit(".", 1)[0] not in _LEAN_VERSIONS:
        known = " or ".join(_LEAN_VERSIONS)
        raise ValueError(f"MOESTAT_LOWERING is 'lean', which needs numba {known}, not {version}")
    return chosen


LOWERING = _choose_lowering(numba.__version__, os.environ.get("MOESTAT_LOWERING"))
"""How code is made: "lean" or "standard", from the environment variable ``MOESTAT_LOWERING``."""

_SETTINGS: Any = config
if _SETTINGS.DISABLE_JIT:
    raise ImportError(
        "NUMBA_DISABLE_JIT is set, and moestat computes by compiled loops alone: unset it"
    )
if LOWERING == "lean":
    from moestat.compiler import lean as _path
else:
    from moestat.compiler import standard as _path

OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": _ERROR_MODEL,
    "fastmath": set(FASTMATH),
    "no_cfunc_wrapper": True,
    **_path.loop_options(),
}
"""How loops are compiled, besides the cache."""


def compact(function: F) -> F:
    """Mark a function, below its other decorator, whose time is in compiling it, not in running it.

    That is so of what runs once in a pass, over a few dozen numbers.
    """
    COMPACT.add(function.__code__)
    return function


@overload
def device(function: F) -> F: ...


@overload
def device(*, forceinline: bool) -> Callable[[F], F]: ...


def device(function: F | None = None, *, forceinline: bool = True) -> F | Callable[[F], F]:
    """Mark a function as callable from compiled loops (and, unchanged, from Python).

    It becomes part of the loop, unless `forceinline` is False: a function of its own compiles
    faster, and a call costs as much as a few samples.  It takes positional arguments and
    borrows its arrays: it neither makes one that owns memory, nor returns one, nor raises.

    An array that a call writes must not overlap another one of the same call: the compiler takes
    that for granted, and vectorises loops without a check at run time.
    """
    if function is None:
        return partial(_device, forceinline=forceinline)
    return _device(function, forceinline)


def _device(function: F, forceinline: bool) -> F:
    _path.register_part(function, forceinline, FASTMATH, _ERROR_MODEL)
    return function


def primitive(
    function: Callable[..., Any], typer: Callable[..., Any], *argument_types: Any
) -> Callable[..., Any]:
    """Give a Python function a meaning in compiled loops that is a few machine instructions.

    An overload would do the same, but numba compiles an overload as a function of its own, or
    copies its body into every caller, and there are hundreds of calls of these.  Plain Python runs
    the function; ``typer(*argument types)`` is the numba signature of arguments of these types, or
    classes of types.  Returns a decorator of ``codegen(context, builder, signature, args)``.
    """
    type_callable(function)(lambda context: typer)
    return lower_builtin(function, *argument_types)


def kernel_cache() -> Path:
    """Directory of the compiled kernels of exactly these sources, options and versions."""
    return cache_directory(str(BLOCK), ",".join(sorted(FASTMATH)), LOWERING)


def compile_loop(function: Callable[..., R]) -> Callable[..., R]:
    """Compile a loop over the data: cached on disk, without the GIL, vectorised reductions.

    The function is a plain one, or a closure over ``device`` functions; closures over compiled
    dispatchers never hit the cache and must not be passed.
    """
    with numba_cache_at(kernel_cache()):
        return _path.keep_on_disk(numba.njit(**OPTIONS)(named(function)))


def compile_code(function: Callable[..., R]) -> Callable[..., R]:
    """Compile a loop that only compiled loops call, by address (`moestat.compiler.pointers`).

    It lacks the code by which Python calls a loop, which unpacks and checks every array: a sixth of
    a loop with many arrays.  Python must not call it.
    """
    options = {**OPTIONS, "no_cpython_wrapper": True}
    with numba_cache_at(kernel_cache()):
        return _path.keep_on_disk(numba.njit(**options)(named(function)))


announce()
