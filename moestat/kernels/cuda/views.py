"""Views of one thread's part of an array, as `moestat.kernels.views` has them for a block's."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from numpy.lib.stride_tricks import as_strided

from moestat.kernels.cuda.target import COMPILES


def column(flat: Any, base: int, n_rows: int, stride: int, t: int) -> Any:
    """The view (n_rows, 1) of a vector with ``view[r, 0] = flat[base + r stride + t]``."""
    step = flat.strides[0]
    return as_strided(flat[base + t :], shape=(n_rows, 1), strides=(stride * step, step))


def part(array: Any, start: int, stop: int) -> Any:
    """``array[start:stop]`` along the first axis, for 0 <= start <= stop."""
    return array[start:stop]


def row(array: Any, i: int) -> Any:
    """``array[i]`` of an array with two axes, for i >= 0."""
    return array[i]


def _intrinsics() -> tuple[Any, Any, Any]:
    """The three views as a few machine instructions.

    numba's own slices wrap negative indices and clip others, and there are hundreds of them.
    """
    cgutils, types = import_module("numba.cuda.cgutils"), import_module("numba.cuda.types")
    arrays = import_module("numba.cuda.np.arrayobj")
    intrinsic = import_module("numba.cuda.extending").intrinsic

    def parts(context: Any, builder: Any, signature: Any, args: Any) -> tuple[Any, Any, Any]:
        source = arrays.make_array(signature.args[0])(context, builder, args[0])
        shape, strides = (cgutils.unpack_tuple(builder, a) for a in (source.shape, source.strides))
        return source, list(shape), list(strides)

    def view_at(
        context: Any, builder: Any, signature: Any, source: Any, by: Any, shape: Any, strides: Any
    ) -> Any:
        view = arrays.make_array(signature.return_type)(context, builder)
        arrays.populate_array(
            view,
            data=cgutils.pointer_add(builder, source.data, by),
            shape=shape,
            strides=strides,
            itemsize=source.itemsize,
            meminfo=None,
        )
        return view._getvalue()

    @intrinsic
    def device_column(
        typing_context: Any, flat: Any, base: Any, n_rows: Any, stride: Any, t: Any
    ) -> Any:
        integer = types.intp
        signature = flat.copy(ndim=2, layout="A")(flat, integer, integer, integer, integer)

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            source, _, (step,) = parts(context, builder, signature, args)
            _, base, n_rows, stride, t = args
            by = builder.mul(builder.add(base, t), step)
            one = context.get_constant(types.intp, 1)
            return view_at(
                context,
                builder,
                signature,
                source,
                by,
                [n_rows, one],
                [builder.mul(stride, step), step],
            )

        return signature, codegen

    @intrinsic
    def device_part(typing_context: Any, array: Any, start: Any, stop: Any) -> Any:
        signature = array(array, types.intp, types.intp)

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            source, shape, strides = parts(context, builder, signature, args)
            shape[0] = builder.sub(args[2], args[1])
            by = builder.mul(args[1], strides[0])
            return view_at(context, builder, signature, source, by, shape, strides)

        return signature, codegen

    @intrinsic
    def device_row(typing_context: Any, array: Any, i: Any) -> Any:
        signature = array.copy(ndim=array.ndim - 1)(array, types.intp)

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            source, shape, strides = parts(context, builder, signature, args)
            by = builder.mul(args[1], strides[0])
            return view_at(context, builder, signature, source, by, shape[1:], strides[1:])

        return signature, codegen

    return device_column, device_part, device_row


if COMPILES:
    column, part, row = _intrinsics()
