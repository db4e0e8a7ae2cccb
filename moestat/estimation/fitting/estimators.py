"""Estimators with scikit-learn's interface, around `moestat.fit`; needs ``moestat[sklearn]``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from moestat.base.door import door
from moestat.base.registry import configured
from moestat.base.types import Seed, TableLike
from moestat.estimation.data.priors import Prior
from moestat.estimation.fitting.fit import fit
from moestat.estimation.progress import reported
from moestat.estimation.reading.inputs import read_inputs
from moestat.estimation.results.results import MoEResults
from moestat.estimation.starts import StartRule
from moestat.model.gates import GATES
from moestat.model.joint import as_likelihood
from moestat.solvers import Newton, Solver, make_solver

if TYPE_CHECKING:
    from sklearn.utils import Tags

__all__ = ["MoEClassifier", "MoERegressor"]

_NUMBERS: dict[str, Any] = {"dtype": np.float64}


def _validated(estimator: BaseEstimator, *data: Any, **options: bool | int) -> Any:
    """X and y as scikit-learn validates them, with clear messages for its refusals."""
    try:
        return validate_data(estimator, *data, **options, **_NUMBERS)
    except OverflowError:
        raise ValueError("X, y must hold numbers within the range of float64") from None
    except ValueError as error:
        if "Input y contains infinity" in str(error):
            table = "likelihood={'name': ..., 'censored': True}"
            raise ValueError(f"{error} Bounds of censored responses need {table}.") from None
        if "could not convert" not in str(error):
            raise
        raise ValueError(f"X, y must hold numbers: {str(error)[:100]}") from None


@dataclass(eq=False, repr=False)
class _MoEEstimator(BaseEstimator):
    """Common part of both estimators: read the data, fit, keep the results without the data."""

    n_experts: int = 2
    gate: str | Mapping[str, object] = "softmax"
    expert: str | Mapping[str, object] = "linear"
    solver: str | Mapping[str, object] | Solver | None = None
    starts: Sequence[StartRule] | None = None
    n_starts: int | None = None
    bounds: Mapping[str, tuple[float, float]] | None = None
    prior: Prior | str | None = "weak"
    cov_type: str = "observed"
    cov_kwds: Mapping[str, Any] | None = None
    random_state: Seed = None
    if TYPE_CHECKING:  # attributes that `fit` and the classes below set are no parameters
        results_: MoEResults = field(init=False)
        predict: Any = field(init=False)

    @property
    def n_iter_(self) -> int:
        """Iterations of the solver from the best start."""
        check_is_fitted(self, "results_")
        return max(1, self.results_.certificate.iterations)

    def score_samples(self, X: ArrayLike | TableLike, y: ArrayLike | None = None) -> np.ndarray:
        """Natural log-density (n,) of y (n,) given X (n, d); y defaults to the predictions at X."""
        design = self._inputs(X)
        if y is None and self.results_.family.likelihood.counts:
            raise ValueError("y: give the counts; a predicted mean is not a count")
        return self.results_.score_samples(design, self.predict(X) if y is None else y)

    def _inputs(self, X: ArrayLike | TableLike) -> np.ndarray:
        """Inputs (n, d) for predictions, with the columns of the fit."""
        check_is_fitted(self)
        if hasattr(X, "columns"):
            read_inputs(X)
        return np.asarray(_validated(self, X, reset=False))

    def _prior(
        self,
        likelihood: str | Mapping[str, object] | Sequence[object],
        solver: Solver | None,
    ) -> Prior | str | None:
        """The prior of the fit: none where the default one is not defined."""
        if not isinstance(self.prior, str):
            return self.prior
        gate = configured(GATES, self.gate)
        has_jumps = gate.n_active is not None and gate.n_active < self.n_experts
        by_newton = solver is None or isinstance(solver, Newton)
        defined = as_likelihood(likelihood).block is not None and not has_jumps and by_newton
        return self.prior if defined else None

    def _fit(
        self,
        likelihood: str | Mapping[str, object] | Sequence[object],
        X: ArrayLike | TableLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
    ) -> MoEResults:
        """The results of a fit."""
        bounds: Any = {} if self.bounds is None else {"bounds": self.bounds}
        solver = self.solver
        if isinstance(solver, (str, Mapping)):
            solver = make_solver(solver)
        with reported("fit", False):  # an interrupt ends the search over estimators, too
            result = fit(
                likelihood,
                X,
                y,
                n_experts=self.n_experts,
                gate=self.gate,
                expert=self.expert,
                solver=solver,
                starts=self.starts,
                n_starts=self.n_starts,
                sample_weight=sample_weight,
                rng=self.random_state,
                prior=self._prior(likelihood, solver),
                cov_type=self.cov_type,
                cov_kwds=self.cov_kwds,
                **bounds,
            )
        return result.without_data()


class MoEClassifier(ClassifierMixin, _MoEEstimator):
    """Mixture of multinomial-logistic experts as a scikit-learn classifier.

    Parameters
    ----------
    n_experts : int
        Number of experts k.
    gate, expert : str or mapping
        Name of the gate and of the expert, or a table with the name and options, as in
        `moestat.family`.
    solver : str, mapping, Solver or None
        The solver, its name, or a table with its name and options.  The default is the solver
        that `moestat.fit` chooses.
    starts : sequence of StartRule, optional
        Rules that generate the starting values of the solver; by default those of `moestat.fit`.
    n_starts : int, optional
        Number of starts in a pool, instead of `starts`; see `moestat.fit`.
    bounds : mapping of str to (float, float), optional
        Lower and upper bound of all parameters of a block, as in `moestat.family`.
    prior : Prior, "weak" or None
        A weakly informative prior density, as in `moestat.fit`: the fit is the posterior mode,
        which predicts new rows better than the maximum of the likelihood more often than not, and
        exists for any number of rows.  None is maximum likelihood.  Sums of squares, gates with
        jumps and solvers other than Newton's method do not have the weak prior, and are fitted
        without it.
    cov_type : str
        Type of the standard errors of ``results_``, such as "HC0", as in `moestat.fit`.
    cov_kwds : mapping, optional
        Its options, such as ``{"groups": labels}`` for "cluster".
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None
        Source of the random starts.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        Class labels as given in y; the last class is the reference.
    results_ : MoEResults
        The fit with its certificate; the data are not stored.
    n_features_in_ : int
        Number of inputs d.
    feature_names_in_ : ndarray of shape (d,)
        Names of the columns; defined only if the X of the fit had column names.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(-1, 1, 200)[:, None]
    >>> y = np.where(np.sin(9 * X[:, 0]) + X[:, 0] > 0, "up", "down")
    >>> model = MoEClassifier(n_experts=1, random_state=0).fit(X, y)
    >>> model.predict(X[:1]).tolist(), model.predict_proba(X).shape
    (['down'], (200, 2))
    """

    def fit(
        self, X: ArrayLike | TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> MoEClassifier:
        """Fit the model to X (n, d) and class labels y (n,) of any type."""
        if hasattr(X, "columns"):
            read_inputs(X)
        design, labels = _validated(self, X, y, ensure_min_samples=2)
        check_classification_targets(labels)
        self.classes_ = np.unique(labels)
        given = X if hasattr(X, "columns") else design
        self.results_ = self._fit("multinomial", given, labels, sample_weight)
        return self

    def predict_proba(self, X: ArrayLike | TableLike) -> np.ndarray:
        """Predict class probabilities (n, K); the columns are in the order of ``classes_``."""
        design = self._inputs(X)
        return self.results_.predict_proba(design)

    def predict_log_proba(self, X: ArrayLike | TableLike) -> np.ndarray:
        """Predict natural logarithms (n, K) of the class probabilities, see `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: ArrayLike | TableLike) -> np.ndarray:
        """Predict the most probable label (n,) of each row of X (n, d)."""
        probability = self.predict_proba(X)
        return self.classes_[np.argmax(probability, axis=1)]


@dataclass(eq=False, repr=False)
class MoERegressor(RegressorMixin, _MoEEstimator):
    """Mixture of experts as a scikit-learn regressor for real, positive or count responses.

    Parameters
    ----------
    n_experts, gate, expert, solver, starts, n_starts, bounds, prior, random_state
        The same as in `MoEClassifier`.
    likelihood : str, mapping or list of these
        Likelihood of the experts, as in `moestat.fit`, such as "gaussian", "poisson",
        "negative-binomial", "gamma", "least-squares" or ``{"name": "binomial", "trials": 8}``.  If
        y has several responses, one likelihood applies to each of them, and a list gives one
        likelihood per response; the responses are then independent within an expert.
        Alternatively, "multivariate-gaussian" is their joint likelihood.

    Attributes
    ----------
    results_, n_features_in_, feature_names_in_
        The same as in `MoEClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(300, 1))
    >>> y = np.abs(X[:, 0]) + 0.05 * rng.standard_normal(300)
    >>> model = MoERegressor(n_experts=2, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    likelihood: str | Mapping[str, object] | Sequence[object] = "gaussian"

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self.likelihood not in ("gaussian", "least-squares")
        return tags

    def fit(
        self, X: ArrayLike | TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> MoERegressor:
        """Fit the model to X (n, d) and y (n,), or (n, m) for m responses.

        If the likelihood is for censored responses, y (n, 2) holds the lower and the upper bound of
        each response.
        """
        if hasattr(X, "columns"):
            read_inputs(X)
        if "censored" in as_likelihood(self.likelihood).options:
            design = _validated(self, X, ensure_min_samples=2)
            given = X if hasattr(X, "columns") else design
            self.results_ = self._fit(self.likelihood, given, y, sample_weight)
            return self
        shape = np.asarray(y).shape
        m = shape[1] if len(shape) == 2 else 1
        known = {"ensure_min_samples": 2, "y_numeric": True, "multi_output": m > 1}
        design, response = _validated(self, X, y, **known)
        given = X if hasattr(X, "columns") else design
        law: Any = self.likelihood
        if m > 1 and not as_likelihood(law).parts:
            law = [law] * m
        self.results_ = self._fit(law, given, response, sample_weight)
        return self

    @door()
    def predict(
        self, X: ArrayLike | TableLike, return_std: bool = False
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Predict the conditional mean (n,), or (n, m), of y at each row of X (n, d).

        With ``return_std=True`` the method also returns the standard deviation of a new response,
        which includes the variance within experts and between experts.
        """
        design = self._inputs(X)
        mean = self.results_.predict(design)
        if not return_std:
            return mean
        return mean, np.sqrt(self.results_.predict(design, "variance"))
