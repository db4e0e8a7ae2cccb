"""Compiled loops that call each other by address.

A loop that calls another one's source would compile it again, for every kind of atom; a call by
address costs as much as any call, and each loop is compiled, and cached, by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numba
from numba import types
from numba.core import cgutils

from moestat.compiler.jit import primitive

if TYPE_CHECKING:
    from llvmlite import ir
    from numba.core.cpu import CPUContext
    from numba.core.typing.templates import Signature


def address_of(loop: Any, *arguments: Any) -> int:
    """Where the machine code of a compiled loop is, for arguments of the kinds of these examples.

    A loop that is not compiled yet is compiled first.  The address is valid while the loop lives.
    """
    kinds = tuple(numba.typeof(argument) for argument in arguments)
    loop.compile(kinds)
    compiled = loop.overloads[kinds]
    return compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)


def call_by_address(result: Any) -> Callable[..., Any]:
    """A function ``call(address, arguments)`` for compiled loops, its arguments a tuple.

    The called loop returns the numba type `result`.
    """

    def call(address: int, arguments: tuple[Any, ...]) -> Any:
        raise TypeError("only compiled loops call by address")

    def typer(address: Any, arguments: Any) -> Any:
        return result(types.int64, arguments)

    @primitive(call, typer, types.int64, types.BaseTuple)
    def lowered(context: CPUContext, builder: ir.IRBuilder, signature: Signature, args: Any) -> Any:
        kinds = signature.args[1].types
        kind = context.call_conv.get_function_type(result, kinds)
        code = builder.inttoptr(args[0], kind.as_pointer())
        packed = cgutils.unpack_tuple(builder, args[1])
        status, value = context.call_conv.call_function(builder, code, result, kinds, packed)
        with cgutils.if_unlikely(builder, status.is_error):
            context.call_conv.return_status_propagate(builder, status)
        return value

    return call
