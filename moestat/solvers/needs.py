"""Requirements of a solver on a family, declared beside the solver and checked in one place."""

from __future__ import annotations

from dataclasses import dataclass

from moestat.base.door import doors
from moestat.model.family import Family


@doors
@dataclass(frozen=True)
class Needs:
    """Requirements of a solver on a family.

    Parameters
    ----------
    regression : bool
        A regression function, which is fitted by least squares; else a density.
    curvature : bool
        Second derivatives of that regression function everywhere.

    Examples
    --------
    >>> from moestat import family
    >>> Needs(regression=True).check("sgd", family("least-squares", gate="softmax"))
    """

    regression: bool = False
    curvature: bool = False

    def check(self, solver: str, family: Family) -> None:
        """Raise an error for a family that lacks something the solver needs.

        Raises
        ------
        ValueError
            If something is missing; the message names the solver and one that works.
        """
        if self.regression and not family.is_regression:
            raise ValueError(
                f"solver {solver!r} is for likelihood 'least-squares', not for"
                f" {family.likelihood.name!r}"
            )
        if family.is_regression and not self.regression:
            raise ValueError(
                f"solver {solver!r} is for densities, not for likelihood"
                f" {family.likelihood.name!r}; use 'gauss-newton-bfgs'"
            )
        if self.curvature and family.has_kinked_mean:
            raise ValueError(
                f"solver {solver!r} needs second derivatives, which do not exist for gate"
                f" {family.gate.name!r} with expert {family.expert.name!r}; use"
                " 'gauss-newton-bfgs'"
            )
