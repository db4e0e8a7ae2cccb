"""Measures of the claims of Yan et al. (2025): regression functions with quadratic gates."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from experiments.claims.witnesses.quadratic_gates import THRESHOLD, cancelling, unequal
from experiments.claims.witnesses.witness import Blocks, Pair, Path
from moestat.model.axes import family
from moestat.model.family import Family


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


_LINEAR_SPLITS = (
    _split("linear-split", "sigmoid-quadratic", _SPARSE, "L2r", "sparse"),
    _split("linear-split-dense", "sigmoid-quadratic", _DENSE, "L3", "dense"),
    _split("linear-split-partial", "sigmoid-partial", _SPARSE, "L4", "sparse"),
    _split("linear-split-partial-dense", "sigmoid-partial", _DENSE, "L5", "dense"),
    _split("linear-split-softmax-sparse", "softmax-quadratic", _SPARSE, "softmax-L2r", "sparse"),
    _split("linear-split-softmax-dense", "softmax-quadratic", _DENSE, "softmax-L2r", "dense"),
)
_SQUARE_SPLIT = Pair(
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


def _square_split(regime: str, gates: Blocks) -> Pair:
    """Two atoms at half the softmax weight whose squares add up to twice the true expert."""
    return Pair(
        f"square-split-softmax-{regime}",
        _squares("softmax-quadratic", 1, "polynomial", 2),
        _squares("softmax-quadratic", 2, "polynomial", 2),
        {**gates, "alpha": [1.5], "beta": [0.7]},
        {
            **{block: [*value, *value] for block, value in gates.items()},
            "c": [0.4 - np.log(2.0)] * 2,
            "alpha": [1.5 * 1.4, 1.5 * 0.2],
            "beta": [0.7 * 1.4, 0.7 * 0.2],
        },
        "softmax-L2r",
        f"N* = 1, N = 2, {regime} regime, p = 2: two atoms at half the softmax weight, the"
        " expert's parameters times t and u, t^2 + u^2 = 2.",
        options={"r": 2},
    )


POLYNOMIAL_SPLITS = (
    *_LINEAR_SPLITS,
    _SQUARE_SPLIT,
    _square_split("sparse", _SPARSE),
    _square_split("dense", _DENSE),
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


COMPLEMENTS = _complements("complements", "sigmoid-quadratic", "L3")
COMPLEMENTS_PARTIAL = _complements("complements-partial", "sigmoid-partial", "L5")


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


SHARED_WEIGHTS = (
    _shared_weights("shared-weights", "sigmoid-quadratic", _SPARSE, "L1", "truth"),
    _shared_weights("shared-weights-dense", "sigmoid-quadratic", _DENSE, "L3", "another"),
    _shared_weights("shared-weights-dense-truth", "sigmoid-quadratic", _DENSE, "L3", "truth"),
    _shared_weights("shared-weights-partial", "sigmoid-partial", _SPARSE, "L4", "truth"),
    _shared_weights("shared-weights-partial-dense", "sigmoid-partial", _DENSE, "L5", "another"),
    _shared_weights("shared-weights-partial-dense-truth", "sigmoid-partial", _DENSE, "L5", "truth"),
    _shared_weights(
        "shared-weights-softmax-sparse", "softmax-quadratic", _SPARSE, "softmax-L1", "truth"
    ),
    _shared_weights(
        "shared-weights-softmax-dense", "softmax-quadratic", _DENSE, "softmax-L1", "truth"
    ),
)

LINEAR_FLIP = Pair(
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

_HALF_MASS = 1.0 / (1.0 + np.exp(-_HALVED))
# sigma'' / (2 sigma') at c': what A must be to undo the square of b.
_CURVE = 0.5 * (1.0 - 2.0 * _HALF_MASS)


def _opposite_slopes(epsilon: float) -> Blocks:
    return {
        **{"A": [[-_CURVE * epsilon**2]] * 2, "b": [[epsilon], [-epsilon]]},
        **{"c": [_HALVED] * 2, "alpha": [1.5, 1.5], "beta": [0.7, 0.7]},
    }


OPPOSITE_SLOPES = Path(
    "opposite-slopes",
    _squares("sigmoid-quadratic", 1, "neuron", "gelu"),
    _squares("sigmoid-quadratic", 2, "neuron", "gelu"),
    {**_SPARSE, "alpha": [1.5], "beta": [0.7]},
    _opposite_slopes,
    "L1",
    "b = +eps and -eps in two atoms, A = -(sigma'' / 2 sigma') eps^2: at A = b = 0 the second"
    " derivative in b is a multiple of the first in A, for any expert.  N* = 1, N = 2, sparse.",
)


def _junction(partial: bool, expert: str, kind: tuple[str, str | int]) -> Path:
    """A share of the expert under a gate that is a little away."""
    gate, loss = ("sigmoid-partial", "dense-L5") if partial else ("sigmoid-quadratic", "dense-L3")
    names = ("A", "c") if partial else ("A", "b", "c")

    def at(epsilon: float) -> Blocks:
        gates = {"A": [[0.8], [0.8 + epsilon]], "b": [[-0.6]] * 2, "c": [0.4, 0.4]}
        return {
            **{name: gates[name] for name in names},
            **{"alpha": [1.5 * (1.0 - epsilon), 1.5 * epsilon]},
            **{"beta": [0.7 * (1.0 - epsilon), 0.7 * epsilon]},
        }

    return Path(
        f"junction{'-partial' if partial else ''}-{expert}",
        _squares(gate, 1, *kind),
        _squares(gate, 2, *kind),
        {**{block: _DENSE[block] for block in names}, "alpha": [1.5], "beta": [0.7]},
        at,
        loss,
        "near the extra expert 0 under the true gate, a share eps of the expert under a gate eps"
        " away: the distance to the set of exact representations is eps, that of the functions"
        " eps^2.  N* = 1, N = 2, dense regime.",
    )


JUNCTIONS = tuple(
    _junction(partial, expert, kind)
    for partial in (False, True)
    for expert, kind in (("relu", ("neuron", "relu")), ("linear", ("polynomial", 1)))
)


def _zero_expert(name: str, gate: str, unit: str, loss: str) -> Pair:
    """The truth beside one more atom whose neuron is the zero function, under any gate."""
    names = ("A", "b", "c") if gate == "sigmoid-quadratic" else ("A", "c")

    def beside(truth: Blocks, gates: Blocks) -> tuple[Blocks, Blocks]:
        further = {**{block: gates[block] for block in names}, "alpha": [0.0], "beta": [0.0]}
        return truth, {block: [*truth[block], *further[block]] for block in truth}

    def draw(rng: np.random.Generator) -> tuple[Blocks, Blocks]:
        own = _drawn_gate(rng, True, names)
        neuron = {"alpha": rng.uniform(0.5, 1.5, 1), "beta": rng.normal(size=1)}
        # The further gate meets the regime's condition, too: A = b = 0.
        return beside({**own, **neuron}, _drawn_gate(rng, True, names))

    truth = {block: _SPARSE[block] for block in names} | {"alpha": [1.5], "beta": [0.7]}
    first, second = beside(truth, {"A": [[0.0]], "b": [[0.0]], "c": [-1.0]})
    return Pair(
        name,
        _squares(gate, 1, "neuron", unit),
        _squares(gate, 2, "neuron", unit),
        first,
        second,
        loss,
        f"N* = 1, N = 2, sparse regime, {unit} without output weight: phi(0) = 0, so that the atom"
        " alpha = beta = 0 is the zero function under any gate, here one with A = b = 0, too.",
        draw=draw,
    )


ZERO_EXPERTS = (
    _zero_expert("zero-expert-gelu", "sigmoid-quadratic", "gelu", "L1"),
    _zero_expert("zero-expert-relu", "sigmoid-quadratic", "relu", "L1"),
    _zero_expert("zero-expert-partial-gelu", "sigmoid-partial", "gelu", "L4"),
    _zero_expert("zero-expert-partial-relu", "sigmoid-partial", "relu", "L4"),
)

_PAIR_GATE = {"A": [[-0.3]], "b": [[0.9]], "c": [0.2]}


def _opposite_neurons(name: str, gate: str, names: tuple[str, ...], loss: str) -> Path:
    """Two further neurons of opposite sign under one gate."""

    def at(epsilon: float) -> Blocks:
        gates = {name: [*_DENSE[name], *_PAIR_GATE[name], *_PAIR_GATE[name]] for name in names}
        return {
            **gates,
            **{"alpha": [1.5, epsilon, -epsilon]},
            **{"beta": [0.7, 0.5 * epsilon, -0.5 * epsilon]},
        }

    return Path(
        name,
        _squares(gate, 3, "neuron", "gelu"),
        _squares(gate, 3, "neuron", "gelu"),
        at(0.0),
        at,
        loss,
        "near the exact representation with two further experts 0 under one gate: GELU(eps u)"
        " and GELU(-eps u) there, whose odd parts cancel; the loss is to this representation,"
        " and no other one is nearer by more than a constant factor (short_proofs.md)."
        "  N* = 1, N = 3, dense regime.",
        represents=True,
    )


OPPOSITE_NEURONS = _opposite_neurons("opposite-neurons", "sigmoid-quadratic", ("A", "b", "c"), "L3")
OPPOSITE_NEURONS_PARTIAL = _opposite_neurons(
    "opposite-neurons-partial", "sigmoid-partial", ("A", "c"), "L5"
)


def _dead_neuron(name: str, gate: str, loss: str) -> Pair:
    """The truth beside one more ReLU neuron that is 0 at all inputs, with a slope."""
    names = ("A", "b", "c") if gate == "sigmoid-quadratic" else ("A", "c")
    truth = {block: _SPARSE[block] for block in names} | {"alpha": [1.5], "beta": [0.7]}
    further = {"A": [[0.0]], "b": [[0.0]], "c": [-1.0], "alpha": [1.0], "beta": [-1.5]}
    return Pair(
        name,
        _squares(gate, 1, "neuron", "relu"),
        _squares(gate, 2, "neuron", "relu"),
        truth,
        {block: [*truth[block], *further[block]] for block in truth},
        loss,
        "N* = 1, N = 2, sparse regime, inputs in [-1, 1], alpha != 0: a ReLU with alpha = 1 and"
        " beta = -1.5 is 0 at all inputs, under any gate, here one with A = b = 0, too.",
    )


DEAD_NEURONS = (
    _dead_neuron("dead-neuron", "sigmoid-quadratic", "L1"),
    _dead_neuron("dead-neuron-partial", "sigmoid-partial", "L4"),
)


def _edge_neuron(name: str, gate: str, loss: str) -> Path:
    """One more ReLU neuron that is active near the end of the inputs only."""
    names = ("A", "b", "c") if gate == "sigmoid-quadratic" else ("A", "c")
    further = {"A": [[-0.3]], "b": [[0.9]], "c": [0.2]}

    def at(epsilon: float) -> Blocks:
        gates = {block: [*_DENSE[block], *further[block]] for block in names}
        return {**gates, "alpha": [1.5, 1.0], "beta": [0.7, epsilon - 1.0]}

    return Path(
        name,
        _squares(gate, 1, "neuron", "relu"),
        _squares(gate, 2, "neuron", "relu"),
        {**{block: _DENSE[block] for block in names}, "alpha": [1.5], "beta": [0.7]},
        at,
        loss,
        "N* = 1, N = 2, dense regime, inputs in [-1, 1], alpha != 0: beside the truth the neuron"
        " (x - 1 + eps)_+, which is at a distance of order eps from the dead ones, while the"
        " functions differ on an interval of length eps by eps at most.",
        # The integral over the last interval of length eps is done by a rule on all inputs.
        radii=(0.4, 0.2, 0.1, 0.05, 0.03),
    )


EDGE_NEURONS = (
    _edge_neuron("edge-neuron", "sigmoid-quadratic", "dense-L3"),
    _edge_neuron("edge-neuron-partial", "sigmoid-partial", "dense-L5"),
)


def _complement_split(name: str, gate: str, loss: str) -> Path:
    """Three neurons under constant gates of a third each, two of them a little apart."""
    names = ("A", "b", "c") if gate == "sigmoid-quadratic" else ("A", "c")
    constant = {"A": [[0.0]] * 3, "b": [[0.0]] * 3, "c": [_logit(1.0 / 3.0)] * 3}

    def at(epsilon: float) -> Blocks:
        beta = [0.7 + epsilon, 0.7 - epsilon, 0.7]
        return {**{block: constant[block] for block in names}, "alpha": [1.5] * 3, "beta": beta}

    return Path(
        name,
        _squares(gate, 3, "neuron", "gelu"),
        _squares(gate, 3, "neuron", "gelu"),
        at(0.0),
        at,
        loss,
        "the function sigma(s) E + sigma(-s) E = E of a truth with two atoms of one GELU neuron and"
        " opposite scores that are not constant: N* = 2, N = 3, dense regime, alpha = 1.5.  It is"
        " E under three gates that are 1/3, too, and two of these neurons move by eps while their"
        " mean stays; no exact representation is nearer by more than a constant"
        " factor (short_proofs.md).",
        radii=(0.1, 0.05, 0.02, 0.01, 0.005),
        represents=True,
    )


COMPLEMENT_SPLITS = (
    _complement_split("complement-split", "sigmoid-quadratic", "L3"),
    _complement_split("complement-split-partial", "sigmoid-partial", "L5"),
)


def _softmax_relu(name: str, neuron: Blocks, other: Blocks, about: str) -> Pair:
    """A true ReLU neuron without a kink among the inputs, under a softmax gate."""
    rest = {"A": [[0.0]], "b": [[0.0]], "c": [0.0], "alpha": [1.2], "beta": [0.3]}
    gate = {"A": [[0.0]], "b": [[0.0]], "c": [0.4]}
    n_atoms = len(other["alpha"])
    split = {block: value * n_atoms for block, value in gate.items()}
    split["c"] = [0.4 - np.log(n_atoms)] * n_atoms
    return Pair(
        name,
        _squares("softmax-quadratic", 2, "neuron", "relu"),
        _squares("softmax-quadratic", 1 + n_atoms, "neuron", "relu"),
        {block: [*value, *rest[block]] for block, value in {**gate, **neuron}.items()},
        {block: [*value, *rest[block]] for block, value in {**split, **other}.items()},
        "softmax-L1",
        f"N* = 2, N = {1 + n_atoms}, inputs in [-1, 1], alpha != 0: {about}",
    )


SOFTMAX_RELU = (
    _softmax_relu(
        "softmax-active-relu",
        {"alpha": [0.5], "beta": [2.0]},
        {"alpha": [0.7, 0.3], "beta": [2.1, 1.9]},
        "a ReLU that is active at all inputs is a line, and the mean of two others under its gate"
        " at half the mass each.",
    ),
    _softmax_relu(
        "softmax-dead-relu",
        {"alpha": [0.5], "beta": [-2.0]},
        {"alpha": [-0.4], "beta": [-1.5]},
        "a ReLU that is 0 at all inputs shows its gate and nothing of its expert.",
    ),
)


def _pair_of_gates(name: str, share: float, first: float) -> Path:
    """Two quadratic gates whose sum is constant to a high order, under one expert.

    `share` is sigma(c*) of the true gate and `first` the value of one of the two at 0; its slope is
    epsilon, the other parameters undo the coefficients of x to x^3.
    """
    values, slopes, curves, _ = cancelling(share, first)
    centres = [_logit(value) for value in values]

    def at(epsilon: float) -> Blocks:
        return {
            **{"A": (curves * epsilon**2)[:, None], "b": (slopes * epsilon)[:, None]},
            **{"c": centres, "alpha": [1.5, 1.5], "beta": [0.7, 0.7]},
        }

    return Path(
        name,
        _squares("sigmoid-quadratic", 1, "neuron", "gelu"),
        _squares("sigmoid-quadratic", 2, "neuron", "gelu"),
        {"A": [[0.0]], "b": [[0.0]], "c": [_logit(share)], "alpha": [1.5], "beta": [0.7]},
        at,
        "L1",
        f"two gates sigma(c_i + b_i x + A_i x^2) that add up to {share:.4f} but for a high power of"
        " x, under the true expert, any: b of order eps, A of order eps^2.  N* = 1, N = 2, sparse.",
        radii=(0.5, 0.35, 0.25, 0.16, 0.12),
    )


_UNEQUAL = unequal(0.6, 0.1, 0.29)
GATE_PAIRS = {
    4: _pair_of_gates("gate-pair-4", 0.3, 0.15),
    5: _pair_of_gates("gate-pair-5", 0.6, _UNEQUAL),
    6: _pair_of_gates("gate-pair-6", THRESHOLD, 0.5 * THRESHOLD),
}
"""By the power of epsilon at which they differ from the true gate."""
