"""Linear constraints on named parameters, written as text."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence

import numpy as np

from moestat.base.types import FloatArray
from moestat.base.validate import listed, short

__all__ = ["equations", "linear_constraints", "of_whole_terms"]


_INDEX = r"\[(?:[^\[\]]|\[[^\[\]]*\])*\]?"
_NAME = rf"[A-Za-z][\w.]*(?:\s*{_INDEX})?"


def linear_constraints(
    text: str,
    names: Sequence[str],
    argument: str = "constraints",
    terms: Mapping[str, Sequence[str]] | None = None,
) -> tuple[FloatArray, FloatArray]:
    """A matrix R (q, P) and a vector r (q,) with ``R theta = r``, from text.

    Equations are separated by commas or semicolons; an expression without ``=`` is set to 0.
    `terms` has the names of the parameters of each term; a term with one parameter may be used in
    place of its name.
    """
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"{argument} must be text such as 'a[1,x] = 0', got {short(text)}")
    longest = sorted(range(len(names)), key=lambda j: -len(names[j]))
    coded = text
    for j in longest:
        name = re.escape(names[j]).replace(",", r"\s*,\s*")
        coded = re.sub(rf"(?<![\w.]){name}(?![\w\[])", f" _p{j}_ ", coded)
    coded = _without_terms(coded, names, terms or {}, argument)
    reported = {name for own in (terms or {}).values() for name in own}
    shown = [name for name in names if name in reported] or list(names)
    rows, values = [], []
    for part in equations(coded):
        sides = part.split("=")
        if len(sides) > 2 or not part.strip():
            raise ValueError(f"{argument}: cannot read {short(text)}: one '=' per equation")
        row, constant = _linear(sides[0], (names, shown), text, argument)
        if len(sides) == 2:
            other, right = _linear(sides[1], (names, shown), text, argument)
            row, constant = row - other, constant - right
        rows.append(row)
        values.append(-constant)
    matrix = np.array(rows)
    if np.linalg.matrix_rank(matrix) < len(rows):
        raise ValueError(f"{argument}: equations of {short(text)} repeat or contradict each other")
    return matrix, np.array(values) + 0.0


def _without_terms(
    text: str, names: Sequence[str], terms: Mapping[str, Sequence[str]], argument: str
) -> str:
    """Replace each term that has one parameter by the place of this parameter."""
    for term in sorted(terms, key=len, reverse=True):
        pattern = rf"(?<![\w.\]]){re.escape(term)}(?![\w\[(.])"
        if not re.match(r"[^\W\d]", term) or not re.search(pattern, text):
            continue
        if len(terms[term]) > 1:
            raise ValueError(
                f"{argument}: {term!r} is a term of {len(terms[term])} parameters,"
                f" {', '.join(terms[term][:6])}; name one of them"
            )
        text = re.sub(pattern, f" _p{names.index(terms[term][0])}_ ", text)
    return text


def of_whole_terms(text: str, terms: Mapping[str, Sequence[str]]) -> str:
    """Equations in which a term by itself, or ``= 0``, stands for all of its parameters."""
    if not isinstance(text, str):
        return text
    parts: list[str] = []
    for part in map(str.strip, equations(text)):
        term = re.sub(r"\s*=\s*0(\.0*)?$", "", part)
        names = terms.get(term, ())
        parts += [f"{name} = 0" for name in names] if len(names) > 1 else [part]
    whole = ", ".join(parts)
    return whole if whole.count("=") > text.count("=") else text


def equations(text: str) -> list[str]:
    """Equations between commas and semicolons; commas in brackets belong to names."""
    parts, depth = [""], 0
    for sign in text:
        depth += (sign in "[(") - (sign in "])")
        if sign in ",;" and depth <= 0:
            parts.append("")
        else:
            parts[-1] += sign
    return parts


def _linear(
    expression: str, known: tuple[Sequence[str], Sequence[str]], text: str, argument: str
) -> tuple[FloatArray, float]:
    """Coefficients (P,) and constant of a linear expression in names, some of which are shown."""
    names, shown = known
    try:
        tree = ast.parse(expression.strip(), mode="eval").body
        row = _value(tree, len(names))
    except (SyntaxError, UnicodeError, KeyError, TypeError):
        unknown = re.findall(_NAME, re.sub(r"_p\d+_", "0", expression))
        reason = f"unknown name {short(unknown[0])}" if unknown else "it is not linear"
        raise ValueError(
            f"{argument}: cannot read {short(text)}: {reason}; parameters are {listed(shown)}"
        ) from None
    return row[:-1], float(row[-1])


def _value(node: ast.expr, size: int) -> FloatArray:
    """An expression as coefficients and a constant (P + 1,)."""
    row = np.zeros(size + 1)
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        row[-1] = node.value
        return row
    if isinstance(node, ast.Name):
        match = re.fullmatch(r"_p(\d+)_", node.id)
        if match is None:
            raise KeyError(node.id)
        row[int(match[1])] = 1.0
        return row
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.UAdd, ast.USub)):
        value = _value(node.operand, size)
        return value if isinstance(node.op, ast.UAdd) else -value
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left, size), _value(node.right, size)
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Sub):
            return left - right
        if isinstance(node.op, ast.Mult) and (not left[:-1].any() or not right[:-1].any()):
            return left[-1] * right if not left[:-1].any() else right[-1] * left
        if isinstance(node.op, ast.Div) and not right[:-1].any() and right[-1] != 0.0:
            return left / right[-1]
    raise TypeError("not linear")
