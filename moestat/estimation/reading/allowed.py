"""Functions that a formula may call: functions of numbers, and functions of the caller.

A stored result holds its formula as text, and predicting evaluates it.  Names that are no columns
are therefore those of this list: transforms of formulaic, functions of R's that formulaic does not
have, NumPy's universal functions by ``np.``, and what the caller's own scope or ``scope=`` holds,
which files do not.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping

import numpy as np

from moestat.base.validate import short

__all__ = ["BUILTINS", "check_expression"]

BUILTINS = frozenset({"abs", "bool", "float", "int", "max", "min", "round", "str"})
"""Functions of Python's that formulas may call."""

_OF_NUMPY = frozenset({"where", "clip", "round", "nan_to_num", "pi", "e", "inf", "nan"})
"""Names of NumPy that formulas may use in addition to its universal functions."""

_REFUSED = (
    ast.Lambda,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
    ast.NamedExpr,
    ast.Await,
    ast.Yield,
    ast.YieldFrom,
    ast.Starred,
    ast.JoinedStr,
)


def check_expression(text: str, columns: Collection[str], scope: Mapping[str, object]) -> None:
    """Raise unless a factor of a formula only computes.

    Attributes are those of ``np`` and of objects in the caller's scope; a method of a column or of
    a result, by which text could reach anything, is refused.
    """
    quoted = re.sub("`[^`]*`", "_quoted_", text)
    try:
        tree = ast.parse(quoted, mode="eval")
    except SyntaxError:
        return  # formulaic has the words for it
    for node in ast.walk(tree):
        if isinstance(node, _REFUSED):
            raise _refusal(text, type(node).__name__)
        if isinstance(node, ast.Attribute):
            _check_attribute(node, text, columns, scope)


def _check_attribute(
    node: ast.Attribute, text: str, columns: Collection[str], scope: Mapping[str, object]
) -> None:
    root: ast.expr = node
    names = []
    while isinstance(root, ast.Attribute):
        names.append(root.attr)
        root = root.value
    if not isinstance(root, ast.Name) or any(name.startswith("_") for name in names):
        raise _refusal(text, f".{names[0]}")
    if root.id in ("np", "numpy"):
        attribute = getattr(np, names[-1], None)
        if len(names) == 1 and (isinstance(attribute, np.ufunc) or names[0] in _OF_NUMPY):
            return
        raise _refusal(text, ".".join([root.id, *reversed(names)]))
    if root.id in columns or root.id not in scope:
        raise _refusal(text, ".".join([root.id, *reversed(names)]))


def _refusal(text: str, what: str) -> ValueError:
    return ValueError(
        f"formula: {short(text)} uses {what}, and formulas may only call transforms, functions of"
        " NumPy such as np.log, and functions of yours by their names"
    )
