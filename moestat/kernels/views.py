"""Working rows of compiled loops, and views of them that cost nothing.

A slice in numba is an owner: making and dropping one are two atomic operations on the count of
references, and a block of samples takes hundreds of slices.  These views own nothing.  An array is
freed after its own last use, whatever views of it are still to be used: `keep` it until then.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.np import numpy_support

from moestat.compiler.jit import primitive
from moestat.compiler.layout import DATA, ITEMSIZE, SHAPE, STRIDES

if TYPE_CHECKING:
    from numba.core.cpu import CPUContext
    from numba.core.typing.templates import Signature

_CACHE_LINE = 64


def empty_rows(n_rows: int, width: int) -> Any:
    """An array (n_rows, width) without initial values that begins with a cache line.

    A vector of 512 bits is a cache line: numba's own arrays are aligned to half of one, and every
    other such array costs two accesses for each vector.
    """
    return np.empty((n_rows, width))


def empty_like(values: Any, n: int) -> Any:
    """A vector (n,) without initial values, of the same kind of numbers."""
    return np.empty(n, values.dtype)


def _type_rows(n_rows: types.Type, width: types.Type) -> Signature:
    return types.Array(types.float64, 2, "C")(types.intp, types.intp)


@primitive(empty_rows, _type_rows, types.intp, types.intp)
def _empty_rows(context: CPUContext, builder: ir.IRBuilder, signature: Signature, args: Any) -> Any:
    return _allocate(context, builder, signature.return_type, args)


def _type_like(values: types.Array, n: types.Type) -> Signature:
    return types.Array(values.dtype, 1, "C")(values, types.intp)


@primitive(empty_like, _type_like, types.Array, types.intp)
def _empty_like(context: CPUContext, builder: ir.IRBuilder, signature: Signature, args: Any) -> Any:
    return _allocate(context, builder, signature.return_type, args[1:])


def _allocate(context: CPUContext, builder: ir.IRBuilder, kind: Any, shape: Any) -> Any:
    item = context.get_data_type(kind.dtype)
    stride = context.get_constant(types.intp, context.get_abi_sizeof(item))
    itemsize = stride
    n_items = shape[0]
    strides = [stride]
    for length in shape[1:]:
        n_items = builder.mul(n_items, length)
        strides.insert(0, builder.mul(strides[0], length))
    size = builder.mul(n_items, itemsize)
    owner = context.nrt.meminfo_alloc_aligned(builder, size, _CACHE_LINE)
    with builder.if_then(cgutils.is_null(builder, owner), likely=False):
        context.call_conv.return_user_exc(builder, MemoryError, ("no memory for working rows",))
    data = builder.bitcast(context.nrt.meminfo_data(builder, owner), item.as_pointer())
    parent = ir.Constant(owner.type, None)
    fields = (owner, parent, n_items, itemsize, data, shape, strides)
    return _array(context, builder, kind, fields)


def start_of(array: Any) -> int:
    """Address of an array's first number, for `rows_at` and `records_at` in other loops."""
    return int(array.ctypes.data)


@primitive(start_of, lambda array: types.intp(array), types.Array)
def _start_of(context: CPUContext, builder: ir.IRBuilder, signature: Signature, args: Any) -> Any:
    return builder.ptrtoint(builder.extract_value(args[0], DATA), cgutils.intp_t)


def rows_at(address: int, first: int, n_rows: int, width: int) -> Any:
    """Rows from `first` on, (n_rows, width), of those that begin at an address."""
    raise TypeError("only compiled loops read memory by address")


def _type_rows_at(
    address: types.Type, first: types.Type, n_rows: types.Type, width: types.Type
) -> Signature:
    return types.Array(types.float64, 2, "C")(*4 * (types.intp,))


@primitive(rows_at, _type_rows_at, *4 * (types.intp,))
def _rows_at(context: CPUContext, builder: ir.IRBuilder, signature: Signature, args: Any) -> Any:
    address, first, n_rows, width = args
    numbers = builder.inttoptr(address, ir.DoubleType().as_pointer())
    data = builder.gep(numbers, [builder.mul(first, width)])
    return _borrowed(context, builder, signature.return_type, data, [n_rows, width])


@cache
def records_at(kind: np.dtype[Any]) -> Callable[..., Any]:
    """A function ``records(address, n)``: the n numbers, or records, of a kind at an address."""

    def records(address: int, n: int) -> Any:
        raise TypeError("only compiled loops read memory by address")

    # Two kinds must not share the code of a loop, which is kept by the names of what it calls.
    records.__qualname__ = f"records_at.{kind!r}"
    array = types.Array(numpy_support.from_dtype(kind), 1, "C")

    @primitive(records, lambda address, n: array(types.intp, types.intp), types.intp, types.intp)
    def lowered(context: CPUContext, builder: ir.IRBuilder, signature: Signature, args: Any) -> Any:
        item = context.get_data_type(array.dtype)
        data = builder.inttoptr(args[0], item.as_pointer())
        return _borrowed(context, builder, array, data, [args[1]])

    return records


def part(array: Any, start: int, stop: int) -> Any:
    """``array[start:stop]`` along the first axis, for 0 <= start <= stop."""
    return array[start:stop]


def row(array: Any, i: int) -> Any:
    """``array[i]`` of an array with two axes or more, for i >= 0."""
    return array[i]


def keep(array: Any) -> None:
    """Make an array live until here, for views of it that were used before; no instructions."""


@primitive(keep, lambda array: types.none(array), types.Array)
def _keep(context: CPUContext, builder: ir.IRBuilder, signature: Signature, args: Any) -> Any:
    return context.get_dummy_value()


def _array(context: CPUContext, builder: ir.IRBuilder, kind: Any, fields: Any) -> Any:
    """An array in numba's layout: owner, parent, size, size of an item, data, shape, strides."""
    value = ir.Constant(context.get_value_type(kind), ir.Undefined)
    for position, field in enumerate(fields):
        for axis, number in enumerate(field) if isinstance(field, (list, tuple)) else ():
            value = builder.insert_value(value, number, (position, axis))
        if isinstance(field, ir.Value):
            value = builder.insert_value(value, field, position)
    return value


def _borrowed(
    context: CPUContext, builder: ir.IRBuilder, kind: Any, data: Any, shape: list[Any]
) -> Any:
    """An array in C order without an owner."""
    none = ir.Constant(cgutils.voidptr_t, None)
    item = context.get_data_type(kind.dtype)
    itemsize = context.get_constant(types.intp, context.get_abi_sizeof(item))
    n_items, strides = shape[0], [itemsize]
    for length in shape[1:]:
        n_items = builder.mul(n_items, length)
        strides.insert(0, builder.mul(strides[0], length))
    fields = (none, none, n_items, itemsize, data, shape, strides)
    return _array(context, builder, kind, fields)


def _view(
    context: CPUContext,
    builder: ir.IRBuilder,
    signature: Signature,
    args: Any,
    shape: list[Any],
    strides: list[Any],
) -> Any:
    """The array of the signature's return type from args[1] on, without an owner."""
    source, first = args[0], args[1]
    step = builder.extract_value(source, (STRIDES, 0))
    data = cgutils.pointer_add(
        builder, builder.extract_value(source, DATA), builder.mul(first, step)
    )
    none = ir.Constant(cgutils.voidptr_t, None)
    n_items = shape[0]
    for length in shape[1:]:
        n_items = builder.mul(n_items, length)
    itemsize = builder.extract_value(source, ITEMSIZE)
    fields = (none, none, n_items, itemsize, data, shape, strides)
    return _array(context, builder, signature.return_type, fields)


def _numbers(builder: ir.IRBuilder, array: Any, field: int, kind: Any) -> list[Any]:
    return [builder.extract_value(array, (field, axis)) for axis in range(kind.ndim)]


def _type_part(array: types.Type, start: types.Type, stop: types.Type) -> Signature:
    return array(array, types.intp, types.intp)


@primitive(part, _type_part, types.Array, types.intp, types.intp)
def _part(context: CPUContext, builder: ir.IRBuilder, signature: Signature, args: Any) -> Any:
    array, start, stop = args
    shape = _numbers(builder, array, SHAPE, signature.args[0])
    strides = _numbers(builder, array, STRIDES, signature.args[0])
    shape[0] = builder.sub(stop, start)
    return _view(context, builder, signature, args, shape, strides)


def _type_row(array: types.Array, i: types.Type) -> Signature:
    return array.copy(ndim=array.ndim - 1)(array, types.intp)


@primitive(row, _type_row, types.Array, types.intp)
def _row(context: CPUContext, builder: ir.IRBuilder, signature: Signature, args: Any) -> Any:
    shape = _numbers(builder, args[0], SHAPE, signature.args[0])[1:]
    strides = _numbers(builder, args[0], STRIDES, signature.args[0])[1:]
    return _view(context, builder, signature, args, shape, strides)
