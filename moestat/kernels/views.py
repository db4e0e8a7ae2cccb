"""Working rows of compiled loops, and views of them that cost nothing.

A slice in numba is an owner: making and dropping one are two atomic operations on the count of
references, and a block of samples takes hundreds of slices.  These views own nothing.  One must
not outlive its array: use it in the loop or function that makes it, from an array that lives on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.np.arrayobj import make_array, populate_array

from moestat._jit import primitive

__all__ = ["empty_rows", "part", "row"]

_CACHE_LINE = 64


def empty_rows(n_rows: int, width: int) -> Any:
    """An array (n_rows, width) without initial values that begins with a cache line.

    A vector of 512 bits is a cache line: numba's own arrays are aligned to half of one, and every
    other such array costs two accesses for each vector.
    """
    return np.empty((n_rows, width))


_ROWS = types.Array(types.float64, 2, "C")


@primitive(empty_rows, lambda n_rows, width: _ROWS(types.intp, types.intp), types.intp, types.intp)
def _empty_rows(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    itemsize = context.get_constant(types.intp, 8)
    stride = builder.mul(args[1], itemsize)
    size = builder.mul(args[0], stride)
    meminfo = context.nrt.meminfo_alloc_aligned(builder, size, _CACHE_LINE)
    with builder.if_then(cgutils.is_null(builder, meminfo), likely=False):
        context.call_conv.return_user_exc(builder, MemoryError, ("no memory for working rows",))
    array = make_array(_ROWS)(context, builder)
    populate_array(
        array,
        data=builder.bitcast(
            context.nrt.meminfo_data(builder, meminfo), ir.DoubleType().as_pointer()
        ),
        shape=args,
        strides=[stride, itemsize],
        itemsize=itemsize,
        meminfo=meminfo,
    )
    return array._getvalue()


def part(array: Any, start: int, stop: int) -> Any:
    """``array[start:stop]`` along the first axis, for 0 <= start <= stop."""
    return array[start:stop]


def row(array: Any, i: int) -> Any:
    """``array[i]`` of an array with two axes or more, for i >= 0."""
    return array[i]


def _view(
    context: Any, builder: Any, signature: Any, args: Any, shape: list[Any], strides: list[Any]
) -> Any:
    """The array of the signature's return type from args[1] on, without an owner."""
    source = make_array(signature.args[0])(context, builder, args[0])
    step = cgutils.unpack_tuple(builder, source.strides)[0]
    view = make_array(signature.return_type)(context, builder)
    populate_array(
        view,
        data=cgutils.pointer_add(builder, source.data, builder.mul(args[1], step)),
        shape=shape,
        strides=strides,
        itemsize=source.itemsize,
        meminfo=None,
    )
    return view._getvalue()


def _type_part(array: Any, start: Any, stop: Any) -> Any:
    return array(array, types.intp, types.intp)


@primitive(part, _type_part, types.Array, types.intp, types.intp)
def _part(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    source = make_array(signature.args[0])(context, builder, args[0])
    shape = cgutils.unpack_tuple(builder, source.shape)
    shape[0] = builder.sub(args[2], args[1])
    strides = cgutils.unpack_tuple(builder, source.strides)
    return _view(context, builder, signature, args, shape, strides)


def _type_row(array: Any, i: Any) -> Any:
    return array.copy(ndim=array.ndim - 1)(array, types.intp)


@primitive(row, _type_row, types.Array, types.intp)
def _row(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    source = make_array(signature.args[0])(context, builder, args[0])
    shape = cgutils.unpack_tuple(builder, source.shape)[1:]
    strides = cgutils.unpack_tuple(builder, source.strides)[1:]
    return _view(context, builder, signature, args, shape, strides)
