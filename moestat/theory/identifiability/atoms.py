"""One atom as a function of x, with exact derivatives in its parameters to second order.

The derivatives come from the registered gate, expert and likelihood themselves: each supplies its
value and two derivatives in its channels, channels are linear in the parameters, and the chain
rule does the rest.  Nothing is differenced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement

import numpy as np

from moestat.base.registry import configured
from moestat.base.types import Encoded, FloatArray
from moestat.base.validate import positive_int
from moestat.model.experts import EXPERTS
from moestat.model.gates import GATES
from moestat.model.likelihoods import LIKELIHOODS
from moestat.model.members import Channel, Expert, Gate, Likelihood


@dataclass(frozen=True)
class Jet:
    """Values (n,) of a function at n samples, its gradient (p, n) and Hessian (p, p, n)."""

    value: FloatArray
    first: FloatArray
    second: FloatArray

    def __add__(self, other: Jet) -> Jet:
        return Jet(self.value + other.value, self.first + other.first, self.second + other.second)

    def relative(self) -> Jet:
        """Derivatives of ``exp(f)`` divided by ``exp(f)``."""
        outer = self.first[:, None] * self.first[None, :]
        return Jet(np.ones_like(self.value), self.first, self.second + outer)

    def times(self, other: Jet) -> Jet:
        """The product of two functions."""
        cross = self.first[:, None] * other.first[None, :]
        return Jet(
            self.value * other.value,
            self.first * other.value + self.value * other.first,
            self.second * other.value + self.value * other.second + cross + cross.swapaxes(0, 1),
        )


def _through(block: Callable[..., None], inner: Sequence[Jet], *features: np.ndarray) -> Jet:
    """A registered block as a function of inner functions, and of features or responses."""
    C, n = len(inner), inner[0].value.size
    value, d1, d2 = np.empty(n), np.zeros((C, n)), np.zeros((C * (C + 1) // 2, n))
    block(np.stack([jet.value for jet in inner]), *features, n, 2, value, d1, d2)
    first = sum(d * jet.first for d, jet in zip(d1, inner, strict=True))
    second = sum(d * jet.second for d, jet in zip(d1, inner, strict=True))
    for c, one in enumerate(inner):
        for e, other in enumerate(inner[: c + 1]):
            term = d2[c * (c + 1) // 2 + e] * one.first[:, None] * other.first[None, :]
            second = second + term + (0.0 if c == e else term.swapaxes(0, 1))
    return Jet(value, np.asarray(first), np.asarray(second))


@dataclass(frozen=True)
class Parameter:
    """One scalar parameter of an atom: ``alpha`` with one input, or ``alpha[1]`` with several."""

    name: str
    block: str
    channel: int
    """Position of the channel that it enters."""
    inputs: tuple[int, ...]
    """Inputs whose product it multiplies, 0 and 1 for ``A[0,1]``; none for an intercept."""
    positive: bool


@dataclass(frozen=True)
class Atom:
    """One atom of a mixture of experts, and which function of x it is.

    With a likelihood the function is ``u(x, y) = w(x) f(y | x)``, the weight before normalisation
    times the density; without one it is ``F(x) = w(x) g(x)``, a term of a regression function.  The
    mass of a normalised gate, which only multiplies u, is left out, as the papers do.
    """

    gate: Gate
    expert: Expert
    likelihood: Likelihood | None
    n_features: int
    n_classes: int

    @property
    def symbol(self) -> str:
        """The papers' letter for the function."""
        return "F" if self.likelihood is None else "u"

    @property
    def has_mass(self) -> bool:
        """Whether the atom's mass multiplies the function and belongs to another parameter."""
        return self.gate.normalised

    @cached_property
    def _axes(self) -> tuple[tuple[Channel, ...], tuple[Channel, ...], tuple[Channel, ...]]:
        n_responses = (
            None if self.likelihood is None else self.likelihood.n_responses(self.n_classes)
        )
        return (
            self.gate.channels(self.n_features),
            self.expert.channels(self.n_features, n_responses),
            () if self.likelihood is None else self.likelihood.channels,
        )

    @cached_property
    def channels(self) -> tuple[Channel, ...]:
        """Channels of the gate, the expert and the likelihood, in this order."""
        gate, expert, likelihood = self._axes
        return gate + expert + likelihood

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """All parameters but the mass; of the gate first, shared ones last within it."""
        gate_blocks = {c.intercept for c in self._axes[0]} | {c.slope for c in self._axes[0]}
        parameters = []
        for at, channel in enumerate(self.channels):
            owner = "expert " if at >= len(self._axes[0]) else ""
            mass = self.gate.normalised and channel.intercept == self.gate.mass and not owner
            blocks: list[tuple[str, list[tuple[int, ...]]]] = [(channel.intercept, [()])]
            if channel.slope is not None:
                blocks.append((channel.slope, [(j,) for j in range(self.n_features)]))
            if channel.products is not None:
                pairs = list(combinations_with_replacement(range(self.n_features), 2))
                blocks.append((channel.products, pairs))
            for block, features in blocks[1:] if mass else blocks:
                name = owner + block if owner and block in gate_blocks else block
                for inputs in features:
                    index = self._index(channel, inputs)
                    parameters.append(
                        Parameter(name + index, name, at, inputs, channel.log or block == "tau")
                    )
        return tuple(parameters)

    def _index(self, channel: Channel, inputs: tuple[int, ...]) -> str:
        """Position in the block, without axes of length 1."""
        alike = [
            c for c in self.channels if c.intercept == channel.intercept and c.component is not None
        ]
        at = [str(channel.component)] if len(alike) > 1 and channel.component is not None else []
        at += [str(j) for j in inputs] if self.n_features > 1 else []
        return f"[{','.join(at)}]" if at else ""

    @property
    def names(self) -> list[str]:
        """Names of the parameters."""
        return [p.name for p in self.parameters]

    def draw(self, rng: np.random.Generator) -> FloatArray:
        """Parameters (p,) at random: normal, or log-normal where only positive ones make sense."""
        values = rng.normal(size=len(self.parameters))
        positive = np.array([p.positive for p in self.parameters], dtype=np.bool_)
        return np.where(positive, np.exp(0.4 * values), values)

    def samples(
        self, n: int, rng: np.random.Generator, theta: FloatArray
    ) -> tuple[FloatArray, Encoded | None]:
        """A random design: inputs (d, n') and encoded responses (n',), or None without any.

        Inputs are normal with standard deviation 2; at each all classes are taken, or one
        response from the neighbourhood of the mean.
        """
        X = 2.0 * rng.normal(size=(self.n_features, n))
        if self.likelihood is None:
            return X, None
        if self.likelihood.support is not None:
            classes = self.likelihood.support(self.n_classes)
            return np.repeat(X, classes.size, axis=1), np.tile(classes, n)
        mean = self.mean(theta, X).value
        return X, mean + 1.5 * rng.normal(size=n)

    def _channel_jets(self, theta: FloatArray, X: FloatArray) -> list[Jet]:
        p, n = theta.size, X.shape[1]
        jets = [Jet(np.zeros(n), np.zeros((p, n)), np.zeros((p, p, n))) for _ in self.channels]
        for j, parameter in enumerate(self.parameters):
            jet = jets[parameter.channel]
            if self.channels[parameter.channel].log:
                jet.value[:] += np.log(theta[j])
                jet.first[j], jet.second[j, j] = 1.0 / theta[j], -1.0 / theta[j] ** 2
                continue
            feature = np.prod(X[list(parameter.inputs)], axis=0)
            jet.value[:] += theta[j] * feature
            jet.first[j] = feature
        return jets

    def _mean(self, channels: Sequence[Jet]) -> Jet:
        n_gate, n_mean = len(self._axes[0]), len(self._axes[1])
        mean_channels = channels[n_gate : n_gate + n_mean]
        return (
            mean_channels[0]
            if self.expert.block is None
            else _through(self.expert.block, mean_channels)
        )

    def mean(self, theta: FloatArray, X: FloatArray) -> Jet:
        """The expert's mean g(x)."""
        return self._mean(self._channel_jets(theta, X))

    def _log_weight(self, channels: Sequence[Jet], X: FloatArray) -> Jet:
        gate_channels = list(channels[: len(self._axes[0])])
        if self.gate.reads_response:
            gate_channels.append(self._mean(channels))
        return _through(self.gate.block, gate_channels, np.vstack([np.ones(X.shape[1]), X]))

    def weight(self, theta: FloatArray, X: FloatArray) -> Jet:
        """Derivatives of the weight before normalisation, divided by it."""
        return self._log_weight(self._channel_jets(theta, X), X).relative()

    def functions(
        self, theta: FloatArray, X: FloatArray, y: Encoded | None
    ) -> tuple[FloatArray, Jet]:
        """The function of the atom at X (d, n) as a factor and a jet: ``exp(factor) * jet``.

        Derivatives of the jet are those of the function divided by ``exp(factor)``; with two
        atoms the factors differ, with one it plays no part in linear dependence.
        """
        channels = self._channel_jets(theta, X)
        log_weight = self._log_weight(channels, X)
        if self.likelihood is None or self.likelihood.block is None:
            return log_weight.value, log_weight.relative().times(self._mean(channels))
        n_gate, n_mean = len(self._axes[0]), len(self._axes[1])
        channels_of_law = list(channels[n_gate:])
        if self.expert.block is not None:
            channels_of_law = [self._mean(channels), *channels_of_law[n_mean:]]
        assert y is not None
        # The Gaussian block reads one variance for all samples, and so it is here.
        total = log_weight + _through(self.likelihood.block, channels_of_law, y)
        return total.value, total.relative()


def atom_of(
    gate: str | Mapping[str, object],
    expert: str | Mapping[str, object],
    likelihood: str = "least-squares",
    *,
    n_features: int = 1,
    n_classes: int | None = None,
) -> Atom:
    """The atom of a gate, an expert and a likelihood; see `find_dependencies`.

    Examples
    --------
    >>> atom_of("sigmoid-inner", "linear", "multinomial").names
    ['beta', 'alpha', 'tau', 'b', 'a']
    """
    law = LIKELIHOODS[likelihood]
    chosen = configured(GATES, gate), configured(EXPERTS, expert)
    discrete = law.support is not None
    if discrete and (chosen[1].block is not None or chosen[0].reads_response):
        raise ValueError(
            f"expert {chosen[1].name!r} with gate {chosen[0].name!r} has one mean, but the"
            f" {likelihood} likelihood has a vector"
        )
    if n_classes is not None and not discrete:
        raise ValueError(f"n_classes = {n_classes!r}: the {likelihood} likelihood has no classes")
    return Atom(
        *chosen,
        None if law.block is None else law,
        positive_int("n_features", n_features),
        positive_int("n_classes", 2 if n_classes is None else n_classes, 2) if discrete else 1,
    )
