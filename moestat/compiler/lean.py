"""Compilation by fewer passes of numba's: for the minor versions named in `jit`.

Every pass analyses a function anew, and most of a first fit was such passes.  These classes reach
into numba's internals, which change with every minor version; `standard` does not.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from numba import types
from numba.core import cgutils
from numba.core.caching import FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, Flags
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.lowering import Lower
from numba.core.registry import cpu_target
from numba.core.runtime.nrt import rtsys
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
from numba.extending import lower_builtin

from moestat.compiler.identity import named
from moestat.compiler.layout import COMPACT

if TYPE_CHECKING:
    from llvmlite import ir
    from numba.core.cpu import CPUContext
    from numba.core.typing.templates import Signature


class _Lower(Lower):
    """numba's lowering, with attributes of functions that llvmlite's own method does not take."""

    def setup_function(self, fndesc: Any) -> None:
        super().setup_function(fndesc)
        # LLVM avoids 512 bits on processors that once lowered their clock for them.  Loops that
        # compute as long as ours gain more than they lose: a third of the time.
        set.add(self.function.attributes, '"prefer-vector-width"="512"')
        flags: Any = self.flags
        if not flags.forceinline:
            set.add(self.function.attributes, "noinline")
        if self.func_ir.func_id.code in COMPACT:
            set.add(self.function.attributes, "minsize")

    def alloca_lltype(self, name: str, lltype: Any, datamodel: Any = None) -> Any:
        # numba's own also asks LLVM for the variable's size, for debuggers: a module is made and
        # parsed for each variable.
        return cgutils.alloca_once(self.builder, lltype, name=name, zfill=False)


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(NativeLowering):
    _name = "moestat_native_lowering"

    @property
    def lowering_class(self) -> Any:
        return _Lower

    def run_pass(self, state: Any) -> Literal[True]:
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

    def get_mangle_string(self) -> str:
        key = self.summary()
        if key not in _mangled:
            _mangled[key] = super().get_mangle_string()
        return _mangled[key]


_mangled: dict[str, str] = {}

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

    What is left out deals with closures, context managers, array expressions, literals and
    annotations.
    """

    def __init__(
        self, typing: Any, target: Any, library: Any, args: Any, result: Any, flags: Any, names: Any
    ) -> None:
        super().__init__(typing, target, library, args, result, _Flags(flags), names)
        self.state.typingctx = _Typing(typing)

    def compile_extra(self, func: Any) -> Any:
        # Nearly all objects of a compilation stay until its end: to look for those that refer to
        # each other only finds none, in a fifth of the time.
        collects = gc.isenabled()
        gc.disable()
        try:
            return super().compile_extra(func)
        finally:
            if collects:
                gc.enable()

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


def loop_options() -> dict[str, Any]:
    """Options of loops besides the common ones."""
    return {"pipeline_class": _Compiler}


class _Kept(FunctionCache):
    """Compiled code on disk, which is loaded without what only compiling needs.

    numba's own first imports all that it can compile, a sixth of a process that compiles nothing.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


def keep_on_disk(loop: Any) -> Any:
    """Keep the machine code of a loop on disk, where numba's settings say."""
    loop._cache = _Kept(loop.py_func)
    return loop


def register_part(
    function: Callable[..., Any], forceinline: bool, fastmath: frozenset[str], error_model: str
) -> None:
    """Let compiled loops call a function.

    Without numba's runtime there is no counting of references.
    """
    flags: Any = Flags()
    flags.error_model = error_model
    flags.fastmath = set(fastmath)
    flags.forceinline = forceinline
    flags.noalias = True
    flags.no_compile = True
    flags.no_cpython_wrapper = True
    flags.no_cfunc_wrapper = True
    compiled: dict[tuple[Any, ...], Any] = {}

    # An overload of numba's would do the same, at several times the cost of a call.
    class Template(AbstractTemplate):
        key = function

        def generic(self, args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
            if args not in compiled:
                compiled[args] = _compile_part(function, args, flags)
            return compiled[args].signature

        def get_impl_key(self, sig: Any) -> Any:
            return function

    infer_global(function, types.Function(Template))

    @lower_builtin(function, types.VarArg(types.Any))
    def call(context: CPUContext, builder: ir.IRBuilder, signature: Signature, args: Any) -> Any:
        part = compiled[signature.args]
        context.active_code_library.add_linking_library(part.library)
        return _call_part(context, builder, part.fndesc, args)


def _compile_part(function: Callable[..., Any], args: tuple[Any, ...], flags: Any) -> Any:
    target: Any = cpu_target.target_context
    part = named(function)
    library = _Part(target.codegen(), part.__qualname__)
    compiler = _Compiler(cpu_target.typing_context, target, library, args, None, flags, {})
    return compiler.compile_extra(part)


def _call_part(context: Any, builder: Any, part: Any, args: Any) -> Any:
    """A call by numba's convention, with no look at the status: parts do not raise."""
    called = context.declare_function(builder.module, part)
    _, excinfo = builder.function.args[:2]
    result = cgutils.alloca_once(builder, called.args[0].type.pointee, zfill=False)
    packed = context.get_arg_packer(part.argtypes).as_arguments(builder, args)
    builder.call(called, [result, excinfo, *packed])
    return context.get_returned_value(builder, part.restype, builder.load(result))
