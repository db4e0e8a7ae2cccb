"""From numba's typed code to LLVM's, in few instructions.

numba writes an access of an array as thirty instructions and a loop over a range as ninety, and
LLVM takes away most of them again.  Writing, printing, parsing and taking away was half of what a
first fit waited for.  Here the common cases are written the short way; everything else is left to
numba.  Indices count from the front: they are not checked, and not turned around below zero.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir as llvm
from numba import types
from numba.core import cgutils, ir
from numba.core.lowering import Lower
from numba.np.arrayobj import load_item, store_item

from moestat.compiler.layout import COMPACT, DATA, SHAPE, STRIDES, UNOWNED

__all__ = ["LeanLower"]

_FLOATS = {
    operator.add: "fadd",
    operator.sub: "fsub",
    operator.mul: "fmul",
    operator.truediv: "fdiv",
}
_INTEGERS = {operator.add: "add", operator.sub: "sub", operator.mul: "mul"}
_COMPARISONS = {
    operator.lt: "<",
    operator.le: "<=",
    operator.gt: ">",
    operator.ge: ">=",
    operator.eq: "==",
    operator.ne: "!=",
}
_ITERATOR = types.range_iter64_type


class LeanLower(Lower):
    """numba's lowering with short forms of element access, arithmetic and counted loops."""

    def init(self) -> None:
        super().init()
        self._ranges: dict[str, Any] = {}
        self._borrowed = self._find_borrowed()
        self._counting = True

    def setup_function(self, fndesc: Any) -> None:
        super().setup_function(fndesc)
        # LLVM avoids 512 bits on processors that once lowered their clock for them.  Loops that
        # compute as long as ours gain more than they lose: a third of the time.  llvmlite's own
        # method takes only attributes without a value.
        set.add(self.function.attributes, '"prefer-vector-width"="512"')
        flags: Any = self.flags
        if not flags.forceinline:
            set.add(self.function.attributes, "noinline")
        if self.func_ir.func_id.func in COMPACT:
            set.add(self.function.attributes, "minsize")

    def _find_borrowed(self) -> set[str]:
        """Arrays that never own memory: arguments, views, and what is only ever one of those."""
        values: dict[str, list[Any]] = {}
        for block in self.blocks.values():
            for inst in block.find_insts(ir.Assign):
                values.setdefault(inst.target.name, []).append(inst.value)
        borrowed = {name for name in values if self._is_array(name)}
        while True:
            owners = {n for n in borrowed if not all(self._borrows(v, borrowed) for v in values[n])}
            if not owners:
                return borrowed
            borrowed -= owners

    def _borrows(self, value: Any, borrowed: set[str]) -> bool:
        if isinstance(value, ir.Var):
            return value.name in borrowed
        if isinstance(value, ir.Expr) and value.op == "call":
            return getattr(self.typeof(value.func.name), "typing_key", None) in UNOWNED
        return isinstance(value, ir.Arg)

    def _is_counted(self, name: str) -> bool:
        """Whether references to what a variable holds are counted."""
        if not self.context.enable_nrt or name in self._borrowed:
            return False
        return not isinstance(self.typeof(name), (types.Number, types.Boolean))

    def incref(self, typ: Any, val: Any) -> None:
        if self._counting:
            super().incref(typ, val)

    def lower_inst(self, inst: Any) -> None:
        self._counting = not isinstance(inst, ir.Assign) or self._is_counted(inst.target.name)
        super().lower_inst(inst)

    def storevar(self, value: Any, name: str, argidx: int | None = None) -> None:
        if self._is_counted(name) or name in self._singly_assigned_vars:
            super().storevar(value, name, argidx)
        else:
            self.builder.store(value, self.getvar(name))

    def delvar(self, name: str) -> None:
        if self._is_counted(name):
            super().delvar(name)
        elif name not in self._blk_local_varmap:
            self._singly_assigned_vars.discard(name)

    def lower_assign(self, ty: Any, inst: Any) -> Any:
        call = isinstance(inst.value, ir.Expr) and inst.value.op == "call"
        if call and ty is types.range_state64_type and inst.target.is_temp:
            arguments = [self._cast_var(v, types.int64) for v in inst.value.args]
            if len(arguments) < 3 or isinstance(arguments[2], llvm.Constant):
                # All that asks for a range is its iterator.
                self._ranges[inst.target.name] = arguments
                return llvm.Constant(self.context.get_value_type(ty), llvm.Undefined)
        return super().lower_assign(ty, inst)

    def lower_expr(self, resty: Any, expr: Any) -> Any:
        if expr.op == "getiter" and expr.value.name in self._ranges:
            return self._start(*_start_stop_step(*self._ranges[expr.value.name]))
        if expr.op == "iternext" and self.typeof(expr.value.name) == _ITERATOR:
            return self._advance(self.loadvar(expr.value.name))
        if expr.op == "getattr" and expr.attr == "shape" and self._is_array(expr.value.name):
            shape = llvm.Constant(self.context.get_value_type(resty), llvm.Undefined)
            for axis in range(self.typeof(expr.value.name).ndim):
                length = self._field(expr.value.name, SHAPE, axis)
                shape = self.builder.insert_value(shape, length, axis)
            return shape
        return super().lower_expr(resty, expr)

    def _is_array(self, name: str) -> bool:
        return isinstance(self.typeof(name), types.Array)

    def _start(self, start: Any, stop: Any, step: Any) -> Any:
        """The iterator of a range of constant step, as numba lays it out."""
        builder, size = self.builder, abs(step.constant)
        left: Any = builder.sub(stop, start) if step.constant > 0 else builder.sub(start, stop)
        if size > 1:
            left = builder.sdiv(builder.add(left, left.type(size - 1)), left.type(size))
        state = llvm.Constant(self.context.get_value_type(_ITERATOR), llvm.Undefined)
        for position, value in enumerate((start, stop, step, left)):
            if position in (0, 3):
                slot = cgutils.alloca_once(builder, value.type, zfill=False)
                builder.store(value, slot)
                value = slot
            state = builder.insert_value(state, value, position)
        return state

    def _advance(self, state: Any) -> Any:
        """The pair of the next number and whether there is one."""
        builder = self.builder
        at, step, left = (builder.extract_value(state, i) for i in (0, 2, 3))
        number: Any = builder.load(at)
        rest: Any = builder.load(left)
        builder.store(builder.add(number, step), at)
        builder.store(builder.sub(rest, rest.type(1)), left)
        going = builder.icmp_signed(">", rest, rest.type(0))
        pair = llvm.Constant(llvm.LiteralStructType([number.type, going.type]), llvm.Undefined)
        return builder.insert_value(builder.insert_value(pair, number, 0), going, 1)

    def lower_binop(self, resty: Any, expr: Any, op: Any) -> Any:
        signature = self.fndesc.calltypes[expr]
        kind, other = signature.args
        if kind == other and kind in (types.float64, types.int64):
            a, b = self._cast_var(expr.lhs, kind), self._cast_var(expr.rhs, kind)
            names = _FLOATS if kind is types.float64 else _INTEGERS
            result = None
            if op in names and signature.return_type == kind:
                result = getattr(self.builder, names[op])(a, b)
            elif op in _COMPARISONS:
                compare = self.builder.icmp_signed
                if kind is types.float64:
                    compare = self.builder.fcmp_ordered
                    if op is operator.ne:
                        compare = self.builder.fcmp_unordered
                result = compare(_COMPARISONS[op], a, b)
            if result is not None:
                return self.context.cast(self.builder, result, signature.return_type, resty)
        return super().lower_binop(resty, expr, op)

    def lower_getitem(self, resty: Any, expr: Any, value: Any, index: Any, signature: Any) -> Any:
        array = self.typeof(value.name)
        if not _is_element(array, self.typeof(index.name)):
            return super().lower_getitem(resty, expr, value, index, signature)
        item = load_item(self.context, self.builder, array, self._element(value.name, index))
        return self.context.cast(self.builder, item, array.dtype, resty)

    def lower_setitem(self, target: Any, index: Any, value: Any, signature: Any) -> Any:
        array = self.typeof(target.name)
        if not _is_element(array, self.typeof(index.name)):
            return super().lower_setitem(target, index, value, signature)
        item = self._cast_var(value, array.dtype)
        store_item(self.context, self.builder, array, item, self._element(target.name, index))
        return None

    def _element(self, name: str, index: Any) -> Any:
        """Pointer to the element of an array."""
        array, builder = self.typeof(name), self.builder
        kind, value = self.typeof(index.name), self.loadvar(index.name)
        if isinstance(kind, types.Integer):
            indices = [self.context.cast(builder, value, kind, types.int64)]
        else:
            indices = [
                self.context.cast(builder, builder.extract_value(value, axis), k, types.int64)
                for axis, k in enumerate(kind)
            ]
        data = self._field(name, DATA)
        if array.layout == "C":
            offset = indices[0]
            for axis in range(1, array.ndim):
                length = self._field(name, SHAPE, axis)
                offset = builder.add(builder.mul(offset, length), indices[axis])
            return builder.gep(data, [offset])
        offset = None
        for axis, i in enumerate(indices):
            bytes_ = builder.mul(i, self._field(name, STRIDES, axis))
            offset = bytes_ if offset is None else builder.add(offset, bytes_)
        return cgutils.pointer_add(builder, data, offset)

    def _field(self, name: str, *position: int) -> Any:
        """A field of the structure that describes an array."""
        if name in self._blk_local_varmap:
            return self.builder.extract_value(self._blk_local_varmap[name], position)
        pointer = cgutils.gep_inbounds(self.builder, self.getvar(name), 0, *position)
        return self.builder.load(pointer)


def _start_stop_step(*arguments: Any) -> tuple[Any, Any, Any]:
    one = llvm.Constant(arguments[0].type, 1)
    if len(arguments) == 1:
        return llvm.Constant(one.type, 0), arguments[0], one
    return arguments[0], arguments[1], arguments[2] if len(arguments) > 2 else one


def _is_element(array: Any, index: Any) -> bool:
    """Whether an index leads to one element."""
    if not isinstance(array, types.Array):
        return False
    parts = getattr(index, "types", (index,))
    return len(parts) == array.ndim and all(isinstance(part, types.Integer) for part in parts)
