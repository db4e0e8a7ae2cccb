"""Solvers: each one file with one iteration; a new solver is registered here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from moestat.base.door import door
from moestat.base.registry import Maker, Registry, make_member
from moestat.base.types import FloatArray
from moestat.base.validate import check_kind
from moestat.base.warnings import warn_of_old_name
from moestat.solvers.certificate import Certificate
from moestat.solvers.em.em import EM
from moestat.solvers.em.squarem import SQUAREM
from moestat.solvers.least_squares.gauss_newton_bfgs import GaussNewtonBFGS
from moestat.solvers.least_squares.levenberg_marquardt import LevenbergMarquardt
from moestat.solvers.least_squares.sgd import SGD
from moestat.solvers.merging_atoms.moment_newton import MomentNewton
from moestat.solvers.merging_atoms.moment_squares import MomentSquares
from moestat.solvers.merging_atoms.newton_squares import NewtonSquares
from moestat.solvers.needs import Needs
from moestat.solvers.newton import Newton
from moestat.solvers.problem import Iteration, Problem
from moestat.solvers.quasi_newton import QuasiNewton
from moestat.solvers.search import PieceSearch
from moestat.solvers.solution import Solution

__all__ = [
    "EM",
    "SGD",
    "SOLVERS",
    "SQUAREM",
    "Certificate",
    "GaussNewtonBFGS",
    "LevenbergMarquardt",
    "MomentNewton",
    "MomentSquares",
    "Needs",
    "NewtonSquares",
    "Newton",
    "PieceSearch",
    "QuasiNewton",
    "Solution",
    "Solver",
    "make_solver",
]


class Solver(Protocol):
    """Anything that can iterate on a problem from a start."""

    @property
    def name(self) -> str:
        """Name in the registry."""
        ...

    needs: ClassVar[Needs]
    """What it asks of a family."""

    def steps(self, problem: Problem, start: FloatArray) -> Iteration[Solution]:
        """The iteration from `start` (P,)."""
        ...


SOLVERS: Registry[Maker] = Registry("solver", "moestat.solvers")
for _solver in (
    EM,
    SQUAREM,
    Newton,
    QuasiNewton,
    MomentNewton,
    GaussNewtonBFGS,
    LevenbergMarquardt,
    MomentSquares,
    NewtonSquares,
    SGD,
    PieceSearch,
):
    SOLVERS.register(Maker(_solver.name, _solver))


def __getattr__(name: str) -> Any:
    if name == "Search":
        warn_of_old_name("moestat.solvers.Search", "moestat.solvers.PieceSearch")
        return PieceSearch
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@door()
def make_solver(options: str | Mapping[str, Any]) -> Solver:
    """A solver from its name, or from its table in a spec.

    Parameters
    ----------
    options : str or mapping
        ``"newton"`` or ``{"name": "em", "tolerance": 1e-6}``.

    Raises
    ------
    ValueError
        If the name or an option is unknown, or an option out of range.

    Examples
    --------
    >>> make_solver({"name": "em", "max_iterations": 50}).max_iterations
    50
    """
    check_kind("options", options, (str, Mapping), "a name or a table")
    table = {"name": options} if isinstance(options, str) else dict(options)
    return make_member(SOLVERS, table.pop("name", "newton"), table)


def __dir__() -> list[str]:
    return sorted(__all__)
