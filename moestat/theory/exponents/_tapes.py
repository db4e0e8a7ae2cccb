"""What a gate, an expert and a likelihood compute, as tapes of elementary operations.

A registered block is run once per sample on numbers that write down what is done to them.  The
tape is a straight line: comparisons have been decided by the values of this sample.  Samples with
the same tape form a group, and a tape is evaluated for its whole group at once, in the arithmetic
of `moestat.theory.exponents._series`, or written out as a formula for a certificate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from moestat.model.family import Family
from moestat.theory.arithmetic import copier, mathematics

__all__ = ["AtomCode", "Group", "Tape"]

Operation = tuple[Any, ...]
"""A name, and places of the operands on the tape; of a leaf what it is."""


@dataclass
class Tape:
    """Operations in order, and the numbers that are constants of this sample."""

    operations: list[Operation] = field(default_factory=list)
    constants: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    _places: dict[Operation, int] = field(default_factory=dict)

    def add(self, operation: Operation, value: float) -> Number:
        """Write an operation down, once."""
        place = self._places.get(operation)
        if place is None:
            place = self._places[operation] = len(self.operations)
            self.operations.append(operation)
            self.values.append(value)
        return Number(self, place, value)

    def number(self, value: Any) -> Number:
        """A number as an entry of the tape."""
        if isinstance(value, Number):
            return value
        plain = float(value)
        if plain not in self.constants:
            self.constants.append(plain)
        return self.add(("constant", self.constants.index(plain)), plain)


def _apply(name: str, x: Any) -> Any:
    if not isinstance(x, Number):
        return _VALUES[name](x)
    try:
        value = _VALUES[name](x.value)
    except (OverflowError, ValueError):
        value = math.nan
    return x.tape.add((name, x.place), value)


_VALUES: dict[str, Callable[[float], float]] = {
    "exp": math.exp,
    "log": math.log,
    "sqrt": math.sqrt,
    "erfc": math.erfc,
    "lgamma": math.lgamma,
    "sin": math.sin,
    "cos": math.cos,
    "atan": math.atan,
}


class Number:
    """A number that writes down what is done to it."""

    __slots__ = ("place", "tape", "value")

    def __init__(self, tape: Tape, place: int, value: float) -> None:
        self.tape, self.place, self.value = tape, place, value

    def _with(self, name: str, other: Any, value: Callable[[float, float], float], swap: bool):
        if isinstance(other, np.ndarray):
            return NotImplemented
        two = self.tape.number(other)
        one, two = (two, self) if swap else (self, two)
        try:
            result = value(one.value, two.value)
        except (ZeroDivisionError, OverflowError):
            result = math.nan
        return self.tape.add((name, one.place, two.place), result)

    def __add__(self, other: Any) -> Any:
        return self._with("add", other, lambda a, b: a + b, False)

    def __radd__(self, other: Any) -> Any:
        return self._with("add", other, lambda a, b: a + b, True)

    def __sub__(self, other: Any) -> Any:
        return self._with("sub", other, lambda a, b: a - b, False)

    def __rsub__(self, other: Any) -> Any:
        return self._with("sub", other, lambda a, b: a - b, True)

    def __mul__(self, other: Any) -> Any:
        return self._with("mul", other, lambda a, b: a * b, False)

    def __rmul__(self, other: Any) -> Any:
        return self._with("mul", other, lambda a, b: a * b, True)

    def __truediv__(self, other: Any) -> Any:
        return self._with("div", other, lambda a, b: a / b, False)

    def __rtruediv__(self, other: Any) -> Any:
        return self._with("div", other, lambda a, b: a / b, True)

    @property
    def real(self) -> Number:
        """The number itself, of a response that may be complex."""
        return self

    def __neg__(self) -> Any:
        return self.tape.number(0.0) - self

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return -self if self.value < 0.0 else self

    def __pow__(self, power: Any) -> Any:
        if isinstance(power, Number) or power != int(power):
            return exponential(power * logarithm(self))
        result = self.tape.number(1.0)
        for _ in range(abs(int(power))):
            result = result * self
        return result if power >= 0 else 1.0 / result

    def __float__(self) -> float:
        return float(self.value)

    def __lt__(self, other: Any) -> bool:
        return self.value < float(other)

    def __le__(self, other: Any) -> bool:
        return self.value <= float(other)

    def __gt__(self, other: Any) -> bool:
        return self.value > float(other)

    def __ge__(self, other: Any) -> bool:
        return self.value >= float(other)

    def __eq__(self, other: object) -> bool:
        return self.value == float(other)  # type: ignore[arg-type]

    def __ne__(self, other: object) -> bool:
        return self.value != float(other)  # type: ignore[arg-type]

    __hash__ = None  # type: ignore[assignment]


def exponential(x: Any) -> Any:
    """``e^x``."""
    return _apply("exp", x)


def logarithm(x: Any) -> Any:
    """``log x``."""
    return _apply("log", x)


def _tanh(x: Any) -> Any:
    e = exponential(-2.0 * abs(x))
    t = (1.0 - e) / (1.0 + e)
    return t if x >= 0.0 else -t


_MODULE = mathematics(
    {
        **{name: (lambda x, name=name: _apply(name, x)) for name in _VALUES},
        "erf": lambda x: 1.0 - _apply("erfc", x),
        "tanh": _tanh,
        "sinh": lambda x: 0.5 * (exponential(x) - exponential(-x)),
        "cosh": lambda x: 0.5 * (exponential(x) + exponential(-x)),
        "arctan": lambda x: _apply("atan", x),
        "log1p": lambda x: logarithm(1.0 + x),
        "expm1": lambda x: exponential(x) - 1.0,
        "fabs": abs,
        "abs": abs,
        "hypot": lambda x, y: _apply("sqrt", x * x + y * y),
        "pow": lambda x, y: x**y,
    }
)
_LOWEST: dict[str, Any] = {
    "exp": exponential,
    "decay": exponential,
    "decay_less_one": lambda x: exponential(x) - 1.0,
    "log": logarithm,
    "log1p_unit": lambda y: logarithm(1.0 + y),
    "log1p_positive": lambda y: logarithm(1.0 + y),
    "log1p_inverse": lambda y: (logarithm(1.0 + y), 1.0 / (1.0 + y)),
    "log_gamma": lambda x: _apply("lgamma", x),
    # What log Gamma has beyond x log x - x; the derivatives are taken from the value.
    "gamma_excess": lambda x: (_apply("lgamma", x) - x * logarithm(x) + x, 0.0, 0.0),
}


@dataclass(frozen=True)
class Group:
    """Samples with one tape, and where the tape has the log-weight and the value."""

    operations: tuple[Operation, ...]
    constants: np.ndarray
    """Constants (n_constants, rows)."""
    rows: np.ndarray
    """Samples of the group."""
    weight: int
    value: int
    """Places of the log-weight, and of the log-density (the mean of a regression function)."""


class AtomCode:
    """The blocks of a family's atoms, ready to be run on numbers that write themselves down."""

    def __init__(self, family: Family) -> None:
        self.family = family
        copy = copier(_LOWEST, _MODULE)
        self._gate = copy(family.gate.block)
        self._expert = None if family.expert.block is None else copy(family.expert.block)
        block = family.likelihood.block
        self._likelihood = None if block is None else copy(block)

    def groups(self, eta: np.ndarray, phi: np.ndarray, y: Sequence[Any]) -> list[Group]:
        """Tapes of the atom with channels eta (C, n), floats, at features phi (1 + d, n) and y."""
        found: dict[Any, list[tuple[int, list[float]]]] = {}
        for row in range(phi.shape[1]):
            tape, weight, value = self._run(eta[:, row], phi[:, row], y[row])
            key, constants = _pruned(tape, weight, value)
            found.setdefault(key, []).append((row, constants))
        return [
            Group(
                key[0],
                np.array([constants for _, constants in members]).T,
                np.array([row for row, _ in members]),
                *key[1:],
            )
            for key, members in found.items()
        ]

    def log_weight(self, eta: np.ndarray, phi: np.ndarray) -> float:
        """The log-weight at channels eta (C,) and features phi (1 + d,), of floats."""
        likelihood, self._likelihood = self._likelihood, None
        try:
            tape, weight, _ = self._run(eta, phi, 0.0)
        finally:
            self._likelihood = likelihood
        return tape.values[weight]

    def _run(self, eta: np.ndarray, phi: np.ndarray, y: Any) -> tuple[Tape, int, int]:
        family, tape = self.family, Tape()
        channels = [tape.add(("channel", c), float(v)) for c, v in enumerate(eta)]
        features = _column([tape.add(("feature", j), float(v)) for j, v in enumerate(phi)])
        n_gate, first, n_mean, _ = family.layout
        means = channels[first : first + n_mean]
        if self._expert is not None:
            means = [self._block(tape, self._expert, means)]
        reads = family.gate.reads_response
        own = channels[: n_gate - n_mean] if reads else channels[:n_gate]
        scores = [*own, *means] if reads else own
        weight = self._block(tape, self._gate, scores, features)
        if self._likelihood is None:
            return tape, weight.place, means[0].place
        predictors = [*means, *channels[first + n_mean :]]
        discrete = family.likelihood.support is not None or isinstance(y, complex)
        response = np.array([y], dtype=object)
        if not discrete:
            response[0] = tape.add(("response",), float(np.real(y)))
        value = self._block(tape, self._likelihood, predictors, response)
        return tape, weight.place, value.place

    @staticmethod
    def _block(tape: Tape, block: Any, inner: list[Number], *inputs: np.ndarray) -> Number:
        out = np.full(1, 0.0, dtype=object)
        count = max(len(inner), 1)
        pairs = count * (count + 1) // 2
        first, second = (np.full((rows, 1), 0.0, dtype=object) for rows in (count, pairs))
        block(_column(inner), *inputs, 1, 0, out, first, second)
        return tape.number(out[0])


def _pruned(tape: Tape, weight: int, value: int) -> tuple[Any, list[float]]:
    """Operations that the log-weight and the value need, with their places, and the constants."""
    needed, waiting = set(), [weight, value]
    while waiting:
        place = waiting.pop()
        if place not in needed:
            needed.add(place)
            waiting += _operands(tape.operations[place])
    order = sorted(needed)
    moved = {old: new for new, old in enumerate(order)}
    operations: list[Operation] = []
    constants: list[float] = []
    for old in order:
        operation = tape.operations[old]
        if operation[0] == "constant":
            constants.append(tape.constants[operation[1]])
            operations.append(("constant", len(constants) - 1))
        elif operation[0] in _LEAVES:
            operations.append(operation)
        else:
            operations.append((operation[0], *(moved[at] for at in operation[1:])))
    return (tuple(operations), moved[weight], moved[value]), constants


_LEAVES = ("channel", "feature", "response", "constant")


def _operands(operation: Operation) -> tuple[int, ...]:
    return () if operation[0] in _LEAVES else operation[1:]


def _column(numbers: Sequence[Any]) -> np.ndarray:
    column = np.empty((len(numbers), 1), dtype=object)
    for at, number in enumerate(numbers):
        column[at, 0] = number
    return column
