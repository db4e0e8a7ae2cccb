"""Explicit measures that decide claims: pairs with one density, and sequences near a truth.

Every witness has one input and is built to meet the assumptions that its paper states; `allows`
says how.  Nothing here is an outcome: distances and losses are computed when a witness is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

from experiments.claims.kinds import PairEvidence, SequenceEvidence
from moestat.base.registry import Registry
from moestat.base.types import FloatArray
from moestat.metrics.distances import Distance, regression_error, total_variation
from moestat.metrics.losses import VoronoiLoss, make_loss, voronoi_loss
from moestat.model.axes import family
from moestat.model.designs import Uniform
from moestat.model.family import Family
from moestat.theory.explorer import deviation_loss

__all__ = ["PAIRS", "SEQUENCES", "Pair", "Path"]

Blocks = Mapping[str, Any]
_DRAWS = 4


def _distance(
    model: Family, theta: FloatArray, truth: Family, true_theta: FloatArray, design: Uniform
) -> Distance:
    """Total variation, or the L2 distance of regression functions."""
    measure = regression_error if model.is_regression else total_variation
    return measure(model, theta, truth, true_theta, design)


@dataclass(frozen=True)
class Pair:
    """Two measures said to have one density.

    Parameters
    ----------
    name : str
        Name in the registry.
    truth, other : Family
        Families of the two measures.
    true_blocks, other_blocks : mapping
        Their parameters by block.
    loss : str or VoronoiLoss
        Voronoi loss of the claim.
    allows : str
        How the measures meet the assumptions of the claims, and why their densities agree.
    low, high : float
        The inputs' interval.
    options : mapping
        Options of the loss.
    draw : callable or None
        ``draw(rng)``: blocks of another truth and of its partner, where the pair is one of many;
        four are drawn, and the evidence is the worst of all.
    """

    name: str
    truth: Family
    other: Family
    true_blocks: Blocks
    other_blocks: Blocks
    loss: str | VoronoiLoss
    allows: str
    low: float = -1.0
    high: float = 1.0
    options: Mapping[str, Any] = field(default_factory=dict)
    draw: Callable[[np.random.Generator], tuple[Blocks, Blocks]] | None = None

    def evidence(self) -> PairEvidence:
        """Distance and loss of the two measures, the worst over the drawn truths."""
        rng = np.random.default_rng(0)
        pairs = [(self.true_blocks, self.other_blocks)]
        pairs += [self.draw(rng) for _ in range(_DRAWS)] if self.draw else []
        found = [self._at(*pair) for pair in pairs]
        return PairEvidence(
            distance=max(each.distance for each in found),
            error=max(each.error for each in found),
            loss=min(each.loss for each in found),
            n_truths=len(found),
        )

    def _at(self, true_blocks: Blocks, other_blocks: Blocks) -> PairEvidence:
        theta, star = self.other.pack(other_blocks), self.truth.pack(true_blocks)
        design = Uniform(self.low, self.high)
        apart = _distance(self.other, theta, self.truth, star, design)
        measures = self.other.measure(theta), self.truth.measure(star)
        loss = float(voronoi_loss(*measures, self.loss, **self.options))
        return PairEvidence(apart.value, apart.error, loss)


@dataclass(frozen=True)
class Path:
    """Measures that run into a truth as epsilon falls.

    Parameters
    ----------
    name : str
        Name in the registry.
    truth, other : Family
        Families of the truth and of the measures.
    true_blocks : mapping
        Parameters of the truth by block.
    at : callable
        ``at(epsilon)``: blocks of the measure.
    loss : str or VoronoiLoss
        Voronoi loss of the claim.
    allows : str
        What moves, and how the assumptions are met.
    low, high : float
        The inputs' interval.
    radii : tuple of float
        Values of epsilon.
    """

    name: str
    truth: Family
    other: Family
    true_blocks: Blocks
    at: Callable[[float], Blocks]
    loss: str | VoronoiLoss
    allows: str
    low: float = -1.0
    high: float = 1.0
    radii: tuple[float, ...] = (0.3, 0.1, 0.03, 0.01, 0.003)

    def evidence(self) -> SequenceEvidence:
        """Losses and distances, one of each for every epsilon."""
        star = self.truth.pack(self.true_blocks)
        target, design = self.truth.measure(star), Uniform(self.low, self.high)
        losses, distances = [], []
        for epsilon in self.radii:
            theta = self.other.pack(self.at(epsilon))
            losses.append(float(voronoi_loss(self.other.measure(theta), target, self.loss)))
            distances.append(_distance(self.other, theta, self.truth, star, design).value)
        return SequenceEvidence(tuple(losses), tuple(distances), directions=self.allows)


_D1 = replace(make_loss("D1"), masses="given")
"""Eq. (4) of mlmoe as printed: masses exp(gamma) as they are, not scaled to the truth's total."""

PAIRS: Registry[Pair] = Registry("pair of measures")
SEQUENCES: Registry[Path] = Registry("sequence of measures")


@cache
def _classes(gate: str, n_experts: int) -> Family:
    return family("multinomial", gate=gate, n_experts=n_experts, n_classes=3)


@cache
def _squares(gate: str, n_experts: int, expert: str, option: Any = None) -> Family:
    tables = {
        "polynomial": {"name": "polynomial", "degree": option},
        "neuron": {"name": "activation", "activation": option, "weighted": False},
        "weighted": {"name": "activation", "activation": option, "weighted": True},
    }
    return family("least-squares", gate=gate, expert=tables[expert], n_experts=n_experts)


def _logit(p: float) -> float:
    return float(np.log(p / (1.0 - p)))


def _log_sigmoid(s: float) -> float:
    return -float(np.log1p(np.exp(-s)))


_EXPERTS = {"a": [[2.0, -1.0, 0.0], [-1.0, 1.5, 0.0]], "b": [[0.5, -1.0, 0.0], [0.3, 1.0, 0.0]]}


def _drawn_classes(rng: np.random.Generator) -> dict[str, Any]:
    """Two experts on three classes, the last class at 0."""
    wide = rng.normal(size=(2, 2, 3)) * np.array([1.0, 1.0, 0.0])
    return {"a": wide[0], "b": wide[1]}


def _opposite(rng: np.random.Generator) -> tuple[Blocks, Blocks]:
    alpha, beta, gamma, shift = rng.uniform(0.3, 1.5, 4)
    experts = _drawn_classes(rng)
    return (
        {"gamma": [gamma, 0.0], "alpha": [alpha, -alpha], "beta": [beta, -beta], **experts},
        {
            "gamma": [gamma - shift, 0.0],
            "alpha": [alpha, -alpha],
            "beta": [beta + shift, -beta - shift],
            **experts,
        },
    )


def _rescaled(rng: np.random.Generator) -> tuple[Blocks, Blocks]:
    gate = {"alpha": rng.normal(size=2), "beta": rng.normal(size=2), "tau": rng.uniform(0.5, 2.0)}
    rest = {"gamma": [rng.normal(), 0.0], **_drawn_classes(rng)}
    return {**gate, **rest}, {**{name: 1.2 * value for name, value in gate.items()}, **rest}


def _common_factor(rng: np.random.Generator) -> tuple[Blocks, Blocks]:
    gamma = np.array([rng.normal(), 0.0])
    rest = {"alpha": rng.normal(size=2), "beta": rng.normal(size=2), **_drawn_classes(rng)}
    return {"gamma": gamma, **rest}, {"gamma": gamma + np.log(1.5), **rest}


PAIRS.register(
    Pair(
        "opposite-scores",
        _classes("sigmoid", 2),
        _classes("sigmoid", 2),
        {"gamma": [0.2, 0.0], "alpha": [1.0, -1.0], "beta": [0.5, -0.5], **_EXPERTS},
        {"gamma": [-0.2, 0.0], "alpha": [1.0, -1.0], "beta": [0.9, -0.9], **_EXPERTS},
        _D1,
        "k = k* = 2 with s2 = -s1: as sigma(s) = e^s sigma(-s), the gates see only gamma1 + s1."
        "  Meets A.1 to A.4.",
        draw=_opposite,
    )
)
PAIRS.register(
    Pair(
        "constant-gate",
        _classes("sigmoid", 2),
        _classes("sigmoid", 2),
        {"gamma": [0.3, 0.0], "alpha": [0.0, 1.2], "beta": [0.5, -0.4], **_EXPERTS},
        {
            "gamma": [0.3 + _log_sigmoid(0.5) - _log_sigmoid(1.1), 0.0],
            **{"alpha": [0.0, 1.2], "beta": [1.1, -0.4], **_EXPERTS},
        },
        _D1,
        "k = k* = 2, alpha_1 = 0, which A.4 allows beside alpha_2 != 0: the first gate is the"
        " constant exp(gamma_1) sigma(beta_1), and only this product is seen.",
    )
)
PAIRS.register(
    Pair(
        "common-factor",
        _classes("sigmoid", 2),
        _classes("sigmoid", 2),
        {"gamma": [0.3, 0.0], "alpha": [1.5, -0.5], "beta": [0.5, 0.2], **_EXPERTS},
        {
            "gamma": [0.3 + np.log(1.5), np.log(1.5)],
            **{"alpha": [1.5, -0.5], "beta": [0.5, 0.2], **_EXPERTS},
        },
        _D1,
        "k = k* = 2, every exp(gamma) times 1.5: the gates are ratios.  A.3 sets gamma_k* = 0 for"
        " the truth and nothing for the fitted measures.",
        draw=_common_factor,
    )
)


def _mixed_constants(gate: str, own: Blocks, loss: str, options: Blocks) -> Pair:
    """A true expert without slope, as a mixture of two constants under its own gate."""
    mass = "beta0" if gate == "softmax" else "gamma"
    slopes, ratio = [2.0, -1.0, 0.0], np.exp([0.4, -0.3, 0.0])
    constant = ratio / ratio.sum()
    # The vector of class probabilities is the mean of two others: intercepts are their logarithms.
    shift = np.array([0.05, -0.03, -0.02])
    halves = [np.log(p / p[-1]).tolist() for p in (constant + shift, constant - shift)]
    first = {name: value for name, value in own.items() if np.ndim(value)}
    shared = {name: value for name, value in own.items() if not np.ndim(value)}
    split = {name: [value[0], value[0], value[1]] for name, value in first.items()}
    return Pair(
        f"mixed-constants-{gate}",
        _classes(gate, 2),
        _classes(gate, 3),
        {
            mass: [0.3, 0.0],
            **first,
            **shared,
            "a": [[0.0, 0.0, 0.0], slopes],
            "b": [np.log(constant / constant[-1]).tolist(), [0.5, -1.0, 0.0]],
        },
        {
            mass: [0.3 - np.log(2.0), 0.3 - np.log(2.0), 0.0],
            **split,
            **shared,
            "a": [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], slopes],
            "b": [*halves, [0.5, -1.0, 0.0]],
        },
        loss,
        "k = k* + 1 = 3, one true expert with slopes 0: its class probabilities are a mean of two"
        " others, under one gate.  Meets A.1 to A.4.",
        options=options,
    )


def _shared_gate(gate: str, own: Blocks, loss: str, options: Blocks) -> Pair:
    """Two true experts without slopes under one gate, whose mean alone is seen."""
    mass = "beta0" if gate == "softmax" else "gamma"
    first = {name: [value[0], *value] for name, value in own.items() if np.ndim(value)}
    shared = {name: value for name, value in own.items() if not np.ndim(value)}
    gates = {mass: [0.3, 0.3, 0.0], **first, **shared}
    slopes = [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [2.0, -1.0, 0.0]]
    shift = np.array([0.05, -0.03, -0.02])

    def blocks(one: FloatArray, two: FloatArray) -> Blocks:
        # Class probabilities as intercepts, the last of them 0.
        flat = [np.log(p / p[-1]).tolist() for p in (one, two)]
        return {**gates, "a": slopes, "b": [*flat, [0.5, -1.0, 0.0]]}

    one, two = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.4, 0.4])
    return Pair(
        f"shared-gate-{gate}",
        _classes(gate, 3),
        _classes(gate, 3),
        blocks(one, two),
        blocks(one + shift, two - shift),
        loss,
        "k = k* = 3, two true experts with slopes 0 under one gate with equal masses: only the mean"
        " of their class probabilities is seen.  All cells hold one atom.  Meets A.1 to A.4.",
        options=options,
    )


def _equal_slopes(gate: str, own: Blocks, loss: str, options: Blocks, shared: bool) -> Pair:
    """An expert two of whose classes share a slope that is not 0, as a mixture of two others.

    ``shared`` has a truth with two such experts under one gate in place of one that is split.
    """
    mass = "beta0" if gate == "softmax" else "gamma"
    flat = {name: value for name, value in own.items() if np.ndim(value)}
    single = {name: value for name, value in own.items() if not np.ndim(value)}
    alike, other = [1.2, 1.2, 0.0], [2.0, -1.0, 0.0]
    total, move = np.array([1.4, 0.9]), np.array([0.3, -0.3])

    def row(odds: FloatArray) -> list[float]:
        # exp(a x) odds: the sum of both odds, and so the denominator, stays.
        return [*np.log(odds).tolist(), 0.0]

    def blocks(odds: Sequence[FloatArray]) -> Blocks:
        share, twice = 0.3 - np.log(len(odds)), len(odds) == 2
        return {
            mass: [share] * len(odds) + [0.0],
            **{name: [value[0], *value] if twice else value for name, value in flat.items()},
            **single,
            "a": [alike] * len(odds) + [other],
            "b": [*map(row, odds), [0.5, -1.0, 0.0]],
        }

    truth = [total + 0.5 * move, total - 0.5 * move] if shared else [total]
    said = "two true experts under one gate" if shared else "one true expert, fitted by two"
    return Pair(
        f"{'shared' if shared else 'equal'}-slopes-{gate}",
        _classes(gate, 1 + len(truth)),
        _classes(gate, 3),
        blocks(truth),
        blocks([total + move, total - move]),
        loss,
        f"{said}, class slopes (a, a, 0) with a != 0: its odds exp(a x + b_s) enter the mixture by"
        " their means, which (e^b1 + d, e^b2 - d) and (e^b1 - d, e^b2 + d) keep.  Meets A.1 to A.4;"
        " under softmax it is in Regime 1.",
        options=options,
    )


for _gate, _own, _loss, _options in (
    ("sigmoid", {"alpha": [1.5, -0.5], "beta": [0.5, 0.2]}, "D1", {}),
    ("sigmoid-inner", {"alpha": [1.5, -0.5], "beta": [0.5, 0.2], "tau": 0.8}, "D2r", {"r": 2}),
    ("sigmoid-euclidean", {"alpha": [0.3, -0.4], "beta": [0.5, 0.2], "tau": 0.8}, "D3", {}),
    ("softmax", {"beta1": [1.5, 0.0]}, "softmax-D2r", {"r": 2}),
):
    PAIRS.register(_mixed_constants(_gate, _own, _loss, _options))
    PAIRS.register(_shared_gate(_gate, _own, _loss, _options))
    for _shared in (False, True):
        PAIRS.register(_equal_slopes(_gate, _own, _loss, _options, _shared))

for _gate, _loss in (("sigmoid", "D1"), ("sigmoid-euclidean", "D3")):
    _single = {"gamma": [0.0], "a": [[2.0, -1.0, 0.0]], "b": [[0.5, -1.0, 0.0]]}
    _shared = {"tau": 0.8} if _gate == "sigmoid-euclidean" else {}
    PAIRS.register(
        Pair(
            f"single-expert-{_gate}",
            _classes(_gate, 1),
            _classes(_gate, 1),
            {**_single, **_shared, "alpha": [1.5], "beta": [0.5]},
            {**_single, **_shared, "alpha": [0.4], "beta": [-1.0]},
            _loss,
            "k = k* = 1: the one gate is 1, whatever its parameters.  Meets A.1 to A.4.",
        )
    )

PAIRS.register(
    Pair(
        "temperature-scale",
        _classes("sigmoid-inner", 2),
        _classes("sigmoid-inner", 2),
        {
            **{"gamma": [0.3, 0.0], "alpha": [1.5, -0.5], "beta": [0.5, 0.2], "tau": 0.8},
            **_EXPERTS,
        },
        {
            **{"gamma": [0.3, 0.0], "alpha": [1.8, -0.6], "beta": [0.6, 0.24], "tau": 0.96},
            **_EXPERTS,
        },
        "D2r",
        "k = k* = 2, all of alpha, beta and tau times 1.2.  Meets the assumptions of Sec. 4.1.",
        options={"r": 2},
        draw=_rescaled,
    )
)

PAIRS.register(
    Pair(
        "positions-outside",
        _classes("sigmoid-euclidean", 2),
        _classes("sigmoid-euclidean", 2),
        {
            **{"gamma": [0.3, 0.0], "alpha": [-2.0, 3.0], "beta": [-1.5, -2.0], "tau": 1.0},
            **_EXPERTS,
        },
        {
            **{"gamma": [0.3, 0.0], "alpha": [-2.5, 3.5], "beta": [-2.0, -2.5], "tau": 1.0},
            **_EXPERTS,
        },
        "D3",
        "k = k* = 2, positions outside the inputs, where |alpha - x| is linear in x and only"
        " |alpha| + beta matters.  Meets the assumptions of Sec. 4.2.",
    )
)


def _doubled(name: str, expert: Any, loss: str, blocks: Blocks) -> Pair:
    truth = family("gaussian", gate="competition", expert=expert, n_experts=2)
    twice = {block: [*value, *value] for block, value in blocks.items()}
    return Pair(
        name,
        truth,
        truth.with_experts(4),
        blocks,
        twice,
        loss,
        "N = 2 N* = 4, every atom of the truth twice, unit masses as printed.",
        -2.0,
        2.0,
        {"masses": "given"},
    )


PAIRS.register(
    _doubled(
        "doubled-lines",
        "linear",
        "competition-L2",
        {"a": [2.0, -1.5], "b": [1.0, -1.0], "nu": [0.25, 0.16]},
    )
)
PAIRS.register(
    _doubled(
        "doubled-networks",
        {"name": "ffn", "hidden": 1},
        "competition-L1",
        {
            "W1": np.array([[2.0], [-2.0]])[..., None],
            "b1": [[0.0], [0.5]],
            "W2": [[2.0], [-2.0]],
            "nu": [0.09, 0.09],
        },
    )
)


def _never_active() -> Pair:
    truth = family("gaussian", gate={"name": "competition-top", "active": 2}, n_experts=3)
    blocks = {"a": [2.0, -1.5, 0.1], "b": [5.0, -4.0, 0.5], "nu": [0.25, 0.16, 0.09]}
    return Pair(
        "never-active",
        truth,
        truth,
        blocks,
        {**blocks, "a": [2.0, -1.5, 0.2], "b": [5.0, -4.0, 0.3]},
        "competition-top-D",
        "k = k* = 3, K = 2: the third expert answers less than the others at every input, so it"
        " never takes part.  Distinct atoms, experts differentiable and not 0.",
        options={"active": 2},
    )


PAIRS.register(_never_active())

_DENSE = {"A": [[0.8]], "b": [[-0.6]], "c": [0.4]}
_SPARSE = {"A": [[0.0]], "b": [[0.0]], "c": [0.4]}
_HALVED = _logit(0.5 / (1.0 + np.exp(-0.4)))


def _without(blocks: Blocks, *names: str) -> dict[str, Any]:
    return {name: value for name, value in blocks.items() if name not in names}


def _drawn_gate(rng: np.random.Generator, sparse: bool, names: Any) -> dict[str, Any]:
    """One gate: all of A and b at 0 in the sparse regime."""
    own = {"A": np.zeros((1, 1)), "b": np.zeros((1, 1)), "c": rng.normal(size=1)}
    if not sparse:
        own |= {"A": rng.normal(size=(1, 1)), "b": rng.normal(size=(1, 1))}
    return {name: own[name] for name in names}


def _split(name: str, gate: str, truth: Blocks, loss: str, regime: str) -> Pair:
    """A polynomial of degree 1 split among two atoms with the gate of the true one."""
    drop = ("b",) if gate.endswith("partial") else ()
    own = _without(truth, *drop)
    two = {block: [*value, *value] for block, value in own.items()}
    options = {"r": 2} if loss.endswith("L2r") else {}
    if gate.startswith("softmax"):
        two["c"] = [c - np.log(2.0) for c in two["c"]]

    def draw(rng: np.random.Generator) -> tuple[Blocks, Blocks]:
        gates = _drawn_gate(rng, regime == "sparse", own)
        both = {block: [*value, *value] for block, value in gates.items()}
        factor = 1.0
        if gate.startswith("softmax"):
            both["c"], factor = [c - np.log(2.0) for c in both["c"]], 2.0
        slope, intercept, part, rest = rng.uniform(0.5, 1.5, 4)
        return {**gates, "alpha": [slope], "beta": [intercept]}, {
            **both,
            "alpha": [part, factor * slope - part],
            "beta": [-rest, factor * intercept + rest],
        }

    total = 2.0 if gate.startswith("softmax") else 1.0
    return Pair(
        name,
        _squares(gate, 1, "polynomial", 1),
        _squares(gate, 2, "polynomial", 1),
        {**own, "alpha": [1.5], "beta": [0.7]},
        {**two, "alpha": [0.9, total * 1.5 - 0.9], "beta": [0.1, total * 0.7 - 0.1]},
        loss,
        f"N* = 1, N = 2, {regime} regime, linear experts: two atoms with the gate of the true one"
        " whose slopes and intercepts add up to its own"
        + (", at half its softmax weight each to twice its own." if total > 1.0 else "."),
        options=options,
        draw=draw,
    )


PAIRS.register(_split("linear-split", "sigmoid-quadratic", _SPARSE, "L2r", "sparse"))
PAIRS.register(_split("linear-split-dense", "sigmoid-quadratic", _DENSE, "L3", "dense"))
PAIRS.register(_split("linear-split-partial", "sigmoid-partial", _SPARSE, "L4", "sparse"))
PAIRS.register(_split("linear-split-partial-dense", "sigmoid-partial", _DENSE, "L5", "dense"))
for _regime, _gates in (("sparse", _SPARSE), ("dense", _DENSE)):
    PAIRS.register(
        _split(
            f"linear-split-softmax-{_regime}", "softmax-quadratic", _gates, "softmax-L2r", _regime
        )
    )
PAIRS.register(
    Pair(
        "square-split",
        _squares("sigmoid-quadratic", 1, "polynomial", 2),
        _squares("sigmoid-quadratic", 2, "polynomial", 2),
        {**_SPARSE, "alpha": [1.5], "beta": [0.7]},
        {
            **{block: [*value, *value] for block, value in _SPARSE.items()},
            "alpha": [1.5 * 0.6, 1.5 * 0.8],
            "beta": [0.7 * 0.6, 0.7 * 0.8],
        },
        "L2r",
        "N* = 1, N = 2, sparse regime, p = 2: two atoms with the gate of the true one and its"
        " expert's parameters times t and u, t^2 + u^2 = 1.",
        options={"r": 2},
    )
)


for _regime, _gates in (("sparse", _SPARSE), ("dense", _DENSE)):
    PAIRS.register(
        Pair(
            f"square-split-softmax-{_regime}",
            _squares("softmax-quadratic", 1, "polynomial", 2),
            _squares("softmax-quadratic", 2, "polynomial", 2),
            {**_gates, "alpha": [1.5], "beta": [0.7]},
            {
                **{block: [*value, *value] for block, value in _gates.items()},
                "c": [0.4 - np.log(2.0)] * 2,
                "alpha": [1.5 * 1.4, 1.5 * 0.2],
                "beta": [0.7 * 1.4, 0.7 * 0.2],
            },
            "softmax-L2r",
            f"N* = 1, N = 2, {_regime} regime, p = 2: two atoms at half the softmax weight, the"
            " expert's parameters times t and u, t^2 + u^2 = 2.",
            options={"r": 2},
        )
    )


def _complements(name: str, gate: str, loss: str) -> Pair:
    """Gates that add up to 1, in two ways, before the same expert."""
    names = ("A", "b", "c") if gate == "sigmoid-quadratic" else ("A", "c")
    opposite = {"A": [[0.8], [-0.8]], "b": [[-0.6], [0.6]], "c": [0.4, -0.4]}
    constant = {"A": [[0.0]] * 3, "b": [[0.0]] * 3, "c": [_logit(p) for p in (0.2, 0.3, 0.5)]}
    return Pair(
        name,
        _squares(gate, 2, "neuron", "gelu"),
        _squares(gate, 3, "neuron", "gelu"),
        {**{block: opposite[block] for block in names}, "alpha": [1.5] * 2, "beta": [0.7] * 2},
        {**{block: constant[block] for block in names}, "alpha": [1.5] * 3, "beta": [0.7] * 3},
        loss,
        "N* = 2, N = 3, dense regime, any expert: sigma(s) E + sigma(-s) E = E = (.2 + .3 + .5) E.",
    )


PAIRS.register(_complements("complements", "sigmoid-quadratic", "L3"))
PAIRS.register(_complements("complements-partial", "sigmoid-partial", "L5"))


def _shared_weights(name: str, gate: str, regime: Blocks, loss: str, versus: str) -> Pair:
    """Two atoms with the gate and the neuron of the true one, whose weights add up to its own.

    ``truth`` compares them with the true atom, ``another`` with two other such atoms.
    """
    drop = ("b",) if gate.endswith("partial") else ()
    own, softmax = _without(regime, *drop), gate.startswith("softmax")
    sparse = "A" in own and own["A"] == [[0.0]]

    def measures(gates: Blocks, neuron: Blocks, weight: float, firsts: tuple[float, float]) -> Any:
        # Gates at A = b = 0 are free to share the true mass, and softmax gates do share it.
        shared, total = dict(gates), weight
        if softmax:
            shared["c"], total = [c - np.log(2.0) for c in gates["c"]], 2.0 * weight
        elif sparse:
            mass = 0.5 / (1.0 + np.exp(-np.asarray(gates["c"])))
            shared["c"], total = [_logit(float(each)) for each in mass], 2.0 * weight
        twice = {block: [*value, *value] for block, value in {**shared, **neuron}.items()}
        two = [{**twice, "lambda": [first, total - first]} for first in firsts]
        one = {**gates, **neuron, "lambda": [weight]}
        return (one if versus == "truth" else two[1]), two[0]

    def draw(rng: np.random.Generator) -> Any:
        neuron = {"alpha": rng.uniform(0.5, 1.5, 1), "beta": rng.normal(size=1)}
        firsts = tuple(rng.uniform(0.3, 0.6, 2) * [1.0, 0.5])
        return measures(_drawn_gate(rng, sparse, own), neuron, rng.uniform(1.5, 2.5), firsts)

    pair = _squares(gate, 2, "weighted", "gelu")
    truth = _squares(gate, 1, "weighted", "gelu") if versus == "truth" else pair
    true_blocks, blocks = measures(own, {"alpha": [1.5], "beta": [0.7]}, 2.0, (1.5, 0.8))
    return Pair(
        name,
        truth,
        pair,
        true_blocks,
        blocks,
        loss,
        f"N* = 1, N = 2, {'sparse' if sparse else 'dense'} regime, lambda gelu(alpha x + beta) with"
        " alpha, lambda != 0: two atoms that differ in lambda only, which is linear.",
        draw=draw,
    )


for _name, _gate, _regime, _loss, _versus in (
    ("shared-weights", "sigmoid-quadratic", _SPARSE, "L1", "truth"),
    ("shared-weights-dense", "sigmoid-quadratic", _DENSE, "L3", "another"),
    ("shared-weights-dense-truth", "sigmoid-quadratic", _DENSE, "L3", "truth"),
    ("shared-weights-partial", "sigmoid-partial", _SPARSE, "L4", "truth"),
    ("shared-weights-partial-dense", "sigmoid-partial", _DENSE, "L5", "another"),
    ("shared-weights-partial-dense-truth", "sigmoid-partial", _DENSE, "L5", "truth"),
    ("shared-weights-softmax-sparse", "softmax-quadratic", _SPARSE, "softmax-L1", "truth"),
    ("shared-weights-softmax-dense", "softmax-quadratic", _DENSE, "softmax-L1", "truth"),
):
    PAIRS.register(_shared_weights(_name, _gate, _regime, _loss, _versus))

PAIRS.register(
    Pair(
        "linear-flip",
        _squares("sigmoid-quadratic", 1, "polynomial", 1),
        _squares("sigmoid-quadratic", 2, "polynomial", 1),
        {**_DENSE, "alpha": [1.5], "beta": [0.7]},
        {
            **{"A": [[-0.8], [0.0]], "b": [[0.6], [0.0]], "c": [-0.4, 0.0]},
            **{"alpha": [-1.5, 3.0], "beta": [-0.7, 1.4]},
        },
        "L3",
        "N* = 1, N = 2, dense regime, linear experts: sigma(s) g = g - sigma(-s) g.",
    )
)

_HALF_MASS = 1.0 / (1.0 + np.exp(-_HALVED))
# sigma'' / (2 sigma') at c': what A must be to undo the square of b.
_CURVE = 0.5 * (1.0 - 2.0 * _HALF_MASS)


def _opposite_slopes(epsilon: float) -> Blocks:
    return {
        **{"A": [[-_CURVE * epsilon**2]] * 2, "b": [[epsilon], [-epsilon]]},
        **{"c": [_HALVED] * 2, "alpha": [1.5, 1.5], "beta": [0.7, 0.7]},
    }


SEQUENCES.register(
    Path(
        "opposite-slopes",
        _squares("sigmoid-quadratic", 1, "neuron", "gelu"),
        _squares("sigmoid-quadratic", 2, "neuron", "gelu"),
        {**_SPARSE, "alpha": [1.5], "beta": [0.7]},
        _opposite_slopes,
        "L1",
        "b = +eps and -eps in two atoms, A = -(sigma'' / 2 sigma') eps^2: at A = b = 0 the second"
        " derivative in b is a multiple of the first in A, for any expert.  N* = 1, N = 2, sparse.",
    )
)


def _flat_competitor(epsilon: float) -> Blocks:
    """The first atom, whose answer is constant, as two that keep mean, variance and mass."""
    weight = 0.5 * np.exp(0.4) * (1.0 + np.exp(1.0))
    places = np.array([1.0 + epsilon, 1.0 - epsilon])
    return {
        "c": [*(np.log(weight) - np.log1p(np.exp(places))), 0.0],
        **{"a": [0.0, 0.0, -1.5], "b": [*places, -1.0]},
        "nu": [0.25 - epsilon**2] * 2 + [0.16],
    }


SEQUENCES.register(
    Path(
        "flat-competitor",
        family("gaussian", gate="competition-free", n_experts=2),
        family("gaussian", gate="competition-free", n_experts=3),
        {"c": [0.4, 0.0], "a": [0.0, -1.5], "b": [1.0, -1.0], "nu": [0.25, 0.16]},
        _flat_competitor,
        "competition-L2",
        "N* = 2, N = 3, a_1 = 0: the first expert and so its weight are constant in x, and two"
        " atoms"
        " b +- eps, nu - eps^2 that keep its mass are off by the fourth cumulant only.",
        -2.0,
        2.0,
    )
)


def _gauss_hermite(m: int) -> Path:
    """A line as m lines at the nodes of Gauss-Hermite quadrature, all under its gate."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(m)
    shares = weights / weights.sum()

    def at(epsilon: float) -> Blocks:
        return {
            "beta0": [*(0.3 + np.log(shares)), 0.0],
            "beta1": [1.0] * m + [0.0],
            "a": [2.0] * m + [-1.5],
            "b": [*(1.0 + epsilon * nodes), -1.0],
            "nu": [0.01 - epsilon**2] * m + [0.5],
        }

    return Path(
        f"gauss-hermite-{m}",
        family("gaussian", gate="softmax", n_experts=2),
        family("gaussian", gate="softmax", n_experts=m + 1),
        {"beta0": [0.3, 0.0], "beta1": [1.0, 0.0], "a": [2.0, -1.5], "b": [1.0, -1.0]}
        | {"nu": [0.01, 0.5]},
        at,
        deviation_loss("gaussian-softmax-D"),
        f"{m} atoms b + eps z_i, nu - eps^2 with the weights of Gauss-Hermite quadrature: they have"
        f" the moments of N(b, nu) up to {2 * m - 1}.  The loss has all exponents 1.",
        -2.0,
        2.0,
        # From half the standard deviation down to where the distance is its rounding.
        (0.05, 0.03, 0.02, 0.01, 0.005),
    )


for _m in (2, 3, 4):
    SEQUENCES.register(_gauss_hermite(_m))


def _junction(names: tuple[str, ...]) -> Callable[[float], Blocks]:
    def at(epsilon: float) -> Blocks:
        gates = {"A": [[0.8], [0.8 + epsilon]], "b": [[-0.6]] * 2, "c": [0.4, 0.4]}
        return {
            **{name: gates[name] for name in names},
            **{"alpha": [1.5 * (1.0 - epsilon), 1.5 * epsilon]},
            **{"beta": [0.7 * (1.0 - epsilon), 0.7 * epsilon]},
        }

    return at


for _name, _gate, _names, _loss in (
    ("junction", "sigmoid-quadratic", ("A", "b", "c"), "dense-L3"),
    ("junction-partial", "sigmoid-partial", ("A", "c"), "dense-L5"),
):
    for _expert, _kind in (("relu", ("neuron", "relu")), ("linear", ("polynomial", 1))):
        SEQUENCES.register(
            Path(
                f"{_name}-{_expert}",
                _squares(_gate, 1, *_kind),
                _squares(_gate, 2, *_kind),
                {**{block: _DENSE[block] for block in _names}, "alpha": [1.5], "beta": [0.7]},
                _junction(_names),
                _loss,
                "near the extra expert 0 under the true gate, a share eps of the expert under a"
                " gate eps away: the distance to the set of exact representations is eps, that of"
                " the functions eps^2.  N* = 1, N = 2, dense regime.",
            )
        )
