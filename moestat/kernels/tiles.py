"""Sums over samples that stay in vector registers, several terms at a time.

A term is a number h for each sample, made of a few working rows; what is wanted are its sums with
the products of features, ``sum_b h_b psi_qb``.  A table has a line of integers for each term,

    terms of its group, products, channel or pair of channels, sign, numbers of working rows ...

and the terms of a group are summed together, three products at a time.  Groups of three may be
of any rows.  Where registers suffice, larger ones share what they load: the nine terms of a square
are the products of three rows with three, the six of a triangle those of three with themselves.

LLVM vectorises a sum by itself, but adds its lanes up at the end of every loop, which takes as
long as a third of it.  Here a sum is a vector; its lanes are added up once, after the last block.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import llvmlite.binding
from llvmlite import ir
from numba import types
from numba.core import cgutils

from moestat.compiler.jit import FASTMATH, device, primitive
from moestat.compiler.layout import DATA, STRIDES

if TYPE_CHECKING:
    from numba.core.cpu import CPUContext
    from numba.core.typing.templates import Signature

GROUP, USED, PAIR, SIGN, ROWS = range(5)
"""Columns of a term, the last one that of its first working row."""

LANES = 8 if llvmlite.binding.get_host_cpu_features().get("avx512f") else 4
"""Numbers per vector."""

LARGE = LANES == 8
"""Whether there are registers for squares and triangles: 32 rather than 16."""

PRODUCTS = 3
"""Products of features that a group takes in one step."""

_VECTOR = ir.VectorType(ir.DoubleType(), LANES)
_FLAGS = sorted(FASTMATH)


class Tile(NamedTuple):
    """The terms of a group."""

    factors: tuple[tuple[tuple[int, int], tuple[int, int]], ...]
    """For each term, the terms and columns of its two first rows: terms may share them."""
    products: tuple[int, ...]
    """For each term, how many of `PRODUCTS` products it is summed with."""
    weighted: bool = False
    """Whether the products are weighted by the rows in columns 2 and 3 of the first term."""


THREE = Tile(tuple(((t, 0), (t, 1)) for t in range(3)), 3 * (PRODUCTS,))
"""Any three terms."""
TRIANGLE = Tile(
    tuple(((c * (c + 1) // 2, 0), (e * (e + 1) // 2, 0)) for c in range(3) for e in range(c + 1)),
    6 * (PRODUCTS,),
)
"""Three rows with themselves: terms (0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2)."""
SQUARE = Tile(
    tuple(((3 * c, 0), (e, 1)) for c in range(3) for e in range(3)),
    (3, 3, 2, 3, 3, 2, 2, 2, 1),
    weighted=True,
)
"""Three rows with three others, the last ones of constant channels, where there is one input."""


def _adder(tile: Tile, curved: bool) -> Callable[..., None]:
    """``add(rows, terms, r, psi, q, m, out, s)``: the terms from r on, and products from q on.

    ``h = one other``, or if it is curved ``h = spread one other + weight second``, with rows of
    which the terms' columns from `ROWS` on have the numbers.  Spread and weight are those of the
    term where `one` is found.  The rows of `out` from s on have `LANES` sums for each of three
    products; m is a multiple of it.
    """

    def add(rows: Any, terms: Any, r: Any, psi: Any, q: Any, m: Any, out: Any, s: Any) -> None:
        for t, n_products in enumerate(tile.products):
            numbers = terms[r + t, ROWS:]
            h = rows[numbers[0], :m] * rows[numbers[1], :m]
            if curved:
                _, _, spread, weight, second = rows[numbers, :m]
                h = spread * h + weight * second
            if tile.weighted:
                h *= rows[terms[r, ROWS + 2], :m] * rows[terms[r, ROWS + 3], :m]
            for p in range(n_products):
                lanes = (h * psi[q + p, :m]).reshape(-1, LANES).sum(axis=0)
                out[s + t, p * LANES : (p + 1) * LANES] += lanes

    array, size = types.Array, types.intp

    @primitive(add, _type_add, array, array, size, array, size, size, array, size)
    def emit(context: CPUContext, builder: Any, signature: Signature, args: Any) -> Any:
        rows, terms, r, psi, q, m, out, s = args
        number = functools.partial(ir.Constant, r.type)
        times = functools.partial(builder.fmul, flags=_FLAGS)
        plus = functools.partial(builder.fadd, flags=_FLAGS)

        @functools.cache
        def row(term: int, column: int) -> Any:
            """First number of the row that a term names."""
            line = _pointer(builder, terms, builder.add(r, number(term)), number(ROWS + column))
            return _pointer(builder, rows, builder.sext(builder.load(line), r.type), number(0))

        sums = [(t, p) for t, used in enumerate(tile.products) for p in range(used)]
        factors = [
            _pointer(builder, psi, builder.add(q, number(p)), number(0)) for p in range(PRODUCTS)
        ]
        first = _pointer(builder, out, s, number(0))
        places = [builder.gep(first, [number((PRODUCTS * t + p) * LANES)]) for t, p in sums]
        # Outside the loop: what is cached within it would have to be there.
        for t, (one, other) in enumerate(tile.factors):
            for slot in [one, other] + [(one[0], 2), (one[0], 3), (t, 4)] * curved:
                row(*slot)
        for column in (2, 3) * tile.weighted:
            row(0, column)

        entry, body = builder.block, builder.append_basic_block("samples")
        totals = {key: _load(builder, place) for key, place in zip(sums, places, strict=True)}
        builder.branch(body)
        builder.position_at_end(body)
        b = builder.phi(r.type)
        b.add_incoming(number(0), entry)
        for key, start in totals.items():
            totals[key] = builder.phi(_VECTOR)
            totals[key].add_incoming(start, entry)

        @functools.cache
        def at(term: int, column: int) -> Any:
            return _load(builder, builder.gep(row(term, column), [b]))

        @functools.cache
        def spread(term: int, column: int) -> Any:
            return times(at(term, 2), at(term, column))

        psi_b = [_load(builder, builder.gep(factor, [b])) for factor in factors]
        if tile.weighted:
            weight = times(at(0, 2), at(0, 3))
            psi_b = [times(weight, factor) for factor in psi_b]
        after = []
        for t, (one, other) in enumerate(tile.factors):
            h = times(spread(*one) if curved else at(*one), at(*other))
            if curved:
                h = plus(times(at(one[0], 3), at(t, 4)), h)
            after += [plus(times(h, psi_b[p]), totals[t, p]) for p in range(tile.products[t])]
        following: Any = builder.add(b, number(LANES))
        b.add_incoming(following, body)
        for total, end in zip(totals.values(), after, strict=True):
            total.add_incoming(end, body)
        done = builder.append_basic_block("summed")
        builder.cbranch(builder.icmp_signed("<", following, m), body, done)
        builder.position_at_end(done)
        for place, total in zip(places, after, strict=True):
            _store(builder, total, place)
        return context.get_dummy_value()

    return add


def _type_add(
    rows: types.Type,
    terms: types.Type,
    r: types.Type,
    psi: types.Type,
    q: types.Type,
    m: types.Type,
    out: types.Type,
    s: types.Type,
) -> Signature:
    size = types.intp
    return types.none(rows, terms, size, psi, size, size, out, size)


def _pointer(builder: Any, array: Any, i: Any, j: Any) -> Any:
    """Pointer to element (i, j) of an array in C order."""
    data = builder.extract_value(array, DATA)
    stride = builder.mul(i, builder.extract_value(array, (STRIDES, 0)))
    return builder.gep(cgutils.pointer_add(builder, data, stride), [j])


def _load(builder: Any, place: Any) -> Any:
    return builder.load(builder.bitcast(place, _VECTOR.as_pointer()), align=8)


def _store(builder: Any, value: Any, place: Any) -> None:
    builder.store(value, builder.bitcast(place, _VECTOR.as_pointer()), align=8)


def multiply(rows: Any, product: int, one: int, other: int, m: int) -> None:
    """``rows[product] = rows[one] * rows[other]``, of m samples."""
    rows[product, :m] = rows[one, :m] * rows[other, :m]


def _type_multiply(
    rows: types.Type, product: types.Type, one: types.Type, other: types.Type, m: types.Type
) -> Signature:
    return types.none(rows, types.intp, types.intp, types.intp, types.intp)


@primitive(multiply, _type_multiply, types.Array, *4 * (types.intp,))
def _multiply(context: CPUContext, builder: Any, signature: Signature, args: Any) -> Any:
    rows, *numbers, m = args
    zero = ir.Constant(m.type, 0)
    product, one, other = (_pointer(builder, rows, number, zero) for number in numbers)
    with cgutils.for_range_slice(builder, zero, m, zero.type(LANES), m.type) as (b, _):
        factors = [_load(builder, builder.gep(place, [b])) for place in (one, other)]
        _store(builder, builder.fmul(*factors, flags=_FLAGS), builder.gep(product, [b]))
    return context.get_dummy_value()


def _sums_of(
    three: Callable[..., None], large: Callable[..., None], forceinline: bool
) -> Callable[..., int]:
    """``sums(rows, terms, psi, m, out, s)``: all terms, into the rows of `out` from s on.

    A group takes a row for each term and step.  Returns the next row.
    """

    @device(forceinline=forceinline)
    def sums(rows, terms, psi, m, out, s):
        # A range would divide to find how often it goes round.
        r = 0
        while r < terms.shape[0]:
            q = 0
            while q < terms[r, USED]:
                if terms[r, GROUP] > 3:
                    large(rows, terms, r, psi, q, m, out, s)
                else:
                    three(rows, terms, r, psi, q, m, out, s)
                q += PRODUCTS
                s += terms[r, GROUP]
            r += terms[r, GROUP]
        return s

    return sums


sum_products = _sums_of(_adder(THREE, False), _adder(SQUARE, False), False)
"""Sums of ``one other``, in threes or squares."""
sum_curvature = _sums_of(_adder(THREE, True), _adder(TRIANGLE, True), True)
"""Sums of ``spread one other + weight second``, in threes or triangles."""
