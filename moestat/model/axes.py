"""Families by the names of their axes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from moestat.base.door import door
from moestat.base.registry import configured
from moestat.base.validate import (
    as_floats,
    check_kind,
    is_mapping,
    is_sequence,
    positive_int,
    short,
)
from moestat.model.by_expert import check_ranges
from moestat.model.constraints import Constraint, equal_of, fixed_of
from moestat.model.experts import EXPERTS
from moestat.model.family import Family
from moestat.model.gates import GATES
from moestat.model.joint import as_likelihood, expert_of
from moestat.model.members import Expert, Gate, Likelihood
from moestat.model.qualify import qualified

__all__ = ["family"]


def _check_pairing(gate: Gate, expert: Expert, likelihood: Likelihood) -> None:
    """Raise unless the kernels have loops for these three together."""
    if likelihood.choices is not None and (gate.reads_response or gate.constraints(2)):
        raise ValueError(
            f"gate {gate.name!r} cannot be combined with a likelihood for each expert: it depends"
            " on means, or has a tree of experts"
        )
    if likelihood.effects is not None and (
        expert.block is not None or gate.reads_response or gate.n_active is not None
    ):
        raise ValueError(
            "random effects are available only with linear experts and with a gate that depends on"
            f" inputs alone and uses all experts, got expert {expert.name!r} and gate {gate.name!r}"
        )
    products = any(channel.products is not None for channel in gate.channels(1))
    if likelihood.block is not None and (products or not gate.normalised):
        raise ValueError(
            f"gate {gate.name!r} is for regression functions, likelihood 'least-squares', not for"
            f" densities, got likelihood {likelihood.name!r}"
        )
    if likelihood.block is None and (gate.reads_response or gate.n_active is not None):
        raise ValueError(
            f"gate {gate.name!r} cannot be combined with likelihood 'least-squares': its weights"
            " depend on the response or jump"
        )
    if likelihood.block is None and gate.constraints(2):
        raise ValueError(
            f"gate {gate.name!r} cannot be combined with likelihood 'least-squares': it has equal"
            " coefficients"
        )


@door()
def family(
    likelihood: str | Mapping[str, object] | Likelihood | Sequence[object] = "multinomial",
    *,
    gate: str | Mapping[str, object] | Gate = "sigmoid",
    expert: str | Mapping[str, object] | Expert = "linear",
    n_experts: int | None = None,
    n_features: int = 1,
    n_classes: int | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    gate_inputs: Iterable[int] | None = None,
    expert_inputs: Iterable[object] | None = None,
    offset: int | None = None,
    equal: str | Iterable[str] | Mapping[str, object] = (),
    fixed: Mapping[str, object] | None = None,
) -> Family:
    """Build a family of mixtures of experts from its likelihood, gate and expert.

    If the gate and the expert each have a block of parameters with the same name, the family
    distinguishes the two blocks by the prefixes ``gate_`` and ``expert_``.

    Parameters
    ----------
    likelihood : str, mapping, Likelihood or list of these
        A name is one of ``moestat.model.likelihoods.LIKELIHOODS``, or a name of other packages with
        one meaning, such as "normal", "negbin" or "zip".  A table has ``name`` and
        options, such as ``{"name": "binomial", "trials": 8}`` for the number of successes in eight
        trials.  You may also define your own likelihood, as well as your own gate and expert.  A
        list describes several responses of each row, which are independent within an expert; each
        response has its own likelihood.  A table in this list may also hold ``response``, the name
        of the response ("y1", "y2" and so on by default), with which the names of its blocks end,
        and, for classes, ``n_classes``.  The table ``{"experts": ["gaussian", "student-t", {"name":
        "uniform", "low": 0, "high": 9}]}`` gives each expert its own likelihood; all of these must
        be for the same kind of response.  Two further likelihoods are available here: "uniform" for
        numbers and ``{"name": "point", "at": 0}`` for counts.  They have no mean.
    gate : str, mapping or Gate
        Name in ``moestat.model.gates.GATES``, or a table with ``name`` and the gate's options, such
        as ``{"name": "competition", "activation": "silu"}``.  The default of this function is the
        sigmoid gate of Pham et al. (2026).  The default of `moestat.fit`, and of the other
        functions that accept the name of a likelihood, is the softmax gate, as in other software.
    expert : str, mapping or Expert
        Name in ``moestat.model.experts.EXPERTS``, or a table with ``name`` and the expert's
        options, such as ``{"name": "ffn", "hidden": 3}``.
    n_experts : int, optional
        Number of experts k >= 1.  The default is 2, or the number of likelihoods if each expert
        has its own.
    n_features : int
        Number of inputs d >= 1.
    n_classes : int, optional
        Number of classes K >= 2; 2 by default.  It is not allowed for a continuous response.
    bounds : mapping of str to (float, float), optional
        Lower and upper bound of all parameters of a block; these replace the defaults of the gate
        and the expert.  Fits to data respect the bounds given here; the bounds of the other blocks
        scale with the data.  With ``bounds=F.box`` a fit uses the compact parameter space of the
        papers for a family F.
    gate_inputs, expert_inputs : iterable of int, optional
        Positions, from 0, of the inputs that the gate and the experts use; all inputs by default.
        The coefficients of the other inputs are fixed at 0.  With ``gate_inputs=[]`` the gate is
        constant.  A list of lists, such as ``expert_inputs=[[0], [0, 1]]``, gives the inputs of
        each expert separately.
    offset : int, optional
        Position, from 0, of an input that is added to the linear predictor of every expert with
        the fixed coefficient 1.  The gate does not use this input.
    equal : str, iterable of str, or mapping, optional
        Blocks whose parameters are equal for all experts: ``equal="nu"`` gives one common variance,
        ``equal=["a"]`` common slopes.  A table of blocks lists the sets of experts whose
        coefficients are equal: ``{"a": [[1, 2]]}`` for all inputs, ``{"a": [{"inputs": [0],
        "experts": [1, 2]}]}`` for some inputs.  In `moestat.fit` inputs may be given by name:
        ``{"a": [["x1", "x2"]]}`` makes the slopes of x1 equal for all experts, and likewise the
        slopes of x2.  If the slopes of a gate are equal, they equal those of the reference, which
        are 0, and the gate is constant.
    fixed : mapping, optional
        Known values of coefficients by block: ``{"b": 0}`` for all experts, ``{"b": {1: 2.0}}`` for
        expert 1, ``{"a": {(1, 0): 1.0}}`` for expert 1 and the input in column 0 of X, and in
        `moestat.fit` ``{"a": {"x1": 0}}`` for an input by name.

    Returns
    -------
    Family
        The family; ``.n_params`` is its number of packed parameters.

    Raises
    ------
    ValueError
        If a name is unknown, a size is too small, or a bound is not an increasing pair of finite
        numbers.

    Examples
    --------
    >>> F = family("multinomial", gate="sigmoid", n_experts=2, n_features=1, n_classes=2)
    >>> F.n_params, F.n_free_params
    (10, 9)
    >>> family("gaussian", gate="competition", expert={"name": "ffn", "hidden": 2}).n_params
    14

    In this family the experts use the first of two inputs, and the gate uses the second:

    >>> F = family("gaussian", gate="softmax", n_features=2, gate_inputs=[1], expert_inputs=[0])
    >>> [name for j, name in enumerate(F.param_names) if F.lower[j] < F.upper[j]][:4]
    ['beta0[1]', 'beta1[1,1]', 'b[1]', 'a[1,0]']

    This family is a regression function with raw sigmoid gates of quadratic scores:

    >>> relu = {"name": "activation", "activation": "relu", "weighted": False}
    >>> F = family("least-squares", gate="sigmoid-quadratic", expert=relu, n_features=2)
    >>> {name: block.shape for name, block in F.blocks.items()}
    {'c': (2,), 'b': (2, 2), 'A': (2, 3), 'beta': (2,), 'alpha': (2, 2)}
    """
    if bounds is not None:
        check_kind("bounds", bounds, Mapping, "a table of blocks with their bounds")
    law = as_likelihood(likelihood)
    chosen = configured(GATES, gate), expert_of(configured(EXPERTS, expert), law), law
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
    chosen = (*chosen[:2], chosen[2].with_equal(shared))
    box = _box_of(chosen, bounds or {})
    d = positive_int("n_features", n_features)
    k, gate_box = _n_experts(chosen[2], n_experts), chosen[0].bounds
    unconstrained = Family(
        *chosen,
        n_experts=k,
        n_features=d,
        n_classes=positive_int("n_classes", 2 if n_classes is None else n_classes, 2)
        if discrete
        else 1,
        box=box,
        # Bounds with one value are a gate's own, in the units of the data.
        given=frozenset(bounds or ()) | {b for b, pair in gate_box.items() if pair[0] == pair[1]},
        constraints=(*chosen[0].constraints(k), *_known_by_expert(chosen[2])),
        **_inputs_of(chosen, d, k, gate_inputs, expert_inputs, offset),
    )
    return _constrained(unconstrained, sets, fixed)


def _n_experts(likelihood: Likelihood, given: int | None) -> int:
    """The number of experts, that of the likelihoods where these differ."""
    if likelihood.choices is None:
        return positive_int("n_experts", 2 if given is None else given)
    names = likelihood.choices.names
    if given is not None and given != len(names):
        raise ValueError(
            f"n_experts = {short(given)}, but there are likelihoods for {len(names)} experts:"
            f" {', '.join(names)}"
        )
    return len(names)


def _known_by_expert(likelihood: Likelihood) -> list[Constraint]:
    """What options of likelihoods say of single experts."""
    check_ranges(likelihood)
    return [] if likelihood.choices is None else likelihood.choices.constraints()


def _box_of(
    chosen: tuple[Gate, Expert, Likelihood], bounds: Mapping[str, tuple[float, float]]
) -> dict[str, tuple[float, float]]:
    """The compact parameter space: the axes' own bounds, or those given, checked."""
    box = {name: pair for axis in chosen for name, pair in axis.bounds.items()}
    logs = {channel.intercept for channel in chosen[2].channels if channel.log}
    for name, pair in bounds.items():
        if name not in box:
            raise ValueError(f"bounds: unknown block {short(name)}; known: {', '.join(box)}")
        low, high = as_floats(f"bounds of {name!r}", pair, (2,))
        if low == high and (low, high) == tuple(box[name]):
            continue
        if name in chosen[2].set_by_options:
            raise ValueError(
                f"bounds: {name!r} is known, {box[name][0]:g}, got ({low:g}, {high:g})"
            )
        if not low < high:
            raise ValueError(f"bounds of {name!r} must increase, got ({low:g}, {high:g})")
        if low <= 0.0 and name in logs:
            raise ValueError(f"bounds of {name!r} must be positive, got ({low:g}, {high:g})")
        box[name] = (float(low), float(high))
    for name in chosen[0].translations:
        if not box[name][0] <= 0.0 <= box[name][1]:
            raise ValueError(f"bounds of {name!r} must hold 0, the reference atom's value")
    return box


def _split_equal(likelihood: Likelihood, equal: Any) -> tuple[list[str], dict[str, object]]:
    """Blocks of the likelihood that are one parameter of all experts, and other constraints."""
    if is_mapping(equal):
        return [], dict(equal)
    shareable = [c.intercept for c in likelihood.channels if c.component is None]
    shareable = shareable if likelihood.choices is None else []  # not all experts have them
    names = list(equal)
    if not all(isinstance(name, str) for name in names):
        raise ValueError(f"equal must hold names of blocks, got {short(equal)}")
    return [n for n in names if n in shareable], {n: True for n in names if n not in shareable}


def _constrained(
    unconstrained: Family, equal: Mapping[str, object], fixed: Mapping[str, object] | None
) -> Family:
    """The family with coefficients that are equal or known."""
    if not equal and fixed is None:
        return unconstrained
    check_kind("fixed", {} if fixed is None else fixed, Mapping, "a table of blocks and values")
    d = unconstrained.n_features
    slopes = {channel.slope for channel in unconstrained.channels}
    squares = {channel.products for channel in unconstrained.channels}
    known = {
        name: d if name in slopes else None
        for name, positions in unconstrained.blocks.items()
        if positions.ndim and name not in squares
    }
    constraints = _of_readers(unconstrained, equal_of(equal, known, unconstrained.n_experts))
    if constraints and unconstrained.is_regression:
        raise ValueError("equal: not available for a family that is fitted by least squares")
    constraints += _of_readers(unconstrained, fixed_of(fixed or {}, known, unconstrained.n_experts))
    for one in constraints:
        if one.value is not None and one.value <= 0.0 and one.block in unconstrained.logged:
            raise ValueError(f"fixed: values of {one.block!r} must be positive, got {one.value:g}")
        last = one.experts is None or unconstrained.n_experts - 1 in one.experts
        if one.value and last and one.block in unconstrained.gate.translations:
            raise ValueError(
                f"fixed: {one.block!r} of the last expert, the gate's reference, is 0; got"
                f" {one.value:g}"
            )
    return replace(unconstrained, constraints=(*unconstrained.constraints, *constraints))


def _of_readers(unconstrained: Family, constraints: list[Constraint]) -> list[Constraint]:
    """Constraints of the experts that have the parameters, where likelihoods differ by expert."""
    if unconstrained.likelihood.choices is None:
        return constraints
    restricted: list[Constraint] = []
    unread = {*unconstrained.padding_positions.tolist()}
    for one in constraints:
        block = unconstrained.blocks[one.block]
        readers = tuple(
            i for i in range(unconstrained.n_experts) if not unread & {*np.ravel(block[i])}
        )
        if one.experts is not None and (lost := {*one.experts} - {*readers}):
            i = min(lost)
            name = unconstrained.likelihood.choices.names[i]
            raise ValueError(
                f"equal, fixed: expert {i + 1}, {name!r}, has no parameter {one.block!r}"
            )
        alike = len(readers) == unconstrained.n_experts
        restricted.append(
            one if one.experts is not None or alike else replace(one, experts=readers)
        )
    return restricted


def _inputs_of(
    chosen: tuple[Gate, Expert, Likelihood],
    d: int,
    k: int,
    gate_inputs: Iterable[int] | None,
    expert_inputs: Iterable[Any] | None,
    offset: int | None,
) -> dict[str, Any]:
    """The inputs that gate and experts read, checked."""
    gate, expert, likelihood = chosen
    gate_read = _positions("gate_inputs", gate_inputs, d)
    inputs_by_expert, given = None, expert_inputs
    if is_sequence(given) and given and all(map(is_sequence, given)):
        if len(given) != k:
            raise ValueError(
                f"expert_inputs: there are {k} experts, and lists of inputs for {len(given)}"
            )
        inputs_by_expert = tuple(_positions("expert_inputs", each, d) or () for each in given)
        given = sorted({f for each in inputs_by_expert for f in each})
    expert_read = _positions("expert_inputs", given, d)
    if offset is not None:
        (at,) = _positions("offset", [offset], d) or (0,)
        if expert.block is not None or likelihood.n_responses(2) is not None:
            raise ValueError(
                "offset: available only if each expert has a single linear predictor, got"
                f" expert {expert.name!r} and likelihood {likelihood.name!r}"
            )
        gate_read = tuple(f for f in (range(d) if gate_read is None else gate_read) if f != at)
    bent = [c for c in gate.channels(d) if c.axis is not None or (c.products and not c.slope)]
    if gate_read is not None and len(gate_read) < d and bent:
        raise ValueError(
            f"gate {gate.name!r} uses all inputs: leave out gate_inputs, or in a formula the part"
            " after '|'"
        )
    return {
        "gate_inputs": gate_read,
        "expert_inputs": expert_read,
        "own_inputs": inputs_by_expert,
        "offset_input": None if offset is None else (offset, 1.0),
    }


def _positions(name: str, value: Iterable[int] | None, d: int) -> tuple[int, ...] | None:
    """Positions of inputs, ascending."""
    if value is None:
        return None
    check_kind(name, value, Iterable, "positions of inputs, from 0")
    positions: list[Any] = list(value)
    if not all(isinstance(f, (int, np.integer)) and 0 <= f < d for f in positions):
        raise ValueError(
            f"{name} must hold positions of inputs in 0..{d - 1}, got {short(positions)}"
        )
    return tuple(sorted({int(f) for f in positions}))
