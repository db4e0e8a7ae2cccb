"""Estimators with scikit-learn's interface, around `moestat.fit`; needs ``moestat[sklearn]``."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from moestat.families import family
from moestat.fitting import fit
from moestat.results import MoEResults
from moestat.solvers import make_solver
from moestat.starts import make_starts

__all__ = ["MoEClassifier"]


class MoEClassifier(ClassifierMixin, BaseEstimator):
    """Mixture of multinomial-logistic experts as a scikit-learn classifier.

    Parameters
    ----------
    n_experts : int
        Number of experts k.
    gate : str
        Name of the gate.
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
        gate: str = "softmax",
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
        X = np.asarray(X, dtype=np.float64)
        if X.ndim != 2:
            raise ValueError(f"X must have shape (n, d), got {X.shape}")
        labels = np.asarray(y)
        if labels.ndim != 1 or labels.shape[0] != X.shape[0]:
            raise ValueError(f"y must have shape ({X.shape[0]},), got {labels.shape}")
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
