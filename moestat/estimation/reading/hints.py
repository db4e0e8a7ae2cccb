"""Hints for columns whose words look like dates or amounts, and for names of columns."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Sequence

__all__ = ["FEW_LEVELS", "back_ticks", "hint_of_words", "unwritable", "words_of_python"]

FEW_LEVELS = 10
"""A column with no more distinct words is taken as a category, whatever the words look like."""

_AMOUNT = re.compile(r"\s*[-+(]?\s*[$€£¥]?\s*[-+]?\d[\d,' ]*(\.\d*)?\s*[$€£¥%]?\s*\)?\s*")
_DATE = re.compile(r"\s*\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T]\d{1,2}:\d{2}(:\d{2})?.*)?\s*")


def hint_of_words(name: object, words: Iterable[object]) -> str:
    """How to turn a column into numbers if all its words look like amounts or dates, else ""."""
    texts = [str(word) for word in words]
    column = f"data[{name!r}]" if name is not None else "the column"
    if texts and all(_DATE.fullmatch(word) for word in texts):
        return (
            f"its values look like dates, such as {texts[0]!r}: convert them by"
            f" pandas.to_datetime({column}) and use a number such as days since the first date"
        )
    signs = any(set(word) & set("$€£¥%.,") for word in texts)  # digits alone may be codes
    if signs and all(_AMOUNT.fullmatch(word) for word in texts):
        return (
            f"its values look like amounts, such as {texts[0]!r}: convert them by"
            f" {column}.str.replace(r'[^0-9.-]', '', regex=True).astype(float)"
        )
    return ""


def back_ticks(formula: str, columns: Sequence[str]) -> str:
    """Which columns with spaces a formula names without back-ticks, as a hint; else ""."""
    bare = re.sub(r"`[^`]*`", "", formula)
    named = [name for name in columns if name and not name.isidentifier() and name in bare]
    examples = ", ".join(f"`{name}`" for name in named[:3])
    return f"write names with spaces or signs between back-ticks: {examples}" if named else ""


def unwritable(formula: str, columns: Sequence[str]) -> str:
    """Which name of a column in a formula has no form there, not even in back-ticks; else ""."""
    for name in columns:
        if f"`{name}`" in formula and ("`" in name or not name):
            return f"the name {name!r} of a column cannot be written in a formula; rename it"
    return ""


def words_of_python(formula: str, columns: Sequence[str]) -> str:
    """Which columns within functions have names that Python cannot parse, as a hint; else ""."""
    calls = "".join(re.findall(r"\([^~]*", re.sub(r"""'[^']*'|"[^"]*\"""", "", formula)))
    words = set(re.findall(r"\w+", calls))
    named = [name for name in columns if keyword.iskeyword(name) and name in words]
    if not named:
        return ""
    new = f"{named[0]}_"
    return (
        f"{named[0]!r} is a keyword of Python, which formulas read as a term by itself, but not in"
        f" functions such as C(); rename the column by data.rename(columns={{{named[0]!r}:"
        f" {new!r}}}) and write {new}"
    )
