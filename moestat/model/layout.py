"""How the parameters of a mixture are packed: positions, names, bounds and blocks of a vector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from moestat.base.door import doors
from moestat.base.symmetric import pack_symmetric
from moestat.base.types import FloatArray, IntArray
from moestat.base.validate import as_floats, as_numbers, check_kind, short
from moestat.kernels.atom import Layout
from moestat.kernels.records import Coefficients, Places
from moestat.model.constraints import Constraint, averaged, joined
from moestat.model.members import Channel, Expert, Gate, Likelihood
from moestat.model.numbering import ExpertNames

__all__ = ["ParameterLayout"]


@doors
@dataclass(frozen=True)
class ParameterLayout:
    """Where each parameter of k atoms is in one packed vector theta (P,).

    Parameters are packed atom by atom; within an atom channel by channel, gate first; within a
    channel the coefficient of 1, then of x, then of the products of inputs.  Parameters that all
    atoms share come last.  Fields are those of `moestat.model.family.Family`.
    """

    gate: Gate
    expert: Expert
    likelihood: Likelihood
    n_experts: int
    n_features: int
    n_classes: int
    box: Mapping[str, tuple[Any, Any]] = field(repr=False)
    held: tuple[int, ...] = ()
    given: frozenset[str] = field(default=frozenset(), repr=False)
    gate_inputs: tuple[int, ...] | None = None
    expert_inputs: tuple[int, ...] | None = None
    offset_input: tuple[int, float] | None = None
    constraints: tuple[Constraint, ...] = field(default=(), repr=False)
    own_inputs: tuple[tuple[int, ...], ...] | None = None

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
        """Channels of one atom: the gate's own, the expert's, the likelihood's own.

        Of several responses those of the expert and the likelihood follow response by response,
        and then those of two of them.
        """
        gate, expert, likelihood = self._axes
        for one in self.likelihood.parts:
            n_channels = len(one.likelihood.channels)
            gate += expert[: one.n_predictors] + likelihood[:n_channels]
            expert, likelihood = expert[one.n_predictors :], likelihood[n_channels:]
        return gate + expert + likelihood

    @cached_property
    def response_of(self) -> IntArray:
        """Position of the response that each channel (C,) is of; 0 for one of none, or of two."""
        sizes = [one.n_channels for one in self.likelihood.parts]
        response = np.zeros(len(self.channels), dtype=np.int64)
        first, last = self.first_expert_channel, self.first_pair_channel
        response[first:last] = np.repeat(np.arange(len(sizes)), sizes)
        return response

    def plain_name(self, c: int) -> str:
        """The intercept's block of a channel, without the names of its responses."""
        name = self.channels[c].intercept
        if not self.likelihood.parts or c < self.first_expert_channel:
            return name
        if c >= self.first_pair_channel:
            return name.partition("_")[0]
        return name.removesuffix(f"_{self.likelihood.parts[int(self.response_of[c])].name}")

    @cached_property
    def layout(self) -> Layout:
        """Which channels the gate and the expert read, and how many atoms take part."""
        n_own, mean, _ = map(len, self._axes)
        n_gate = n_own + mean if self.gate.reads_response else n_own
        return n_gate, n_own, mean, min(self.gate.n_active or self.n_experts, self.n_experts)

    @property
    def first_expert_channel(self) -> int:
        """Position of the expert's first channel."""
        return self.layout[1]

    @property
    def first_pair_channel(self) -> int:
        """Position of the first channel that two responses share, such as a correlation.

        The channels of single responses stand before it.
        """
        return self.first_expert_channel + sum(one.n_channels for one in self.likelihood.parts)

    @cached_property
    def width(self) -> IntArray:
        """Number of coefficients of each channel, shape (C,)."""
        return np.array([c.width(self.n_features) for c in self.channels], dtype=np.int64)

    @cached_property
    def offset(self) -> IntArray:
        """Position in phi = (1, x, products) of each channel's second feature, shape (C,)."""
        return np.array([c.offset(self.n_features) for c in self.channels], dtype=np.int64)

    @cached_property
    def coefficients(self) -> Coefficients:
        """Where a packed vector has the coefficients of each channel."""
        return Coefficients(self.index, self.width, self.layout)

    @cached_property
    def channel_places(self) -> Places:
        """Where a packed vector has the coefficients of each channel, with their features."""
        n_gate, first, n_mean, n_active = self.layout
        return self.index, self.width, self.offset, (n_gate, first, n_mean, n_active)

    @cached_property
    def expert_blocks(self) -> tuple[str, ...]:
        """Names of the blocks that are parameters of the expert's mean."""
        names = (name for c in self._axes[1] for name in (c.slope, c.intercept) if name is not None)
        return tuple(dict.fromkeys(names))

    @cached_property
    def n_atom_params(self) -> int:
        """Parameters of one atom, shared ones not counted."""
        unshared = [not channel.shared for channel in self.channels]
        return int(self.width[unshared].sum())

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
        """Parameters that the density determines: neither pinned nor the scale's representative.

        Coefficients that are equal count as one.
        """
        free = self.lower < self.upper
        for name in self.gate.scaling[-1:]:
            free[self.blocks[name]] = False
        tied = sum(tie.size - 1 for tie in self.ties)
        return int(np.sum(free)) - tied

    @cached_property
    def index(self) -> IntArray:
        """Position of the first coefficient of each channel of each atom, shape (k, C)."""
        position = np.empty((self.n_experts, len(self.channels)), dtype=np.int64)
        step, shared = 0, self.n_experts * self.n_atom_params
        for c, (channel, width) in enumerate(zip(self.channels, self.width, strict=True)):
            if channel.shared:
                position[:, c] = shared
                shared += 1
            else:
                position[:, c] = np.arange(self.n_experts) * self.n_atom_params + step
                step += int(width)
        return position

    @cached_property
    def places(self) -> IntArray:
        """Positions in theta of the q coefficients of each atom, channel by channel, (k, q)."""
        return np.concatenate(
            [self.index[:, c, None] + np.arange(int(w)) for c, w in enumerate(self.width)], axis=1
        )

    @cached_property
    def blocks(self) -> dict[str, IntArray]:
        """Positions in theta of each named block.

        Shapes are (k,), (k, d) and (k, d (d + 1) / 2) for products, with an axis after the first
        for the components of a vector ((k, K - 1) and (k, K - 1, d) for multinomial experts), and
        () for a shared parameter.
        """
        d = self.n_features
        positions: dict[str, IntArray] = {}
        vectors: dict[str, list[IntArray]] = {}

        def place(channel: Channel, name: str, positions_of_channel: IntArray) -> None:
            if channel.component is not None:
                vectors.setdefault(name, []).append(positions_of_channel)
                positions_of_channel = np.stack(vectors[name], axis=1)
            positions[name] = positions_of_channel

        for c, channel in enumerate(self.channels):
            first = self.index[0, c] if channel.shared else self.index[:, c]
            place(channel, channel.intercept, first)
            after = self.index[:, c, None] + 1
            if channel.slope is not None:
                place(channel, channel.slope, after + np.arange(d))
                after = after + d
            if channel.products is not None:
                place(channel, channel.products, after + np.arange(d * (d + 1) // 2))
        return {name: np.asarray(indices) for name, indices in positions.items()}

    @cached_property
    def logged(self) -> frozenset[str]:
        """Blocks whose logarithm is packed."""
        return frozenset(channel.intercept for channel in self.channels if channel.log)

    def split(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Packed parameters as atoms (k, p) and shared parameters (s,)."""
        n_of_atoms = self.n_experts * self.n_atom_params
        return theta[:n_of_atoms].reshape(self.n_experts, -1), theta[n_of_atoms:]

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

    def on_bound(self, theta: FloatArray) -> np.ndarray:
        """Which coefficients (P,) of theta are on a bound, those that are not held at one value."""
        lower, upper = self.box_at(theta)
        return (lower < upper) & ((theta <= lower) | (theta >= upper))

    def _bound(self, side: int) -> FloatArray:
        bound = np.empty(self.n_params)
        for name, positions in self.blocks.items():
            value = self.box[name][side]
            bound[positions] = np.log(value) if name in self.logged else value
        bound[self._pinned_at_zero] = 0.0
        if self.offset_input is not None:
            bound[self.offset_positions] = self.offset_input[1]
        for at, value in self.known_values.items():
            bound[at] = value
        return bound

    @cached_property
    def equal_sets(self) -> list[IntArray]:
        """Sets of positions of coefficients that are equal, pinned ones among them."""
        sets: list[IntArray] = []
        for one in self.constraints:
            if one.value is None:
                sets += list(self.meant(one).T)
        if self.likelihood.tied:
            tied = np.transpose([self.blocks[name] for name in self.likelihood.tied])
            sets += list(np.atleast_2d(tied))
        return joined(sets)

    def single(self, constraint: Constraint) -> list[Constraint]:
        """The constraint of each input by itself."""
        if constraint.inputs is None and not self._is_sloped(constraint):
            return [constraint]
        inputs = range(self.n_features) if constraint.inputs is None else constraint.inputs
        return [replace(constraint, inputs=(f,)) for f in inputs]

    def _is_sloped(self, constraint: Constraint) -> bool:
        return any(constraint.block == channel.slope for channel in self.channels)

    def meant(self, constraint: Constraint) -> IntArray:
        """Positions (experts, m) of the coefficients that a constraint is about."""
        sloped = self._is_sloped(constraint)
        return constraint.positions(self.blocks[constraint.block], sloped)

    @cached_property
    def known_values(self) -> dict[int, float]:
        """Packed values that constraints give, by position; also of what equals a pinned one."""
        known: dict[int, float] = {}
        for one in self.constraints:
            if one.value is not None:
                log = one.block in self.logged
                value = float(np.log(one.value)) if log else one.value
                known |= dict.fromkeys(self.meant(one).ravel().tolist(), value)
        if (choices := self.likelihood.choices) is not None:
            known |= dict(
                zip(self.index[:, -1].tolist(), map(float, choices.law_of_expert), strict=True)
            )
        pinned = dict.fromkeys(self._pinned_at_zero.tolist(), 0.0) | known
        for tie in self.equal_sets:
            values = {pinned[at] for at in tie.tolist() if at in pinned}
            if len(values) > 1:
                raise ValueError(
                    f"equal: {self.param_names[tie[0]]} and what equals it have several values:"
                    f" {', '.join(f'{value:g}' for value in sorted(values))}"
                )
            if values:
                known |= dict.fromkeys(tie.tolist(), values.pop())
        return known

    @cached_property
    def _pinned_at_zero(self) -> IntArray:
        """Positions of the coefficients that are 0 by convention, or not read."""
        gauge = [self.blocks[name][-1].ravel() for name in self.gate.translations]
        unread = self.unread_positions, self.padding_positions
        return np.concatenate([self.held_positions, *unread, *gauge])

    @cached_property
    def padding_positions(self) -> IntArray:
        """Positions of the coefficients that the likelihood of their own expert does not read."""
        positions, choices = [np.empty(0, dtype=np.int64)], self.likelihood.choices
        if choices is None:
            return positions[0]
        last = self.first_expert_channel + self.layout[2]
        for i in range(self.n_experts):
            for c in range(self.first_expert_channel, len(self.channels)):
                name = None if c < last else self.channels[c].intercept  # of the mean
                if not choices.reads(i, name):
                    positions.append(self.index[i, c] + np.arange(int(self.width[c])))
        return np.concatenate(positions)

    @property
    def hidden_positions(self) -> IntArray:
        """Positions of the coefficients that are no parameters of their expert."""
        parts = [self.unread_positions, self.offset_positions, self.padding_positions]
        if self.likelihood.choices is not None:
            parts.append(self.index[:, -1])  # which likelihood it is
        return np.unique(np.concatenate(parts))

    @property
    def told_apart(self) -> bool:
        """Whether experts are not exchangeable: by their constraints, inputs or likelihoods."""
        differ = self.likelihood.choices is not None or self.own_inputs is not None
        return differ or any(one.experts is not None for one in self.constraints)

    def feasible(self, theta: FloatArray) -> FloatArray:
        """Parameters (..., P) that obey bounds and constraints, near theta."""
        return np.clip(averaged(theta.T, self.ties).T, self.lower, self.upper)

    @cached_property
    def ties(self) -> list[IntArray]:
        """Sets of positions of free coefficients that are equal."""
        return [tie for tie in self.equal_sets if int(tie[0]) not in self.known_values]

    @cached_property
    def held_positions(self) -> IntArray:
        """Positions in theta of the coefficients of inputs that are held, ascending."""
        return self._coefficients([self.held] * len(self.channels))

    @cached_property
    def unread_positions(self) -> IntArray:
        """Positions of the coefficients of inputs that the gate, or the experts, do not read."""
        everything = set(range(self.n_features))
        gate, expert = (
            () if inputs is None else tuple(sorted(everything - set(inputs)))
            for inputs in (self.gate_inputs, self.expert_inputs)
        )
        first = self.first_expert_channel
        axes = [c < first for c in range(len(self.channels))]
        unread = {*self._coefficients([gate if of_gate else expert for of_gate in axes]).tolist()}
        for i, inputs in enumerate(self.own_inputs or ()):
            unread_inputs = tuple(sorted(everything - set(inputs)))
            more = self._coefficients([() if of_gate else unread_inputs for of_gate in axes], [i])
            unread.update(more.tolist())
        unread.update(self._unread_features.tolist())
        unread.difference_update(self.offset_positions.tolist())
        return np.array(sorted(unread), dtype=np.int64)

    @property
    def _unread_features(self) -> IntArray:
        """Positions of the coefficients of channels that read some features only."""
        positions = [np.empty(0, dtype=np.int64)]
        for c, channel in enumerate(self.channels):
            if channel.reads is not None:
                others = np.setdiff1d(np.arange(int(self.width[c])), channel.reads)
                positions.append((self.index[:, c, None] + others).ravel())
        return np.concatenate(positions)

    @cached_property
    def offset_positions(self) -> IntArray:
        """Positions of the offset's coefficient in the mean of every expert, (k,) or (0,)."""
        if self.offset_input is None:
            return np.empty(0, dtype=np.int64)
        return self.index[:, self.first_expert_channel] + 1 + self.offset_input[0]

    @cached_property
    def read(self) -> tuple[int, ...]:
        """Inputs with a coefficient that is estimated, ascending."""
        everything = range(self.n_features)
        inputs = {f for part in (self.gate_inputs, self.expert_inputs) for f in part or ()}
        if self.gate_inputs is None or self.expert_inputs is None:
            inputs.update(everything)
        inputs -= {*self.held, *(() if self.offset_input is None else self.offset_input[:1])}
        return tuple(sorted(inputs))

    def _coefficients(
        self, inputs: Sequence[tuple[int, ...]], atoms: list[int] | slice = slice(None)
    ) -> IntArray:
        """Positions of the coefficients of given inputs of each channel (C,), ascending."""
        if not any(inputs):
            return np.empty(0, dtype=np.int64)
        rows, columns = np.triu_indices(self.n_features)
        positions = [np.empty(0, dtype=np.int64)]
        for c, (channel, chosen) in enumerate(zip(self.channels, inputs, strict=True)):
            after = self.index[atoms, c, None] + 1
            if channel.slope is not None:
                positions.append((after + np.array(chosen, dtype=np.int64)).ravel())
                after = after + self.n_features
            if channel.products is not None:
                products = np.flatnonzero(np.isin(rows, chosen) | np.isin(columns, chosen))
                positions.append((after + products).ravel())
        return np.unique(np.concatenate(positions))

    @cached_property
    def param_names(self) -> list[str]:
        """One name per packed parameter, e.g. ``alpha[1,0]``: expert 1, input in column 0 of X."""
        names, labels = [""] * self.n_params, ExpertNames(self.n_experts).labels
        for name, positions in self.blocks.items():
            block = f"log {name}" if name in self.logged else name
            for indices, position in np.ndenumerate(positions):
                of_expert: list[str] = [labels[int(i)] for i in indices[:1]]
                at = ",".join([*of_expert, *map(str, indices[1:])])
                names[int(position)] = f"{block}[{at}]" if indices else block
        return names

    @cached_property
    def jacobian_rows(self) -> IntArray:
        """Row (P,) of each coefficient in a Jacobian of the free ones, -1 for pinned ones."""
        free = self.lower < self.upper
        return np.where(free, np.cumsum(free) - 1, -1)

    @cached_property
    def gate_rows(self) -> IntArray:
        """Number (P,) of each free coefficient of a normalised gate among these, else -1."""
        free = np.zeros(self.n_params, dtype=bool)
        for c in range(self.layout[0]) if self.gate.normalised else ():
            free[self.index[:, c, None] + np.arange(self.width[c])] = True
        free &= self.jacobian_rows >= 0
        return np.where(free, np.cumsum(free) - 1, -1)

    @cached_property
    def n_quadratic_features(self) -> int:
        """Number of features of x that the channels read, at least 1 and the d inputs."""
        return int(max(1 + self.n_features, (self.offset + self.width).max() - 1))

    def pack(self, blocks: Mapping[str, ArrayLike]) -> FloatArray:
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
        check_kind("blocks", blocks, Mapping, "a table of blocks with their values")
        if self.likelihood.choices is not None:
            # What options say need not be given.
            lower = np.where(self.lower == self.upper, self.lower, np.nan)
            known = {name: lower[at] for name, at in self.blocks.items()}
            complete = {name: value for name, value in known.items() if not np.isnan(value).any()}
            logs = {name: np.exp(complete[name]) for name in self.logged & complete.keys()}
            blocks = {**complete, **logs, **blocks}
        unknown = sorted(set(blocks) - set(self.blocks), key=str)
        missing = sorted(set(self.blocks) - set(blocks))
        if unknown or missing:
            raise ValueError(
                f"blocks must be {', '.join(self.blocks)}; missing: {', '.join(missing) or 'none'};"
                f" unknown: {', '.join(map(short, unknown)) or 'none'}"
            )
        theta = np.empty(self.n_params)
        for name, positions in self.blocks.items():
            values = self._block_values(name, blocks[name], positions.shape)
            if name in self.logged:
                if np.any(values <= 0.0):
                    raise ValueError(
                        f"block {name!r} must be positive, got {short(values.tolist())}"
                    )
                values = np.log(values)
            theta[positions] = values
        return theta

    def _block_values(self, name: str, value: ArrayLike, shape: tuple[int, ...]) -> FloatArray:
        array = as_numbers(f"block {name!r}", value)
        d = self.n_features
        quadratic = any(name == c.products for c in self.channels)
        if quadratic and array.ndim == 3 and array.shape[1:] == (d, d):
            array = pack_symmetric(as_floats(f"block {name!r}", array, (None, d, d)))
        per_class = name in self.expert_blocks
        # With d = 1 the trailing axis of a slope may be left out.
        if self.n_features == 1 and shape[-1:] == (1,) and array.ndim == len(shape) - 1:
            array = array[..., None]
        of_classes = self.likelihood.support is not None and array.ndim == len(shape)
        has_classes = of_classes and self.likelihood.n_responses(2) is not None
        if per_class and has_classes and array.shape[1] == self.n_classes:
            array = array[:, :-1] - array[:, -1:]
        return as_floats(f"block {name!r}", array, shape)

    def unpack(self, theta: ArrayLike) -> dict[str, FloatArray]:
        """A packed vector (P,) to named blocks, the inverse of `pack`."""
        vector = as_floats("theta", theta, (self.n_params,))
        return {
            name: np.exp(vector[positions]) if name in self.logged else vector[positions]
            for name, positions in self.blocks.items()
        }

    def embed(self, other: ParameterLayout, theta: ArrayLike) -> FloatArray:
        """Packed parameters with the blocks of another layout's theta; further blocks are 0.

        With them a gate whose masses are fixed is a gate with free ones, for instance.
        """
        given = as_floats("theta", theta, (other.n_params,))
        if other.n_experts != self.n_experts:
            raise ValueError(f"other must have {self.n_experts} experts, got {other.n_experts}")
        packed = np.zeros(self.n_params)
        for name, positions in self.blocks.items():
            if name in other.blocks:
                if other.blocks[name].shape != positions.shape:
                    raise ValueError(f"block {name!r} has another shape in the other family")
                packed[positions] = given[other.blocks[name]]
        return packed
