"""Families: densities and means of a gate, an expert and a likelihood of given sizes."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from moestat.base.door import doors
from moestat.base.registry import configured, table_of
from moestat.base.types import Encoded, FloatArray, IntArray, Seed
from moestat.base.validate import (
    as_design,
    as_floats,
    as_generator,
    check_kind,
    is_sequence,
    positive_int,
    short,
)
from moestat.kernels.build import Loops, build_loops
from moestat.kernels.records import BySample
from moestat.kernels.regression import residual_loop
from moestat.model.constraints import constraint_of
from moestat.model.experts import EXPERTS
from moestat.model.gates import GATES
from moestat.model.joint import as_likelihood, expert_of, likelihood_table
from moestat.model.layout import ParameterLayout
from moestat.model.measure import MixingMeasure, measure_of, parameters_of
from moestat.model.qualify import qualified

__all__ = ["Family", "check_family", "from_table"]


@doors
@dataclass(frozen=True, repr=False)
class Family(ParameterLayout):
    """A family of mixtures of experts, ``p(y | x) = sum_i pi_i(x) f(y | x; theta_i)``.

    With the least-squares likelihood it is a family of regression functions,
    ``f(x) = sum_i w_i(x) g(x; theta_i)``.  Build one with `family`.  Parameters are one packed
    vector theta (P,), in the order of its `ParameterLayout`.

    Parameters
    ----------
    gate, expert, likelihood : Gate, Expert, Likelihood
        Members of the three axes.
    n_experts, n_features, n_classes : int
        Number of atoms k, inputs d and classes K; K is 1 for a continuous response.
    box : mapping
        Block -> (lower, upper), the compact parameter space; arrays that broadcast to the block's
        shape bound each coefficient by itself.
    held : tuple of int
        Inputs whose coefficients are pinned to 0, see `holding`.
    given : frozenset of str
        Blocks whose bounds are the user's own.  Only these bind a fit to data, see `moestat.fit`.
    gate_inputs, expert_inputs : tuple of int or None
        Inputs that the gate and the experts read, None for all; coefficients of the others are
        pinned to 0.
    offset_input : (int, float) or None
        An input that no gate reads and its coefficient in the mean of every expert.
    constraints : tuple of Constraint
        Coefficients that are equal between experts, or known, see `family`.
    own_inputs : tuple of tuple of int, or None
        Inputs that each expert reads where these differ; `expert_inputs` has all of them.

    Examples
    --------
    >>> from moestat import family
    >>> model = family("gaussian", gate="softmax", n_experts=3)
    >>> model, model.n_free_params
    (family('gaussian', gate='softmax', expert='linear', n_experts=3, n_features=1), 13)
    """

    def __repr__(self) -> str:
        parts = {"gate": table_of(self.gate), "expert": table_of(self.expert)}
        parts |= {"n_experts": self.n_experts, "n_features": self.n_features}
        parts |= {"n_classes": self.n_classes} if self.likelihood.support is not None else {}
        named = ", ".join(f"{name}={value!r}" for name, value in parts.items())
        return f"family({likelihood_table(self.likelihood)!r}, {named})"

    @cached_property
    def _described(self) -> dict[str, Any]:
        """Names, options and sizes."""
        table: dict[str, Any] = {
            "likelihood": likelihood_table(self.likelihood),
            "gate": table_of(self.gate),
            "expert": table_of(self.expert),
            "sizes": [self.n_experts, self.n_features, self.n_classes],
            "box": {
                name: [np.asarray(b).tolist() for b in pair] for name, pair in self.box.items()
            },
            "held": list(self.held),
            "given": sorted(self.given),
        }
        if self.equal:
            table["equal"] = list(self.equal)
        for name in ("gate_inputs", "expert_inputs", "offset_input"):
            if (value := getattr(self, name)) is not None:
                table[name] = list(value)
        if self.own_inputs is not None:
            table["own_inputs"] = [list(inputs) for inputs in self.own_inputs]
        if self.constraints:
            table["constraints"] = [one.table for one in self.constraints]
        return table

    @property
    def table(self) -> dict[str, Any]:
        """Names, options and sizes that `from_table` makes this family of, ready for JSON.

        Raises
        ------
        TypeError
            If an axis is not a member of its registry: its functions have no name to be found by.
        """
        if from_table(self._described) != self:
            raise TypeError(f"{self!r} has an axis that is not in its registry; register it first")
        return copy.deepcopy(self._described)

    def __eq__(self, other: object) -> bool:
        """Whether names, options, sizes and the compiled density are the same.

        Members with options are made anew by each call, and their functions with them.
        """
        if not isinstance(other, Family):
            return NotImplemented
        return self is other or (
            self._described == other._described
            and self.layout == other.layout
            and self.loops is other.loops
        )

    def __hash__(self) -> int:
        return hash((self.likelihood.name, self.gate.name, self.expert.name, self.layout))

    def __reduce__(self) -> tuple[Any, ...]:
        return from_table, (self.table,)

    @property
    def equal(self) -> tuple[str, ...]:
        """Blocks of the likelihood that all experts share."""
        return tuple(
            c.intercept
            for c in self.likelihood.channels
            if c.shared and c.intercept not in self.likelihood.set_by_options
        )

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
    def is_regression(self) -> bool:
        """Whether this is a family of regression functions, fitted by least squares."""
        return self.likelihood.block is None

    @property
    def has_kinked_mean(self) -> bool:
        """Whether regression functions have corners in the parameters, as with ReLU experts."""
        return self.expert.kinked or self.gate.kink is not None

    def units(self, theta: FloatArray) -> FloatArray:
        """What a change of each coefficient (P,) is measured in.

        Coefficients of a mean in units of the response are measured in standard deviations of
        their own atom at theta, all others in 1: then a unit is a unit of log-likelihood.
        """
        if self._measures is None:
            unit = np.ones(self.n_params)
            for marginal, at in self.marginals:
                unit[at] = marginal.units(theta[at])
            return unit
        own, atom = self._measures
        predictors = np.zeros((1 + len(own), self.n_experts))
        predictors[1:] = theta[own]
        assert self.likelihood.spread is not None  # not one of classes
        _, deviation = self.likelihood.spread(predictors)
        return np.concatenate([deviation, [1.0]])[atom]

    @cached_property
    def _measures(self) -> tuple[IntArray, IntArray] | None:
        """Where the likelihood's own predictors are (q, k), and what coefficients (P,) are in.

        That is the number of the atom of whose standard deviations they are multiples, k for none.
        None without a response that has a scale.
        """
        linked = self.likelihood.link is not None or self.likelihood.spread is None
        if linked or not any(channel.log for channel in self.likelihood.channels):
            return None
        in_deviations = [channel.response and not channel.log for channel in self.channels]
        atom = np.full(self.n_params, self.n_experts)
        at = self.places[:, np.repeat(in_deviations, self.width)]
        atom[at] = np.arange(self.n_experts)[:, None]
        atom[self.padding_positions] = self.n_experts
        own = self.index[:, -len(self.likelihood.channels) :].T.copy()
        return own, atom

    @cached_property
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
        """The same family with another number of experts.

        Constraints of experts that it does not have are left out.
        """
        k = positive_int("n_experts", n_experts)
        if k not in self._resized:
            self._resized[k] = self._resize(k)
        return self._resized[k]

    @cached_property
    def _resized(self) -> dict[int, Family]:
        """The families of `with_experts`: a search asks for the same ones at every start."""
        return {}

    def _resize(self, k: int) -> Family:
        gate_constraints = self.gate.constraints(self.n_experts)
        remaining = [
            c for c in self.constraints if c not in gate_constraints and max(c.experts or (0,)) < k
        ]
        resized = replace(self, n_experts=k, constraints=(*self.gate.constraints(k), *remaining))
        if self.own_inputs is not None:
            if k > len(self.own_inputs):
                raise ValueError(
                    f"n_experts = {k}, but there are inputs of {len(self.own_inputs)} experts"
                )
            resized = replace(resized, own_inputs=self.own_inputs[:k])
        if (choices := self.likelihood.choices) is None:
            return resized
        if k > len(choices.law_of_expert):
            raise ValueError(
                f"n_experts = {k}, but there are likelihoods for {len(choices.law_of_expert)}"
                f" experts: {', '.join(choices.names)}"
            )
        return replace(resized, likelihood=self.likelihood.of_experts(choices.law_of_expert[:k]))

    @property
    def alone(self) -> Family:
        """The family of one expert, which reads the inputs of all.

        Where likelihoods differ, its own is the first one with a mean.
        """
        together = self if self.own_inputs is None else replace(self, own_inputs=None)
        if (choices := self.likelihood.choices) is None:
            return together.with_experts(1)
        likelihood = self.likelihood.of_experts([choices.laws.index(choices.law)])
        common = tuple(one for one in self.constraints if one.experts is None)
        return replace(together, n_experts=1, likelihood=likelihood, constraints=common)

    def holding(self, features: Iterable[int]) -> Family:
        """The same family with the coefficients of some inputs pinned to 0.

        Of an input that is the same for all samples the intercepts, and the slopes of other
        inputs, say all that the data do.

        Parameters
        ----------
        features : iterable of int
            The inputs, from 0.

        Returns
        -------
        Family
            The family; packed parameters keep their places.

        Raises
        ------
        ValueError
            If there is no such input, or a score is not linear in it: a location, or products of
            inputs without their slopes.

        Examples
        --------
        >>> from moestat import family
        >>> F = family("gaussian", gate="softmax", n_experts=1, n_features=2).holding([1])
        >>> F.n_free_params, [F.param_names[j] for j in F.held_positions]
        (3, ['beta1[1,1]', 'a[1,1]'])
        """
        held = tuple(features)
        if any(not isinstance(f, Integral) or not 0 <= f < self.n_features for f in held):
            raise ValueError(f"features: inputs are 0..{self.n_features - 1}, got {short(held)}")
        held = tuple(sorted(set(held)))
        bent = [c for c in self.channels if c.axis is not None or (c.products and not c.slope)]
        if held and bent:
            raise ValueError(f"gate {self.gate.name!r} has no intercept that takes up an input")
        return replace(self, held=held)

    @property
    def _pins(self) -> tuple[FloatArray, FloatArray]:
        """Bounds (P,) and (P,) that bind pinned coordinates only."""
        free = self.lower < self.upper
        return np.where(free, -np.inf, self.lower), np.where(free, np.inf, self.upper)

    def pin(self, theta: FloatArray) -> FloatArray:
        """Parameters (..., P) of the same densities, the reference atom's translations at 0."""
        pinned, at = np.array(theta, dtype=np.float64), self._translated
        by_place = pinned.T
        by_place[at] -= by_place[at[-1:]]
        return pinned

    def at_unit_scale(self, theta: FloatArray) -> FloatArray:
        """Parameters (..., P) of the same densities at the `known_scale` of the gate, if any."""
        if not self.gate.scaling:
            return theta
        *blocks, name = self.gate.scaling
        scaled, at = np.array(theta, dtype=np.float64), self.blocks[name]
        scaled[..., at] = self.known_scale
        factor = scaled[..., at] / theta[..., at]
        for block in blocks:
            scaled[..., self.blocks[block].ravel()] *= factor[..., None]
        return scaled

    @cached_property
    def known_scale(self) -> float:
        """The scale of a gate in posterior densities, as near to 1 as its bounds allow."""
        at = [self.blocks[name] for name in self.gate.scaling[-1:]]
        return float(np.clip(1.0, self.lower[at[0]], self.upper[at[0]])) if at else 1.0

    @cached_property
    def _translated(self) -> IntArray:
        """Places (k, q) of the coefficients of each atom that the gate's translations move."""
        blocks = [self.blocks[name].reshape(self.n_experts, -1) for name in self.gate.translations]
        return np.concatenate([np.empty((self.n_experts, 0), dtype=np.int64), *blocks], axis=1)

    def canonical(self, theta: ArrayLike) -> FloatArray:
        """The representative of theta under relabelling and translations.

        Atoms are sorted by their expert's parameters, unless likelihoods or inputs differ, then the
        last atom's translations are pinned to 0.  Two parameter vectors that differ by these
        symmetries agree afterwards.
        """
        vector = as_floats("theta", theta, (self.n_params,))
        if self.likelihood.choices is not None or self.own_inputs is not None:
            return self.pin(vector)
        atoms, shared = self.split(vector)
        first_expert = self.index[0, self.first_expert_channel]
        order = np.lexsort(atoms[:, first_expert:].T[::-1])
        return self.pin(self.join(atoms[order], shared))

    def typical(self, rng: Seed = None) -> FloatArray:
        """Packed parameters (P,) of a sensible truth, its atoms well apart in every block.

        Parameters
        ----------
        rng : int, Generator or None
            Seed or generator.

        Examples
        --------
        >>> from moestat import family
        >>> F = family("gaussian", gate="softmax")
        >>> theta = F.typical(rng=0)
        >>> bool(((F.lower <= theta) & (theta <= F.upper)).all())
        True
        """
        generator = as_generator(rng)
        k = self.n_experts
        d = self.n_features
        n_responses = self.likelihood.n_responses(self.n_classes)
        blocks = {
            **self.gate.typical(generator, k, d),
            **self.expert.typical(generator, k, d, n_responses),
            **self.likelihood.typical(generator, k),
        }
        # Factors of random effects, by inputs that the likelihood does not know the number of.
        for channel in self.channels:
            for name in (channel.intercept, channel.slope) if channel.reads is not None else ():
                blocks[name or ""] = np.full(self.blocks[name or ""].shape, 0.5)
        blocks |= {name: np.mean(np.asarray(blocks[name])) for name in self.equal}
        return np.clip(self.pin(self.pack(blocks)), *self._pins)

    def measure(self, theta: ArrayLike) -> MixingMeasure:
        """The mixing measure of packed parameters; every atom carries the shared ones."""
        return measure_of(self, theta)

    def from_measure(self, measure: MixingMeasure) -> FloatArray:
        """Packed parameters of a mixing measure with as many atoms, the inverse of `measure`."""
        return parameters_of(self, measure)

    def rowwise(self, theta: FloatArray, X: FloatArray, y: Encoded) -> tuple[FloatArray, ...]:
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
        shape = (self.n_experts, n)
        if self.likelihood.dtype is np.complex128 and not np.iscomplexobj(y):
            y = y * (1.0 + 1.0j)  # responses that are known
        sums = BySample(np.empty(shape), np.empty(shape), np.empty(n))
        self.loops.by_sample(theta, self.coefficients, X, y, sums)
        return sums

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
        n = int(X.shape[1])
        f, w = np.empty(n), np.empty((self.n_experts, n if weights else 0))
        self.residuals(theta, X, np.empty(n), 0, 0, f, w, np.empty((0, 0)))
        return f, w

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
        theta = np.ascontiguousarray(theta)  # as loops that are called by address take for granted
        outputs = f, w, jacobian
        inputs = self.jacobian_rows, X, scale, start, order
        residual_loop(self.loops.regression, self.channel_places, theta, *inputs, *outputs)

    def log_density(self, theta: ArrayLike, X: ArrayLike, y: ArrayLike) -> FloatArray:
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
        return _without_nan(self.rowwise(vector, design, response)[2])

    def gate_probabilities(self, theta: ArrayLike, X: ArrayLike) -> FloatArray:
        """``pi_i(x_t)`` of every atom, shape (n, k); rows sum to 1.

        The weights of a gate that is not normalised are in (0, 1), each by itself.
        """
        design = as_design(X, self.n_features)
        vector = as_floats("theta", theta, (self.n_params,))
        if self.is_regression:
            return _without_nan(self.regression(vector, design, weights=True)[1].T)
        return _without_nan(self.rowwise(vector, design, self.placeholder(design.shape[1]))[0].T)

    def placeholder(self, n: int) -> Encoded:
        """Encoded responses (n,) for loops whose outcome does not depend on them."""
        dtype: Any = self.likelihood.dtype
        return np.full(n, self.likelihood.inside, dtype=dtype)

    @cached_property
    def marginals(self) -> tuple[tuple[Family, IntArray], ...]:
        """Of several responses the family of each by itself, and where its parameters are.

        The density of one response of a row is a mixture with the same gate.
        """
        marginals: list[tuple[Family, IntArray]] = []
        first = self.first_expert_channel
        for one in self.likelihood.parts:
            base = configured(EXPERTS, table_of(self.expert))
            gate, expert = qualified(self.gate, base)
            box = {**self.gate.bounds, **expert.bounds, **one.likelihood.bounds}
            marginal = replace(
                self,
                **{"gate": gate, "expert": expert, "likelihood": one.likelihood, "box": box},
                **{"n_classes": one.n_classes, "given": frozenset(), "constraints": ()},
            )
            places = np.empty(marginal.n_params, dtype=np.int64)
            channels = [*range(self.first_expert_channel), *range(first, first + one.n_channels)]
            for c, source in enumerate(channels):
                more = np.arange(int(self.width[source]))
                places[marginal.index[:, c, None] + more] = self.index[:, source, None] + more
            marginals.append((marginal, places))
            first += one.n_channels
        return tuple(marginals)

    def probabilities(self, theta: ArrayLike, X: ArrayLike) -> FloatArray:
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
        columns: list[FloatArray] = []
        for label in self.likelihood.support(self.n_classes):
            y: IntArray = np.repeat(np.int64(label), n)
            columns.append(np.exp(self.rowwise(vector, design, y)[2]))
        return _without_nan(np.stack(columns, axis=1))

    @np.errstate(all="ignore")
    def mean(self, theta: ArrayLike, X: ArrayLike) -> FloatArray:
        """``E(y | x_t) = sum_i pi_i(x_t) g_i(x_t)`` of a continuous response, shape (n,).

        Of several responses (n, R).

        Raises
        ------
        ValueError
            If the response is a class.
        """
        vector = as_floats("theta", theta, (self.n_params,))
        if self.likelihood.parts:
            return np.column_stack(
                [marginal.mean(vector[at], X) for marginal, at in self.marginals]
            )
        if self.likelihood.spread is None:
            raise ValueError(f"the {self.likelihood.name} likelihood has no mean")
        design = as_design(X, self.n_features)
        if self.is_regression:
            return self.regression(vector, design)[0]
        means, _ = self.likelihood.spread(self.predictors(vector, design))
        weight = self.gate_probabilities(vector, X).T
        # An atom without weight has no part in the mean, however large its own is.
        return np.sum(np.where(weight > 0.0, weight * means, 0.0), axis=0)

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


def _without_nan(values: FloatArray) -> FloatArray:
    """Values (n, ...) of rows, none of which is NaN."""
    lost = np.flatnonzero(np.isnan(values).any(axis=tuple(range(1, values.ndim))))
    if lost.size:
        raise ValueError(
            f"theta, X: what is asked for at row {lost[0]} is beyond the range of float64"
        )
    return values


def check_family(name: str, value: object) -> None:
    """Raise unless `value` is a family."""
    check_kind(name, value, Family, "a family from moestat.family")


def from_table(table: Mapping[str, Any]) -> Family:
    """The family of a `Family.table`."""
    likelihood = as_likelihood(table["likelihood"])
    expert = expert_of(configured(EXPERTS, table["expert"]), likelihood)
    gate, expert = qualified(configured(GATES, table["gate"]), expert)
    box: dict[str, Any] = {
        name: tuple(np.array(side) if is_sequence(side) else side for side in pair)
        for name, pair in table["box"].items()
    }
    likelihood = likelihood.with_equal(table.get("equal", ()))
    n_experts, n_features, n_classes = table["sizes"]
    return Family(
        gate,
        expert,
        likelihood,
        n_experts,
        n_features,
        n_classes,
        box,
        tuple(table["held"]),
        frozenset(table["given"]),
        *(
            tuple(table[name]) if name in table else None
            for name in ("gate_inputs", "expert_inputs", "offset_input")
        ),
        constraints=tuple(map(constraint_of, table.get("constraints", ()))),
        own_inputs=tuple(map(tuple, table["own_inputs"])) if "own_inputs" in table else None,
    )
