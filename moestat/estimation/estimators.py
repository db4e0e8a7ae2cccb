"""Estimators with scikit-learn's interface, around `moestat.fit`; needs ``moestat[sklearn]``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from moestat.estimation.fitting import fit
from moestat.estimation.results import MoEResults
from moestat.estimation.starts import make_starts
from moestat.model.family import family
from moestat.solvers import make_solver

__all__ = ["MoEClassifier", "MoERegressor"]


def _checked(X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2:
        raise ValueError(f"X must have shape (n, d), got {X.shape}")
    response = np.asarray(y)
    if response.ndim != 1 or response.shape[0] != X.shape[0]:
        raise ValueError(f"y must have shape ({X.shape[0]},), got {response.shape}")
    return X, response


class MoEClassifier(ClassifierMixin, BaseEstimator):
    """Mixture of multinomial-logistic experts as a scikit-learn classifier.

    Parameters
    ----------
    n_experts : int
        Number of experts k.
    gate : str or mapping
        Name of the gate, or its table with options.
    solver : str
        Name of the solver.
    n_starts : int
        Number of starts, half of them split, half random.
    random_state : int, numpy.random.Generator or None
        Source of the starts.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        Class labels as given; the last one is the reference.
    results_ : MoEResults
        The fit with its certificate.
    n_features_in_ : int
        Number of inputs d.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(-1, 1, 200)[:, None]
    >>> y = np.where(np.sin(9 * X[:, 0]) + X[:, 0] > 0, "up", "down")
    >>> model = MoEClassifier(n_experts=1, random_state=0).fit(X, y)
    >>> model.predict(X[:1]).tolist(), model.predict_proba(X).shape
    (['down'], (200, 2))
    """

    def __init__(
        self,
        n_experts: int = 2,
        gate: str | Mapping[str, Any] = "softmax",
        solver: str = "newton",
        n_starts: int = 8,
        random_state: Any = None,
    ) -> None:
        self.n_experts = n_experts
        self.gate = gate
        self.solver = solver
        self.n_starts = n_starts
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MoEClassifier:
        """Fit by maximum likelihood; X (n, d), y (n,) labels of any kind."""
        X, labels = _checked(X, y)
        self.classes_, encoded = np.unique(labels, return_inverse=True)
        if self.classes_.size < 2:
            raise ValueError(f"y must hold at least two classes, got {self.classes_.size}")
        self.n_features_in_ = X.shape[1]
        model = family(
            "multinomial",
            gate=self.gate,
            n_experts=self.n_experts,
            n_features=self.n_features_in_,
            n_classes=int(self.classes_.size),
        )
        n_split = (self.n_starts + 1) // 2
        starts = make_starts({"split": n_split, "random": self.n_starts - n_split})
        self.results_: MoEResults = fit(
            model,
            X,
            encoded + 1,
            solver=make_solver(self.solver),
            starts=starts,
            sample_weight=sample_weight,
            rng=self.random_state,
        )
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities (n, K), columns in the order of ``classes_``."""
        check_is_fitted(self)
        return self.results_.predict_proba(X)

    def predict(self, X: Any) -> np.ndarray:
        """Most probable label of each row of X (n, d)."""
        probability = self.predict_proba(X)
        return self.classes_[np.argmax(probability, axis=1)]


class MoERegressor(RegressorMixin, BaseEstimator):
    """Mixture of Gaussian experts as a scikit-learn regressor.

    Parameters
    ----------
    n_experts : int
        Number of experts k.
    gate, expert : str or mapping
        Names of the gate and the expert, or their tables with options.
    solver : str
        Name of the solver.
    n_starts : int
        Number of starts: a quarter of them split, the others from clusters.
    random_state : int, numpy.random.Generator or None
        Source of the starts.

    Attributes
    ----------
    results_ : MoEResults
        The fit with its certificate.
    n_features_in_ : int
        Number of inputs d.

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

    def __init__(
        self,
        n_experts: int = 2,
        gate: str | Mapping[str, Any] = "softmax",
        expert: str | Mapping[str, Any] = "linear",
        solver: str = "newton",
        n_starts: int = 8,
        random_state: Any = None,
    ) -> None:
        self.n_experts = n_experts
        self.gate = gate
        self.expert = expert
        self.solver = solver
        self.n_starts = n_starts
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MoERegressor:
        """Fit by maximum likelihood; X (n, d), y (n,) real."""
        X, response = _checked(X, y)
        self.n_features_in_ = X.shape[1]
        model = family(
            "gaussian",
            gate=self.gate,
            expert=self.expert,
            n_experts=self.n_experts,
            n_features=self.n_features_in_,
        )
        n_split = (self.n_starts + 3) // 4
        self.results_: MoEResults = fit(
            model,
            X,
            response,
            solver=make_solver(self.solver),
            starts=make_starts({"split": n_split, "cluster": self.n_starts - n_split}),
            sample_weight=sample_weight,
            rng=self.random_state,
        )
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Conditional mean of y at each row of X (n, d)."""
        check_is_fitted(self)
        return self.results_.predict(X)
