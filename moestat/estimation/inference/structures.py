"""Models of a third step: how classes are related to other variables.

Each model has the log-density ``log q_it(beta)`` of the class and the other variable of a unit, its
derivatives in beta, and the functions of beta that are reported.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from moestat.base.types import FloatArray
from moestat.estimation.rules import DOUBT
from moestat.solvers.rules import ZERO_CURVATURE

__all__ = ["Levels", "Logit", "Means", "Normal", "Structure"]


class Structure(Protocol):
    """A model of a third step with p parameters, of m units and k classes."""

    @property
    def names(self) -> list[tuple[int, str]]:
        """Class and quantity of each reported number (r,)."""
        ...

    def start(self, shares: FloatArray) -> FloatArray:
        """Parameters (p,) near those of units that are in class t with `shares` (m, k)."""
        ...

    def log_density(self, beta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``log q`` (m, k) and its derivatives (m, k, p); beta may be complex."""
        ...

    def report(self, beta: FloatArray) -> FloatArray:
        """Reported numbers (r,)."""
        ...

    def contrasts(self) -> list[tuple[str, FloatArray]]:
        """Hypotheses by name, as matrices (c, r) that take reported numbers to 0."""
        ...


def _log_softmax(eta: FloatArray) -> FloatArray:
    """Logarithms of shares along the last axis; the values may be complex."""
    eta = eta - eta.real.max(axis=-1, keepdims=True)
    return eta - np.log(np.sum(np.exp(eta), axis=-1, keepdims=True))


def _averages(z: FloatArray, shares: FloatArray) -> FloatArray:
    """Means (k, ...) of values (m, ...) with shares (m, k), which may be negative."""
    return np.tensordot(shares.T, z, 1) / shares.sum(axis=0).reshape(-1, *[1] * (z.ndim - 1))


_LEAST_SHARE = 1e-3
"""Smallest share of a class, and probability of a level, at the start: their logarithms and a
variance of its units exist."""


def _size_logits(shares: FloatArray) -> FloatArray:
    """Log-ratios (k - 1,) of the sizes of the classes to the last, from shares (m, k)."""
    size = np.maximum(shares.sum(axis=0), _LEAST_SHARE * shares.sum())
    return np.log(size[:-1] / size[-1])


def _differences(k: int) -> FloatArray:
    """Differences (k - 1, k) from the last of k numbers."""
    return np.column_stack([np.eye(k - 1), -np.ones(k - 1)])


def _kron(one: FloatArray, other: FloatArray) -> FloatArray:
    """The Kronecker product."""
    return np.asarray(np.kron(one, other), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Means:
    """Means of some columns in each class, whatever their distribution: normal of variance 1."""

    z: FloatArray = field(repr=False)  # (m, c)
    columns: tuple[str, ...]
    n_classes: int

    @property
    def names(self) -> list[tuple[int, str]]:
        """Class and column of each mean."""
        return [(t + 1, name) for t in range(self.n_classes) for name in self.columns]

    def start(self, shares: FloatArray) -> FloatArray:
        """The averages."""
        return _averages(self.z, shares).ravel()

    def log_density(self, beta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Minus half of the squared distances from the means."""
        k, c = self.n_classes, self.z.shape[1]
        apart = self.z[:, None, :] - beta.reshape(k, c)
        slope = apart[:, :, None, :] * np.eye(k)[None, :, :, None]
        return -0.5 * np.sum(apart**2, axis=2), slope.reshape(len(self.z), k, k * c)

    def report(self, beta: FloatArray) -> FloatArray:
        """The means."""
        return beta

    def contrasts(self) -> list[tuple[str, FloatArray]]:
        """The hypothesis of equal means; for shares in all columns but the last."""
        c = self.z.shape[1]
        columns = np.eye(c)[: max(c - 1, 1)]
        return [("equal classes", _kron(_differences(self.n_classes), columns))]


@dataclass(frozen=True, eq=False)
class Normal:
    """A normal variable with a mean and a variance in each class, and sizes of the classes."""

    z: FloatArray = field(repr=False)  # (m,)
    n_classes: int
    name: str = "mean"

    @property
    def names(self) -> list[tuple[int, str]]:
        """Means and standard deviations of each class."""
        return [(t + 1, what) for what in (self.name, "sd") for t in range(self.n_classes)]

    def start(self, shares: FloatArray) -> FloatArray:
        """Averages, with the variance of all units where that of a class is not positive."""
        mean = _averages(self.z, shares)
        variance = _averages(self.z**2, shares) - mean**2
        variance_of_all = max(float(np.var(self.z)), np.finfo(float).tiny)
        variance = np.where(variance > _LEAST_SHARE * variance_of_all, variance, variance_of_all)
        return np.concatenate([_size_logits(shares), mean, np.log(variance)])

    def log_density(self, beta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``log pi_t + log N(z; mu_t, v_t)``."""
        k, m = self.n_classes, len(self.z)
        size = _log_softmax(np.append(beta[: k - 1], 0.0))
        mean, log_variance = beta[k - 1 : 2 * k - 1], beta[2 * k - 1 :]
        apart, scale = self.z[:, None] - mean, np.exp(-log_variance)
        slope = np.zeros((m, k, 3 * k - 1), dtype=beta.dtype)
        slope[:, :, : k - 1] = np.eye(k)[:, : k - 1] - np.exp(size[: k - 1])
        at = np.arange(k)
        slope[:, at, k - 1 + at] = apart * scale
        slope[:, at, 2 * k - 1 + at] = 0.5 * (apart**2 * scale - 1.0)
        value = size - 0.5 * (np.log(2.0 * np.pi) + log_variance + apart**2 * scale)
        return value, slope

    def report(self, beta: FloatArray) -> FloatArray:
        """Means and standard deviations."""
        k = self.n_classes
        return np.concatenate([beta[k - 1 : 2 * k - 1], np.exp(0.5 * beta[2 * k - 1 :])])

    def contrasts(self) -> list[tuple[str, FloatArray]]:
        """The hypothesis of equal means."""
        k = self.n_classes
        return [("equal classes", np.hstack([_differences(k), np.zeros((k - 1, k))]))]


@dataclass(frozen=True, eq=False)
class Levels:
    """A categorical variable with probabilities in each class, and sizes of the classes."""

    z: FloatArray = field(repr=False)  # (m, c): indicators of the levels
    columns: tuple[str, ...]
    n_classes: int

    @property
    def names(self) -> list[tuple[int, str]]:
        """Class and level of each probability."""
        return [(t + 1, name) for t in range(self.n_classes) for name in self.columns]

    def start(self, shares: FloatArray) -> FloatArray:
        """Logarithms of averages, which are kept away from 0."""
        p = np.clip(_averages(self.z, shares), _LEAST_SHARE, 1.0)
        return np.concatenate([_size_logits(shares), np.log(p[:, :-1] / p[:, -1:]).ravel()])

    def _logs(self, beta: FloatArray) -> tuple[FloatArray, FloatArray]:
        k, c = self.n_classes, self.z.shape[1]
        eta = beta[k - 1 :].reshape(k, c - 1)
        eta = np.concatenate([eta, np.zeros((k, 1))], axis=1)
        return _log_softmax(np.append(beta[: k - 1], 0.0)), _log_softmax(eta)

    def log_density(self, beta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``log pi_t + log p_t(z)``."""
        k, (m, c) = self.n_classes, self.z.shape
        size, level = self._logs(beta)
        slope = np.zeros((m, k, beta.size), dtype=beta.dtype)
        slope[:, :, : k - 1] = np.eye(k)[:, : k - 1] - np.exp(size[: k - 1])
        for t in range(k):
            places = slice(k - 1 + t * (c - 1), k - 1 + (t + 1) * (c - 1))
            slope[:, t, places] = (self.z - np.exp(level[t]))[:, :-1]
        return size + self.z @ level.T, slope

    def report(self, beta: FloatArray) -> FloatArray:
        """Probabilities."""
        return np.exp(self._logs(beta)[1]).ravel()

    def contrasts(self) -> list[tuple[str, FloatArray]]:
        """The hypothesis of equal probabilities."""
        columns = np.eye(self.z.shape[1])[:-1]
        return [("equal classes", _kron(_differences(self.n_classes), columns))]


@dataclass(frozen=True, eq=False)
class Logit:
    """Probabilities of classes by covariates: multinomial logit, the last class the reference."""

    phi: FloatArray = field(repr=False)  # (m, d): a column of ones first
    columns: tuple[str, ...]
    n_classes: int
    # (d, r): coefficients of directions in which the columns of phi are of mean square 1, without
    # products, and without their linear relations
    basis: FloatArray = field(repr=False)
    aliased: np.ndarray = field(repr=False)  # (d,): columns in a linear relation

    @classmethod
    def of(
        cls, phi: FloatArray, columns: tuple[str, ...], n_classes: int, weight: FloatArray
    ) -> Logit:
        """The model of columns (m, d), of which some may be linear functions of others."""
        gram = (phi * weight[:, None]).T @ phi / weight.sum()
        size = np.sqrt(np.diag(gram))
        values, vectors = np.linalg.eigh(gram / np.outer(size, size))
        null = values <= ZERO_CURVATURE
        basis = vectors[:, ~null] / size[:, None] / np.sqrt(values[~null])
        aliased = np.any(np.abs(vectors[:, null]) > DOUBT.part, axis=1)
        return cls(phi, columns, n_classes, basis, aliased)

    @property
    def names(self) -> list[tuple[int, str]]:
        """Class, against the last one, and column of each coefficient."""
        return [(t + 1, name) for t in range(self.n_classes - 1) for name in self.columns]

    def start(self, shares: FloatArray) -> FloatArray:
        """Coefficients 0, with intercepts of the sizes of the classes."""
        intercepts = _size_logits(shares)
        constant = np.linalg.lstsq(self.phi @ self.basis, self.phi[:, 0])[0]
        return np.outer(intercepts, constant).ravel()

    def log_density(self, beta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``log P(class t | covariates)``."""
        k, phi = self.n_classes, self.phi @ self.basis
        m, d = phi.shape
        eta = phi @ beta.reshape(k - 1, d).T
        value = _log_softmax(np.concatenate([eta, np.zeros((m, 1))], axis=1))
        apart = np.eye(k)[None, :, : k - 1] - np.exp(value)[:, None, : k - 1]
        slope = apart[:, :, :, None] * phi[:, None, None, :]
        return value, slope.reshape(m, k, -1)

    def report(self, beta: FloatArray) -> FloatArray:
        """The coefficients."""
        return self.outward @ beta

    @property
    def outward(self) -> FloatArray:
        """Derivatives of the coefficients in the parameters."""
        return _kron(np.eye(self.n_classes - 1), self.basis)

    def contrasts(self) -> list[tuple[str, FloatArray]]:
        """For each covariate the hypothesis that it has no effect on any class."""
        d = self.phi.shape[1]
        return [
            (name, np.kron(np.eye(self.n_classes - 1), np.eye(d)[j]))
            for j, name in enumerate(self.columns)
            if j
        ]
