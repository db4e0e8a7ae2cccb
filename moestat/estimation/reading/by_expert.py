"""A formula for each expert, as one formula of all terms and the terms of each expert."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moestat.base.validate import is_mapping, short
from moestat.estimation.reading.parse import ONE, Parsed, Term, parsed

__all__ = ["Combined", "combined", "count_of"]


@dataclass(frozen=True)
class Combined:
    """Formulas of experts as one."""

    text: str  # the formula of all terms
    parts: tuple[tuple[Term, ...], ...]  # terms of each expert

    @property
    def without_intercept(self) -> list[int]:
        """Experts, from 0, that have no intercept."""
        return [i for i, part in enumerate(self.parts) if ONE not in part]


def count_of(formula: object, n_experts: int | None) -> int | None:
    """The number of experts, that of the formulas where each has its own."""
    if not is_mapping(formula):
        return n_experts
    if n_experts is not None and n_experts != len(formula):
        raise ValueError(
            f"n_experts = {short(n_experts)}, but there are formulas of {len(formula)} experts"
        )
    return len(formula)


def combined(formulas: Mapping[Any, str], columns: Sequence[str]) -> Combined:
    """The formulas of experts "1", "2" and so on of a table with these columns, as one.

    Raises
    ------
    ValueError
        If an expert has no formula, or formulas differ in what all experts share: the response, the
        part of the gate, the groups and the offset.
    """
    keys = [str(key) for key in formulas]
    wanted = [str(i + 1) for i in range(len(keys))]
    if not keys or sorted(keys) != sorted(wanted):
        raise ValueError(
            'formula: a table has a formula for each expert, {"1": "y ~ x", "2": "y ~ x + z"}; got'
            f" those of {', '.join(map(short, keys)) or 'none'}"
        )
    formula_of = {str(key): text for key, text in formulas.items()}
    parsed_formulas = [parsed(formula_of[key], columns) for key in wanted]
    response = _same(parsed_formulas, "response", [one.response for one in parsed_formulas])
    gates = [set(one.parts[1]) for one in parsed_formulas if one.has_gate]
    _same(parsed_formulas, "part of the gate", gates)
    # Groups and an offset belong to all experts: one formula with them says so for all.
    labels = [one.groups for one in parsed_formulas if one.groups is not None]
    groups = _same(parsed_formulas, "groups", labels)
    offsets = [one.parts[2:] for one in parsed_formulas if one.parts[2:]]
    offset = _same(parsed_formulas, "offset", offsets) or ()
    parts = tuple(one.parts[0] for one in parsed_formulas)
    terms = list(dict.fromkeys(term for part in parts for term in part if term != ONE))
    right_side = [*map(_term, terms), *(f"offset{text}" for (((_, text),),) in offset)]
    has_one = any(ONE in part for part in parts)
    text = f"{_factor(response)} ~ {' + '.join(right_side) or '1'}"
    text = text if has_one else text.replace(" ~ ", " ~ 0 + ", 1)
    for one in parsed_formulas:
        if one.has_gate:
            gate = [_term(term) for term in one.parts[1] if term != ONE]
            text += f" | {' + '.join(gate) or '1'}"
            text += "" if groups is None else f" | {_factor(('lookup', groups))}"
            break
    return Combined(text, parts)


def _same(parsed_formulas: Sequence[Parsed], what: str, values: Sequence[object]) -> Any:
    """The value that all formulas have, None of none."""
    if any(value != values[0] for value in values):
        raise ValueError(
            f"formula: the {what} of all experts must be the same; write it in one formula or"
            " alike in all"
        )
    return values[0] if values else None


def _term(term: Term) -> str:
    return ":".join(map(_factor, term))


def _factor(factor: tuple[str, str]) -> str:
    how, text = factor
    return f"`{text}`" if how == "lookup" and not text.isidentifier() else text
