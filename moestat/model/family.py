"""Families: densities and means of a gate, an expert and a likelihood of given sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from moestat.base.registry import configured, table_of
from moestat.base.types import Expert, FloatArray, Gate, Likelihood
from moestat.base.validate import (
    as_design,
    as_floats,
    as_generator,
    check_kind,
    positive_int,
    short,
)
from moestat.kernels.build import Loops, build_loops
from moestat.kernels.records import BySample
from moestat.model.constraints import constraint_of, equal_of, fixed_of
from moestat.model.conversions import measure_of, parameters_of
from moestat.model.experts import EXPERTS
from moestat.model.gates import GATES
from moestat.model.layout import ParameterLayout
from moestat.model.likelihoods import LIKELIHOODS
from moestat.model.measure import MixingMeasure
from moestat.model.qualify import qualified

__all__ = ["Family", "check_family", "family", "from_table"]


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
        return f"family({table_of(self.likelihood)!r}, {named})"

    @property
    def table(self) -> dict[str, Any]:
        """Names, options and sizes that `from_table` makes this family of, ready for JSON.

        Raises
        ------
        TypeError
            If an axis is not a member of its registry: its functions have no name to be found by.
        """
        table = {
            "likelihood": table_of(self.likelihood),
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
        if self.constraints:
            table["constraints"] = [one.table for one in self.constraints]
        again = from_table(table)
        if again.loops is not self.loops or again.layout != self.layout:
            raise TypeError(f"{self!r} has an axis that is not in its registry; register it first")
        return table

    def __reduce__(self) -> tuple[Any, ...]:
        return from_table, (self.table,)

    @property
    def equal(self) -> tuple[str, ...]:
        """Blocks of the likelihood that all experts share."""
        return tuple(
            c.intercept
            for c in self.likelihood.channels
            if c.shared and c.intercept not in self.likelihood.options
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
        unit = np.ones(self.n_params)
        linked = self.likelihood.link is not None or self.likelihood.spread is None
        if linked or not any(channel.log for channel in self.likelihood.channels):
            return unit
        own = theta[self.index[:, -len(self.likelihood.channels) :]].T
        assert self.likelihood.spread is not None  # not one of classes
        _, deviation = self.likelihood.spread(np.vstack([np.zeros(self.n_experts), own]))
        for (i, c), first in np.ndenumerate(self.index):
            if self.channels[c].response and not self.channels[c].log:
                unit[first : first + self.width[c]] = deviation[i]
        return unit

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
        """The same family with another number of experts.

        Constraints of experts that it does not have are left out.
        """
        k = positive_int("n_experts", n_experts)
        kept = tuple(c for c in self.constraints if max(c.experts or (0,)) < k)
        return replace(self, n_experts=k, constraints=kept)

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
        (3, ['beta1[0,1]', 'a[0,1]'])
        """
        held = tuple(sorted(set(features)))
        if any(not 0 <= f < self.n_features for f in held):
            raise ValueError(f"inputs are 0..{self.n_features - 1}, got {held}")
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

    def typical(self, rng: Any = None) -> FloatArray:
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
        generator, k, d = as_generator(rng), self.n_experts, self.n_features
        n_responses = self.likelihood.n_responses(self.n_classes)
        blocks = {
            **self.gate.typical(generator, k, d),
            **self.expert.typical(generator, k, d, n_responses),
            **self.likelihood.typical(generator, k),
        }
        blocks |= {name: np.mean(blocks[name]) for name in self.equal}
        return np.clip(self.pin(self.pack(blocks)), *self._pins)

    def measure(self, theta: Any) -> MixingMeasure:
        """The mixing measure of packed parameters; every atom carries the shared ones."""
        return measure_of(self, theta)

    def from_measure(self, measure: MixingMeasure) -> FloatArray:
        """Packed parameters of a mixing measure with as many atoms, the inverse of `measure`."""
        return parameters_of(self, measure)

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
        shape = (self.n_experts, n)
        if self.likelihood.dtype is np.complex128 and not np.iscomplexobj(y):
            y = y * (1.0 + 1.0j)  # responses that are known
        found = BySample(np.empty(shape), np.empty(shape), np.empty(n))
        self.loops.by_sample(theta, self.coefficients, X, y, found)
        return found

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
        return np.full(n, self.likelihood.inside, dtype=self.likelihood.dtype)

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


def check_family(name: str, value: Any) -> None:
    """Raise unless `value` is a family."""
    check_kind(name, value, Family, "a family from moestat.family")


def from_table(table: Mapping[str, Any]) -> Family:
    """The family of a `Family.table`."""
    gate, expert = qualified(configured(GATES, table["gate"]), configured(EXPERTS, table["expert"]))
    box: dict[str, Any] = {
        name: tuple(np.array(side) if isinstance(side, list) else side for side in pair)
        for name, pair in table["box"].items()
    }
    likelihood = _with_equal(configured(LIKELIHOODS, table["likelihood"]), table.get("equal", ()))
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
    )


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
    likelihood: str | Mapping[str, Any] | Likelihood = "multinomial",
    *,
    gate: str | Mapping[str, Any] | Gate = "sigmoid",
    expert: str | Mapping[str, Any] | Expert = "linear",
    n_experts: int = 2,
    n_features: int = 1,
    n_classes: int | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    gate_inputs: Iterable[int] | None = None,
    expert_inputs: Iterable[int] | None = None,
    offset: int | None = None,
    equal: str | Iterable[str] | Mapping[str, Any] = (),
    fixed: Mapping[str, Any] | None = None,
) -> Family:
    """A family of mixtures of experts, by the names of its axes.

    Where gate and expert both have a block of one name, the blocks of the family are ``gate_`` and
    ``expert_`` with that name.

    Parameters
    ----------
    likelihood : str, mapping or Likelihood
        Name in ``moestat.model.likelihoods.LIKELIHOODS``, a table with ``name`` and options:
        ``{"name": "binomial", "trials": 8}`` for successes in eight trials, or a likelihood of
        your own; gates and experts alike.
    gate : str, mapping or Gate
        Name in ``moestat.model.gates.GATES``, or a table with ``name`` and the gate's options, such
        as ``{"name": "competition", "activation": "silu"}``.  The default here is the sigmoid gate
        of Pham et al. (2026); `moestat.fit` and the other functions that take a likelihood by its
        name have the softmax gate, as other programs do.
    expert : str, mapping or Expert
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
        Fits to data respect these, and otherwise have bounds that scale with the data; ``bounds =
        F.box`` asks for the compact parameter space of a family F of the papers.
    gate_inputs, expert_inputs : iterable of int, optional
        Inputs, from 0, that the gate and the experts read; all by default.  The coefficients of
        the others are pinned to 0.  ``gate_inputs=[]`` is a constant gate.
    offset : int, optional
        An input that is added to the linear predictor of every expert as it is, with the
        coefficient 1, and that the gate does not read.
    equal : str, iterable of str, or mapping, optional
        Blocks that are the same for all experts: ``equal="nu"`` for one variance, ``equal=["a"]``
        for common slopes; or a table of blocks with sets of experts whose coefficients are
        equal, ``{"a": [[0, 1]]}``, of all inputs or of some, ``{"a": [{"inputs": [1],
        "experts": [0, 1]}]}``, in `moestat.fit` also by name: ``{"a": [["x1", "x2"]]}`` has
        those of x1, and those of x2, equal for all experts.  A gate with equal slopes, which are
        those of the reference and so 0, is constant.
    fixed : mapping, optional
        Blocks with known coefficients: ``{"b": 0}`` for all, ``{"b": {0: 2.0}}`` for expert 0,
        ``{"a": {(0, 1): 1.0}}`` for expert 0 and input 1, ``{"a": {"x1": 0}}`` by name in
        `moestat.fit`.  Experts count from 0, as in names of parameters.

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

    Experts that read the first of two inputs, and a gate that reads the second:

    >>> F = family("gaussian", gate="softmax", n_features=2, gate_inputs=[1], expert_inputs=[0])
    >>> [name for j, name in enumerate(F.param_names) if F.lower[j] < F.upper[j]][:4]
    ['beta0[0]', 'beta1[0,1]', 'b[0]', 'a[0,0]']

    A regression function with raw sigmoid gates of quadratic scores:

    >>> relu = {"name": "activation", "activation": "relu", "weighted": False}
    >>> F = family("least-squares", gate="sigmoid-quadratic", expert=relu, n_features=2)
    >>> {name: block.shape for name, block in F.blocks.items()}
    {'c': (2,), 'b': (2, 2), 'A': (2, 3), 'beta': (2,), 'alpha': (2, 2)}
    """
    if bounds is not None:
        check_kind("bounds", bounds, Mapping, "a table of blocks with their bounds")
    chosen = (
        configured(GATES, gate),
        configured(EXPERTS, expert),
        configured(LIKELIHOODS, likelihood),
    )
    if "levels" in chosen[2].options:
        K = chosen[2].options["levels"] if n_classes is None else n_classes
        assert chosen[2].configure is not None
        chosen, n_classes = (*chosen[:2], chosen[2].configure(levels=K)), K
    likelihood = chosen[2].name
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
        raise ValueError(
            f"n_classes = {short(n_classes)}: the {likelihood} likelihood has no classes"
        )
    chosen = (*qualified(*chosen[:2]), chosen[2])
    equal = (equal,) if isinstance(equal, str) else equal
    check_kind("equal", equal, Iterable, "names of blocks, or a table of them, such as 'nu'")
    shared, sets = _split_equal(chosen[2], equal)
    chosen = (*chosen[:2], _with_equal(chosen[2], shared))
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
    d = positive_int("n_features", n_features)
    made = Family(
        *chosen,
        n_experts=positive_int("n_experts", n_experts),
        n_features=d,
        n_classes=positive_int("n_classes", 2 if n_classes is None else n_classes, 2)
        if discrete
        else 1,
        box=box,
        given=frozenset(bounds or ()),
        **_inputs_of(chosen, d, gate_inputs, expert_inputs, offset),
    )
    return _constrained(made, sets, fixed)


def _split_equal(likelihood: Likelihood, equal: Any) -> tuple[list[str], dict[str, Any]]:
    """Blocks of the likelihood that are one parameter of all experts, and other constraints."""
    if isinstance(equal, Mapping):
        return [], dict(equal)
    own = [c.intercept for c in likelihood.channels if c.component is None]
    names = list(equal)
    return [n for n in names if n in own], {n: True for n in names if n not in own}


def _constrained(made: Family, equal: Mapping[str, Any], fixed: Any) -> Family:
    """The family with coefficients that are equal or known."""
    if not equal and fixed is None:
        return made
    check_kind("fixed", {} if fixed is None else fixed, Mapping, "a table of blocks and values")
    d = made.n_features
    slopes = {channel.slope for channel in made.channels}
    squares = {channel.products for channel in made.channels}
    known = {
        name: d if name in slopes else None
        for name, positions in made.blocks.items()
        if positions.ndim and name not in squares
    }
    constraints = equal_of(equal, known, made.n_experts)
    if constraints and made.is_regression:
        raise ValueError("equal: is for densities, got a family that is fitted by least squares")
    constraints += fixed_of(fixed or {}, known, made.n_experts)
    for one in constraints:
        if one.value is not None and one.value <= 0.0 and one.block in made._logs:
            raise ValueError(f"fixed: values of {one.block!r} must be positive, got {one.value:g}")
        last = one.experts is None or made.n_experts - 1 in one.experts
        if one.value and last and one.block in made.gate.translations:
            raise ValueError(
                f"fixed: {one.block!r} of the last expert, the gate's reference, is 0; got"
                f" {one.value:g}"
            )
    return replace(made, constraints=tuple(constraints))


def _with_equal(likelihood: Likelihood, equal: Any) -> Likelihood:
    """The likelihood with one parameter of all experts in place of each of the blocks `equal`.

    A common scale does not collapse on a few samples of one atom.
    """
    names, known = (
        list(equal),
        [c.intercept for c in likelihood.channels if not c.shared and c.component is None],
    )
    if not names:
        return likelihood
    for name in names:
        if name not in known:
            raise ValueError(
                f"equal: {name!r} is not a block of the {likelihood.name} likelihood that experts"
                f" can share; those are {', '.join(known) or 'none'}"
            )
    channels = tuple(replace(c, shared=c.intercept in names) for c in likelihood.channels)
    alone = None if likelihood.collapse in names else likelihood.collapse
    return replace(likelihood, channels=channels, collapse=alone)


def _inputs_of(
    chosen: tuple[Gate, Expert, Likelihood],
    d: int,
    gate_inputs: Iterable[int] | None,
    expert_inputs: Iterable[int] | None,
    offset: int | None,
) -> dict[str, Any]:
    """Which inputs gate and experts read, checked."""
    gate, expert, likelihood = chosen
    gate_read = _positions("gate_inputs", gate_inputs, d)
    expert_read = _positions("expert_inputs", expert_inputs, d)
    if offset is not None:
        (at,) = _positions("offset", [offset], d) or (0,)
        if expert.block is not None or likelihood.n_responses(2) is not None:
            raise ValueError(
                "offset: only experts with one linear predictor have an offset, got"
                f" expert {expert.name!r} and likelihood {likelihood.name!r}"
            )
        gate_read = tuple(f for f in (range(d) if gate_read is None else gate_read) if f != at)
    bent = [c for c in gate.channels(d) if c.axis is not None or (c.products and not c.slope)]
    if gate_read is not None and len(gate_read) < d and bent:
        raise ValueError(f"gate {gate.name!r} reads all inputs or none; leave out gate_inputs")
    return {
        "gate_inputs": gate_read,
        "expert_inputs": expert_read,
        "offset_input": None if offset is None else (offset, 1.0),
    }


def _positions(name: str, value: Iterable[int] | None, d: int) -> tuple[int, ...] | None:
    """Positions of inputs, ascending."""
    if value is None:
        return None
    check_kind(name, value, Iterable, "positions of inputs, from 0")
    found = list(value)
    if not all(isinstance(f, (int, np.integer)) and 0 <= f < d for f in found):
        raise ValueError(f"{name} must hold positions of inputs in 0..{d - 1}, got {found}")
    return tuple(sorted({int(f) for f in found}))
