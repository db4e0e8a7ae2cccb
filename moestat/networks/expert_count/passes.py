"""Passes over the data: routes, outputs and gradients of a network, in buffers made once."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike, NDArray

from moestat.networks.expert_count.activations import activation
from moestat.networks.expert_count.data import PatchData
from moestat.networks.expert_count.experts import EXPERTS
from moestat.networks.expert_count.network import Network, Weights
from moestat.networks.expert_count.packing import pack
from moestat.networks.expert_count.rows.experts import expert_loop, sort_by_expert
from moestat.networks.expert_count.rows.noise import resolution, step_key
from moestat.networks.expert_count.rows.router import ROWS, route, router_gradient

__all__ = ["Passes"]


class Passes:
    """Passes of one network over one sample, in buffers of float32 or float64."""

    def __init__(self, network: Network, data: PatchData, dtype: DTypeLike) -> None:
        self.packed = pack(data, dtype)
        self.network, self.data = network, data
        self._real = self.packed.label != 0
        d, J = data.law.n_features, network.n_neurons
        self._place = self.packed.position * d + self.packed.basis
        self._loop = expert_loop(EXPERTS[network.expert].block, activation(network.activation))
        N, M = len(self.packed.label), network.n_experts
        rows = -(-M // ROWS) * ROWS
        self._theta = np.zeros((rows, data.law.n_patches, d), dtype)
        self._gates = np.zeros(rows * N, dtype)
        self._chosen = np.zeros(N, np.int64)
        self._gate, self._output = np.ones(N, dtype), np.zeros(N, dtype)
        self._coefficient = np.zeros(N, dtype)
        self._starts, self._members = np.zeros(M + 1, np.int64), np.zeros(data.size, np.int64)
        self._z = np.zeros((2, data.law.n_patches * J), dtype)

    def route(
        self,
        theta: NDArray[np.floating],
        noise: tuple[int, int] | None = None,
        numbers: NDArray[np.int64] | None = None,
    ) -> None:
        """Route every sample by the largest score of the router theta (M, P, d) or (M, 1, d).

        `noise` is its seed and step, if there is any; `numbers` (M,) are those of the experts in
        its counters, 0, 1, ... by default.
        """
        shift, unit = resolution(theta.dtype)
        key = np.uint64(0) if noise is None else step_key(*noise)
        unit = unit if noise is not None else unit * 0
        self._theta[: len(theta)] = theta
        packed = self.packed
        route(
            self._theta,
            np.arange(len(theta)) if numbers is None else numbers,
            packed.bounds,
            packed.slots,
            packed.columns,
            self._place,
            packed.amplitude,
            packed.order,
            (key, shift, unit),
            self._gates,
            self._chosen,
            self._gate,
        )

    def send(self, expert: int) -> None:
        """Route every sample to one expert, with a gate of 1."""
        self._chosen[:] = expert
        self._gate[:] = 1

    def experts(self, weights: NDArray[np.floating], gradient: NDArray[np.floating]) -> float:
        """Mean loss at the present routes; adds to the gradient in the experts' weights."""
        packed = self.packed
        sort_by_expert(self._chosen, packed.label, self._starts, self._members)
        return self._loop(
            weights,
            self._starts,
            self._members,
            packed.position,
            packed.basis,
            packed.amplitude,
            packed.slots,
            packed.rows,
            packed.label,
            self._gate,
            self._output,
            self._coefficient,
            gradient,
            *self._z,
        )

    def router(self) -> NDArray[np.floating]:
        """Gradient in theta of the loss at the present routes; uses the gates up."""
        packed, gradient = self.packed, np.zeros_like(self._theta)
        router_gradient(
            self._gates,
            self.network.n_experts,
            packed.bounds,
            packed.slots,
            packed.columns,
            self._place,
            packed.amplitude,
            self._chosen,
            self._coefficient,
            gradient,
        )
        gradient = gradient[: self.network.n_experts]
        return gradient.sum(axis=1, keepdims=True) if self.network.gate == "shared" else gradient

    def loss_and_gradient(self, weights: Weights) -> tuple[float, Weights]:
        """Mean loss (4) and its gradient, at the routes that the last call of `route` found."""
        experts = np.zeros_like(weights.experts)
        loss = self.experts(weights.experts, experts)
        return loss, Weights(experts, self.router())

    @property
    def chosen(self) -> NDArray[np.int64]:
        """The expert of each sample, in the order of the data."""
        return self._in_order(self._chosen)

    @property
    def gate(self) -> NDArray[np.floating]:
        """The gate of the chosen expert of each sample."""
        return self._in_order(self._gate)

    @property
    def output(self) -> NDArray[np.floating]:
        """The output f of the chosen expert of each sample, without the gate."""
        return self._in_order(self._output)

    def _in_order(self, values: np.ndarray) -> np.ndarray:
        ordered = np.empty(self.data.size, values.dtype)
        ordered[self.packed.order[self._real]] = values[self._real]
        return ordered
