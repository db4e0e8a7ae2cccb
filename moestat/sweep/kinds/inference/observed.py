"""The data of a cell, the fit whose inference is judged, and what its parameters should be."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from moestat.base.registry import table_of
from moestat.base.types import FloatArray, IntArray, Seed
from moestat.base.warnings import MoEWarning
from moestat.estimation.fitting.fit import fit
from moestat.estimation.inference.alignment import align
from moestat.estimation.results.results import MoEResults
from moestat.estimation.search.agreement import search_of
from moestat.estimation.starts import GivenStarts, StartRule
from moestat.model.axes import family
from moestat.model.family import Family
from moestat.model.generate import sample
from moestat.model.numbering import stored_name
from moestat.sweep.kinds.inference.trial import Trial
from moestat.sweep.spec.identity import digest

Outcomes = Mapping[str, Mapping[str, float | None]]
"""Outcomes of procedures: label -> item -> 1, 0 or a share; None where there is no answer."""

_INPUT_NODES = 100
_RESPONSE_NODES = 40
_MANY = 1e6
"""Sample size at which the best approximation is computed: a constant that cancels."""


def _quiet(
    family: Family, X: FloatArray, y: FloatArray, starts: list[StartRule], rng: Seed = None
) -> MoEResults:
    """A fit without warnings; the certificate is checked instead."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoEWarning)
        return fit(family, X, y, starts=starts, rng=rng, threads=1)


@dataclass
class Observed:
    """A data set and its fit."""

    trial: Trial  # truth, model and sample size
    data_rng: np.random.Generator  # sources of the data and of everything else
    rng: np.random.Generator

    @cached_property
    def data(self) -> tuple[FloatArray, FloatArray]:
        """Inputs (n, d) and responses (n,), rows of a group one after the other."""
        trial, truth = self.trial, self.trial.truth
        distinct = trial.n // trial.group_size
        X, y = sample(truth.family, truth.theta, distinct, self.data_rng, trial.design)
        return np.repeat(X, trial.group_size, axis=0), np.repeat(y, trial.group_size)

    @cached_property
    def groups(self) -> IntArray:
        """Number of each row's group (n,)."""
        return np.arange(len(self.data[1])) // self.trial.group_size

    @cached_property
    def target(self) -> FloatArray | None:
        """The parameters (P,) that the estimate converges to; None for too many experts.

        They are the truth's, or with fewer experts those of the best approximation.
        """
        trial = self.trial
        if trial.n_experts == trial.truth.family.n_experts:
            return trial.family.pin(trial.truth.theta)
        return None if self.has_too_many else best_approximation(trial)

    @property
    def has_too_many(self) -> bool:
        """Whether the model has more experts than the truth."""
        return self.trial.n_experts > self.trial.truth.family.n_experts

    def _rules(self, starts: FloatArray | None) -> list[StartRule]:
        rules: list[StartRule] = [] if starts is None else [GivenStarts(starts)]
        count = self.trial.n_starts
        return [*rules, search_of(count, searches=1)] if count else rules

    def fitted(self, family: Family, starts: FloatArray | None = None) -> MoEResults:
        """A fit of a family from a search, and from starts (m, P)."""
        return _quiet(family, *self.data, self._rules(starts), self.rng.spawn(1)[0])

    @cached_property
    def result(self) -> MoEResults | None:
        """The fit, with the labels of the target; None if it is not certified."""
        family, target = self.trial.family, self.target
        result = self.fitted(family, None if target is None else target[None, :])
        if target is not None:
            theta, _ = align(family, result.theta, target, result.theta_bse)
            if not np.array_equal(theta, result.theta):
                result = _quiet(family, *self.data, [GivenStarts(theta[None, :])])
        return result if result.certificate.certified else None

    def without_last(self) -> MoEResults | None:
        """The fit without the last input, from the truth without it; None if not certified."""
        (X, y), truth = self.data, self.trial.truth
        true_family = truth.family
        n_classes = true_family.n_classes if true_family.likelihood.support is not None else None
        small = family(
            true_family.likelihood,
            gate=table_of(true_family.gate),
            expert=table_of(true_family.expert),
            n_experts=self.trial.n_experts,
            n_features=true_family.n_features - 1,
            n_classes=n_classes,
        )
        blocks = {
            name: value if value.shape == small.blocks[name].shape else value[..., :-1]
            for name, value in true_family.unpack(truth.theta).items()
        }
        rules = self._rules(small.pack(blocks)[None, :])
        result = _quiet(small, X[:, :-1], y, rules, self.rng.spawn(1)[0])
        return result if result.certificate.certified else None

    @cached_property
    def targets(self) -> list[tuple[str, int, float]]:
        """Name, position and true value of the parameters that are judged.

        With too many experts each fitted atom is compared with the nearest atom of the truth, in
        its expert and likelihood parameters; names say how many atoms share that one.
        """
        family = self.trial.family
        if self.target is not None:
            free = np.flatnonzero(family.lower < family.upper)
            names = [*map(stored_name, family.param_names)]
            return [(names[j], int(j), float(self.target[j])) for j in free]
        assert self.result is not None
        truth = self.trial.truth
        names = [*family.expert.bounds, *family.likelihood.bounds]
        k, known = family.n_experts, truth.family.n_experts
        # Packed, as intervals are: the logarithm of a variance.
        at = {name: family.blocks[name].reshape(k, -1) for name in names}
        true_values = {
            name: truth.theta[truth.family.blocks[name].reshape(known, -1)] for name in names
        }
        fitted = np.column_stack([self.result.theta[at[name]] for name in names])
        true = np.column_stack(list(true_values.values()))
        apart = np.sum((fitted[:, None, :] - true[None, :, :]) ** 2, axis=2)
        nearest = np.argmin(apart, axis=1)
        sizes = np.bincount(nearest, minlength=known)
        targets = []
        for name in names:
            for i in range(k):
                for j, position in enumerate(at[name][i]):
                    label = (
                        f"{stored_name(family.param_names[position])}, cell of {sizes[nearest[i]]}"
                    )
                    targets.append((label, int(position), float(true_values[name][nearest[i], j])))
        return targets

    @cached_property
    def places(self) -> tuple[FloatArray, FloatArray]:
        """Inputs (m, d) at which predictions are judged, and the right conditional means (m,)."""
        trial, truth = self.trial, self.trial.truth
        nodes = np.ascontiguousarray(trial.design.quadrature(trial.family.n_features, 4)[0].T)
        if self.target is not None:
            return nodes, np.asarray(trial.family.mean(self.target, nodes))
        return nodes, np.asarray(truth.family.mean(truth.theta, nodes))


_KNOWN: dict[str, FloatArray] = {}


def best_approximation(trial: Trial) -> FloatArray:
    """Parameters (P,) of the fitted family that are nearest to the truth in Kullback-Leibler.

    The maximum of the expected log-likelihood, by quadrature over inputs and responses: the
    pseudo-true value of White (1982), for a Gaussian truth with more experts than the model.

    Notes
    -----
    White (1982).
    """
    truth, family = trial.truth, trial.family
    if truth.family.likelihood.name != "gaussian":
        raise ValueError("a model with fewer experts than the truth needs a gaussian likelihood")
    design = {key: float(v) if isinstance(v, int) else v for key, v in vars(trial.design).items()}
    key = digest([truth.law, design, trial.n_experts])
    if key not in _KNOWN:
        nodes, mass = trial.design.quadrature(family.n_features, _INPUT_NODES)
        z, share = np.polynomial.hermite_e.hermegauss(_RESPONSE_NODES)
        share = share / share.sum()
        assert truth.family.likelihood.spread is not None
        eta = truth.family.predictors(truth.theta, np.ascontiguousarray(nodes))
        mean, deviation = truth.family.likelihood.spread(eta)
        gate = truth.family.gate_probabilities(truth.theta, nodes.T).T
        y = mean[:, :, None] + np.broadcast_to(deviation, mean.shape)[:, :, None] * z
        weight = (gate * mass)[:, :, None] * share
        X = np.broadcast_to(nodes.T[None, :, None, :], (*y.shape, nodes.shape[0]))
        result = fit(
            family,
            X.reshape(-1, nodes.shape[0]),
            y.ravel(),
            sample_weight=_MANY * weight.ravel(),
            rng=0,
            threads=1,
        )
        if not result.certificate.certified:
            raise ArithmeticError("the best approximation of the truth was not found")
        _KNOWN[key] = result.theta
    return _KNOWN[key]
