"""The registered functions in another arithmetic: their own code, with other numbers.

Functions of gates, experts and likelihoods are plain Python that also runs uncompiled.  A function
is copied with its global names bound to copies of what it calls, and those few at the bottom
(exponentials, logarithms, roots) to the functions of the other arithmetic.  So nothing is written
twice.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

__all__ = ["copier", "mathematics"]

_MATHEMATICS = ("math", "numpy")
"""Modules whose functions a block may call, and which the other arithmetic replaces."""


def mathematics(functions: Mapping[str, Any]) -> types.SimpleNamespace:
    """A stand-in for the modules `math` and `numpy`: constants are numbers, functions are given."""
    constants = {"pi": math.pi, "e": math.e, "inf": math.inf, "nan": math.nan}
    return types.SimpleNamespace(**(constants | dict(functions)))


def copier(
    lowest: Mapping[str, Any], module: types.SimpleNamespace
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A function that copies functions, with all that they call, to another arithmetic.

    Parameters
    ----------
    lowest : mapping
        Name of a function of the library -> what takes its place.
    module : SimpleNamespace
        What takes the place of the modules `math` and `numpy`, whatever they are called.

    Returns
    -------
    callable
        ``copy(function)``.
    """

    def inner(value: Any) -> Any:
        if isinstance(value, types.ModuleType) and value.__name__ in _MATHEMATICS:
            return module
        value = getattr(value, "py_func", value)
        if isinstance(value, types.BuiltinFunctionType) and value.__module__ in _MATHEMATICS:
            return getattr(module, value.__name__)
        of_blocks = isinstance(value, types.FunctionType) and not _is_foreign(value)
        return copy(value) if of_blocks else value

    @cache
    def copy(function: Any) -> Callable[..., Any]:
        known, code = function.__globals__, function.__code__
        called = (name for name in code.co_names if name in known)
        names = {
            name: lowest[name] if name in lowest and _is_lowest(known[name]) else inner(known[name])
            for name in called
        }
        cells = tuple(types.CellType(inner(c.cell_contents)) for c in function.__closure__ or ())
        namespace = known | names
        return types.FunctionType(code, namespace, function.__name__, function.__defaults__, cells)

    return copy


def _is_lowest(value: Any) -> bool:
    """Whether a global name means the library's own function of this name."""
    return getattr(value, "__module__", "") == "moestat.compiler.math"


def _is_foreign(function: types.FunctionType) -> bool:
    """Whether a function is of a library that blocks do not call for arithmetic."""
    return function.__module__.split(".")[0] in ("builtins", "numpy", "scipy", "mpmath")
