"""Sampling from a family at a truth."""

from __future__ import annotations

from typing import Any

import numpy as np

from moestat._types import FloatArray
from moestat._validate import as_floats, as_generator, positive_int
from moestat.designs import Design, Uniform
from moestat.families import Family

__all__ = ["sample"]


def sample(
    family: Family, theta: Any, n: int, rng: Any = None, design: Design | None = None
) -> tuple[FloatArray, Any]:
    """Draw (X, Y): X from the design, an atom from the gate, Y from the atom's expert.

    Parameters
    ----------
    family : Family
        The model.
    theta : array_like of shape (P,)
        Packed parameters of the truth.
    n : int
        Sample size.
    rng : numpy.random.Generator, int or None
        Source of randomness.
    design : Design, optional
        Law of X; uniform on [0, 1]^d by default.

    Returns
    -------
    X : ndarray of shape (n, d)
        Inputs.
    y : ndarray of shape (n,)
        Responses; class labels 1..K for the multinomial likelihood.

    Raises
    ------
    ValueError
        If theta has another length or holds NaN, or n < 1.

    Examples
    --------
    >>> from moestat import family, sample
    >>> F = family("multinomial", gate="softmax", n_experts=1, n_classes=2)
    >>> X, y = sample(F, [0, 0, 1, 2], n=4, rng=0)
    >>> X.shape, y.tolist()
    ((4, 1), [1, 2, 2, 1])
    """
    vector = as_floats("theta", theta, (family.n_params,))
    n = positive_int("n", n)
    generator = as_generator(rng)
    X = (design or Uniform()).draw(n, family.n_features, generator)
    prior = family.rowwise(vector, X, family.placeholder(n))[0]
    threshold = generator.random(n)
    atom = np.sum(threshold >= np.cumsum(prior, axis=0)[:-1], axis=0)
    eta = family.predictors(vector, X)[atom, :, np.arange(n)].T
    y = family.likelihood.draw(eta, generator)
    return np.ascontiguousarray(X.T), family.likelihood.decode(y)
