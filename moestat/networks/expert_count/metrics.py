"""Metrics of a trained network: accuracy, dispatch entropy, specialists and margins.

Source: Duy et al. (n.d.), (7) and Theorem 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from moestat.base.door import door
from moestat.base.types import FloatArray, IntArray
from moestat.base.validate import as_numbers, check_kind, short
from moestat.networks.expert_count.data import PatchData
from moestat.networks.expert_count.network import Network, Weights
from moestat.networks.expert_count.passes import Passes

__all__ = ["Evaluation", "dispatch_entropy", "evaluate", "evaluate_on", "expert_errors"]


@dataclass(frozen=True)
class Evaluation:
    """A network on a sample, routed without noise.

    Parameters
    ----------
    loss : float
        Mean logistic loss of ``y F``.
    chosen : ndarray of shape (n,)
        The expert that each example is routed to.
    margins : ndarray of shape (n,)
        ``y F(x)``; an example with a margin <= 0 is an error.
    cluster : ndarray of shape (n,)
        Cluster of each example.
    n_experts : int
        M.
    n_clusters : int
        K.
    """

    loss: float
    chosen: IntArray = field(repr=False)
    margins: FloatArray = field(repr=False)
    cluster: IntArray = field(repr=False)
    n_experts: int
    n_clusters: int

    @property
    def accuracy(self) -> float:
        """Share of examples with a positive margin."""
        return float(np.mean(self.margins > 0))

    @property
    def dispatch(self) -> IntArray:
        """Examples of each cluster that each expert gets, (K, M)."""
        counts = np.zeros((self.n_clusters, self.n_experts), np.int64)
        np.add.at(counts, (self.cluster, self.chosen), 1)
        return counts

    @property
    def entropy(self) -> float:
        """Dispatch entropy, in natural units."""
        return dispatch_entropy(self.dispatch)

    @property
    def experts_in_use(self) -> int:
        """Experts that get at least one example."""
        return int(np.count_nonzero(self.dispatch.sum(axis=0)))


@door()
def evaluate(network: Network, weights: Weights, data: PatchData) -> Evaluation:
    """Route the examples of a sample without noise and score the answers.

    Parameters
    ----------
    network : Network
        The network.
    weights : Weights
        Its weights.
    data : PatchData
        The sample.

    Returns
    -------
    Evaluation
        Margins and routes.

    Examples
    --------
    >>> from moestat.networks import PatchLaw, train
    >>> law, network = PatchLaw(scale=10.0), Network(n_experts=8)
    >>> trained = train(network, law.sample(1000, rng=0), 200, rng=1)
    >>> evaluate(network, trained.weights, law.sample(1000, rng=2)).accuracy > 0.7
    True
    """
    return evaluate_on(_passes(network, weights, data), weights)


def _passes(network: Network, weights: Weights, data: PatchData) -> Passes:
    """Passes of a network over data, after a check that network, weights and data match."""
    check_kind("network", network, Network, "a Network")
    check_kind("data", data, PatchData, "PatchData")
    network.check(weights, data.law.n_patches, data.law.n_features)
    return Passes(network, data, weights.router.dtype)


def evaluate_on(passes: Passes, weights: Weights) -> Evaluation:
    """As `evaluate`, on a sample for which passes have been prepared."""
    data = passes.data
    passes.route(weights.router)
    loss = passes.experts(weights.experts, np.zeros_like(weights.experts))
    return Evaluation(
        loss=float(loss),
        chosen=passes.chosen,
        margins=(data.label * passes.gate * passes.output).astype(np.float64),
        cluster=data.cluster,
        n_experts=passes.network.n_experts,
        n_clusters=data.law.n_clusters,
    )


@door()
def expert_errors(network: Network, weights: Weights, data: PatchData) -> FloatArray:
    """Error of every expert on every cluster: the share of examples with ``y f_m(x) <= 0``.

    Parameters
    ----------
    network, weights, data
        As `evaluate` takes them; each expert answers the whole sample.

    Returns
    -------
    ndarray of shape (K, M)
        The errors; NaN for a cluster without examples.
    """
    passes = _passes(network, weights, data)
    errors = np.empty((data.law.n_clusters, network.n_experts))
    counts = np.bincount(data.cluster, minlength=data.law.n_clusters)
    unused = np.zeros_like(weights.experts)
    for m in range(network.n_experts):
        passes.send(m)
        passes.experts(weights.experts, unused)
        is_wrong = data.label * passes.output <= 0
        wrong_by_cluster = np.bincount(data.cluster, is_wrong, minlength=data.law.n_clusters)
        errors[:, m] = np.divide(
            wrong_by_cluster, counts, out=np.full(len(counts), np.nan), where=counts > 0
        )
    return errors


@door()
def dispatch_entropy(dispatch: ArrayLike) -> float:
    """Entropy of the clusters that an expert gets, averaged over the examples.

    Parameters
    ----------
    dispatch : array_like of shape (K, M)
        Examples of each cluster that each expert gets.

    Returns
    -------
    float
        Between 0, when every expert gets examples of one cluster, and log K.

    Notes
    -----
    Duy et al. (n.d.), (7), with the natural logarithm.

    Examples
    --------
    >>> dispatch_entropy([[5, 0, 2], [0, 7, 0]])
    0.0
    >>> bool(np.isclose(dispatch_entropy([[5, 1], [5, 1]]), np.log(2)))
    True
    """
    counts = as_numbers("dispatch", dispatch)
    if counts.ndim != 2 or (counts < 0).any() or not counts.sum() > 0:
        raise ValueError(
            "dispatch must hold counts >= 0 of shape (K, M), not all of them 0, got"
            f" {short(dispatch)}"
        )
    load = counts.sum(axis=0)
    used = counts > 0
    share = (counts / np.where(load > 0, load, 1))[used]
    return abs(float(-np.sum(counts[used] * np.log(share)) / counts.sum()))
