"""Measures of the claims of Pham et al. (2026): classes under four gates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from experiments.claims.witnesses.witness import Blocks, Pair, Path
from moestat.base.types import FloatArray
from moestat.metrics.losses import make_loss
from moestat.model.axes import family
from moestat.model.family import Family

_D1 = replace(make_loss("D1"), masses="given")
"""Eq. (4) of mlmoe as printed: masses exp(gamma) as they are, not scaled to the truth's total."""


@cache
def _classes(gate: str, n_experts: int, n_classes: int = 3) -> Family:
    return family("multinomial", gate=gate, n_experts=n_experts, n_classes=n_classes)


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


def _third_gate(
    rng: np.random.Generator, *, opposite: bool, tau: float | None
) -> tuple[Blocks, Blocks]:
    """Two gates whose slopes are equal or opposite, and three atoms with the same density.

    With t = exp(alpha x) and B = exp(beta) the first gate is B t / (1 + B t), and the ratio of the
    two gates a quotient of linear functions of t.  A third atom with the first expert, whose gate
    is the (mirrored) gate of the last atom, cancels the latter's denominator.
    """
    scale, experts = tau or 1.0, _drawn_classes(rng)
    alpha, gamma, share = rng.uniform(0.5, 1.5), rng.uniform(-0.5, 0.5), rng.uniform(0.2, 0.4)
    beta = np.array([-0.4, 0.5]) + rng.uniform(-0.2, 0.2, 2)
    first, second = np.exp(beta / scale)
    place = 1.0 / second if opposite else second  # of the last gate's numerator
    moved = (place - share * first) / (1.0 - share)
    total = np.exp(gamma) * first * (1.0 if opposite else moved / second)
    new = scale * np.log(moved)
    slope = -alpha if opposite else alpha
    shared = {} if tau is None else {"tau": tau}
    truth = {"gamma": [gamma, 0.0], "alpha": [alpha, slope], "beta": beta, **experts, **shared}
    other = {
        "gamma": [np.log((1.0 - share) * total / first), np.log(share * total / moved), 0.0],
        "alpha": [alpha, alpha, slope],
        "beta": [beta[0], new, -new if opposite else new],
        **{name: value[[0, 0, 1]] for name, value in experts.items()},
        **shared,
    }
    return truth, other


OPPOSITE_SCORES = Pair(
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
CONSTANT_GATE = Pair(
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
COMMON_FACTOR = Pair(
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


_GATES: tuple[tuple[str, Blocks, str, Blocks], ...] = (
    ("sigmoid", {"alpha": [1.5, -0.5], "beta": [0.5, 0.2]}, "D1", {}),
    ("sigmoid-euclidean", {"alpha": [0.3, -0.4], "beta": [0.5, 0.2], "tau": 0.8}, "D3", {}),
    ("sigmoid-inner", {"alpha": [1.5, -0.5], "beta": [0.5, 0.2], "tau": 0.8}, "D2r", {"r": 2}),
    ("softmax", {"beta1": [1.5, 0.0]}, "softmax-D2r", {"r": 2}),
)
"""Each gate with its parameters, its loss and the loss's options."""

MIXED_CONSTANTS = tuple(_mixed_constants(*each) for each in _GATES)
SHARED_GATE = tuple(_shared_gate(*each) for each in _GATES)
EQUAL_SLOPES = tuple(_equal_slopes(*each, shared=False) for each in _GATES)
SHARED_SLOPES = tuple(_equal_slopes(*each, shared=True) for each in _GATES)


def _single_expert(gate: str, loss: str, **shared: float) -> Pair:
    """One true expert, whose gate is 1 whatever its parameters."""
    expert = {"gamma": [0.0], "a": [[2.0, -1.0, 0.0]], "b": [[0.5, -1.0, 0.0]]}
    return Pair(
        f"single-expert-{gate}",
        _classes(gate, 1),
        _classes(gate, 1),
        {**expert, **shared, "alpha": [1.5], "beta": [0.5]},
        {**expert, **shared, "alpha": [0.4], "beta": [-1.0]},
        loss,
        "k = k* = 1: the one gate is 1, whatever its parameters.  Meets A.1 to A.4.",
    )


SINGLE_EXPERT = _single_expert("sigmoid", "D1")
SINGLE_EXPERT_EUCLIDEAN = _single_expert("sigmoid-euclidean", "D3", tau=0.8)

TEMPERATURE_SCALE = Pair(
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

POSITIONS_OUTSIDE = Pair(
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


def _third_atom(name: str, gate: str, loss: str, opposite: bool, tau: float | None) -> Pair:
    """Two true gates with equal or opposite slopes, and three atoms with the same density."""
    draw = partial(_third_gate, opposite=opposite, tau=tau)
    return Pair(
        name,
        _classes(gate, 2),
        _classes(gate, 3),
        *draw(np.random.default_rng(1)),
        loss,
        f"k = k* + 1 = 3, two true gates whose slopes are {'opposite' if opposite else 'equal'}: a"
        " further atom with the first expert, beside a last atom whose gate has moved, keeps the"
        " ratio of the gates.  Meets A.1 to A.4.",
        draw=draw,
    )


PARALLEL_GATES = _third_atom("parallel-gates-sigmoid", "sigmoid", "D1", False, None)
PARALLEL_GATES_EUCLIDEAN = _third_atom(
    "parallel-gates-sigmoid-euclidean", "sigmoid-euclidean", "D3", False, 0.8
)
OPPOSITE_SLOPES = _third_atom("opposite-slopes", "sigmoid", "D1", True, None)


def _two_classes(slopes: FloatArray, intercepts: FloatArray) -> dict[str, Any]:
    """Experts on two classes, the last class at 0."""
    return {"a": np.stack([slopes, 0.0 * slopes], 1), "b": np.stack([intercepts, 0.0 * slopes], 1)}


def _swapped(rng: np.random.Generator) -> tuple[Blocks, Blocks]:
    """Each expert has the scores of the other atom's gate, all of one sign."""
    alpha, beta = rng.normal(size=2) * 2.0, rng.normal(size=2)
    gamma, moves = np.array([rng.normal(), 0.0]), rng.uniform(0.2, 0.5, 2) * [1.0, -1.0]
    sign = rng.choice([-1.0, 1.0])
    true, fitted = np.exp(gamma), np.exp(gamma + moves)
    fitted *= true.sum() / fitted.sum()
    # What exp(-score) of the second and of the first gate is multiplied by.
    factors = np.log(true / fitted)
    own = _two_classes(sign * alpha[::-1], sign * beta[::-1])
    moved = beta - factors[::-1]
    return (
        {"gamma": gamma, "alpha": alpha, "beta": beta, **own},
        {
            **{"gamma": np.log(fitted), "alpha": alpha, "beta": moved},
            **_two_classes(sign * alpha[::-1], sign * moved[::-1]),
        },
    )


SWAPPED_EXPERTS = Pair(
    "swapped-experts",
    _classes("sigmoid", 2, 2),
    _classes("sigmoid", 2, 2),
    *_swapped(np.random.default_rng(3)),
    "D1",
    "K = 2, k = k* = 2: the first expert has the scores of the second gate and the second expert"
    " those of the first, or both their negatives.  Masses are scaled to one total, slopes of gates"
    " are neither 0 nor equal nor opposite, and class slopes are distinct.  Meets A.1 to A.4.",
    draw=_swapped,
)


def _resonance(ratio: int, first: tuple[float, float], second: float, means: FloatArray) -> Path:
    """Two cells of two whose second derivatives are together a sum of first ones.

    `first` is the displacement of (beta, b) of the first atom, `second` that of b of the second;
    `means` what beta_1, beta_2, b_1 and b_2 are corrected by, in units of epsilon^2.
    """

    def at(epsilon: float) -> Blocks:
        beta, b = (epsilon**2 * part for part in (means[:2], means[2:]))
        places = np.array([0, 0, 1, 1])
        sides = epsilon * np.array([1.0, -1.0])
        beta = beta[places] + np.array([*(first[0] * sides), 0.0, 0.0])
        b = b[places] + np.array([*(first[1] * sides), *(second * sides)])
        return {
            **{"gamma": [-np.log(2.0)] * 4, "alpha": np.array([1.0, ratio])[places], "beta": beta},
            **_two_classes(np.array([1.0, -1.0])[places], b),
        }

    return Path(
        f"resonance-{ratio}",
        _classes("sigmoid", 2, 2),
        _classes("sigmoid", 4, 2),
        {
            **{"gamma": [0.0, 0.0], "alpha": [1.0, ratio], "beta": [0.0, 0.0]},
            **_two_classes(np.array([1.0, -1.0]), np.zeros(2)),
        },
        at,
        "D1",
        f"K = 2, k* = 2, k = 4 in cells of two and two: alpha = (1, {ratio}), class slopes 1 and"
        " -1, intercepts 0.  The displacements' second derivatives are a sum of first ones, which"
        " the cells' means undo: d ~ eps^4, D1 ~ eps^2.  Meets A.1 to A.4, and no two slopes are"
        " equal or opposite within gates or classes.",
        low=-3.0,
        high=3.0,
        radii=(0.1, 0.05, 0.03, 0.02, 0.01),
    )


RESONANCES = (
    _resonance(2, (1.0, 0.0), 1.0, np.array([-0.5, -0.5, 0.5, -0.5])),
    _resonance(3, (2.0, -1.0), 3.0**0.5, np.array([-2.0, -1.0, 1.5, -0.5])),
)
"""Slopes of the gates in the ratio 1 to 2, and 1 to 3."""
