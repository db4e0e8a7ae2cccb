"""One of several responses of a fit by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from moestat.base.door import doors
from moestat.base.types import FloatArray, IntArray, TableLike
from moestat.estimation.data.data import Data
from moestat.estimation.inference.diagnostics import Influence
from moestat.estimation.inference.effects import Effects, comparisons, marginal_effects
from moestat.estimation.inference.prediction import Prediction
from moestat.estimation.results.pictures import Pictures

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["OneResponse", "one_response"]


@doors
@dataclass(frozen=True, repr=False)
class OneResponse(Pictures):
    """One of several responses of a fit: its predictions, residuals, effects and pictures.

    Its density is a mixture with the same gate.  Parameters, their errors and the shares of the
    experts in the rows of the fit are those of the fit of all responses, `of`.

    Examples
    --------
    >>> import numpy as np, moestat
    >>> x = np.linspace(-1, 1, 50)
    >>> y = np.column_stack([x + np.sin(7 * x), np.arange(50) // 9])
    >>> result = moestat.fit(["gaussian", "poisson"], x, y, n_experts=1, rng=0)
    >>> result.response("y2").get_prediction([0.0]).conf_int().shape
    (1, 2)
    """

    of: Pictures = field(kw_only=True)
    """The fit of all responses."""
    name: str = field(kw_only=True)
    """Name of this response."""
    places: IntArray = field(kw_only=True)
    """Positions of its parameters among those of the fit; shape (P,)."""

    def __repr__(self) -> str:
        return f"<response {self.name!r} of {self.of!r}>"

    @cached_property
    def _shares(self) -> FloatArray:
        return self.of._shares

    @property
    def edf(self) -> float:
        """Refused: information criteria are of the fit of all responses."""
        raise ValueError(f"criteria belong to the fit of all responses, not to {self.name!r} alone")

    @property
    def llf(self) -> float:
        """Log-likelihood of this response by itself; its parameters are not the maximum of it."""
        return float(self.weight @ self._log_density(self._sample(None, None)[1]))

    def _on_all(self, rows: FloatArray) -> FloatArray:
        """Derivatives (q, P) in its parameters, in those of the fit."""
        of_all = np.zeros((len(rows), self.of.theta.size))
        np.add.at(of_all.T, self.places, rows.T)
        return of_all

    def _errors_of(self, rows: FloatArray) -> FloatArray:
        return self.of._errors_of(self._on_all(rows))

    def _spread(self, rows: FloatArray) -> FloatArray:
        return self.of._spread(self._on_all(rows))

    def _open(self, rows: FloatArray) -> np.ndarray:
        return self.of._open(self._on_all(rows))

    def _intervals_of_means(self, alpha: float, X: FloatArray) -> None:
        """None: the profile of a mean is that of the fit of all responses."""

    def get_prediction(
        self,
        X: ArrayLike | TableLike | None = None,
        *,
        groups: ArrayLike | None = None,
        trials: ArrayLike | None = None,
    ) -> Prediction:
        """Predictions with errors and intervals, as `MoEResults.get_prediction`, without groups."""
        if groups is not None:
            raise ValueError(
                "groups: standard errors for known groups are available only for fits of one"
                f" response; predict has the predictions of {self.name!r}"
            )
        return super().get_prediction(X, trials=trials)

    def influence(self, top: int = 100) -> Influence:
        """The influence of each row on the fit of all responses."""
        return self.of.influence(top)

    def plot_coefficients(
        self, ax: Axes | Sequence[Axes] | np.ndarray | None = None, *, alpha: float = 0.05
    ) -> np.ndarray:
        """Slopes of the fit of all responses, `MoEResults.plot_coefficients`."""
        return self.of.plot_coefficients(ax, alpha=alpha)

    def get_margeff(self, *, dummy: bool = False, **options: Any) -> Effects:
        """Average marginal effects of the inputs on it, as `MoEResults.get_margeff`."""
        return marginal_effects(self, dummy, **options)

    def comparisons(
        self, first: Mapping[str, object], second: Mapping[str, object], **options: Any
    ) -> Effects:
        """Differences of average predictions of it, as `MoEResults.comparisons`."""
        return comparisons(self, first, second, **options)


def one_response(joint: Pictures, position: int) -> OneResponse:
    """A response of a fit, by its position from 0."""
    family, places = joint.family.marginals[position]
    name = joint.family.likelihood.parts[position].name
    solution = replace(
        joint.solution,
        theta=joint.theta[places],
        information=joint.solution.information[np.ix_(places, places)],
    )
    data = (
        None
        if joint.data is None
        else _alone(joint.data, position, name, family.likelihood.support)
    )
    return OneResponse(
        family,
        solution,
        joint.solver,
        joint.weight,
        float("nan"),
        data,
        cov_type=joint.cov_type,
        of=joint,
        name=name,
        places=places,
    )


def _alone(data: Data, position: int, name: str, support: Callable[[int], IntArray] | None) -> Data:
    """The data of a fit with one of its responses."""
    y = data.y[:, position]
    return replace(
        data,
        y=y if support is None else y.astype(np.int64),
        response=name,
        class_labels=data.class_labels[position],
        formula=None if data.formula is None else data.formula.alone(position),
    )
