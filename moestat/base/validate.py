"""Checks that public entry points share: one clear message each, naming the argument."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from numbers import Integral, Real
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from moestat.base.types import FloatArray, Seed

LARGEST_INT = 1_000_000
"""Default largest value of an integer argument: a larger number is most likely a mistake, and the
work would exceed memory or take days."""


class RangeError(np.linalg.LinAlgError):
    """Numbers on the way to a result are beyond the range of float64."""

    def __init__(
        self,
        message: str = "X, y, sample_weight: the likelihood or a derivative is beyond the range of"
        " float64 where the fit came; give the data in other units, or narrower bounds",
    ) -> None:
        super().__init__(message)


def positive_int(
    name: str, value: object, minimum: int = 1, maximum: int | None = LARGEST_INT
) -> int:
    """`value` as an int of at least `minimum`, and at most `maximum`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < minimum:
        raise ValueError(f"{name} must be an integer >= {minimum}, got {short(value)}")
    if maximum is not None and int(value) > maximum:
        raise ValueError(f"{name} must be at most {maximum:,}, got {short(value)}")
    return int(value)


def is_mapping(value: Any) -> TypeGuard[Mapping[Any, Any]]:
    """Whether a value is a table."""
    return isinstance(value, Mapping)


def is_sequence(value: Any) -> TypeGuard[Sequence[Any]]:
    """Whether a value is a list or a tuple."""
    return isinstance(value, list | tuple)


def real_in(
    name: str, value: object, low: float = -np.inf, high: float = np.inf, *, open_low: bool = False
) -> float:
    """`value` as a finite float in [low, high], or (low, high] when `open_low`."""
    try:
        number = (
            float(value)
            if isinstance(value, Real) and value is not True and value is not False
            else np.nan
        )
    except OverflowError:
        number = np.inf
    outside = number < low or number > high or (open_low and number == low)
    if not np.isfinite(number) or outside:
        first = "(" if open_low or low == -np.inf else "["
        last = ")" if high == np.inf else "]"
        raise ValueError(
            f"{name} must be a number in {first}{low:g}, {high:g}{last}, got {short(value)}"
        )
    return number


def one_of(name: str, value: object, known: Iterable[str]) -> str:
    """`value`, if it is one of the names that are known."""
    if not isinstance(value, str) or value not in known:
        names = list(known)
        raise ValueError(
            f"{name} must be one of {', '.join(map(repr, names))}, got {short(value)}"
            f"{did_you_mean(value, names)}"
        )
    return value


def as_path(name: str, value: object) -> Path:
    """`value` as a path."""
    # No name of a file holds a zero, or half of a pair of UTF-16.
    if not isinstance(value, (str, Path)) or re.search("[\0\ud800-\udc7f]", str(value)):
        raise ValueError(f"{name} must be a str or a pathlib.Path, got {short(value)}")
    return Path(value)


def as_plain_array(name: str, value: Any) -> np.ndarray:
    """`value` as an array, where numpy would drop nothing of it and make no guess.

    A mask without masked entries is dropped; None, sparse matrices, masked entries, complex
    numbers and dates are refused.
    """
    if value is None:
        raise ValueError(f"{name} is missing: it must be an array, got None")
    if hasattr(value, "tocsr"):
        raise ValueError(
            f"{name} is a sparse matrix; moestat reads dense arrays only: pass {name}.toarray()"
        )
    if np.ma.isMaskedArray(value) and np.ma.is_masked(value):
        count = int(np.ma.getmaskarray(value).sum())
        raise ValueError(f"{name} has {count} masked entries; leave their rows out or fill them in")
    try:
        array = np.asarray(value)
        if array.dtype.kind in "US" and isinstance(value, (list, tuple)):
            objects = np.asarray(value, dtype=object)  # numpy makes words of numbers, NaN and None
            array = array if all(isinstance(v, (str, bytes)) for v in objects.flat) else objects
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be an array, got {short(value)}") from None
    if array.dtype.kind == "c":
        raise ValueError(f"{name} must be real, got {array.dtype}: Complex data not supported")
    if array.dtype.kind in "mM":
        raise ValueError(
            f"{name} holds dates or times ({array.dtype}); convert them to numbers, such as days"
            " since the first"
        )
    return array


def _dtype(array: Any) -> Any:
    return array.dtype


def short(value: Any) -> str:
    """A value as text on at most one line."""
    array = isinstance(value, np.ndarray)
    text = f"an array of dtype {_dtype(value)}" if array else " ".join(_repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."


def listed(words: Iterable[object], limit: int = 12) -> str:
    """Words with commas, the first few of them and an ellipsis if there are more.

    Examples
    --------
    >>> listed("abc"), listed("abc", 2)
    ('a, b, c', 'a, b, ...')
    """
    texts = [*map(str, words)]
    return ", ".join(texts[:limit]) + (", ..." if len(texts) > limit else "")


def _repr(value: object) -> str:
    try:
        return repr(value)
    except ValueError:  # an integer of thousands of digits
        return f"a {type(value).__name__} of too many digits to show"


def _is_number(cell: object) -> bool:
    try:
        float(cell)  # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def hint_of_text(cells: Any, axis: int = 0) -> str:
    """Which text among numbers is none, and in which row along an axis; "" if most are words.

    Examples
    --------
    >>> hint_of_text(["1.5", "2", "n/a"])
    "; the text 'n/a' in row 2 (from 0) is no number: correct it, or make it NaN, a missing value"
    """
    array = np.asarray(cells, dtype=object)
    texts = [(at, v) for at, v in np.ndenumerate(array) if isinstance(v, (str, bytes))]
    wrong = [(at, v) for at, v in texts if not _is_number(v)]
    if array.ndim == 0 or not wrong or 2 * len(wrong) >= array.size:
        return ""
    at, text = min(wrong, key=lambda one: one[0][axis])
    others = f", as are {len(wrong) - 1} others" * (len(wrong) > 1)
    return (
        f"; the text {short(text)} in row {at[axis]} (from 0) is no number{others}: correct it, or"
        " make it NaN, a missing value"
    )


def as_numbers(name: str, value: object, axis: int = 0) -> FloatArray:
    """`value` as float64 numbers in an array that compiled loops know: C order, writable.

    Rows are along an `axis`.
    """
    array = as_plain_array(name, value)
    words = array.dtype.kind == "O" and any(isinstance(v, (str, bytes)) for v in array.flat)
    if array.dtype.kind not in "biufO" or words:
        text = hint_of_text(array, axis) if array.dtype.kind in "OUS" else ""
        raise ValueError(f"{name} must hold numbers, got {short(value)}{text}")
    try:
        return np.require(array.astype(np.float64, copy=False), requirements=["C", "A", "W"])
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} must hold numbers, got {short(value)}") from None


def _check_finite(name: str, array: FloatArray) -> None:
    finite = np.isfinite(array)
    if not finite.all():
        count = int(np.sum(~finite))
        raise ValueError(f"{name} holds {count} NaN or infinite values; all must be finite")


def as_floats(name: str, value: object, shape: Iterable[int | None]) -> FloatArray:
    """`value` as a finite float64 array; None in `shape` allows any length on that axis.

    The array is in C order and writable whatever was given, so that a compiled loop has one
    signature.
    """
    array = as_numbers(name, value)
    wanted = tuple(shape)
    matches = array.ndim == len(wanted) and all(
        length is None or length == given for length, given in zip(wanted, array.shape, strict=True)
    )
    if not matches:
        sizes = ", ".join("any" if length is None else str(length) for length in wanted)
        raise ValueError(f"{name} must have shape ({sizes}), got {array.shape}")
    _check_finite(name, array)
    return array


def as_design(X: object, n_features: int | None = None, *, missing: bool = False) -> FloatArray:
    """Inputs (n, d), or (n,) when d = 1, as the contiguous (d, n) array the loops read.

    NaN is refused unless it stands for what is `missing`.  So is a frame with named columns, whose
    names nobody here would look at.
    """
    names = getattr(X, "column_names", getattr(X, "columns", ()))
    if any(isinstance(name, str) for name in names):
        raise ValueError(
            f"X has named columns, {', '.join(map(str, names))}, and is read by position here: pass"
            " X.to_numpy(), or ask the result of a fit, whose methods read columns by their names"
        )
    design = as_numbers("X", as_plain_array("X", X).T, axis=-1)
    shape = design.shape[::-1]
    if design.ndim == 1 and n_features in (None, 1):
        design = design[None, :]
    if design.ndim != 2 or n_features not in (None, design.shape[0]):
        width = "any" if n_features is None else n_features
        raise ValueError(f"X must have shape (any, {width}), got {shape}")
    _check_finite("X", design[~np.isnan(design)] if missing else design)
    return design


def as_weights(sample_weight: object, n: int, *, some: bool = True) -> FloatArray:
    """Sample weights (n,), non-negative and with `some` of a positive sum; ones for None."""
    if sample_weight is None:
        return np.ones(n)
    weight = as_floats("sample_weight", sample_weight, (n,))
    if np.any(weight < 0):
        raise ValueError(f"sample_weight must be >= 0, got a minimum of {weight.min():g}")
    if weight.max(initial=0.0) > 1e100:
        raise ValueError(f"sample_weight must be at most 1e100, got {weight.max():g}")
    if some and not weight.sum() > 0:
        raise ValueError("sample_weight must have a positive sum, but all its values are zero")
    return weight


def check_kind(name: str, value: object, kind: type | tuple[type, ...] | str, words: str) -> None:
    """Raise unless `value` is of a class, or has the method called `kind`; `words` say what is."""
    if not (hasattr(value, kind) if isinstance(kind, str) else isinstance(value, kind)):
        raise ValueError(f"{name} must be {words}, got {short(value)}")


_ELSEWHERE = {
    "n_components": "n_experts",
    "components": "n_experts",
    "n_clusters": "n_experts",
    "k": "n_experts",
    "random_state": "rng",
    "seed": "rng",
    "n_init": "n_starts",
    "n_jobs": "threads",
    "weights": "sample_weight",
    "freq_weights": "sample_weight",
    "disp": "verbose",
    "linear": "gaussian",
    "ols": "gaussian",
    "lm": "gaussian",
    "probit": "binomial",
    "cloglog": "binomial",
    "binary": "binomial",
    "tobit": "gaussian",
    "anova": "gaussian",
    "loglinear": "poisson",
    "count": "poisson",
    "survival": "weibull",
}
"""Names in other packages -> names of the same arguments in this one, and of the likelihood whose
options are meant.  Names with one meaning are the `aliases` of a registry."""


class UnknownArgumentError(TypeError, ValueError):
    """An argument that a function does not have."""


def did_you_mean(
    given: object, known: Iterable[str], aliases: Mapping[str, str] | None = None
) -> str:
    """``"; did you mean 'gaussian'?"`` where something known is spelt alike, else nothing.

    For a name that is spelt like one of the `aliases` it is the known name that this stands for.
    """
    names, others = list(known), aliases or {}
    if not isinstance(given, str):
        return ""
    meant = [name for name in (_ELSEWHERE.get(given.lower()),) if name in names]
    meant += [others.get(name, name) for name in get_close_matches(given, [*names, *others], 1)]
    return f"; did you mean {meant[0]!r}?" if meant else ""


def first_meant(given: object, known: Iterable[str]) -> str:
    """`did_you_mean` of the first of several names that is spelt like one that is known."""
    names = list(known)
    others = [name for name in given if name not in names] if is_sequence(given) else []
    return next(filter(None, (did_you_mean(name, names) for name in others)), "")


def unknown(
    kind: str, given: object, known: Iterable[str], aliases: Mapping[str, str] | None = None
) -> str:
    """The message on a name that is none of those that are known.

    Examples
    --------
    >>> unknown("truth", "fist", ["first", "second"])
    "unknown truth 'fist'; known: 'first', 'second'; did you mean 'first'?"
    """
    names = list(known)
    listing = ", ".join(map(repr, names))
    return f"unknown {kind} {short(given)}; known: {listing}{did_you_mean(given, names, aliases)}"


def check_keywords(function: str, given: Mapping[str, object], known: Iterable[str]) -> None:
    """Raise unless all arguments that were given are known to the function of this name."""
    names = list(known)
    for name in given:
        if name not in names:
            raise UnknownArgumentError(
                f"{function} has no argument {short(name)}{did_you_mean(name, names) or '.'} Its"
                f" arguments are {', '.join(names)}"
            )


def as_generator(rng: Seed) -> np.random.Generator:
    """A numpy Generator from a Generator, a RandomState, a seed or None."""
    entropy: Any = rng
    if isinstance(rng, np.random.RandomState):
        entropy = rng.randint(2**32, size=4, dtype=np.uint32)
    if isinstance(rng, np.random.Generator):
        if hasattr(rng.bit_generator.seed_seq, "spawn"):
            return rng
        entropy = rng.integers(2**32, size=4, dtype=np.uint32)
    try:
        # NumPy descends into matrices without end, and dies.
        is_matrix = type(entropy).__name__ == "matrix"
        return np.random.default_rng(np.asarray(entropy) if is_matrix else entropy)
    except (TypeError, ValueError):
        raise ValueError(
            f"rng must be a numpy.random.Generator, a seed or None, got {short(rng)}"
        ) from None


def draw_seed(rng: np.random.Generator) -> int:
    """A seed for generators that other passes or workers make, drawn from a generator."""
    return int(rng.integers(2**63))
