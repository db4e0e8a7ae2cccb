"""Questions about a fit: each one file with one function; a new question is registered by a line.

A question is a function of a fit and of its own arguments.  The line ``name = question(function)``
in the body of `MoEResults` makes it a method of results, with the signature and the documentation
of the function, and a member of `QUESTIONS`; an installed package offers one by an entry point of
the group ``moestat.questions``, and `MoEResults.ask` asks it.  What a question needs of the rows is
a sum over them: `sum_rows` is that sum for rows in memory and for a source.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from moestat.base.registry import Registry
from moestat.estimation.data.groups import encoded_rows
from moestat.solvers.rows import Rows

if TYPE_CHECKING:
    from moestat.estimation.fit.fitted import Fitted

__all__ = ["QUESTIONS", "Question", "question", "sum_rows"]

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Question:
    """A question about a fit, under the name that `MoEResults.ask` knows.

    Parameters
    ----------
    name : str
        The name.
    answer : callable
        ``answer(result, ...)``, with the fit first and then arguments of its own.
    """

    name: str
    answer: Callable[..., Any]


QUESTIONS: Registry[Question] = Registry("question", "moestat.questions")


def question(answer: F) -> F:
    """Register a function of a fit under its own name, and hand it back as a method."""
    QUESTIONS.register(Question(answer.__name__, answer))
    return answer


def sum_rows(result: Fitted, function: Callable[[Rows], T]) -> T:
    """The sum of ``function(rows)`` over all rows of a fit, wherever they are.

    Parameters
    ----------
    result : Fitted
        The fit.
    function : callable
        It takes some of the rows, as the solvers hold them and in the units of the user, and
        returns arrays, numbers or a tuple of these that can be added.  Functions for a source on
        several machines must be picklable.

    Returns
    -------
    as `function`
        The sum.  Rows in memory are one part, a source has many.

    Raises
    ------
    ValueError
        If the rows of the fit were not stored.
    """
    source = result.source if result.reads_source else None
    rows = encoded_rows(result.family, result.rows) if source is None else source
    return rows.sum_parts(function)
