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
from numba._dynfunc import make_function
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.lowering import Lower
from numba.core.typed_passes import NativeLowering
from numba.extending import lower_builtin, register_jitable, type_callable

__all__ = ["BLOCK", "FASTMATH", "cache_directory", "compile_loop", "device", "primitive"]

BLOCK = 192
"""Samples per block at most: its working rows stay in the first two cache levels.

A multiple of 32, four vectors of 512 bits.
"""

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


class _WideLower(Lower):
    """Lowering of functions for the widest vectors that the processor has.

    LLVM avoids 512 bits on processors that once lowered their clock for them.  Loops that compute
    as long as ours gain more than they lose: a third of the time.
    """

    def setup_function(self, fndesc: Any) -> None:
        super().setup_function(fndesc)
        # llvmlite's own method takes only attributes without a value.
        set.add(self.function.attributes, '"prefer-vector-width"="512"')


@register_pass(mutates_CFG=True, analysis_only=False)
class _WideLowering(NativeLowering):
    _name = "moestat_native_lowering"

    @property
    def lowering_class(self) -> Any:
        return _WideLower


class _Part(JITCodeLibrary):
    """Code of a function that only ever becomes part of a loop.

    numba would optimise it and translate it to machine code by itself, only to do so again within
    every caller.  Here it is code to link, and no more.
    """

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def finalize(self) -> None:
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _PartLowering(_WideLowering):
    _name = "moestat_part_lowering"

    def run_pass(self, state: Any) -> bool:
        library = _Part(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library = library
        state.flags.no_compile = True
        state.flags.noalias = True
        super().run_pass(state)
        state.flags.no_compile = False
        # Callers know a function by its entry point, even one that points nowhere.
        fndesc = state.cr.fndesc
        entry = make_function(fndesc.lookup_module(), fndesc.qualname, "", 0, state.cr.env, ())
        state.targetctx.insert_user_function(entry, fndesc, [library])
        state.cr = state.cr._replace(cfunc=entry)
        return True


def _compiler(lowering: type[NativeLowering], ssa: bool) -> type[CompilerBase]:
    """The compiler of numba with another lowering, with or without static single assignment.

    LLVM brings code into that form itself; numba needs it for variables that change their type.
    """

    class Compiler(CompilerBase):
        def define_pipelines(self) -> list[Any]:
            self.state.flags.enable_ssa = ssa
            pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
            pipeline.passes = [
                (lowering, text) if step is NativeLowering else (step, text)
                for step, text in pipeline.passes
            ]
            pipeline.finalize()
            return [pipeline]

    return Compiler


_PART_COMPILER = _compiler(_PartLowering, ssa=False)

OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": set(FASTMATH),
    "no_cfunc_wrapper": True,
    "pipeline_class": _compiler(_WideLowering, ssa=True),
}
"""How loops are compiled, besides the cache."""


def device(function: Callable[..., Any] | None = None, *, forceinline: bool = True) -> Any:
    """Mark a function as callable from compiled loops (and, unchanged, from Python).

    It becomes part of the loop, unless `forceinline` is False: there its arrays are known to be
    borrowed, and counting references to them costs nothing.

    An array that a call writes must not overlap another one of the same call: the compiler takes
    that for granted, and vectorises loops without a check at run time.
    """
    if function is None:
        return lambda decorated: device(decorated, forceinline=forceinline)
    _name_by_closure(function)
    options = {"pipeline_class": _PART_COMPILER, "no_cfunc_wrapper": True}
    if forceinline:
        options["forceinline"] = True
    return register_jitable(**options)(function)


def primitive(
    function: Callable[..., Any], typer: Callable[..., Any], *argument_types: Any
) -> Callable[..., Any]:
    """Give a Python function a meaning in compiled loops that is a few machine instructions.

    An overload would do the same, but numba compiles an overload as a function of its own, or
    copies its body into every caller, and there are hundreds of calls of these.

    Parameters
    ----------
    function : callable
        What plain Python runs.
    typer : callable
        ``typer(*argument types)``: the numba signature.
    *argument_types
        Types, or classes of types, of the arguments.

    Returns
    -------
    callable
        Decorator of ``codegen(context, builder, signature, args)``.
    """
    type_callable(function)(lambda context: typer)
    return lower_builtin(function, *argument_types)


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
        return numba.njit(cache=True, **OPTIONS)(function)
