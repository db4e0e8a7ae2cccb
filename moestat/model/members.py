"""Frozen records of the axes: what a gate, an expert and a likelihood are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from moestat.base.registry import table_of
from moestat.base.types import Encoded, FloatArray, IntArray, Law
from moestat.model.constraints import Constraint

T = TypeVar("T")

WHICH_LAW = "law"
"""Block of the channel that says which likelihood an atom has, where likelihoods differ."""


@dataclass(frozen=True)
class Channel:
    """One predictor of an atom, linear in its parameters: ``eta = c + b' x + x' A x``.

    The features of x are ``phi = (1, x, products)`` with the products of `moestat.base.symmetric`;
    a channel reads 1 and a range of the others.  Gates, experts and likelihoods are scalar
    functions of a few channels; how a channel depends on x and on the parameters is written once,
    in the kernels.  A parameter that enters by itself is a channel without slope.
    """

    intercept: str
    """Block of the coefficient of 1."""
    slope: str | None = None
    """Block of the d coefficients of x; None for a channel that does not see x."""
    component: int | None = None
    """Position in a vector-valued block; None for a block of its own."""
    shared: bool = False
    """True for one parameter that all atoms share, such as a temperature."""
    axis: int | None = None
    """The input in whose units the parameter is measured, when it is a place in the space of x."""
    log: bool = False
    """True for a positive parameter whose logarithm is the coefficient."""
    response: bool = False
    """True when the channel is measured in units of the response."""
    products: str | None = None
    """Block of the d (d + 1) / 2 coefficients of the products of inputs, a packed symmetric matrix;
    None for a channel that is linear in x."""
    reads: tuple[int, ...] | None = None
    """Features of (1, x) with a coefficient that is estimated, the others being 0; None for all."""

    def width(self, n_features: int) -> int:
        """Number of coefficients with `n_features` = d inputs."""
        products = 0 if self.products is None else n_features * (n_features + 1) // 2
        return 1 + (0 if self.slope is None else n_features) + products

    def offset(self, n_features: int) -> int:
        """Position in phi of the first feature after 1."""
        return 1 if self.products is None or self.slope is not None else 1 + n_features


@dataclass(frozen=True)
class Units:
    """How a member follows a change of units, ``x = m + s z`` and ``y = c + u w``.

    The coefficients of a channel that is linear in features of x always change so that the
    channel stays the same function of the data.  Here a member says under which maps it is closed
    and what else of it changes.
    """

    shift_inputs: bool = True
    """Whether it is closed under shifts m of the inputs."""
    common_scale: bool = False
    """Whether it is closed only when all inputs have the same scale s, as distances are."""
    lengths: tuple[str, ...] = ()
    """Blocks measured in that common scale."""
    shift_response: bool = True
    scale_response: bool = True
    """Whether it is closed under the shift c and the scale u of a continuous response."""
    level: str | tuple[str, ...] | None = None
    """Block, or blocks of several responses, to which c is added."""
    powers: Mapping[str, float] = field(default_factory=dict[str, float])
    """Block of a channel's intercept -> power of u that the channel is proportional to."""

    def is_level(self, block: str) -> bool:
        """Whether c is added to a block."""
        return block in self.level if isinstance(self.level, tuple) else block == self.level


@dataclass(frozen=True)
class Gate:
    """A gate: the log-score ``a(eta)`` of one atom and its first two derivatives."""

    name: str
    """Name in the registry."""
    channels: Callable[[int], tuple[Channel, ...]]
    """``channels(n_features)``: the gate's own predictors, shared ones last."""
    block: Callable[..., None]
    """``block(eta, phi, m, order, a, da, d2a)`` on the first m samples of a block, with the
    channels eta (C, m) and the features phi = (1, x) (1 + d, m)."""
    reference: Callable[..., Any] = field(repr=False)
    """``reference(blocks, X, means)``: log-scores (k, n) in plain NumPy, from the named blocks,
    inputs X (n, d) and, of a gate that `reads_response`, the experts' means (k, n).  Blocks may
    be complex, so that a complex step gives derivatives; tests compare ``block`` with it."""
    typical: Callable[..., Mapping[str, ArrayLike]] = field(repr=False)
    """``typical(rng, n_experts, n_features)``: blocks of a sensible truth, atoms well apart."""
    mass: str | None
    """Block whose exponential is the mass of an atom; None when all atoms have `fixed_mass`. Of a
    gate that is not `normalised` its sigmoid is the mass, and it is a parameter besides."""
    translations: tuple[str, ...]
    """Blocks to which a common vector may be added without changing the density.  The last atom's
    are pinned to 0 as the reference."""
    bounds: Mapping[str, tuple[float, float]]
    """Block -> (lower, upper): the default box of the compact parameter space."""
    source: str
    """Paper and equation."""
    units: Units
    """How it follows a change of units."""
    scaling: tuple[str, ...] = ()
    """Blocks that a common positive factor may multiply without changing the density.  The last of
    them represents the scale; solvers hold it where they start."""
    reads_response: bool = False
    """Whether ``block`` reads the expert's mean as one more channel, after its own: competition."""
    n_active: int | None = None
    """Number K of active atoms at each x, those with the largest log-scores; atoms tied with the
    K-th are active, too.  None if all atoms are active."""
    fixed_mass: Callable[[int], float] = field(default=lambda k: 1.0, repr=False)
    """``fixed_mass(k)``: the mass of every atom of a gate without a mass block."""
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Options that made this variant of the gate."""
    configure: Callable[..., Gate] | None = field(default=None, repr=False)
    """``configure(**options)``: another variant; None for a gate without options."""
    normalised: bool = True
    """Whether the weights ``exp(a_i)`` are divided by their sum, so that they are probabilities.
    Only a regression function can have others."""
    kink: str | None = None
    """A block of places in the space of x, when moving it across a sample x turns the sign of its
    derivative: the log-score is then a function of ``||block - x||``."""
    constraints: Callable[[int], tuple[Constraint, ...]] = field(default=lambda k: (), repr=False)
    """``constraints(k)``: which coefficients of k experts are equal, or known, as
    `moestat.model.constraints.Constraint`; the experts may then not change places."""
    nodes: tuple[tuple[str, ...], ...] = ()
    """Blocks of the intercepts of scores that compete with a score of 0, at one level of nodes."""


@dataclass(frozen=True)
class Symmetry:
    """Moves of one atom's parameters that leave the mean of its expert as it is."""

    units: tuple[str, ...] = ()
    """Blocks with one component per hidden unit; the units may change places."""
    flips: tuple[str, ...] = ()
    """Blocks that may change sign together; with `units`, in each unit by itself."""
    free: str = ""
    """A move by a continuous amount, in words; empty without one."""
    linear_in: tuple[str, ...] = ()
    """Blocks in which the mean is linear: means of atoms with all else equal add up."""
    positive_in: tuple[str, ...] = ()
    """Blocks in which the mean is positively homogeneous: a positive factor passes through."""


@dataclass(frozen=True)
class Expert:
    """The predictors that an expert supplies to the likelihood, as functions of channels."""

    name: str
    """Name in the registry."""
    channels: Callable[[int, int | None], tuple[Channel, ...]]
    """``channels(n_features, n_responses)``; `n_responses` is None for one scalar predictor."""
    block: Callable[..., None] | None
    """``block(eta, m, order, mean, d1, d2)``: one scalar predictor of the channels eta (C, m) with
    its derivatives; None when the channels are the predictors."""
    reference: Callable[..., np.ndarray] = field(repr=False)
    """``reference(blocks, X)``: means (k, n) or predictors (k, q, n) in plain NumPy; see `Gate`."""
    typical: Callable[..., Mapping[str, ArrayLike]] = field(repr=False)
    """``typical(rng, n_experts, n_features, n_responses)``: blocks of a sensible truth."""
    bounds: Mapping[str, tuple[float, float]]
    """Block -> (lower, upper)."""
    source: str
    """Paper and equation."""
    units: Units
    """How it follows a change of units; fields about the response apply to a scalar mean."""
    symmetry: Symmetry = Symmetry()
    """Moves of an atom's parameters that do not change the mean."""
    kinked: bool = False
    """Whether the mean has corners, where its derivatives jump."""
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Options that made this variant of the expert."""
    configure: Callable[..., Expert] | None = field(default=None, repr=False)
    """``configure(**options)``: another variant; None for an expert without options."""


def _nothing_typical(rng: np.random.Generator, n_experts: int) -> Mapping[str, ArrayLike]:
    return {}


def _scalar(n_classes: int) -> int | None:
    return None


def unchanged(y: T) -> T:
    """Encoded responses as they are."""
    return y


@dataclass(frozen=True)
class Likelihood:
    """The log-density ``l(y | eta)`` of one expert and its first two derivatives."""

    name: str
    """Name in the registry."""
    block: Callable[..., None] | None
    """``block(eta, y, m, order, value, d1, d2)`` on the first m samples of a block; None when only
    the regression function is modelled, which is fitted by least squares."""
    encode: Callable[..., Encoded] = field(repr=False)
    """``encode(y, n_classes)`` checks a response and returns what ``block`` reads."""
    draw: Callable[..., np.ndarray] = field(repr=False)
    """``draw(eta, rng)``: one response per column of the predictors (n_predictors, n)."""
    n_responses: Callable[[int], int | None] = _scalar
    """``n_responses(n_classes)``: length of the vector of predictors that the expert supplies; None
    when it is a scalar, the mean."""
    channels: tuple[Channel, ...] = ()
    """Predictors of its own, after the expert's."""
    decode: Callable[[Encoded], np.ndarray] = field(default=unchanged, repr=False)
    """The inverse of ``encode``."""
    dtype: Any = field(default=np.float64, repr=False)
    """Type of the encoded response."""
    support: Callable[[int], IntArray] | None = field(default=None, repr=False)
    """``support(n_classes)``: the values of y to sum over; None for a continuous response."""
    reference: Callable[..., np.ndarray] | None = field(default=None, repr=False)
    """``reference(predictors, blocks, y)``: log-densities (k, n) in plain NumPy, see `Gate`; None
    where ``block`` is."""
    typical: Callable[..., Mapping[str, ArrayLike]] = field(default=_nothing_typical, repr=False)
    """``typical(rng, n_experts)``: its own blocks of a sensible truth."""
    spread: Callable[..., tuple[FloatArray, FloatArray]] | None = field(default=None, repr=False)
    """``spread(eta)``: location and scale of a continuous response, its mean and standard
    deviation unless `moments` are given."""
    moments: Callable[..., tuple[FloatArray, FloatArray]] | None = field(default=None, repr=False)
    """``moments(eta)``: mean and standard deviation, where they are not location and scale."""
    link: Callable[..., FloatArray] | None = field(default=None, repr=False)
    """``link(mean)``: the predictor of a mean; None where they are the same."""
    law: Callable[..., Law] | None = field(default=None, repr=False)
    """``law(eta)``: the distribution of the response at predictors (..., n_predictors, n), as
    frozen in scipy.stats: of counts where `counts`, else of numbers between the `ends`; None for
    normal responses and classes."""
    with_trials: Callable[[Encoded], Likelihood] | None = field(default=None, repr=False)
    """``with_trials(y)``: the likelihood for the numbers of trials in encoded responses, with the
    distributions and draws of these rows; None where rows have no numbers of their own."""
    counts: bool = False
    """Whether the response is a count."""
    ends: tuple[float, float] = (-np.inf, np.inf)
    """The open interval of the responses: all numbers, positive ones, or those between 0 and 1."""
    shapes: tuple[str, ...] = ()
    """Blocks without units, whose `bounds` bind a fit to data as they are."""
    chances: Callable[..., FloatArray] | None = field(default=None, repr=False)
    """``chances(eta)``: probabilities (..., K, n) of classes at predictors (..., n_predictors, n);
    None where predictors are their logits."""
    bounds: Mapping[str, tuple[float, float]] = field(
        default_factory=dict[str, tuple[float, float]]
    )
    """Block -> (lower, upper) of the likelihood's own channels."""
    source: str = ""
    """Paper and equation."""
    units: Units = Units()
    """How it follows a change of units."""
    collapse: str | None = None
    """Block of a scale whose lower bound only a degenerate atom reaches; None without one."""
    limits: Mapping[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    """Block -> what the likelihood becomes at the lower and at the upper end of its range, where
    the other parameters keep their meaning; "" where it becomes nothing simpler."""
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Options that made this variant of the likelihood."""
    configure: Callable[..., Likelihood] | None = field(default=None, repr=False)
    """``configure(**options)``: another variant; None for a likelihood without options."""
    parts: tuple[Part, ...] = ()
    """Parts of a likelihood of several responses, one for each; empty for one response."""
    tied: tuple[str, ...] = ()
    """Blocks of several responses that are equal within an expert, so that these have one unit."""
    effects: RandomEffects | None = None
    """Random effects of groups of rows; None for rows that are independent given their expert."""
    reads_mean: bool = True
    """Whether the density depends on the predictor that the expert supplies."""
    choices: Choices | None = None
    """The likelihoods of the experts; None where all experts have the same likelihood."""
    pairs: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Block of the variance of a response -> blocks that tie this response to earlier ones; they
    leave ``1 / (1 + sum of squares)`` of its variance."""

    def level(self, y: Encoded) -> FloatArray:
        """Encoded responses (n,) as numbers: a bound of a censored one, a share of trials.

        Several responses of a row are (R, n).
        """
        if self.parts:
            return np.array([one.likelihood.level(y[one.field]) for one in self.parts])
        return np.real(y) if self.with_trials is None else np.real(y) / np.imag(y)

    @property
    def is_censored(self) -> bool:
        """Whether a lower and an upper bound are given of each response."""
        return "censored" in self.options

    @property
    def random_effects(self) -> RandomEffects:
        """The random effects of a likelihood that has them."""
        assert self.effects is not None
        return self.effects

    @property
    def laws(self) -> tuple[Likelihood, ...]:
        """The likelihood of each response."""
        return tuple(one.likelihood for one in self.parts) or (self,)

    @property
    def set_by_options(self) -> frozenset[str]:
        """Blocks that options set."""
        parts = (one.block(name) for one in self.parts for name in one.likelihood.options)
        return frozenset([*self.options, *parts])

    @property
    def scales(self) -> tuple[str, ...]:
        """Blocks of scales whose lower bound only a degenerate atom reaches."""
        if self.choices is not None:
            names = [name for law in self.choices.laws for name in law.scales]
            return tuple(dict.fromkeys(names))
        if not self.parts:
            return () if self.collapse is None else (self.collapse,)
        shared = {channel.intercept for channel in self.channels if channel.shared}
        names = [one.block(name) for one in self.parts for name in one.likelihood.scales]
        return tuple(name for name in names if name not in shared)

    def of_experts(self, law_of_expert: Iterable[int]) -> Likelihood:
        """The likelihood of other experts, where likelihoods differ by expert."""
        assert self.choices is not None
        return replace(self, choices=self.choices.some(tuple(law_of_expert)))

    def with_equal(self, equal: Iterable[str]) -> Likelihood:
        """The likelihood with one parameter of all experts in place of each of the blocks `equal`.

        A common scale does not collapse on a few samples of one atom.
        """
        names = list(equal)
        if not names:
            return self
        shareable = [
            c.intercept
            for c in self.channels
            if c.component is None and c.intercept not in self.set_by_options
        ]
        for name in names:
            if name not in shareable:
                raise ValueError(
                    f"equal: {name!r} is not a block of the {self.name} likelihood that experts"
                    f" can share; those are {', '.join(shareable) or 'none'}"
                )
        channels = tuple(replace(c, shared=c.shared or c.intercept in names) for c in self.channels)
        alone = None if self.collapse in names else self.collapse
        return replace(self, channels=channels, collapse=alone)

    def by_expert(self, blocks: Mapping[str, Any], n_experts: int) -> dict[str, Any]:
        """The blocks, with an axis of experts where all share one parameter, such as a variance."""
        shared_blocks = {
            channel.intercept: np.broadcast_to(blocks[channel.intercept], n_experts)
            for channel in self.channels
            if channel.component is None and channel.intercept not in self.options
        }
        return {**blocks, **shared_blocks}

    @property
    def inside(self) -> np.ndarray | float | complex:
        """A response that the distribution allows."""
        if self.parts:
            return np.array(tuple(one.likelihood.inside for one in self.parts), dtype=self.dtype)
        low, high = self.ends
        known = 0.0 if low == -np.inf else min(low + 1.0, 0.5 * (low + high))
        return known if self.dtype is not np.complex128 else complex(known, known)


@dataclass(frozen=True)
class Part:
    """One of several responses of a row."""

    name: str
    """What it is called; blocks of its parameters end with it."""
    position: int
    """Its place among the responses, from 0."""
    likelihood: Likelihood
    """Its likelihood."""
    n_classes: int
    """Number of its classes; 1 for numbers."""

    @property
    def field(self) -> str:
        """Its field in an encoded record."""
        return f"r{self.position}"

    @property
    def n_responses(self) -> int | None:
        """Length of its vector of predictors; None when it is a scalar."""
        return self.likelihood.n_responses(self.n_classes)

    @property
    def n_predictors(self) -> int:
        """Number of predictors that the expert supplies."""
        return 1 if self.n_responses is None else self.n_responses

    @property
    def n_channels(self) -> int:
        """Number of channels, the expert's and its own."""
        return self.n_predictors + len(self.likelihood.channels)

    def block(self, name: str) -> str:
        """The name that a block has in the family of all responses."""
        return f"{name}_{self.name}"

    def blocks(self, names: Iterable[str]) -> dict[str, str]:
        """The names that blocks have there."""
        return {name: self.block(name) for name in names}


@dataclass(frozen=True)
class Choices:
    """Different likelihoods of one response, and which of these each expert has."""

    laws: tuple[Likelihood, ...]
    law_of_expert: tuple[int, ...]  # position in `laws` for each expert

    @property
    def tables(self) -> list[str | dict[str, Any]]:
        """The name or table of the likelihood of each expert."""
        return [table_of(self.laws[j]) for j in self.law_of_expert]

    @property
    def names(self) -> list[str]:
        """What the likelihood of each expert is called."""
        return [self.laws[j].name for j in self.law_of_expert]

    @property
    def law(self) -> Likelihood:
        """The first likelihood with a mean."""
        return next(law for law in self.laws if law.reads_mean)

    @cached_property
    def channels(self) -> tuple[Channel, ...]:
        """Channels of all likelihoods, each once, and which one an atom has."""
        channels: dict[str, Channel] = {}
        # Those of the likelihood with most first, so that other ones have them in the same order.
        for law in sorted(self.laws, key=lambda law: -len(law.channels)):
            for channel in law.channels:
                unshared = replace(channel, shared=False)
                if channels.setdefault(unshared.intercept, unshared) != unshared:
                    raise ValueError(
                        f"experts: {law.name!r} and another likelihood have a parameter"
                        f" {unshared.intercept!r} of different kinds"
                    )
        return (*channels.values(), Channel(WHICH_LAW))

    def places(self, j: int) -> tuple[int, ...]:
        """Positions of the channels of one likelihood among those of all; 0 is the mean."""
        names = [channel.intercept for channel in self.channels]
        places = tuple(1 + names.index(channel.intercept) for channel in self.laws[j].channels)
        if list(places) != sorted(places):
            raise ValueError(
                f"experts: {self.laws[j].name!r} has the parameters of another likelihood in"
                " another order"
            )
        return places

    def reads(self, expert: int, name: str | None) -> bool:
        """Whether the likelihood of an expert has a parameter, or for None a mean."""
        law = self.laws[self.law_of_expert[expert]]
        if name is None:
            return law.reads_mean
        return name == WHICH_LAW or any(channel.intercept == name for channel in law.channels)

    def constraints(self) -> list[Constraint]:
        """The values that options give to parameters of single experts."""
        return [
            Constraint(name, None, (i,), float(low))
            for i, j in enumerate(self.law_of_expert)
            for name, (low, high) in self.laws[j].bounds.items()
            if low == high
        ]

    def some(self, law_of_expert: Sequence[int]) -> Self:
        """These likelihoods for other experts, given the position in `laws` for each."""
        return replace(self, law_of_expert=tuple(law_of_expert))

    def at_ends(self, y: Encoded) -> np.ndarray:
        """Mask (n,) of the responses that equal an end of the uniform noise."""
        ends = [end for law in self.laws if law.name == "uniform" for end in law.options.values()]
        return np.isin(y, ends)

    def allowed(self, y: Encoded) -> np.ndarray:
        """Mask (k, n) of the rows that the likelihood of each expert allows, with its options."""
        allowed = np.ones((len(self.law_of_expert), len(y)), dtype=bool)
        for i, j in enumerate(self.law_of_expert):
            law = self.laws[j]
            if law.name == "point":
                allowed[i] = y == law.bounds["at"][0]
        return allowed


@dataclass(frozen=True)
class RandomEffects:
    """The random effects of groups: an intercept, and slopes of some inputs."""

    features: tuple[int, ...]  # positions in phi = (1, x): those of inputs first, then 0 for 1
    diagonal: bool = False
    # the likelihood given the effects, where these are integrated out by a rule
    base: Likelihood | None = None
    # the input by whose values the rows of a group share the first effect; all of them, if None
    within: int | None = None

    @property
    def conditional(self) -> Likelihood:
        """The likelihood given the effects, of effects that are integrated out by a rule."""
        assert self.base is not None
        return self.base

    @property
    def positions(self) -> IntArray:
        """The features (q,) as an array."""
        return np.array(self.features, dtype=np.int64)

    @property
    def last(self) -> IntArray:
        """Positions (q,) after the last entry of each column of the Cholesky factor."""
        q = len(self.features)
        return np.arange(1, q + 1) if self.diagonal else np.full(q, q)

    def column(self, j: int) -> tuple[int, ...]:
        """Features with an entry in column j."""
        return self.features[j : int(self.last[j])]
