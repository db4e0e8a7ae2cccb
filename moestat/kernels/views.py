"""Views of arrays that cost nothing in compiled loops.

A slice in numba is an owner: making and dropping one are two atomic operations on the count of
references, and a block of samples takes hundreds of slices.  These views own nothing.  One must
not outlive its array: use it in the loop or function that makes it, from an array that lives on.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import cgutils
from numba.np.arrayobj import make_array, populate_array

from moestat._jit import primitive

__all__ = ["part", "row"]


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
