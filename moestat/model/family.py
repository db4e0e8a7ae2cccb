"""Families: a gate, an expert and a likelihood, with sizes, parameter layout and bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from moestat.base.registry import configured
from moestat.base.symmetric import pack_symmetric
from moestat.base.types import Channel, Expert, FloatArray, Gate, IntArray, Likelihood
from moestat.base.validate import as_design, as_floats, as_numbers, positive_int
from moestat.kernels.atom import Layout
from moestat.kernels.build import Loops, build_loops
from moestat.model.experts import EXPERTS
from moestat.model.gates import GATES
from moestat.model.likelihoods import LIKELIHOODS
from moestat.model.measure import MixingMeasure

__all__ = ["Family", "family"]


@dataclass(frozen=True)
class Family:
    """A family of mixtures of experts, ``p(y | x) = sum_i pi_i(x) f(y | x; theta_i)``.

    With the least-squares likelihood it is a family of regression functions,
    ``f(x) = sum_i w_i(x) g(x; theta_i)``.  Build one with `family`.  Packed parameters are a
    vector theta (P,), atom by atom; within an atom channel by channel, gate first; within a
    channel the coefficient of 1, then of x, then of the products of inputs.

    Parameters
    ----------
    gate, expert, likelihood : Gate, Expert, Likelihood
        Members of the three axes.
    n_experts, n_features, n_classes : int
        Number of atoms k, inputs d and classes K; K is 1 for a continuous response.
    box : mapping
        Block -> (lower, upper), the compact parameter space.
    """

    gate: Gate
    expert: Expert
    likelihood: Likelihood
    n_experts: int
    n_features: int
    n_classes: int
    box: Mapping[str, tuple[float, float]] = field(repr=False)

    @cached_property
    def _axes(self) -> tuple[tuple[Channel, ...], ...]:
        """Channels of one atom by axis: gate, expert, likelihood."""
        n_responses = self.likelihood.n_responses(self.n_classes)
        return (
            self.gate.channels(self.n_features),
            self.expert.channels(self.n_features, n_responses),
            self.likelihood.channels,
        )

    @cached_property
    def channels(self) -> tuple[Channel, ...]:
        """Channels of one atom: the gate's own, the expert's, the likelihood's own."""
        gate, expert, likelihood = self._axes
        return gate + expert + likelihood

    @cached_property
    def layout(self) -> Layout:
        """Which channels the gate and the expert read, and how many atoms take part."""
        own, mean, _ = map(len, self._axes)
        n_gate = own + mean if self.gate.reads_response else own
        return n_gate, own, mean, min(self.gate.n_active or self.n_experts, self.n_experts)

    @property
    def has_jumps(self) -> bool:
        """Whether the log-likelihood jumps: only some of the atoms are active at each x.

        Examples
        --------
        >>> from moestat import family
        >>> [family("gaussian", gate="softmax-top", n_experts=k).has_jumps for k in (1, 2)]
        [False, True]
        """
        return self.layout[3] < self.n_experts

    @property
    def first_expert_channel(self) -> int:
        """Position of the expert's first channel."""
        return self.layout[1]

    @cached_property
    def width(self) -> IntArray:
        """Number of coefficients of each channel, shape (C,)."""
        return np.array([c.width(self.n_features) for c in self.channels], dtype=np.int64)

    @cached_property
    def offset(self) -> IntArray:
        """Position in phi = (1, x, products) of each channel's second feature, shape (C,)."""
        return np.array([c.offset(self.n_features) for c in self.channels], dtype=np.int64)

    @property
    def is_regression(self) -> bool:
        """Whether this is a family of regression functions, fitted by least squares."""
        return self.likelihood.block is None

    @property
    def has_kinked_mean(self) -> bool:
        """Whether regression functions have corners in the parameters, as with ReLU experts."""
        return self.expert.kinked or self.gate.kink is not None

    @cached_property
    def n_atom_params(self) -> int:
        """Parameters of one atom, shared ones not counted."""
        own = [not channel.shared for channel in self.channels]
        return int(self.width[own].sum())

    @cached_property
    def mass_column(self) -> int | None:
        """Where an atom's log-mass is among its parameters, None for a gate without masses."""
        if self.gate.mass is None:
            return None
        return int(self.blocks[self.gate.mass].flat[0]) % self.n_atom_params

    @cached_property
    def n_params(self) -> int:
        """Length P of the packed vector, pinned coordinates included."""
        shared = sum(channel.shared for channel in self.channels)
        return self.n_experts * self.n_atom_params + shared

    @property
    def n_free_params(self) -> int:
        """Parameters that the density determines: neither pinned nor the scale's representative."""
        held = 1 if self.gate.scaling else 0
        return int(np.sum(self.lower < self.upper)) - held

    @cached_property
    def index(self) -> IntArray:
        """Position of the first coefficient of each channel of each atom, shape (k, C)."""
        position = np.empty((self.n_experts, len(self.channels)), dtype=np.int64)
        own, shared = 0, self.n_experts * self.n_atom_params
        for c, (channel, width) in enumerate(zip(self.channels, self.width, strict=True)):
            if channel.shared:
                position[:, c] = shared
                shared += 1
            else:
                position[:, c] = np.arange(self.n_experts) * self.n_atom_params + own
                own += int(width)
        return position

    @cached_property
    def blocks(self) -> dict[str, IntArray]:
        """Positions in theta of each named block.

        Shapes are (k,), (k, d) and (k, d (d + 1) / 2) for products, with an axis after the first
        for the components of a vector ((k, K - 1) and (k, K - 1, d) for multinomial experts), and
        () for a shared parameter.
        """
        d = self.n_features
        positions: dict[str, Any] = {}
        vectors: dict[str, list[IntArray]] = {}

        def place(channel: Channel, name: str, where: IntArray) -> None:
            if channel.component is not None:
                vectors.setdefault(name, []).append(where)
                where = np.stack(vectors[name], axis=1)
            positions[name] = where

        for c, channel in enumerate(self.channels):
            first = self.index[0, c] if channel.shared else self.index[:, c]
            place(channel, channel.intercept, first)
            after = self.index[:, c, None] + 1
            if channel.slope is not None:
                place(channel, channel.slope, after + np.arange(d))
                after = after + d
            if channel.products is not None:
                place(channel, channel.products, after + np.arange(d * (d + 1) // 2))
        return {name: np.asarray(where) for name, where in positions.items()}

    @cached_property
    def _logs(self) -> frozenset[str]:
        """Blocks whose logarithm is packed."""
        return frozenset(channel.intercept for channel in self.channels if channel.log)

    def units(self, theta: FloatArray) -> FloatArray:
        """What a change of each coefficient (P,) is measured in.

        Coefficients of a mean in units of the response are measured in standard deviations of
        their own atom at theta, all others in 1: then a unit is a unit of log-likelihood.
        """
        unit = np.ones(self.n_params)
        if not any(channel.log for channel in self.likelihood.channels):
            return unit
        own = theta[self.index[:, -len(self.likelihood.channels) :]].T
        assert self.likelihood.spread is not None
        _, deviation = self.likelihood.spread(np.vstack([np.zeros(self.n_experts), own]))
        for (i, c), first in np.ndenumerate(self.index):
            if self.channels[c].response and not self.channels[c].log:
                unit[first : first + self.width[c]] = deviation[i]
        return unit

    def split(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Packed parameters as atoms (k, p) and shared parameters (s,)."""
        own = self.n_experts * self.n_atom_params
        return theta[:own].reshape(self.n_experts, -1), theta[own:]

    def join(self, atoms: FloatArray, shared: FloatArray) -> FloatArray:
        """Atoms (k, p) and shared parameters (s,) as packed parameters, the inverse of `split`."""
        return np.concatenate([atoms.ravel(), shared])

    @cached_property
    def lower(self) -> FloatArray:
        """Lower bounds (P,); pinned coordinates have equal bounds."""
        return self._bound(0)

    @cached_property
    def upper(self) -> FloatArray:
        """Upper bounds (P,); pinned coordinates have equal bounds."""
        return self._bound(1)

    def box_at(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Bounds (P,) and (P,) of a solver that is at theta.

        They are `lower` and `upper`, but the representative of a scaling is held at its value in
        theta: along it the likelihood is constant, and a solver that moved would only wander.
        """
        lower, upper = self.lower.copy(), self.upper.copy()
        for name in self.gate.scaling[-1:]:
            lower[self.blocks[name]] = upper[self.blocks[name]] = theta[self.blocks[name]]
        return lower, upper

    def _bound(self, side: int) -> FloatArray:
        bound = np.empty(self.n_params)
        for name, positions in self.blocks.items():
            value = self.box[name][side]
            bound[positions] = np.log(value) if name in self._logs else value
        for name in self.gate.translations:
            bound[self.blocks[name][-1]] = 0.0
        return bound

    @cached_property
    def param_names(self) -> list[str]:
        """One name per packed parameter, e.g. ``alpha[0,1]``: atom 0, input 1 (from 0)."""
        names = [""] * self.n_params
        for name, positions in self.blocks.items():
            block = f"log {name}" if name in self._logs else name
            for where, position in np.ndenumerate(positions):
                at = ",".join(map(str, where))
                names[int(position)] = f"{block}[{at}]" if where else block
        return names

    @property
    def loops(self) -> Loops:
        """Compiled loops of this kind of atom."""
        return build_loops(
            self.gate.block,
            self.expert.block,
            self.likelihood.block,
            self.gate.reads_response,
            self.gate.n_active is not None,
            self.gate.normalised,
        )

    def with_experts(self, n_experts: int) -> Family:
        """The same family with another number of experts."""
        return replace(self, n_experts=positive_int("n_experts", n_experts))

    def pack(self, blocks: Mapping[str, Any]) -> FloatArray:
        """Named blocks to a packed vector.

        Parameters
        ----------
        blocks : mapping of str to array_like
            One array per name in `blocks`.  With d = 1 the trailing axis of a slope may be left
            out.  A block of products may be matrices (k, d, d), see `moestat.base.symmetric`.
            Expert blocks may give all K classes; then the contrasts to class K are taken, which
            leave the density as it is.

        Returns
        -------
        ndarray of shape (P,)
            theta.

        Raises
        ------
        ValueError
            If a block is missing, unknown, of another shape, or not finite.

        Examples
        --------
        >>> from moestat import family
        >>> F = family("multinomial", gate="softmax", n_experts=2, n_classes=2)
        >>> theta = F.pack({"beta0": [0.2, 0], "beta1": [-2, 0], "a": [[1], [0]], "b": [[2], [1]]})
        >>> F.unpack(theta)["beta1"].tolist()
        [[-2.0], [0.0]]
        """
        unknown = sorted(set(blocks) - set(self.blocks))
        missing = sorted(set(self.blocks) - set(blocks))
        if unknown or missing:
            raise ValueError(
                f"blocks must be {', '.join(self.blocks)}; missing: {', '.join(missing) or 'none'};"
                f" unknown: {', '.join(unknown) or 'none'}"
            )
        theta = np.empty(self.n_params)
        for name, positions in self.blocks.items():
            values = self._block_values(name, blocks[name], positions.shape)
            if name in self._logs:
                if np.any(values <= 0.0):
                    raise ValueError(f"block {name!r} must be positive, got {values.tolist()}")
                values = np.log(values)
            theta[positions] = values
        return theta

    def _block_values(self, name: str, value: Any, shape: tuple[int, ...]) -> FloatArray:
        array = as_numbers(f"block {name!r}", value)
        d = self.n_features
        quadratic = any(name == c.products for c in self.channels)
        if quadratic and array.ndim == 3 and array.shape[1:] == (d, d):
            array = pack_symmetric(as_floats(f"block {name!r}", array, (None, d, d)))
        per_class = any(name in (c.intercept, c.slope) for c in self._axes[1])
        # With d = 1 the trailing axis of a slope may be left out.
        if self.n_features == 1 and shape[-1:] == (1,) and array.ndim == len(shape) - 1:
            array = array[..., None]
        has_classes = self.likelihood.support is not None and array.ndim == len(shape)
        if per_class and has_classes and array.shape[1] == self.n_classes:
            array = array[:, :-1] - array[:, -1:]
        return as_floats(f"block {name!r}", array, shape)

    def unpack(self, theta: Any) -> dict[str, FloatArray]:
        """A packed vector (P,) to named blocks, the inverse of `pack`."""
        vector = as_floats("theta", theta, (self.n_params,))
        return {
            name: np.exp(vector[positions]) if name in self._logs else vector[positions]
            for name, positions in self.blocks.items()
        }

    def pin(self, theta: FloatArray) -> FloatArray:
        """The parameters of the same density with the reference atom's translations at 0."""
        pinned = np.array(theta, dtype=np.float64)
        for name in self.gate.translations:
            pinned[self.blocks[name]] -= pinned[self.blocks[name][-1]]
        return pinned

    def canonical(self, theta: Any) -> FloatArray:
        """The representative of theta under relabelling and translations.

        Atoms are sorted by their expert's parameters, then the last atom's translations are
        pinned to 0.  Two parameter vectors that differ by these symmetries agree afterwards.
        """
        vector = as_floats("theta", theta, (self.n_params,))
        atoms, shared = self.split(vector)
        first_expert = self.index[0, self.first_expert_channel]
        order = np.lexsort(atoms[:, first_expert:].T[::-1])
        return self.pin(self.join(atoms[order], shared))

    def measure(self, theta: Any) -> MixingMeasure:
        """The mixing measure of packed parameters; every atom carries the shared ones."""
        blocks = self.unpack(theta)
        k = self.n_experts
        if self.gate.mass is None:
            masses = np.full(k, self.gate.fixed_mass(k))
        elif self.gate.normalised:
            masses = np.exp(blocks.pop(self.gate.mass))
        else:
            masses = 1.0 / (1.0 + np.exp(-blocks[self.gate.mass]))
        own = (name for c in self._axes[1] for name in (c.slope, c.intercept) if name is not None)
        return MixingMeasure(
            masses,
            {name: np.full(k, b) if b.ndim == 0 else b for name, b in blocks.items()},
            expert_blocks=tuple(dict.fromkeys(own)),
            symmetry=self.expert.symmetry,
        )

    def from_measure(self, measure: MixingMeasure) -> FloatArray:
        """Packed parameters of a mixing measure with as many atoms, the inverse of `measure`."""
        blocks = dict(measure.atoms)
        if self.gate.mass is not None:
            if self.gate.normalised:
                blocks[self.gate.mass] = np.log(measure.masses)
        elif np.any(measure.masses != self.gate.fixed_mass(self.n_experts)):
            raise ValueError(
                f"gate {self.gate.name!r} gives every atom the mass"
                f" {self.gate.fixed_mass(self.n_experts):g}, got {measure.masses}"
            )
        for name, positions in self.blocks.items():
            if positions.ndim == 0 and name in blocks:
                if np.ptp(blocks[name]) > 0:
                    raise ValueError(f"block {name!r} is shared by all atoms, got {blocks[name]}")
                blocks[name] = blocks[name][0]
        return self.pack(blocks)

    def embed(self, other: Family, theta: Any) -> FloatArray:
        """Packed parameters with the blocks of another family's theta; further blocks are 0.

        With them a gate whose masses are fixed is a gate with free ones, for instance.
        """
        given = as_floats("theta", theta, (other.n_params,))
        if other.n_experts != self.n_experts:
            raise ValueError(f"other must have {self.n_experts} experts, got {other.n_experts}")
        own = np.zeros(self.n_params)
        for name, positions in self.blocks.items():
            if name in other.blocks:
                if other.blocks[name].shape != positions.shape:
                    raise ValueError(f"block {name!r} has another shape in the other family")
                own[positions] = given[other.blocks[name]]
        return own

    def rowwise(self, theta: FloatArray, X: FloatArray, y: Any) -> tuple[FloatArray, ...]:
        """Gate probabilities (k, n), responsibilities (k, n) and log-density (n,) of encoded data.

        Parameters
        ----------
        theta : ndarray of shape (P,)
            Packed parameters.
        X : ndarray of shape (d, n)
            Inputs, contiguous.
        y : ndarray of shape (n,)
            Encoded responses.
        """
        n = X.shape[1]
        prior, posterior = np.empty((self.n_experts, n)), np.empty((self.n_experts, n))
        log_density = np.empty(n)
        self.loops.rowwise(
            theta,
            self.index,
            self.width,
            self.layout,
            X,
            y,
            prior,
            posterior,
            log_density,
        )
        return prior, posterior, log_density

    def regression(
        self, theta: FloatArray, X: FloatArray, weights: bool = False
    ) -> tuple[FloatArray, FloatArray]:
        """Regression function f (n,) and weights of the atoms (k, n), or (k, 0) unless asked for.

        Parameters
        ----------
        theta : ndarray of shape (P,)
            Packed parameters.
        X : ndarray of shape (d, n)
            Inputs, contiguous.
        weights : bool
            Whether the weights are wanted.
        """
        n = X.shape[1]
        f, w = np.empty(n), np.empty((self.n_experts, n if weights else 0))
        self.residuals(theta, X, np.empty(n), 0, 0, f, w, np.empty((0, 0)))
        return f, w

    @cached_property
    def jacobian_rows(self) -> IntArray:
        """Row (P,) of each coefficient in a Jacobian of the free ones, -1 for pinned ones."""
        free = self.lower < self.upper
        return np.where(free, np.cumsum(free) - 1, -1)

    @cached_property
    def n_quadratic_features(self) -> int:
        """Number of features of x that the channels read, at least 1 and the d inputs."""
        return int(max(1 + self.n_features, (self.offset + self.width).max() - 1))

    def residuals(
        self,
        theta: FloatArray,
        X: FloatArray,
        scale: FloatArray,
        start: int,
        order: int,
        f: FloatArray,
        w: FloatArray,
        jacobian: FloatArray,
    ) -> None:
        """Fill f, w and the scaled Jacobian; see `moestat.kernels.regression.residual_loop`."""
        self.loops.residuals(
            theta,
            self.index,
            self.width,
            self.offset,
            self.layout,
            self.jacobian_rows,
            X,
            scale,
            start,
            order,
            f,
            w,
            jacobian,
        )

    def log_density(self, theta: Any, X: Any, y: Any) -> FloatArray:
        """``log p(y_t | x_t)`` of each sample.

        Parameters
        ----------
        theta : array_like of shape (P,)
            Packed parameters.
        X : array_like of shape (n, d)
            Inputs; (n,) when d = 1.
        y : array_like of shape (n,)
            Responses; class labels 1..K for classes.

        Returns
        -------
        ndarray of shape (n,)
            Natural-log densities.

        Raises
        ------
        ValueError
            If an argument has another shape or is not finite, or the family has no density.

        Examples
        --------
        >>> from moestat import family
        >>> F = family("multinomial", gate="softmax", n_experts=1, n_classes=2)
        >>> F.log_density([0, 0, 0, 0], [0.5], [1]).round(4).tolist()
        [-0.6931]
        """
        design = as_design(X, self.n_features)
        if self.is_regression:
            raise ValueError("a family that is fitted by least squares has no density")
        response = self.likelihood.encode(y, self.n_classes)
        if response.shape[0] != design.shape[1]:
            raise ValueError(f"X has {design.shape[1]} samples but y has {response.shape[0]}")
        vector = as_floats("theta", theta, (self.n_params,))
        return self.rowwise(vector, design, response)[2]

    def gate_probabilities(self, theta: Any, X: Any) -> FloatArray:
        """``pi_i(x_t)`` of every atom, shape (n, k); rows sum to 1.

        The weights of a gate that is not normalised are in (0, 1), each by itself.
        """
        design = as_design(X, self.n_features)
        vector = as_floats("theta", theta, (self.n_params,))
        if self.is_regression:
            return self.regression(vector, design, weights=True)[1].T
        return self.rowwise(vector, design, self.placeholder(design.shape[1]))[0].T

    def placeholder(self, n: int) -> Any:
        """Encoded responses (n,) for loops whose outcome does not depend on them."""
        return np.zeros(n, dtype=self.likelihood.dtype)

    def probabilities(self, theta: Any, X: Any) -> FloatArray:
        """``p(y = s | x_t)`` for every class, shape (n, K); rows sum to 1.

        Raises
        ------
        ValueError
            If the response is not one of finitely many classes.
        """
        if self.likelihood.support is None:
            raise ValueError(f"the {self.likelihood.name} likelihood has no class probabilities")
        design = as_design(X, self.n_features)
        vector = as_floats("theta", theta, (self.n_params,))
        n = design.shape[1]
        columns = [
            np.exp(self.rowwise(vector, design, np.full(n, s, dtype=np.int64))[2])
            for s in self.likelihood.support(self.n_classes)
        ]
        return np.stack(columns, axis=1)

    def mean(self, theta: Any, X: Any) -> FloatArray:
        """``E(y | x_t) = sum_i pi_i(x_t) g_i(x_t)`` of a continuous response, shape (n,).

        Raises
        ------
        ValueError
            If the response is a class.
        """
        if self.likelihood.spread is None:
            raise ValueError(f"the {self.likelihood.name} likelihood has no mean")
        vector = as_floats("theta", theta, (self.n_params,))
        design = as_design(X, self.n_features)
        if self.is_regression:
            return self.regression(vector, design)[0]
        means, _ = self.likelihood.spread(self.predictors(vector, design))
        return np.sum(self.gate_probabilities(vector, X).T * means, axis=0)

    def predictors(self, theta: FloatArray, X: FloatArray) -> FloatArray:
        """Predictors of the likelihood for each atom, shape (k, n_predictors, n)."""
        first = self.first_expert_channel
        out = np.empty((self.n_experts, len(self.channels) - first, X.shape[1]))
        for (i, c), at in np.ndenumerate(self.index[:, first:]):
            slopes = theta[at + 1 : at + self.width[first + c]]
            out[i, c] = theta[at] + slopes @ X[: slopes.size]
        if self.expert.block is None:
            return out
        last = self.layout[2]
        means = np.empty((self.n_experts, 1, X.shape[1]))
        for i in range(self.n_experts):
            self.loops.response(out[i, :last], means[i, 0])
        return np.concatenate([means, out[:, last:]], axis=1)


def _check_pairing(gate: Gate, expert: Expert, likelihood: Likelihood) -> None:
    """Raise unless the kernels have loops for these three together."""
    products = any(channel.products is not None for channel in gate.channels(1))
    if likelihood.block is not None and (products or not gate.normalised):
        raise ValueError(
            f"gate {gate.name!r} is for regression functions, likelihood 'least-squares', not for"
            f" densities, got likelihood {likelihood.name!r}"
        )
    if likelihood.block is None and (gate.reads_response or gate.n_active is not None):
        raise ValueError(
            f"gate {gate.name!r} does not go with likelihood 'least-squares': its weights read the"
            " response or jump"
        )


def family(
    likelihood: str = "multinomial",
    *,
    gate: str | Mapping[str, Any] = "sigmoid",
    expert: str | Mapping[str, Any] = "linear",
    n_experts: int = 2,
    n_features: int = 1,
    n_classes: int | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
) -> Family:
    """A family of mixtures of experts, by the names of its axes.

    Parameters
    ----------
    likelihood : str
        Name in ``moestat.model.likelihoods.LIKELIHOODS``.
    gate : str or mapping
        Name in ``moestat.model.gates.GATES``, or a table with ``name`` and the gate's options, such
        as ``{"name": "competition", "activation": "silu"}``.
    expert : str or mapping
        Name in ``moestat.model.experts.EXPERTS``, or a table with ``name`` and the expert's
        options, such as ``{"name": "ffn", "hidden": 3}``.
    n_experts : int
        Number of experts k >= 1.
    n_features : int
        Number of inputs d >= 1.
    n_classes : int, optional
        Number of classes K >= 2, 2 by default; not for a continuous response.
    bounds : mapping of str to (float, float), optional
        Lower and upper bound of whole blocks, replacing the defaults of the gate and expert.

    Returns
    -------
    Family
        The family; ``.n_params`` is its number of packed parameters.

    Raises
    ------
    ValueError
        If a name is unknown, a size too small, or a bound not an increasing finite pair.

    Examples
    --------
    >>> F = family("multinomial", gate="sigmoid", n_experts=2, n_features=1, n_classes=2)
    >>> F.n_params, F.n_free_params
    (10, 9)
    >>> family("gaussian", gate="competition", expert={"name": "ffn", "hidden": 2}).n_params
    14

    A regression function with raw sigmoid gates of quadratic scores:

    >>> relu = {"name": "activation", "activation": "relu", "weighted": False}
    >>> F = family("least-squares", gate="sigmoid-quadratic", expert=relu, n_features=2)
    >>> {name: block.shape for name, block in F.blocks.items()}
    {'c': (2,), 'b': (2, 2), 'A': (2, 3), 'beta': (2,), 'alpha': (2, 2)}
    """
    chosen = (configured(GATES, gate), configured(EXPERTS, expert), LIKELIHOODS[likelihood])
    discrete = chosen[2].support is not None
    if chosen[2].n_responses(2) is not None and (
        chosen[1].block is not None or chosen[0].reads_response
    ):
        culprit = (
            f"expert {chosen[1].name!r} supplies"
            if chosen[1].block is not None
            else f"gate {chosen[0].name!r} reads"
        )
        raise ValueError(f"{culprit} one mean, but the {likelihood} likelihood has a vector")
    _check_pairing(*chosen)
    if n_classes is not None and not discrete:
        raise ValueError(f"n_classes = {n_classes!r}: the {likelihood} likelihood has no classes")
    names = [name for axis in chosen for name in axis.bounds]
    clash = sorted({name for name in names if names.count(name) > 1})
    if clash:
        raise ValueError(
            f"gate {chosen[0].name!r} and expert {chosen[1].name!r} both have a block"
            f" {clash[0]!r}: their parameters could not be told apart"
        )
    box = {**chosen[0].bounds, **chosen[1].bounds, **chosen[2].bounds}
    logs = {channel.intercept for channel in chosen[2].channels if channel.log}
    for name, pair in (bounds or {}).items():
        if name not in box:
            raise ValueError(f"bounds: unknown block {name!r}; known: {', '.join(box)}")
        low, high = as_floats(f"bounds of {name!r}", pair, (2,))
        if not low < high:
            raise ValueError(f"bounds of {name!r} must increase, got ({low:g}, {high:g})")
        if low <= 0.0 and name in logs:
            raise ValueError(f"bounds of {name!r} must be positive, got ({low:g}, {high:g})")
        box[name] = (float(low), float(high))
    for name in chosen[0].translations:
        if not box[name][0] <= 0.0 <= box[name][1]:
            raise ValueError(f"bounds of {name!r} must hold 0, the reference atom's value")
    return Family(
        *chosen,
        n_experts=positive_int("n_experts", n_experts),
        n_features=positive_int("n_features", n_features),
        n_classes=positive_int("n_classes", 2 if n_classes is None else n_classes, 2)
        if discrete
        else 1,
        box=box,
    )
