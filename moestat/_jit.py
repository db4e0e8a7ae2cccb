"""The numba switchboard: one place that decides how moestat's functions are compiled.

Two decorators carry the kernel idiom:

``device``
    per-sample and per-block math, plain module-level Python that stays callable as such;
``compile_loop``
    a loop over the data, compiled once per process and cached on disk.

numba keys its disk cache on the file of the *outermost* function only: it sees neither an edit of
an inlined function nor a change of compiler options.  The cache therefore lives in a directory
named by a digest of every source that can be inlined into a kernel, of the compiler options and
of the versions that generate the code.  Stale code cannot be found, because its directory has
another name.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.extending import register_jitable

__all__ = ["BLOCK", "FASTMATH", "cache_directory", "compile_loop", "device"]

BLOCK = 256
"""Samples per block: the working rows of a block stay in the first two cache levels."""

FASTMATH = frozenset({"reassoc", "contract", "nsz"})
"""Reductions may be reordered so that LLVM vectorises them; NaN and inf keep their meaning."""

_KERNEL_SOURCES = (
    "_jit.py",
    "_math.py",
    "_activations.py",
    "gates",
    "experts",
    "likelihoods",
    "kernels",
    "solvers/_kinks.py",
    "solvers/_symmetric.py",
    "solvers/_trust_region.py",
)


def _name_by_closure(function: Callable[..., Any]) -> None:
    """Give functions of one source line names of their own, by what they close over.

    numba numbers the functions of a process, and a symbol of machine code is a name with such a
    number.  Two closures of one line, cached by two processes, could otherwise meet in a third
    under one symbol, and one would run in place of the other.
    """
    names, cells = function.__code__.co_freevars, function.__closure__ or ()
    if not cells or "__closed_over__" in function.__qualname__:
        return
    parts = [f"{name}={_content(c.cell_contents)}" for name, c in zip(names, cells, strict=True)]
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    function.__qualname__ += f"__closed_over__{digest}"


def _content(value: Any) -> str:
    if callable(value):
        return f"{value.__module__}.{value.__qualname__}"
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    raise TypeError(f"a compiled function must not close over {value!r}")


def device(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Mark a function as callable from compiled loops (and, unchanged, from Python)."""
    if function is None:
        return lambda decorated: device(decorated, **options)
    _name_by_closure(function)
    return register_jitable(**options)(function) if options else register_jitable(function)


def _source_files(root: Path) -> Iterator[Path]:
    for name in _KERNEL_SOURCES:
        path = root / name
        yield from sorted(path.rglob("*.py")) if path.is_dir() else (path,)


def _digest(root: Path) -> str:
    """Digest of everything that determines the machine code of a kernel."""
    digest = hashlib.sha256()
    facts = (
        sys.implementation.cache_tag,
        numba.__version__,
        llvmlite.__version__,
        np.__version__,
        str(BLOCK),
        ",".join(sorted(FASTMATH)),
    )
    digest.update("\0".join(facts).encode())
    for path in _source_files(root):
        digest.update(path.relative_to(root).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:20]


def cache_directory() -> Path:
    """Directory of the compiled kernels of exactly these sources, options and versions.

    Returns
    -------
    pathlib.Path
        ``$MOESTAT_CACHE_DIR`` (default: the user's cache directory) followed by the digest.
    """
    base = os.environ.get("MOESTAT_CACHE_DIR")
    if base is None:
        base = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "moestat"
    return Path(base) / _digest(Path(__file__).parent)


@contextlib.contextmanager
def _numba_cache_at(directory: Path) -> Iterator[None]:
    """Point numba's cache at `directory` while a function is decorated, and only then.

    numba reads the setting once, when the dispatcher is made; the user's own functions keep
    theirs.
    """
    before = numba.config.CACHE_DIR  # type: ignore[attr-defined]
    numba.config.CACHE_DIR = str(directory)  # type: ignore[attr-defined]
    try:
        yield
    finally:
        numba.config.CACHE_DIR = before  # type: ignore[attr-defined]


_CACHE = cache_directory()


def compile_loop(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a loop over the data: cached on disk, without the GIL, vectorised reductions.

    Parameters
    ----------
    function : callable
        A plain function, or a closure over ``device`` functions; closures over compiled
        dispatchers never hit the cache and must not be passed.

    Returns
    -------
    callable
        The numba dispatcher.
    """
    _name_by_closure(function)
    with _numba_cache_at(_CACHE):
        return numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=set(FASTMATH))(
            function
        )
