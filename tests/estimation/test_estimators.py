"""The classifier inside scikit-learn's own tools."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score

from moestat.estimation.estimators import MoEClassifier


@pytest.fixture
def wave():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(1500, 1))
    high = rng.random(1500) < 1 / (
        1 + np.exp(-np.where(X[:, 0] < 0, 3 * X[:, 0] + 3, 3 - 6 * X[:, 0]))
    )
    return X, np.where(high, "high", "low")


def test_clone_search_and_cross_validation(wave):
    model = MoEClassifier(n_experts=2, n_starts=4, random_state=0)
    copy = clone(model)
    assert copy is not model
    assert copy.get_params() == model.get_params()
    flat = cross_val_score(MoEClassifier(n_experts=1, random_state=0), *wave, cv=3)
    bent = cross_val_score(model, *wave, cv=3)
    assert bent.mean() > flat.mean() + 0.05


def test_probabilities_follow_the_labels(wave):
    X, y = wave
    model = MoEClassifier(n_experts=2, n_starts=4, random_state=0).fit(X, y)
    assert model.classes_.tolist() == ["high", "low"]
    p = model.predict_proba(X)
    assert np.allclose(p.sum(axis=1), 1.0)
    assert np.array_equal(model.predict(X), model.classes_[p.argmax(axis=1)])
    assert model.score(X, y) == np.mean(model.predict(X) == y)
    assert model.results_.certificate.certified


def test_errors_name_the_argument(wave):
    X, y = wave
    with pytest.raises(NotFittedError, match="not fitted"):
        MoEClassifier().predict(X)
    with pytest.raises(ValueError, match="Invalid parameter 'depth'"):
        MoEClassifier().set_params(depth=3)
    with pytest.raises(ValueError, match="at least two classes, got 1"):
        MoEClassifier().fit(X, np.full(len(y), "high"))
    with pytest.raises(ValueError, match=r"X must have shape \(n, d\)"):
        MoEClassifier().fit(X[:, 0], y)
    with pytest.raises(ValueError, match="unknown gate"):
        MoEClassifier(gate="none").fit(X, y)
    assert MoEClassifier().set_params(n_experts=3).n_experts == 3
