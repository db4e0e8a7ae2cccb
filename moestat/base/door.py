"""Doors of public functions: what fails for the kind of an argument is a refusal of that one."""

from __future__ import annotations

import dis
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from numbers import Integral, Real
from types import FunctionType
from typing import Any, ParamSpec, TypeVar

import numpy as np

from moestat.base.validate import is_sequence, short

__all__ = ["door", "doors"]

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

_FOREIGN = (
    AttributeError,
    TypeError,
    ValueError,
    LookupError,
    ArithmeticError,
    RuntimeError,
    MemoryError,
)
_MISFITS = (ValueError, IndexError, RuntimeError)
_LIBRARIES = ("numpy", "torch")

_KINDS: dict[str, tuple[Any, str]] = {
    "None": (type(None), "None"),
    "int": (Integral, "an integer"),
    "float": (Real, "a number"),
    "str": (str, "a text"),
    "bool": ((bool, np.bool_), "True or False"),
    "Mapping": (Mapping, "a mapping"),
    "Sequence": ((Sequence, np.ndarray), "a list"),
    "list": ((Sequence, np.ndarray), "a list"),
    "Iterable": (Iterable, "a list"),
    "Callable": (Callable, "callable"),
}

_FLAGS = ("bool", "bool | None")

_PLAIN = {
    *("builtins", "collections", "datetime", "decimal", "fractions", "pathlib"),
    *("numpy", "pandas", "scipy"),
}
"""Homes of types that are none of this package's, nor stand for one."""


def door(**kinds: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator: an argument of another kind than its annotation is refused where that fails.

    A right call costs nothing: only after an exception that this package does not raise itself are
    arguments compared with annotations, and what does not fit is named.  Where NumPy or PyTorch
    refuses, the arrays are named with their shapes.  Any other exception stays as it is.  Flags are
    looked at before, since any value is true or false.

    Parameters
    ----------
    **kinds : str
        Annotations in place of the function's own, by argument.

    Examples
    --------
    >>> @door()
    ... def half(n: int) -> float:
    ...     return n / 2
    >>> half("word")
    Traceback (most recent call last):
    ValueError: n must be an integer, got 'word'
    """
    foreign, refusals, check = _FOREIGN, _refusals, _check_flags

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        known = {**inspect.get_annotations(function), **kinds}
        flags = {
            name: (at, known[name])
            for at, name in enumerate(inspect.signature(function).parameters)
            if known.get(name) in _FLAGS
        }

        def called(*args: P.args, **kwargs: P.kwargs) -> R:
            if flags:
                check(flags, args, kwargs)
            try:
                return function(*args, **kwargs)
            except foreign as error:
                refusal, cause = next(refusals(function, kinds, args, kwargs, error), (None, None))
                if refusal is None:
                    raise
                raise ValueError(refusal) from cause

        # With the module's own globals: doctest takes no example of another module's functions.
        code, cells = called.__code__, called.__closure__
        made: Any = FunctionType(code, function.__globals__, function.__name__, None, cells)
        return wraps(function)(made)

    return decorate


def doors(cls: type[T]) -> type[T]:
    """Decorator of a class: `door` for its constructor and public methods."""
    members: list[tuple[str, Any]] = list(vars(cls).items())
    for name, member in members:
        bound = type(member).__name__ == "classmethod"
        function = member.__func__ if bound else member
        if inspect.isfunction(function) and (name == "__init__" or not name.startswith("_")):
            setattr(cls, name, classmethod(door()(function)) if bound else door()(function))
    return cls


def _check_flags(flags: Mapping[str, tuple[int, str]], args: Any, kwargs: Any) -> None:
    """Refuse a flag, given by its place and kind, that is neither True nor False."""
    for name, (at, kind) in flags.items():
        value = kwargs.get(name, args[at] if at < len(args) else False)
        fits, words = _fits(kind, value)
        if not fits:
            raise ValueError(f"{name} must be {words}, got {short(value)}")


def _refusals(
    function: Callable[..., Any], kinds: Mapping[str, str], args: Any, kwargs: Any, error: Exception
) -> Iterator[tuple[str, Exception | None]]:
    """What is wrong with arguments, and the cause to show; nothing of an error that says so."""
    home, raised = _origin(error)
    if raised and home == "moestat" and isinstance(error, (ValueError, RuntimeError)):
        return
    try:
        given = inspect.signature(function).bind(*args, **kwargs).arguments
    except TypeError:
        return
    known = {**inspect.get_annotations(function), **kinds}
    for name, value in given.items():
        fits, words = _fits(str(known.get(name, "Any")), value)
        if not fits:
            yield f"{name} must be {words}, got {short(value)}", None
    if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
        large = [name for name, value in given.items() if isinstance(value, Integral)] or given
        yield f"{', '.join(large)}: what they ask for does not fit into memory", None
    shapes = [
        f"{name} of shape {tuple(value.shape)} and dtype {value.dtype}"
        for name, value in given.items()
        if type(value).__module__.partition(".")[0] in _LIBRARIES and hasattr(value, "shape")
    ]
    if shapes and home in ("moestat", "scipy", *_LIBRARIES) and isinstance(error, _MISFITS):
        yield f"{', '.join(shapes)}: {next(iter(str(error).splitlines()), 'refused')}", error


def _origin(error: Exception) -> tuple[str, bool]:
    """Package whose line an error came from, and whether that line is a `raise`."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return "", False
    frame = trace.tb_frame
    home = str(frame.f_globals.get("__name__")).partition(".")[0]
    return home, frame.f_code.co_code[trace.tb_lasti] == dis.opmap["RAISE_VARARGS"]


def _fits(annotation: str, value: Any) -> tuple[bool, str]:
    """Whether a value may be what an annotation says, and that in words."""
    places = re.split(r"\|(?![^\[]*\])", annotation)
    kinds = [_kind(place.strip(" '\""), value) for place in places]
    return any(fits for fits, _ in kinds), " or ".join(words for _, words in kinds)


def _kind(place: str, value: Any) -> tuple[bool, str]:
    """Whether a value may be what an annotation without alternatives says, and that in words."""
    name, _, inner = place.partition("[")
    name = name.rpartition(".")[2]
    if name in _KINDS:
        types, words = _KINDS[name]
        fits = isinstance(value, types) and (name == "bool" or not isinstance(value, bool))
        fits = fits and (isinstance(value, np.generic) or getattr(value, "shape", None) != ())
        fits = fits and not (words == "a list" and isinstance(value, (str, bytes)))
        if fits and isinstance(value, int) and abs(value) >= 2**63:
            return False, f"{words} below 2**63"
        if fits and words == "a list" and inner and is_sequence(value):
            parts = [_fits(inner.removesuffix("]"), part) for part in value]
            fits = all(each for each, _ in parts)
            words = f"a list, each {parts[0][1]}" if parts else words
        return fits, words
    is_instance = any(base.__name__ == name for base in type(value).__mro__)
    plain = type(value).__module__.partition(".")[0] in _PLAIN
    open_ended = name in ("Any", "object") or name.endswith("Array") or name in ("P", "R", "T")
    article = "an" if name[:1] in "AEIOU" else "a"
    return is_instance or open_ended or not plain, f"{article} {name}"
