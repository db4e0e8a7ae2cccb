"""Doors of public functions: an argument of the wrong type is named where the function fails."""

from __future__ import annotations

import builtins
import dis
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from numbers import Integral, Real
from types import FunctionType, NoneType, UnionType
from typing import (
    Any,
    Literal,
    ParamSpec,
    SupportsIndex,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np

from moestat.base.types import TableLike
from moestat.base.validate import UnknownArgumentError, check_keywords, is_sequence, short

__all__ = ["door", "doors"]

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

_FAILURES = (
    AttributeError,
    TypeError,
    ValueError,
    LookupError,
    ArithmeticError,
    RuntimeError,
    MemoryError,
)
_LISTS = (Sequence, np.ndarray)
_BUILTIN: dict[Any, tuple[Any, str]] = {
    NoneType: (NoneType, "None"),
    int: (Integral, "an integer"),
    SupportsIndex: (Integral, "an integer"),
    float: (Real, "a number"),
    str: (str, "a text"),
    bool: ((bool, np.bool_), "True or False"),
    Mapping: (Mapping, "a mapping"),
    dict: (Mapping, "a mapping"),
    Sequence: (_LISTS, "a list"),
    list: (_LISTS, "a list"),
    Iterable: (Iterable, "a list"),
    Callable: (Callable, "callable"),
    TableLike: (TableLike, "a table"),
}
"""Type of an annotation -> the types of the arguments that it takes, and how messages call them."""
_PLAIN = {
    "builtins",
    "collections",
    "datetime",
    "decimal",
    "fractions",
    "pathlib",
    "numpy",
    "pandas",
    "scipy",
}
"""Packages whose objects never stand for one of another class; any other object may."""

_ABOUT_ARRAYS = re.compile("shape|dimension|broadcast|size|dtype|out of range|truth value")
"""Words in errors of NumPy and PyTorch about arrays that do not fit each other."""


def door(**types: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator: where the function fails and an argument is not of its type, that is the error.

    Arguments are compared with annotations only after an exception that this package has not raised
    itself: a right call costs nothing.  Where all arguments are of the right types, the exception
    stays what it is, but for arrays that do not go together, which are named with their shapes.
    Flags are compared before the call, because any object is true or false.

    Parameters
    ----------
    **types : str
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
    failures, explain, check_flags = _FAILURES, _explain, _check_flags

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        annotations = {**inspect.get_annotations(function), **types}
        positional = function.__code__.co_varnames[: function.__code__.co_argcount]
        flags = {
            name: (positional.index(name) if name in positional else None, annotation)
            for name, annotation in annotations.items()
            if annotation in ("bool", "bool | None") and name != "return"
        }

        def called(*args: P.args, **kwargs: P.kwargs) -> R:
            if flags:
                check_flags(flags, args, kwargs)
            try:
                return function(*args, **kwargs)
            except failures as error:
                refusal = explain(function, annotations, args, kwargs, error)
                if refusal is None:
                    raise
                raise ValueError(refusal) from error

        # With the module's own globals: doctest takes no example of another module's functions.
        code, cells = called.__code__, called.__closure__
        guard: Any = FunctionType(code, function.__globals__, function.__name__, None, cells)
        return wraps(function)(guard)

    return decorate


def doors(cls: type[T]) -> type[T]:
    """Decorator of a class: `door` for its constructor and public methods."""
    for name, member in list[tuple[str, Any]](vars(cls).items()):
        function: Any = getattr(member, "__func__", member)  # that of a class method
        is_public = name == "__init__" or not name.startswith("_")
        if is_public and inspect.isfunction(function) and not isinstance(member, staticmethod):
            guarded: Any = door()(function)
            setattr(cls, name, guarded if function is member else classmethod(guarded))
    return cls


def _check_flags(
    flags: Mapping[str, tuple[int | None, str]],
    args: tuple[object, ...],
    kwargs: Mapping[str, object],
) -> None:
    """Refuse a flag, given by its position and annotation, that is neither True nor False."""
    for name, (position, annotation) in flags.items():
        by_position = position is not None and position < len(args)
        value = args[position] if position is not None and by_position else kwargs.get(name, False)
        if not (isinstance(value, (bool, np.bool_)) or (value is None and "None" in annotation)):
            allowed = "True or False" + " or None" * ("None" in annotation)
            raise ValueError(f"{name} must be {allowed}, got {short(value)}")


def _bound(
    function: Callable[..., object], args: tuple[object, ...], kwargs: Mapping[str, object]
) -> dict[str, Any]:
    """Arguments by name; raises if the function lacks one that was given, or needs another."""
    signature = inspect.signature(function)
    try:
        return signature.bind(*args, **kwargs).arguments
    except TypeError as error:
        name = function.__name__
        if name == "__init__":
            name = function.__qualname__.split(".")[-2]
        kinds = {each: parameter.kind for each, parameter in signature.parameters.items()}
        starred = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
        names = [each for each, kind in kinds.items() if each != "self" and kind not in starred]
        if inspect.Parameter.VAR_KEYWORD not in kinds.values():
            check_keywords(name, kwargs, names)
        raise UnknownArgumentError(
            f"{name}: {error}. Its arguments are {', '.join(names)}"
        ) from None


def _explain(
    function: Callable[..., object],
    annotations: Mapping[str, Any],
    args: tuple[object, ...],
    kwargs: Mapping[str, object],
    error: Exception,
) -> str | None:
    """The sentence on the argument that an error is about; None where the error says it itself."""
    if _is_refusal(error):
        return None
    given = _bound(function, args, kwargs)
    message = str(error)
    types = _resolve(function, annotations)
    for name, value in given.items():
        fits, allowed = _fits(types.get(name, Any), value)
        if not fits:
            return f"{name} must be {allowed}, got {short(value)}"
    if isinstance(error, MemoryError) or "can't allocate memory" in message:
        large = [name for name, value in given.items() if isinstance(value, Integral)] or given
        return f"{', '.join(large)}: what they ask for does not fit into memory"
    arrays = [
        f"{name} of shape {tuple(value.shape)} and dtype {value.dtype}"
        for name, value in given.items()
        if _package(value) in ("numpy", "torch") and hasattr(value, "shape")
    ]
    refuses = isinstance(error, (ValueError, RuntimeError, IndexError))
    if arrays and refuses and _ABOUT_ARRAYS.search(message):
        return f"{', '.join(arrays)}: {message.splitlines()[0]}"
    return None


def _is_refusal(error: Exception) -> bool:
    """Whether a `raise` of this package, or of scikit-learn's checks, made the error."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or not isinstance(error, (ValueError, RuntimeError)):
        return False
    frame = trace.tb_frame
    raises = frame.f_code.co_code[trace.tb_lasti] == dis.opmap["RAISE_VARARGS"]
    return raises and str(frame.f_globals.get("__name__")).startswith(("moestat.", "sklearn."))


class _Unknown(type):
    """A class that is imported for type checkers only: of its objects only the name is known."""

    def __getattr__(cls, name: str) -> _Unknown:
        if name.startswith("_"):
            raise AttributeError(name)
        return _Unknown(name, (), {})

    def __getitem__(cls, _: object) -> _Unknown:
        return cls


class _Names(dict[str, Any]):
    """Names that an annotation may use; an unknown one is a class."""

    def __missing__(self, name: str) -> _Unknown:
        return _Unknown(name, (), {})


def _resolve(function: Callable[..., object], annotations: Mapping[str, Any]) -> dict[str, Any]:
    """The types that annotations stand for, by argument."""
    stand_in = FunctionType((lambda: None).__code__, function.__globals__)
    stand_in.__annotations__ = dict(annotations)
    names = _Names({**vars(builtins), **function.__globals__})
    return get_type_hints(stand_in, localns=names)


def _fits(annotation: Any, value: object) -> tuple[bool, str]:
    """Whether a value may be what a type says, and what the type allows, in words."""
    origin, parts = get_origin(annotation), get_args(annotation)
    kind = origin or annotation
    if origin in (Union, UnionType):
        alternatives = [_fits(part, value) for part in parts]
        words = " or ".join(words for _, words in alternatives)
        return any(fits for fits, _ in alternatives), words
    if origin is Literal:
        return isinstance(value, str) and value in parts, f"one of {', '.join(map(repr, parts))}"
    if kind in _BUILTIN:
        return _fits_builtin(kind, parts, value)
    if kind in (Any, object) or not isinstance(kind, type) or (kind is np.ndarray and parts):
        return True, "anything"
    if kind.__module__.startswith("numpy._typing"):  # of `ArrayLike`
        return True, "an array"
    article = "an" if kind.__name__[:1] in "AEIOU" else "a"
    is_protocol = getattr(kind, "_is_protocol", False)
    fits = _package(value) not in _PLAIN or (not is_protocol and isinstance(value, kind))
    return fits, f"{article} {kind.__name__}"


def _fits_builtin(kind: Any, parts: tuple[Any, ...], value: object) -> tuple[bool, str]:
    """Whether a value fits a built-in type, as `_fits`; True is no number, and a text no list."""
    types, words = _BUILTIN[kind]
    fits = isinstance(value, types) and (kind is bool or not isinstance(value, bool))
    fits = fits and (isinstance(value, np.generic) or getattr(value, "shape", None) != ())
    fits = fits and not (words in ("a list", "a table") and isinstance(value, (str, bytes)))
    if fits and kind is not SupportsIndex and isinstance(value, int) and abs(value) >= 2**63:
        return False, f"{words} below 2**63"
    if fits and words == "a list" and parts and is_sequence(value):
        members = [_fits(parts[0], member) for member in value]
        fits = all(each for each, _ in members)
        words = f"a list, each {members[0][1]}" if members else words
    return fits, words


def _package(value: object) -> str:
    """Package of a value's class."""
    return type(value).__module__.partition(".")[0]
