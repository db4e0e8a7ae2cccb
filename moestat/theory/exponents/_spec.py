"""The TOML of a sweep that would show some rates."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from moestat.base.registry import table_of
from moestat.model.designs import Design, Lattice
from moestat.model.family import Family
from moestat.model.generate import not_simulated
from moestat.model.joint import shortest_table

if TYPE_CHECKING:
    from moestat.theory.exponents._found import Found

__all__ = ["write_spec"]

_MASSES = 1.2
"""The box of the log-masses reaches so far, and half as far again as those of the truth: no mass
vanishes, as on a compact parameter space."""
_FACTOR = 2.0
"""Other boxes reach to so many times the largest true coefficient."""
_NODES = 32
"""Nodes of the lattice of one input."""
_LARGEST_COUNTS = 1e14
"""Largest sample size where the inputs and responses are counted."""
_LARGEST_ROWS = 1e5
"""Largest sample size of a response without a lattice, whose samples are rows: one cell with three
experts and 1e6 rows took 25 s (Poisson) to 172 s (binomial)."""
_LEAST_STEP = 1.3
"""Steps of the lattice per standard deviation that a normal density needs."""


def write_spec(rates: Found, title: str) -> str:
    """The spec as text; see `Rates.spec`."""
    family = rates.family
    _check(family)
    low, high = ends_of(rates.design, family.n_features)
    counted = family.likelihood.law is None
    nodes = _nodes(family.with_experts(rates.n_experts))
    law = f'law = "lattice", low = {low:g}, high = {high:g}, nodes = {nodes}'
    design = law if counted else f'law = "uniform", low = {low:g}, high = {high:g}'
    n_low, n_high = _range(rates, _LARGEST_COUNTS if counted else _LARGEST_ROWS)
    known = family.likelihood.set_by_options
    lines = [
        f"title = {_toml(title)}",
        "seed = 1",
        "replicates = 40",
        f"n = {{ start = {n_low:.0e}, stop = {n_high:.0e}, num = 6 }}",
        f"design = {{ {design} }}",
        "",
        "[truth.own]",
        f"likelihood = {_toml(shortest_table(family.likelihood, family.n_classes))}",
        f"gate = {_toml(table_of(family.gate))}",
        f"expert = {_toml(table_of(family.expert))}",
    ]
    if family.n_features > 1:
        lines.append(f"n_features = {family.n_features}")
    if family.likelihood.support is not None:
        lines.append(f"n_classes = {family.n_classes}")
    if family.is_regression:
        lines.append("noise = 1.0")
    lines += [
        f"{_key(name)} = {_toml(np.asarray(block).tolist())}"
        for name, block in family.unpack(rates.truth).items()
        if name not in known
    ]
    lattice = Lattice(low, high, nodes=nodes)
    lines.append(f"bounds = {_toml(_bounds(rates, lattice))}")
    lines += [
        "",
        "[[curve]]",
        f'name = "own, k = {rates.n_experts}"',
        'truth = "own"',
        f"n_experts = {rates.n_experts}",
        f"loss = {_toml({'name': 'block-exponents', **rates.loss_options()})}",
        "theory = -0.5",
        "require_certificate = false",
        *_solver(family),
        "starts = { measure = 4, noise = [0.1, 1.0] }",
        *_note(rates, n_high),
    ]
    return "\n".join(lines) + "\n"


def _check(family: Family) -> None:
    """Refuse what a spec has no words for."""
    if why := not_simulated(family.likelihood):
        raise ValueError(f"spec: {why}")
    tied = family.constraints != tuple(family.gate.constraints(family.n_experts))
    inputs = (family.gate_inputs, family.expert_inputs, family.own_inputs, family.offset_input)
    if tied or family.equal or family.held or any(each is not None for each in inputs):
        raise ValueError(
            "spec: a sweep has no equal or fixed coefficients, no offset, and no inputs of the gate"
            " or of single experts alone"
        )


def _nodes(fitted: Family) -> int:
    """Nodes of the lattice: per input up to two inputs, in all with more."""
    least = _NODES if fitted.n_features <= 2 else _NODES**2
    return max(least, fitted.n_free_params)


def _solver(family: Family) -> list[str]:
    """The line of the solver; none for the default one."""
    if not family.gate.normalised or family.gate.mass is None:
        return []
    name = "moment-squares" if family.is_regression else "moment-newton"
    return [f"solver = {{ name = {_toml(name)} }}"]


def _note(rates: Found, n_high: float) -> list[str]:
    """What a reader should know where the samples are too small to see the exponents."""
    seen = [row.n_seen for row in rates.rows if np.isfinite(row.n_seen) and row.cell == "2"]
    if not seen or max(seen) <= n_high:
        return []
    words = f"the exponents can be seen from n = {max(seen):.0e} on, which no sample here has"
    return [f"note = {_toml(words)}"]


def _range(rates: Found, largest: float) -> tuple[float, float]:
    """From where the rates can be seen, at least 1e4, over six decades.

    Where that is beyond the largest sample size, it is over two decades up to that.
    """
    seen = [row.n_seen for row in rates.rows if np.isfinite(row.n_seen) and row.cell == "2"]
    start = 10.0 ** math.floor(math.log10(max([1e4, *(min(n, 1e9) for n in seen)])) - 1)
    start = min(max(start, 1e4), largest * 1e-2)
    return start, min(start * 1e6, largest)


def _bounds(rates: Found, design: Lattice) -> Mapping[str, list[float]]:
    """A box for each block: masses floored, the others twice the largest true coefficient."""
    family = rates.family
    found: dict[str, list[float]] = {}
    for name, block in family.unpack(family.pin(rates.truth)).items():
        largest = _FACTOR * max(float(np.max(np.abs(block))), 0.5)
        if name in family.likelihood.set_by_options:
            continue
        if name == family.gate.mass and family.gate.normalised:
            reach = max(_MASSES, 0.75 * largest)
            found[name] = [-reach, reach]
        elif name == family.likelihood.collapse and family.likelihood.law is None:
            found[name] = [_least_variance(rates, design), max(10.0, largest)]
        elif np.min(family.box[name][0]) >= 0.0:
            found[name] = [0.1 * float(np.min(block)), largest]
        else:
            found[name] = [-largest, largest]
    return found


def _least_variance(rates: Found, design: Lattice) -> float:
    """The least variance that the lattice of responses holds, rounded up."""
    family = rates.family
    nodes = design.quadrature(family.n_features)[0]
    assert family.likelihood.spread is not None
    narrowest = float(family.likelihood.spread(family.predictors(rates.truth, nodes))[1].min())
    least = (_LEAST_STEP * design.step * narrowest) ** 2
    digit = 10.0 ** math.floor(math.log10(least) - 1.0)
    return float(f"{math.ceil(least / digit) * digit:.2g}")


def ends_of(design: Design, n_features: int) -> tuple[float, float]:
    """The interval of all inputs: that of the design, or from its least to its largest node."""
    if hasattr(design, "low"):
        return design.low, design.high  # type: ignore[attr-defined]
    nodes = design.quadrature(n_features, 16)[0]
    return float(nodes.min()), float(nodes.max())


def _key(name: str) -> str:
    """A key of a table: signs that TOML does not have in one are quoted."""
    return name if re.fullmatch("[A-Za-z0-9_-]+", name) else _toml(name)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, Mapping):
        return (
            "{ "
            + ", ".join(f"{_key(k)} = {_toml(v)}" for k, v in value.items() if v is not None)
            + " }"
        )
    if isinstance(value, Sequence):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return repr(float(value)) if isinstance(value, float) else repr(value)
