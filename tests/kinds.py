"""Every kind of family that the registries make, for tests that hold for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

import moestat
from moestat.model.experts import EXPERTS
from moestat.model.gates import GATES
from moestat.model.likelihoods import LIKELIHOODS


def goes_with(likelihood, gate, expert):
    """Whether these three make a family."""
    try:
        moestat.family(likelihood, gate=gate, expert=expert)
    except ValueError:
        return False
    return True


QUADRATIC = [name for name, g in GATES.items() if any(c.products for c in g.channels(1))]
# Gates with coefficients that are equal between experts have tests of their own.
MIXING = [
    name
    for name, g in GATES.items()
    if goes_with("gaussian", name, "linear") and not g.constraints(2)
]
# Gates that meet normal responses alone: compiling is what a kind costs.
NORMAL_ONLY = {"laplace", "dense-to-sparse", "perturbed-cosine"}
MULTINOMIAL = [
    k
    for gate in GATES
    if gate in MIXING
    and gate not in NORMAL_ONLY
    and goes_with(*(k := ("multinomial", gate, "linear")))
]
GAUSSIAN = [("gaussian", gate, "linear") for gate in MIXING]
# Compiling is what these cost, so an expert that is not linear meets one gate of each sort, and a
# likelihood besides the first two one gate.
CURVED = [
    *(("gaussian", "softmax", expert) for expert in EXPERTS if expert != "linear"),
    ("gaussian", "competition-free", {"name": "ffn", "hidden": 3}),
    (
        "gaussian",
        {"name": "competition-top", "active": 2, "activation": "silu"},
        {"name": "polynomial", "degree": 3},
    ),
    # Both have blocks alpha and beta.
    ("gaussian", "sigmoid", "polynomial"),
]
OTHERS = [
    (name, "softmax", "linear")
    for name, likelihood in LIKELIHOODS.items()
    if name not in {"gaussian", "multinomial"} and likelihood.block and not likelihood.parts
]
KINDS = [*MULTINOMIAL, *GAUSSIAN, *CURVED, *OTHERS]


def _neuron(activation, weighted=True):
    return {"name": "activation", "activation": activation, "weighted": weighted}


_RELU = _neuron("relu", weighted=False)
_VARIANTS = [
    {"name": "polynomial", "degree": 1},
    {"name": "polynomial", "degree": 3},
    {"name": "ffn", "hidden": 2},
    _neuron("gelu"),
    _neuron("relu"),
    _neuron("tanh", weighted=False),
    _neuron("gelu", weighted=False),
]
_CURVED_REGRESSION = [
    *(("least-squares", gate, _RELU) for gate in QUADRATIC),
    *(("least-squares", "sigmoid-quadratic", expert) for expert in _VARIANTS),
    ("least-squares", "softmax-quadratic", _neuron("tanh")),
    ("least-squares", "softmax-partial", "linear"),
    ("least-squares", "sigmoid-quadratic", "linear"),  # both have a block b
]
# Every other gate with a linear expert, and every other expert with a sigmoid gate.
REGRESSION = [
    *_CURVED_REGRESSION,
    *(
        ("least-squares", gate, "linear")
        for gate in GATES
        if gate not in {*QUADRATIC, *NORMAL_ONLY} and goes_with("least-squares", gate, "linear")
    ),
    *(
        ("least-squares", "sigmoid-quadratic", name)
        for name in EXPERTS
        if name not in {"linear", *(expert["name"] for expert in _VARIANTS)}
    ),
]

_RARE = [
    ("least-squares", "sigmoid-quadratic", expert)
    for expert in (
        _VARIANTS[0],
        _neuron("gelu"),
        _neuron("relu"),
        _neuron("tanh", weighted=False),
    )
]
EACH_REGRESSION = [kind for kind in REGRESSION if kind not in _RARE]
"""Regression functions of each run; those left out differ from one of these in a factor or a degree
of the expert, and compiling is what a kind costs."""


def kind_id(kind):
    """One word for a kind."""

    def word(axis):
        if isinstance(axis, str):
            return axis
        return "+".join(str(value) for value in axis.values())

    return "-".join(map(word, kind))


def make(kind, k, d, K=None):
    """The family of a kind with k experts, d inputs and K classes where there are classes."""
    likelihood, gate, expert = kind
    n_classes = K if likelihood in {"multinomial", "ordinal"} else None
    return moestat.family(
        likelihood, gate=gate, expert=expert, n_experts=k, n_features=d, n_classes=n_classes
    )


def random_theta(family, rng, scale=1.0):
    """Normal parameters; log-normal where only positive ones are allowed."""
    theta = scale * rng.normal(size=family.n_params)
    theta = np.where(family.lower > 0, np.exp(0.3 * rng.normal(size=theta.size)), theta)
    options = list(known(family))
    theta[options] = family.lower[options]
    return theta


def known(family):
    """Places of the parameters that are options of the likelihood and have no derivatives."""
    options = family.likelihood.options
    return {int(family.blocks[name]) for name in options if name in family.blocks}


def random_response(family, rng, n):
    """Responses that need not follow the family: labels, counts, positive or normal numbers."""
    if "trials" in family.likelihood.options:
        return rng.integers(0, family.likelihood.options["trials"] + 1, size=n)
    if family.likelihood.counts:
        return rng.poisson(2.0, size=n) + int(family.likelihood.inside)
    if family.likelihood.ends == (0.0, 1.0):
        return rng.uniform(size=n)
    if family.likelihood.ends == (0.0, np.inf):
        return rng.exponential(2.0, size=n)
    if family.likelihood.support is None:
        return 2.0 * rng.normal(size=n)
    return rng.integers(1, family.n_classes + 1, size=n)


def each_run(
    cases: Iterable[Any],
    chosen: Iterable[Any],
    name: Callable[[Any], str] = str,
    first: Iterable[str] | None = None,
) -> list[Any]:
    """Cases as parameters of a test: the chosen ones in each run, the others are slow.

    With `first` only those of these names are in each run, and the other chosen ones are thorough.
    """
    always = list(chosen)
    names = [name(case) for case in always] if first is None else list(first)

    def marks(case: Any) -> list[pytest.MarkDecorator]:
        if case not in always:
            return [pytest.mark.slow]
        return [] if name(case) in names else [pytest.mark.thorough]

    return [pytest.param(case, id=name(case), marks=marks(case)) for case in cases]


def pairs(rows: Iterable[str], columns: Iterable[str]) -> list[Any]:
    """All pairs as parameters of a test; each run takes every row and every column, not all pairs.

    The other pairs are slow.
    """
    rows, columns = list(rows), list(columns)
    length = max(len(rows), len(columns))
    chosen = {(rows[j % len(rows)], columns[j % len(columns)]) for j in range(length)}
    return [
        pytest.param(row, column, marks=[] if (row, column) in chosen else [pytest.mark.slow])
        for row in rows
        for column in columns
    ]
