"""Views own nothing: every array must live as long as the views of it are used.

A working row whose array has been freed reads right as long as nobody else asks for memory; in a
process with several threads somebody sometimes does.
"""

import gc
import importlib
import pkgutil

import numpy as np
from numba.core import bytecode, ir, postproc
from numba.core.dispatcher import Dispatcher
from numba.core.interpreter import Interpreter

import moestat
from moestat import family
from moestat.kernels.views import part, row, start_of

_FAMILIES = (
    ("multinomial", "sigmoid", "linear"),
    ("gaussian", "softmax", "linear"),
    ("gaussian", "competition", {"name": "activation", "activation": "relu"}),
    ("least-squares", "softmax", {"name": "activation", "activation": "relu"}),
)

_ROOMS = tuple(f"moestat.{room}" for room in ("kernels", "model", "solvers", "networks"))


def _loops():
    """Every compiled loop of the package, those of a few families among them."""
    for module in pkgutil.walk_packages(moestat.__path__, "moestat."):
        if not module.name.startswith(_ROOMS):
            continue
        if "cuda" not in module.name:
            importlib.import_module(module.name)
    atoms = []
    for likelihood, gate, expert in _FAMILIES:
        loops = family(likelihood, gate=gate, expert=expert, n_experts=2).loops
        if likelihood == "least-squares":
            atoms.append(loops.forward)
        else:
            atoms.append(loops.atom_loop(np.dtype(np.float64)))
    return {
        loop.py_func.__qualname__ + loop.py_func.__module__: loop.py_func
        for loop in gc.get_objects()
        if issubclass(type(loop), Dispatcher) and loop.py_func.__module__.startswith("moestat.")
    }


def _used_after_free(function):
    """Pairs (view, array) of a function in which a view may be used when its array is gone."""
    identity = bytecode.FunctionIdentity.from_function(function)
    code = Interpreter(identity).interpret(bytecode.ByteCode(identity))
    postproc.PostProcessor(code).run(emit_dels=True)
    sources = {}
    for block in code.blocks.values():
        for inst in block.find_insts(ir.Assign):
            sources.setdefault(inst.target.name, []).append(inst.value)

    def constant(var):
        values = sources.get(var.name, [])
        return values[0].value if len(values) == 1 and hasattr(values[0], "value") else None

    arrays = {}
    changed = True
    while changed:
        changed = False
        for name, values in sources.items():
            for value in values:
                made = set()
                if isinstance(value, ir.Var):
                    made = arrays.get(value.name, set())
                elif _is_call(value) and constant(value.func) in (part, row, start_of):
                    viewed = value.args[0].name
                    made = {viewed} | arrays.get(viewed, set())
                if not made <= arrays.get(name, set()):
                    arrays[name] = arrays.get(name, set()) | made
                    changed = True
    return sorted(
        (view, array)
        for view, owners in arrays.items()
        for array in owners
        if not _is_the_callers(array, sources)
        if not view.startswith("$") and _reaches(code, view, array)
    )


def _is_the_callers(name, sources):
    """Whether an array is an argument, or unpacked from a tuple that is one."""
    for value in sources.get(name, []):
        if isinstance(value, ir.Arg):
            return True
        unpacked = isinstance(value, ir.Expr) and value.op in {"exhaust_iter", "static_getitem"}
        origin = value.value.name if unpacked else value.name if isinstance(value, ir.Var) else None
        if origin is not None and _is_the_callers(origin, sources):
            return True
    return False


def _is_call(value):
    return isinstance(value, ir.Expr) and value.op == "call"


def _reaches(code, view, array):
    """Whether a use of `view` can follow the end of `array`."""
    starts = [
        (label, position + 1)
        for label, block in code.blocks.items()
        for position, inst in enumerate(block.body)
        if isinstance(inst, ir.Del) and inst.value == array
    ]
    seen, left = set(), starts
    while left:
        label, position = left.pop()
        if (label, position) in seen:
            continue
        seen.add((label, position))
        body = code.blocks[label].body
        for inst in body[position:]:
            if isinstance(inst, ir.Del):
                continue
            if isinstance(inst, ir.Assign) and inst.target.name == view:
                break
            if any(var.name == view for var in inst.list_vars()):
                return True
        else:
            left += [(target, 0) for target in body[-1].get_targets()]
    return False


def test_no_view_is_used_when_its_array_is_gone():
    found = {name: pairs for name, f in _loops().items() if (pairs := _used_after_free(f))}
    assert found == {}


def test_no_loop_calls_another():
    """Where it is compiled the other's own code is called, where it is loaded a copy of it.

    The two round differently, and the first process would have other results than those after it.
    """
    calls = {}
    for name, function in _loops().items():
        held = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        known = function.__globals__ | {key: cell.cell_contents for key, cell in held}
        used = {*function.__code__.co_names, *function.__code__.co_freevars}
        calls[name] = [key for key in used if issubclass(type(known.get(key)), Dispatcher)]
    assert {name: others for name, others in calls.items() if others} == {}
