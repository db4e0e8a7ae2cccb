"""Hostile calls of all public functions: a clear refusal, or a result without a silent NaN.

    python -m tests.chaos.hostile --calls 10000 --out calls.jsonl

Right calls are those of `tests.chaos.calls` and of the examples in the documentation.  One or two
arguments are replaced, or something in them.  Each call is made in a process that may die, with 4
GiB of memory; whatever is no refusal of moestat's own, in one line, is a failure, and so is NaN
that neither a warning nor the documentation tells of.  A run goes on where one with the same file
was ended.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import linecache
import random
import signal
import sys
import traceback
import warnings
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from moestat.base.warnings import MoEWarning
from moestat.sweep import SweepError
from tests.chaos.calls import VALUES, calls, fate, mutated, numbers_of, other_numbers
from tests.chaos.examples import Example, examples, quick
from tests.chaos.trials import HANGS, run_trials, tell

FATES = ("clear error", "accepted")
MORE = (
    *("3", "1.5", "nan", "\ud800", "a" * 10**6, Decimal("1.5"), Fraction(1, 3), np.bool_(True)),
    *(Ellipsis, slice(3), Path("nowhere"), ValueError, Exception("odd"), pd.NA, pd.NaT),
    *([[1.0], [1.0, 2.0]], [[1.0, None]], ["1", "2"], np.array([1, None, "x"], object), [10**400]),
    *(np.zeros((2, 2, 2)), np.zeros(3, [("a", float)]), np.ones((1, 2)).view(np.matrix), b"\0" * 9),
    *(np.array([], bool), np.full(3, np.nan), np.float64("nan"), np.uint8(255), np.int64(-1)),
    *(pd.DataFrame(), pd.DataFrame({"a": [1.0, 2.0]}), pd.Series(["u", "v"], dtype="category")),
    *(pd.Series([1.0, 2.0], index=[7, 7]), pd.date_range("2020", periods=3), sparse.eye(3)),
    *({1: 2}, {"a": {"a": {}}}, {1.0, 2.0}, {"n": 10**9}.values(), memoryview(b"abc"), open),
)


def other_container(array: np.ndarray, pick: random.Random) -> Any:
    """The numbers of an array in something else that holds numbers."""
    flat = array.reshape(len(array), -1) if array.ndim else array.reshape(1, 1)
    makers: tuple[Callable[[], Any], ...] = (
        lambda: array.tolist(),
        lambda: tuple(array.tolist()),
        lambda: array[::-1][::-1],
        lambda: np.broadcast_to(array.ravel()[:1], array.shape),
        lambda: np.asfortranarray(array),
        lambda: array.astype(pick.choice((object, str, np.float16, np.int8, bool, complex))),
        lambda: np.ma.masked_less(array, np.median(array)),
        lambda: np.atleast_2d(flat).view(np.matrix),
        lambda: sparse.csr_matrix(flat),
        lambda: pd.DataFrame(flat, index=pick.choices(range(9), k=len(flat))),
        lambda: pd.DataFrame(flat, columns=["same"] * flat.shape[1]),
        lambda: pd.DataFrame(flat).astype(pick.choice(("category", "string", "Int64", "object"))),
        lambda: pd.Series(flat[:, 0], index=pd.date_range("2020", periods=len(flat)), name=3),
        lambda: pd.Series(flat[:, 0]).astype("datetime64[ns]"),
        lambda: iter(array.ravel()),
        lambda: memoryview(np.ascontiguousarray(array)),
        lambda: np.vstack([flat, flat]),
        lambda: np.hstack([flat, flat]),
    )
    try:
        return pick.choice(makers)()
    except (ValueError, TypeError):  # this array is none of that kind
        return array


_LONGEST = 1000
_STEPS = 10_000
_OWN = ("moestat", "sklearn")


def changed(value: Any, pick: random.Random) -> Any:
    """Something else in the place of a value, or a value with something else in it."""
    kind = type(value).__module__.partition(".")[0]
    if pick.random() < 0.35:
        return pick.choice(VALUES + MORE)
    if isinstance(value, np.ndarray) and value.size and value.dtype.kind in "biuf":
        return (other_container if pick.random() < 0.4 else other_numbers)(value, pick)
    if kind == "torch" and getattr(value, "numel", lambda: 0)() and not value.is_complex():
        import torch

        other = other_numbers(value.detach().numpy(), pick)
        with contextlib.suppress(TypeError):
            tensor = torch.as_tensor(np.asarray(other))
            kind = pick.choice((value.dtype, torch.float64))
            return tensor if tensor.is_complex() else tensor.to(kind)
        return other
    if kind == "pandas" and hasattr(value, "iloc") and len(value):
        how = pick.randrange(5)
        if how == 0:
            return value.iloc[:0]
        if how == 1:
            return value.iloc[:-1]
        if how == 2:
            return value.to_numpy()
        if how == 3:
            return value.astype(object).where(lambda each: each != each, pick.choice((None, "x")))
        return value.set_axis(pick.sample(range(len(value)), len(value)), axis=0)
    if isinstance(value, (list, tuple)) and value and not hasattr(value, "_fields"):
        parts = list(value)
        if pick.random() < 0.2:
            parts = parts[:-1] if pick.random() < 0.5 else [*parts, parts[0]]
        else:
            at = pick.randrange(len(parts))
            parts[at] = changed(parts[at], pick)
        return type(value)(parts)
    if isinstance(value, Mapping) and value:
        parts = dict(value)
        key = pick.choice(list(parts))
        if pick.random() < 0.2:
            parts[pick.choice(("nope", 3))] = parts.pop(key)
        else:
            parts[key] = changed(parts[key], pick)
        return parts
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        sizes = (value * 10**6, -value, value + 1, value - 1, value + 0.5, float(value), 10**9)
        with contextlib.suppress(OverflowError):
            return pick.choice(sizes)
    return pick.choice(VALUES + MORE)


def _is_own(error: BaseException) -> bool:
    """Whether an error was raised by a line of moestat that says so, not by what it called."""
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1]
    lines = range((last.lineno or 0) - 8, (last.lineno or 0) + 1)
    first = [linecache.getline(last.filename, at).strip() for at in lines]
    inside = f"/{Path(last.filename).parts[-2]}/" if len(Path(last.filename).parts) > 1 else ""
    known = any(f"/{name}/" in last.filename or inside == f"/{name}/" for name in _OWN)
    says = any(line.startswith("raise") for line in first)
    return known and (says or "/sklearn/" in last.filename)


def _has_nan(result: Any) -> bool:
    return any(a.dtype.kind == "f" and np.isnan(a).any() for a in numbers_of(result))


@dataclass(frozen=True)
class Hostile:
    """One call with changed arguments."""

    call: Example
    names: list[str]
    arguments: dict[str, Any]
    extra: tuple[Any, ...]
    nan: bool

    def __str__(self) -> str:
        given = {**self.arguments, "*": self.extra}
        shown = ", ".join(f"{k}={' '.join(repr(given[k]).split()):.90}" for k in self.names)
        return f"{self.call.name.partition(':')[2]}({shown})"

    def fate(self) -> str:
        """What becomes of it."""

        def stop(number: int, frame: Any) -> None:
            raise TimeoutError

        signal.signal(signal.SIGVTALRM, stop)
        signal.setitimer(signal.ITIMER_VIRTUAL, HANGS)
        try:
            with warnings.catch_warnings(record=True) as said, np.errstate(all="ignore"):
                warnings.simplefilter("always")
                with contextlib.redirect_stdout(io.StringIO()):
                    result = self.call.function(*self.extra, **self.arguments)
        except TimeoutError:
            return f"more than {HANGS:g} s: {self}"
        except Exception as error:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            return self._of_error(error)
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        told = [warning for warning in said if issubclass(warning.category, MoEWarning)]
        given = [self.arguments.get(name) for name in self.names]
        said_before = "NaN" in f"{self.call.function.__doc__} {type(result).__doc__}"
        if not (told or self.nan or said_before) and _has_nan(result) and not _has_nan(given):
            return f"NaN: {self}"
        return "accepted"

    def _of_error(self, error: Exception) -> str:
        message = str(error).replace("a\nb", "")
        if "sklearn/utils/validation" in traceback.format_exc():
            message = ""  # its refusals are of several lines
        torch_says = isinstance(error, RuntimeError) and "alloc" not in message
        if ".forward(" in str(self) and (torch_says or "must be Tensor" in message):
            return "clear error"  # torch's own refusal of a shape, a dtype, or what is no tensor
        kinds = (ValueError, TypeError, SweepError, FileNotFoundError, KeyError, IndexError)
        short = "\n" not in message and len(message) < _LONGEST
        if isinstance(error, (*kinds, AttributeError)) and short and _is_own(error):
            return "clear error"
        if isinstance(error, OSError) and any("path" in name for name in self.names):
            return "clear error"
        trace = " ".join(traceback.format_exc(limit=-3).split())
        return f"{type(error).__name__}: {self}: {trace[-500:]}"


class Generator:
    """Hostile calls by number."""

    def __init__(self, seed: int, only: list[str] | None = None) -> None:
        self.seed = seed
        self.right = calls()
        self.by_name = defaultdict[str, list[tuple[Example, bool]]](list)
        for call, result in quick(examples(only)):
            if call.arguments or call.extra:
                self.by_name[call.name].append((call, _has_nan(result)))
        self.names = sorted(self.by_name)

    def hostile(self, number: int) -> Hostile:
        """The call of a number."""
        pick = random.Random(f"{self.seed}-{number}")
        call, nan = pick.choice(self.by_name[pick.choice(self.names)])
        arguments, extra = call.fresh(), call.extra
        places = sorted(arguments) + ["*"] * bool(extra)
        names = pick.sample(places, min(len(places), 1 + (pick.random() < 0.15)))
        for name in names:
            if name == "*":
                extra = tuple(changed(list(extra), pick)) if extra else extra
            else:
                arguments[name] = changed(arguments[name], pick)
        steps = arguments.get("n_steps")
        if isinstance(steps, int) and steps > _STEPS:  # a right call, which takes its time
            arguments["n_steps"] = _STEPS
        return Hostile(call, names, arguments, extra, nan)

    def trial(self, number: int) -> str:
        """What becomes of the call of a number; one in three is of those with an oracle."""
        if number % 3:
            return self.hostile(number).fate()
        pick = random.Random(f"{self.seed}-{number}")
        call = pick.choice(self.right)
        return fate(call, *mutated(call, pick))

    def describe(self, number: int) -> str:
        """The call of a number, for a reader."""
        if number % 3:
            return str(self.hostile(number))
        pick = random.Random(f"{self.seed}-{number}")
        call = pick.choice(self.right)
        arguments, names, _ = mutated(call, pick)
        return f"{call.function.__name__}({ {name: arguments[name] for name in names} })"[:400]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.hostile")
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="where fates are kept, one a line")
    parser.add_argument("--modules", nargs="*", help="only examples of these modules")
    options = parser.parse_args()
    generator = Generator(options.seed, options.modules)
    print(f"{len(generator.names)} public functions with examples", flush=True)
    found = run_trials(generator.trial, generator.describe, options.calls, options.out)
    return tell(found, FATES)


if __name__ == "__main__":
    sys.exit(main())
