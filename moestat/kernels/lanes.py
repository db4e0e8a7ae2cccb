"""A vector of samples as one value: sums over samples that stay in registers.

LLVM vectorises a sum by itself, but adds its lanes up at the end of every loop.  For nine sums
over a block of samples that costs as much as a third of the loop.  With a value that is a vector
the lanes are added up once, after the last block.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel.models import PrimitiveModel
from numba.core.datamodel.registry import register_default
from numba.np.arrayobj import make_array

from moestat._jit import FASTMATH, primitive

__all__ = ["LANES", "add_product", "get_lanes", "product", "put_lanes"]

LANES = 8 if llvmlite.binding.get_host_cpu_features().get("avx512f") else 4
"""Numbers per vector: as many as let nine sums and their factors have registers of their own."""


class _Lanes(types.Type):
    """A vector of `LANES` float64."""

    def __init__(self) -> None:
        super().__init__("Lanes")


_LANES = _Lanes()
_VECTOR = ir.VectorType(ir.DoubleType(), LANES)


@register_default(_Lanes)
class _LanesModel(PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, _VECTOR)


def get_lanes(array: Any, i: int, b: int) -> Any:
    """``array[i, b : b + LANES]`` as a value."""
    return np.array(array[i, b : b + LANES])


def put_lanes(array: Any, i: int, b: int, value: Any) -> None:
    """``array[i, b : b + LANES] = value``."""
    array[i, b : b + LANES] = value


def product(one: Any, other: Any) -> Any:
    """``one * other``."""
    return one * other


def add_product(one: Any, other: Any, total: Any) -> Any:
    """``one * other + total``."""
    return one * other + total


def _address(context: Any, builder: Any, array_type: Any, array: Any, i: Any, b: Any) -> Any:
    rows = make_array(array_type)(context, builder, array)
    strides = cgutils.unpack_tuple(builder, rows.strides)
    offset = builder.add(
        builder.mul(i, strides[0]), builder.mul(b, context.get_constant(types.intp, 8))
    )
    return cgutils.pointer_add(builder, rows.data, offset, _VECTOR.as_pointer())


def _type_get(array: Any, i: Any, b: Any) -> Any:
    return _LANES(array, types.intp, types.intp)


@primitive(get_lanes, _type_get, types.Array, types.intp, types.intp)
def _get_lanes(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return builder.load(_address(context, builder, signature.args[0], *args), align=8)


def _type_put(array: Any, i: Any, b: Any, value: Any) -> Any:
    return types.none(array, types.intp, types.intp, _LANES)


@primitive(put_lanes, _type_put, types.Array, types.intp, types.intp, _Lanes)
def _put_lanes(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    builder.store(args[3], _address(context, builder, signature.args[0], *args[:3]), align=8)
    return context.get_dummy_value()


@primitive(product, lambda one, other: _LANES(_LANES, _LANES), _Lanes, _Lanes)
def _product(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return builder.fmul(*args, flags=sorted(FASTMATH))


def _type_add_product(one: Any, other: Any, total: Any) -> Any:
    return _LANES(_LANES, _LANES, _LANES)


@primitive(add_product, _type_add_product, _Lanes, _Lanes, _Lanes)
def _add_product(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    flags = sorted(FASTMATH)
    return builder.fadd(builder.fmul(args[0], args[1], flags=flags), args[2], flags=flags)
