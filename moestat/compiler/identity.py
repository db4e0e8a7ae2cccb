"""What tells two compiled functions apart: their names, and the code of those that are not ours.

The directory of the cache (`moestat.compiler.cache`) is named by the package's own sources.  A
gate, an expert, a likelihood or an activation of somebody else's is in none of them: a loop that
inlines it is named by its code, and by the code and the numbers of all that it uses in turn.
"""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from moestat.compiler.cache import kernel_sources

_FIXED = {"numba", "numpy", *sys.stdlib_module_names}
"""Modules whose code the directory's name covers by a version."""


def identity(function: Callable[..., Any]) -> str:
    """Name of a function, with a digest of what it closes over or, if it is not ours, is made of.

    It may close over functions, numbers, text and None.
    """
    function = getattr(function, "py_func", function)
    cells = _cells(function)
    for value in cells.values():
        if not (callable(value) or isinstance(value, (bool, int, float, str, type(None)))):
            raise TypeError(f"a compiled function must not close over {value!r}")
    name = f"{function.__module__}.{function.__qualname__}"
    if _is_covered(function) and not cells:
        return name
    digest = hashlib.sha256("\0".join(_facts(function, {})).encode()).hexdigest()[:16]
    return f"{name}__made_of__{digest}"


def named(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, or a copy of it whose name is its identity where its own name says less.

    numba numbers the functions of a process, and a symbol of machine code is a name with such a
    number.  Two functions of one name, cached by two processes, could otherwise meet in a third
    under one symbol, and one would run in place of the other.
    """
    name = identity(function).removeprefix(f"{function.__module__}.")
    if name == function.__qualname__:
        return function
    assert isinstance(function, FunctionType)
    copy = FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copy.__module__ = function.__module__
    copy.__qualname__ = name
    copy.__doc__ = function.__doc__
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


@functools.cache
def _covered() -> frozenset[str]:
    return frozenset(str(path) for path in kernel_sources())


def _is_covered(function: Any) -> bool:
    return str(Path(function.__code__.co_filename)) in _covered()


def _cells(function: Any) -> dict[str, Any]:
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return {name: cell.cell_contents for name, cell in cells}


def _facts(value: Any, numbered: dict[int, int]) -> Iterator[str]:
    """Text that determines the machine code of a value that a compiled function reads."""
    value = getattr(value, "py_func", value)
    if isinstance(value, FunctionType):
        if id(value) in numbered:
            yield f"function {numbered[id(value)]}"
            return
        numbered[id(value)] = len(numbered)
        yield f"{value.__module__}.{value.__qualname__}"
        yield from _facts(_cells(value), numbered)
        if not _is_covered(value) and value.__module__.partition(".")[0] not in _FIXED:
            yield from _facts(value.__defaults__, numbered)
            yield from _facts(value.__code__, numbered)
            yield from _facts(_used(value.__code__, value.__globals__), numbered)
    elif isinstance(value, CodeType):
        yield f"{value.co_code.hex()} {value.co_varnames} {value.co_names} {value.co_freevars}"
        yield from _facts(value.co_consts, numbered)
    elif isinstance(value, (tuple, list)):
        yield f"{len(value)} items"
        for item in value:
            yield from _facts(item, numbered)
    elif isinstance(value, dict):
        for key in sorted(value):
            yield str(key)
            yield from _facts(value[key], numbered)
    elif isinstance(value, frozenset):
        yield from sorted(map(repr, value))
    elif isinstance(value, np.ndarray):
        yield f"{value.dtype} {value.shape} {value.tobytes().hex()}"
    elif isinstance(value, (bool, int, float, complex, str, bytes, type(None), np.generic)):
        yield repr(value)
    else:
        yield f"{type(value).__module__}.{type(value).__qualname__}"
        yield getattr(value, "__qualname__", getattr(value, "__name__", ""))


def _used(code: CodeType, scope: dict[str, Any]) -> dict[str, Any]:
    """Globals that code names, and attributes that it may read of the modules among them."""
    used = {}
    for name in code.co_names:
        value = used[name] = scope.get(name)
        if isinstance(value, ModuleType) and value.__name__.partition(".")[0] not in _FIXED:
            used |= {f"{name}.{key}": getattr(value, key, None) for key in code.co_names}
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            used |= _used(inner, scope)
    return used
