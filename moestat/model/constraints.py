"""Coefficients that are equal, or known, in every fit of a family."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np

from moestat.base.types import FloatArray, IntArray
from moestat.base.validate import is_mapping, is_sequence, short
from moestat.model.numbering import numbers_from_0

__all__ = [
    "Constraint",
    "along",
    "averaged",
    "constraint_of",
    "equal_of",
    "experts_in_fixed",
    "fixed_of",
    "joined",
    "named",
]


LARGEST = 1e100
"""Largest size of a known coefficient, whose square is within float64."""


@dataclass(frozen=True)
class Constraint:
    """Coefficients of one block that are equal between experts, or have a known value."""

    block: str
    # inputs whose coefficients are meant; None for the whole block
    inputs: tuple[int, ...] | None = None
    experts: tuple[int, ...] | None = None  # experts that are meant, from 0; None for all
    # the value that the coefficients have; None where those of one input are equal
    value: float | None = None
    # what a summary calls them, for a gate that declares them
    heading: str = field(default="", compare=False)

    @property
    def table(self) -> list[object]:
        """What `constraint_of` makes it of, ready for JSON."""
        parts = [None if part is None else list(part) for part in (self.inputs, self.experts)]
        return [self.block, *parts, self.value]

    def positions(self, block: IntArray, has_inputs: bool) -> IntArray:
        """Positions (experts, m) in theta, of a block's positions (k, ...)."""
        experts = range(len(block)) if self.experts is None else self.experts
        positions = block[[i for i in experts if i < len(block)]]
        if has_inputs and self.inputs is not None:
            positions = positions[..., list(self.inputs)]
        return positions.reshape(len(positions), -1)


def constraint_of(table: Iterable[Any]) -> Constraint:
    """The inverse of `Constraint.table`."""
    block, inputs, experts, value = table
    return Constraint(block, _tuple(inputs), _tuple(experts), value)


def _tuple(values: Iterable[int] | None) -> tuple[int, ...] | None:
    return None if values is None else tuple(values)


def joined(sets: Iterable[IntArray]) -> list[IntArray]:
    """Sets of positions, with sets that share a position merged into one; each ascending."""
    disjoint: list[set[int]] = []
    for new in (set(one.tolist()) for one in sets):
        apart = [known for known in disjoint if not known & new]
        disjoint = [*apart, new.union(*(known for known in disjoint if known & new))]
    return [np.array(sorted(known)) for known in disjoint if len(known) > 1]


def equal_of(
    given: Mapping[str, object], known: Mapping[str, int | None], k: int
) -> list[Constraint]:
    """What ``equal=`` says of blocks: sets of experts, or of inputs, with equal coefficients.

    Experts are numbered from 1.  `known` has the number of inputs of each block, None without any.
    """
    constraints: list[Constraint] = []
    first = 0 if numbers_from_0("equal", _experts_in_sets(given)) else 1
    for block, sets in given.items():
        d = _inputs_of("equal", block, known)
        listed: list[object] = [{}] if sets is True else _sets(block, sets)
        for entry in listed:
            table: Mapping[Any, Any] = entry if is_mapping(entry) else {"experts": entry}
            if extra := set(table) - {"inputs", "experts"}:
                raise ValueError(
                    f"equal: a set may have the keys inputs and experts; got {', '.join(extra)}"
                )
            inputs = _numbers("equal", block, "inputs", table.get("inputs"), d)
            experts = _numbers("equal", block, "experts", table.get("experts"), k, first)
            if experts is not None and len(experts) < 2:
                raise ValueError(
                    f"equal: {block!r} of one expert cannot be equal to another; give at least two"
                    " experts"
                )
            constraints.append(Constraint(block, inputs, experts))
    return constraints


def fixed_of(
    given: Mapping[str, object], known: Mapping[str, int | None], k: int
) -> list[Constraint]:
    """What ``fixed=`` says of blocks: values of coefficients.

    A number for all, or a table of numbers by expert, from 1, or by expert and input, None for all
    of them.
    """
    constraints: list[Constraint] = []
    first = 0 if numbers_from_0("fixed", experts_in_fixed(given)) else 1
    for block, values in given.items():
        d = _inputs_of("fixed", block, known)
        table: Mapping[Any, Any] = values if is_mapping(values) else {(None, None): values}
        for key, value in table.items():
            pair = key if is_sequence(key) else (key, None)
            if len(pair) != 2:
                raise ValueError(f"fixed: a key of {block!r} is (expert, input), got {short(key)}")
            if not isinstance(value, Real) or not abs(float(value)) <= LARGEST:
                raise ValueError(
                    f"fixed: values of {block!r} must be numbers up to {LARGEST:g}, got"
                    f" {short(value)}"
                )
            expert, f = pair
            inputs = _numbers("fixed", block, "inputs", None if f is None else [f], d)
            alone = None if expert is None else [expert]
            experts = _numbers("fixed", block, "experts", alone, k, first)
            constraints.append(Constraint(block, inputs, experts, float(value)))
    return constraints


def _sets(block: str, sets: object) -> list[object]:
    entries: list[object] = list(sets) if is_sequence(sets) else []
    if not entries or not all(isinstance(entry, (list, tuple, set, Mapping)) for entry in entries):
        raise ValueError(
            f"equal: {block!r} takes True or a list of sets, such as [[1, 2]] of experts or"
            f' [{{"inputs": ["x"], "experts": [1, 2]}}]; got {short(sets)}'
        )
    return entries


def _inputs_of(what: str, block: str, known: Mapping[str, int | None]) -> int | None:
    if block not in known:
        raise ValueError(f"{what}: unknown block {short(block)}; known: {', '.join(known)}")
    return known[block]


def _numbers(
    what: str,
    block: str,
    kind: str,
    given: Iterable[Any] | None,
    count: int | None,
    first: int = 0,
) -> tuple[int, ...] | None:
    """Positions, from 0, of `count` things that are numbered from `first`."""
    if given is None:
        return None
    if count is None:
        raise ValueError(f"{what}: {block!r} has one coefficient per expert, and none of {kind}")
    values = sorted(given) if all(isinstance(v, (int, np.integer)) for v in given) else []
    if not values or values[0] < first or values[-1] >= count + first:
        last = count + first - 1
        raise ValueError(
            f"{what}: {kind} of {block!r} must be in {first}..{last}, got {short(list(given))}"
        )
    return tuple(int(v) - first for v in values)


def experts_in_fixed(given: Mapping[str, object]) -> list[object]:
    """Numbers of experts in what ``fixed=`` says."""
    keys: list[Any] = [key for values in given.values() if is_mapping(values) for key in values]
    return [key[0] if is_sequence(key) and key else key for key in keys]


def _experts_in_sets(given: Mapping[str, object]) -> list[object]:
    """Numbers of experts in what ``equal=`` says."""
    entries: list[Any] = [one for sets in given.values() if is_sequence(sets) for one in sets]
    experts: list[Any] = [one.get("experts") if is_mapping(one) else one for one in entries]
    sequences = (list, tuple, set)
    lists: list[Any] = [each for each in experts if isinstance(each, sequences)]
    return [number for each in lists for number in each]


def averaged(values: FloatArray, ties: Iterable[IntArray]) -> FloatArray:
    """Values (P,) or (P, ...) with the mean of each set of tied ones in their places."""
    out = values.copy()
    for tie in ties:
        out[tie] = values[tie].mean(axis=0)
    return out


def along(matrix: FloatArray, ties: Iterable[IntArray], across: float = 0.0) -> FloatArray:
    """The part of a symmetric matrix (P, P) along ties, with a multiple of 1 across them."""
    sets = list(ties)
    if not sets:
        return matrix
    averages = averaged(averaged(matrix, sets).T, sets)
    if across:
        one = np.eye(len(matrix))
        averages = averages + across * (one - averaged(one, sets))
    return averages


def tied_basis(size: int, ties: Iterable[IntArray]) -> FloatArray:
    """An orthonormal basis (size, r), by columns, of the vectors that are equal along ties."""
    basis = np.eye(size)
    keep = np.ones(size, dtype=bool)
    for tie in ties:
        basis[tie, tie[0]] = 1.0 / np.sqrt(tie.size)
        keep[tie[1:]] = False
    return basis[:, keep]


def places_of(name: object, features: Sequence[str] | None, argument: str) -> Sequence[object]:
    """Positions of the input, or of all columns of the factor, of a name; others as they are."""
    if not isinstance(name, str):
        return [name]
    known = [] if features is None else list(features)
    if name in known:
        return [known.index(name)]
    levels = [j for j, column in enumerate(known) if column.startswith(f"{name}[")]
    if not levels:
        allowed = ", ".join(known) if features is not None else "none by name"
        raise ValueError(f"{argument}: unknown input {short(name)}; the inputs are {allowed}")
    return levels


def named(given: object, features: Sequence[str] | None) -> Any:
    """What ``equal=`` or ``fixed=`` says, with positions in place of names of inputs."""
    if not is_mapping(given):
        return given

    def places(names: Iterable[object]) -> list[object]:
        return [at for name in names for at in places_of(name, features, "equal, fixed")]

    def of_set(entry: Any) -> Any:
        if is_mapping(entry):
            inputs = entry.get("inputs")
            return entry if inputs is None else {**entry, "inputs": places(inputs)}
        words = all(isinstance(f, str) for f in entry)
        return {"inputs": places(entry)} if words else entry

    def of_block(values: Any) -> Any:
        if is_sequence(values):
            sets = (list, tuple, Mapping)
            return [of_set(entry) if isinstance(entry, sets) else entry for entry in values]
        if is_mapping(values):
            return {entry: value for key, value in values.items() for entry in _keys(key, features)}
        return values

    return {block: of_block(values) for block, values in given.items()}


def _keys(key: object, features: Sequence[str] | None) -> list[object]:
    """Keys (expert, input) of a table of values, one for each column of a factor."""
    if isinstance(key, str):
        key = (None, key)
    if not is_sequence(key) or len(key) != 2:
        return [key]
    return [(key[0], at) for at in places_of(key[1], features, "equal, fixed")]
