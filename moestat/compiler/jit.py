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
from numba import types
from numba.core import cgutils
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, Flags
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.registry import cpu_target
from numba.core.typed_passes import (
    IRLegalization,
    NativeLowering,
    NoPythonBackend,
    NopythonTypeInference,
    PreLowerStripPhis,
)
from numba.core.typing.templates import AbstractTemplate, infer_global
from numba.core.untyped_passes import (
    DeadBranchPrune,
    FixupArgs,
    GenericRewrites,
    IRProcessing,
    ReconstructSSA,
    RewriteSemanticConstants,
    TranslateByteCode,
)
from numba.extending import lower_builtin, type_callable

from moestat.compiler.lowering import COMPACT, LeanLower

__all__ = ["BLOCK", "FASTMATH", "cache_directory", "compact", "compile_loop", "device", "primitive"]

BLOCK = 192
"""Samples per block at most: its working rows stay in the first two cache levels.

A multiple of 32, four vectors of 512 bits.
"""

FASTMATH = frozenset({"reassoc", "contract", "nsz"})
"""Reductions may be reordered so that LLVM vectorises them; NaN and inf keep their meaning."""

_KERNEL_SOURCES = (
    "compiler",
    "model/activations.py",
    "model/gates",
    "model/experts",
    "model/likelihoods",
    "kernels",
    "networks/activations.py",
    "networks/experts",
    "networks/rows",
    "solvers/merging_atoms",
    "solvers/trust_region",
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


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(NativeLowering):
    _name = "moestat_native_lowering"

    @property
    def lowering_class(self) -> Any:
        return LeanLower

    def run_pass(self, state: Any) -> bool:
        if state.library is None:
            state.library = _Loop(state.targetctx.codegen(), state.func_id.func_qualname)
            state.library.enable_object_caching()
        return super().run_pass(state)


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


class _Loop(JITCodeLibrary):
    """Code of a loop, optimised once.

    numba optimises it by itself, then cheaply with what it calls, then in full.  The first two
    make it easier to match references that are counted, and there are next to none of those.
    """

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        passes, builder = self._codegen._module_pass_manager()
        with self._recorded_timings.record("Module passes (full optimization)", builder):
            passes.run(self._final_module, builder)


class _Flags(Flags):
    """Flags that are cheap to compare: numba does so for every call that it types."""

    def values(self) -> dict[str, Any]:
        return _DEFAULTS | self._values

    def __hash__(self) -> int:
        return _HASH


_DEFAULTS = Flags().values()
# numba's hash is that of the options' names, and equal flags must hash alike.
_HASH = hash(Flags())


class _Typing:
    """numba's typing context, which remembers how operators of its own were typed."""

    def __init__(self, context: Any) -> None:
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def resolve_function_type(self, function: Any, args: Any, kws: Any) -> Any:
        if kws or getattr(getattr(function, "typing_key", None), "__module__", "") != "_operator":
            return self._context.resolve_function_type(function, args, kws)
        key = function, args
        if key not in _typed:
            _typed[key] = self._context.resolve_function_type(function, args, kws)
        return _typed[key]


_typed: dict[Any, Any] = {}


class _Compiler(CompilerBase):
    """numba's compiler without the passes that our functions have no use for.

    Every pass analyses a function anew, and most of a first fit was such passes.  What is left
    out deals with closures, context managers, array expressions, literals and annotations.
    """

    def __init__(
        self, typing: Any, target: Any, library: Any, args: Any, result: Any, flags: Any, names: Any
    ) -> None:
        super().__init__(typing, target, library, args, result, _Flags(flags), names)
        self.state.typingctx = _Typing(typing)

    def define_pipelines(self) -> list[Any]:
        pipeline = PassManager("moestat")
        for step in _STEPS:
            if self.state.flags.nrt or step not in _FOR_OWNERS:
                pipeline.add_pass(step)
        pipeline.finalize()
        return [pipeline]


_STEPS = (
    TranslateByteCode,
    FixupArgs,
    IRProcessing,
    RewriteSemanticConstants,
    DeadBranchPrune,
    GenericRewrites,
    ReconstructSSA,
    NopythonTypeInference,
    PreLowerStripPhis,
    IRLegalization,
    _Lowering,
    NoPythonBackend,
)

# LLVM brings code into static single assignment itself; numba needs it where variables change
# their type.  The end of a variable's life concerns only what it owns.
_FOR_OWNERS = (ReconstructSSA, PreLowerStripPhis, IRLegalization)

OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": set(FASTMATH),
    "no_cfunc_wrapper": True,
    "pipeline_class": _Compiler,
}
"""How loops are compiled, besides the cache."""


def compact(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function, below its other decorator, whose time is in compiling it, not in running it.

    That is so of what runs once in a pass, over a few dozen numbers.
    """
    COMPACT.add(function)
    return function


def device(function: Callable[..., Any] | None = None, *, forceinline: bool = True) -> Any:
    """Mark a function as callable from compiled loops (and, unchanged, from Python).

    It becomes part of the loop, unless `forceinline` is False: a function of its own compiles
    faster, and a call costs as much as a few samples.  It takes positional arguments and
    borrows its arrays: it neither makes one that owns memory, nor returns one, nor raises.

    An array that a call writes must not overlap another one of the same call: the compiler takes
    that for granted, and vectorises loops without a check at run time.
    """
    if function is None:
        return lambda decorated: device(decorated, forceinline=forceinline)
    _name_by_closure(function)
    compiled: dict[tuple[Any, ...], Any] = {}

    # An overload of numba's would do the same, at several times the cost of a call.
    class Template(AbstractTemplate):
        key = function

        def generic(self, args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
            if args not in compiled:
                compiled[args] = _compile_part(function, args, forceinline)
            return compiled[args].signature

        def get_impl_key(self, sig: Any) -> Any:
            return function

    infer_global(function, types.Function(Template))

    @lower_builtin(function, types.VarArg(types.Any))
    def call(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        part = compiled[signature.args]
        context.active_code_library.add_linking_library(part.library)
        return _call_part(context, builder, part.fndesc, args)

    return function


def _call_part(context: Any, builder: Any, part: Any, args: Any) -> Any:
    """A call by numba's convention, with no look at the status: parts do not raise."""
    called = context.declare_function(builder.module, part)
    _, excinfo = builder.function.args[:2]
    result = cgutils.alloca_once(builder, called.args[0].type.pointee, zfill=False)
    packed = context.get_arg_packer(part.argtypes).as_arguments(builder, args)
    builder.call(called, [result, excinfo, *packed])
    return context.get_returned_value(builder, part.restype, builder.load(result))


def _compile_part(function: Callable[..., Any], args: tuple[Any, ...], forceinline: bool) -> Any:
    """A ``device`` function for arguments of these types.

    Without numba's runtime there is no counting of references.
    """
    flags: Any = Flags()
    flags.error_model = OPTIONS["error_model"]
    flags.fastmath = OPTIONS["fastmath"]
    flags.forceinline = forceinline
    flags.noalias = True
    flags.no_compile = True
    flags.no_cpython_wrapper = True
    flags.no_cfunc_wrapper = True
    target: Any = cpu_target.target_context
    library = _Part(target.codegen(), function.__qualname__)
    compiler = _Compiler(cpu_target.typing_context, target, library, args, None, flags, {})
    return compiler.compile_extra(function)


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
    return Path(base) / _digest(Path(__file__).parents[1])


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
