"""Formulas as text: the terms of experts, gate, offset and groups, as formulaic reads them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from moestat.base.validate import short
from moestat.estimation.reading.hints import back_ticks, unwritable, words_of_python

__all__ = ["ONE", "Parsed", "Term", "one_column", "parsed"]

Term = tuple[tuple[str, str], ...]
"""Factors, each with the way it is evaluated, "lookup", "python" or "literal", and its text."""

ONE: Term = (("literal", "1"),)
"""The intercept."""

_COLUMN_ONE = r"(^|[-~+|*/:])\s*(`1`|\.\s*($|[-~+|*/:)^]))"
"""A column with the name "1" as a term by itself, or a dot, which stands for it, too."""

_FORM = (
    'must be text such as "wage ~ age + C(region) | age": a response, terms of the experts and,'
    " after a bar, those of the gate if they are others"
)


@dataclass(frozen=True)
class Parsed:
    """A formula as formulaic reads it: the response and the right-hand sides, as terms."""

    response: tuple[str, str]  # one factor
    # of the experts, of the gate, and of the offset where there is one
    parts: tuple[tuple[Term, ...], ...]
    groups: str | None = None  # column of labels of groups, a third right-hand side
    has_gate: bool = True  # whether the gate has a part of its own, after a bar

    @property
    def has_intercept(self) -> bool:
        """Whether the experts have one: not after ``0 +`` or ``- 1``."""
        return ONE in self.parts[0]


def parsed(formula: object, columns: Sequence[str], offset: str | None = None) -> Parsed:
    """The terms of a formula; a dot stands for all `columns` but the response."""
    if not isinstance(formula, str) or not formula.strip():
        raise ValueError(f"formula {_FORM}; got {short(formula)}")
    formula_sides = _parse(formula, columns, f"formula {_FORM}; got {short(formula)}")
    left, right = getattr(formula_sides, "lhs", None), getattr(formula_sides, "rhs", None)
    response = [] if left is None or isinstance(left, tuple) else [*map(_plain_term, left)]
    if right is None or len(response) != 1 or len(response[0]) != 1:
        raise ValueError(f"formula {_FORM}; got {short(formula)}, without one response before '~'")
    sides = list(right) if isinstance(right, tuple) else [right, right]
    groups = None
    if len(sides) == 3:
        third = [term for term in map(_plain_term, sides.pop()) if term != ONE]
        if len(third) != 1 or len(third[0]) != 1 or third[0][0][0] != "lookup":
            raise ValueError(f"formula: its third part must be one column, got {short(formula)}")
        groups = third[0][0][1]
    if len(sides) > 2:
        raise ValueError(f"formula {_FORM}; got {short(formula)}, with {len(sides) - 1} bars")
    parts = [tuple(map(_plain_term, side)) for side in sides]
    offsets = [inner for term in parts[0] if (inner := _offset(term)) is not None]
    if isinstance(right, tuple) and any(_offset(term) is not None for term in parts[1]):
        raise ValueError(
            f"formula: only experts have an offset, not the gate, got {short(formula)}"
        )
    parts = [tuple(term for term in part if _offset(term) is None) for part in parts]
    if ONE not in parts[1]:
        if isinstance(right, tuple):
            raise ValueError(
                "formula: the part of the gate always has an intercept; leave out '0 +' or '- 1'"
                f" in {formula!r}"
            )
        parts[1] = (ONE, *parts[1])
    if offset is not None:
        offsets.append(("lookup", offset) if offset in columns else _offset_of(offset))
    if len(offsets) > 1:
        texts = [f"`{text}`" if how == "lookup" else text for how, text in offsets]
        offsets = [("python", " + ".join(texts))]
    if offsets:
        parts.append(((offsets[0],),))
    return Parsed(response[0][0], tuple(parts), groups, isinstance(right, tuple))


def one_column(text: str, columns: Sequence[str]) -> str | None:
    """The name of the column that a text is; None if it is something else."""
    name = text.removeprefix("`").removesuffix("`")
    if name and text == f"`{name}`" and name in columns:
        return name
    try:
        terms = [term for term in map(_plain_term, _parse(text, columns, "")) if term != ONE]
    except (AttributeError, ValueError):
        return None
    if len(terms) != 1 or len(terms[0]) != 1 or terms[0][0][0] != "lookup":
        return None
    return terms[0][0][1]


def _parse(text: str, columns: Sequence[str], refusal: str) -> Any:
    from formulaic import Formula
    from formulaic.errors import FormulaicError

    # ``Q("a b")`` is how patsy, and so statsmodels, quotes a name.
    quoted = r"""(`[^`]*`)|\bQ\(\s*(["'])([^`"']+)\2\s*\)"""
    text = re.sub(quoted, lambda match: match[1] or f"`{match[3]}`", text)
    # ``^`` is R's power, also within functions; quoted text is not changed.
    quoted = r"""(`[^`]*`|'[^']*'|"[^"]*")|\^"""
    text = re.sub(quoted, lambda match: match[1] or "**", text)
    others = re.sub("`([^`]*)`", lambda match: match[0] if match[1] == "1" else "x", text)
    if "1" in columns and re.search(_COLUMN_ONE, others):
        raise ValueError(
            "formula: a column with the name '1' cannot be told from the intercept; rename it"
        )
    if "." in columns and "`.`" in text:
        raise ValueError(
            "formula: a column with the name '.' cannot be told from the dot that stands for all"
            " columns; rename it"
        )
    try:
        known = {"__formulaic_variables_available__": list(columns)}
        return Formula.from_spec(text, context=known)
    except (FormulaicError, SyntaxError, ValueError, IndexError) as error:
        reason = unwritable(text, columns) or back_ticks(text, columns)
        if isinstance(error, SyntaxError):
            reason = words_of_python(text, columns) or reason
        # Further lines are a drawing for terminals.
        reason = reason or str(error).splitlines()[0]
        raise ValueError(f"{refusal}: {reason}") from None


def _plain_term(term: Any) -> Term:
    return tuple((factor.eval_method.value, factor.expr) for factor in term.factors)


def _offset(term: Term) -> tuple[str, str] | None:
    """The argument of ``offset(...)``; None for any other term."""
    method, text = term[0] if len(term) == 1 else ("", "")
    if method != "python" or not re.fullmatch(r"offset\(.*\)", text, re.S):
        return None
    return "python", text[len("offset") :]


def _offset_of(text: object) -> tuple[str, str]:
    """The factor of an offset that is given as an argument."""
    refusal = (
        f'offset must be one column or function of columns, such as "log(t)", got {short(text)}'
    )
    offset_terms = _parse(text, (), refusal) if isinstance(text, str) else ()
    try:
        terms = [term for term in map(_plain_term, offset_terms) if term != ONE]
    except AttributeError:
        terms = []
    if len(terms) != 1 or len(terms[0]) != 1:
        raise ValueError(refusal)
    return terms[0][0]
