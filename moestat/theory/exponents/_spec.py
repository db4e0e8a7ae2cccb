"""The TOML of a sweep that would show some rates."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from moestat.model.designs import Design, Lattice

if TYPE_CHECKING:
    from moestat.theory.exponents._found import Found

__all__ = ["write_spec"]

_MASSES = (-1.2, 1.2)
"""Box of the log-masses: no mass vanishes, as on a compact parameter space."""
_FACTOR = 2.0
"""Other boxes reach to so many times the largest true coefficient."""
_LEAST_STEP = 1.3
"""Steps of the lattice per standard deviation that a normal density needs."""


def write_spec(rates: Found, title: str) -> str:
    """The spec as text; see `Rates.spec`."""
    family = rates.family
    low, high = ends_of(rates.design, family.n_features)
    n_low, n_high = _range(rates)
    blocks = family.unpack(rates.truth)
    lines = [
        f"title = {_toml(title)}",
        "seed = 1",
        "replicates = 40",
        f"n = {{ start = {n_low:.0e}, stop = {n_high:.0e}, num = 6 }}",
        f'design = {{ law = "lattice", low = {low:g}, high = {high:g}, nodes = 32 }}',
        "",
        "[truth.own]",
    ]
    for axis in ("likelihood", "gate", "expert"):
        lines.append(f"{axis} = {_toml(_axis(getattr(family, axis)))}")
    if family.likelihood.support is not None:
        lines.append(f"n_classes = {family.n_classes}")
    if family.is_regression:
        lines.append("noise = 1.0")
    lines += [
        f"{_key(name)} = {_toml(np.asarray(block).tolist())}" for name, block in blocks.items()
    ]
    lines.append(f"bounds = {_toml(_bounds(rates, Lattice(low, high, nodes=32)))}")
    lines += [
        "",
        "[[curve]]",
        f'name = "own, k = {rates.n_experts}"',
        'truth = "own"',
        f"n_experts = {rates.n_experts}",
        f"loss = {_toml({'name': 'block-exponents', **rates.loss_options()})}",
        "theory = -0.5",
        "require_certificate = false",
        *(['solver = { name = "moment-newton" }'] if _by_moments(family) else []),
        "starts = { measure = 4, noise = [0.1, 1.0] }",
    ]
    return "\n".join(lines) + "\n"


def _by_moments(family: Any) -> bool:
    return family.gate.normalised and family.gate.mass is not None


def _range(rates: Found) -> tuple[float, float]:
    """From where the rates can be seen, at least 1e4, over six decades, to 1e14 at most."""
    seen = [row.n_seen for row in rates.rows if np.isfinite(row.n_seen) and row.cell == "2"]
    start = 10.0 ** math.floor(math.log10(max([1e4, *(min(n, 1e9) for n in seen)])) - 1)
    return max(start, 1e4), min(max(start, 1e4) * 1e6, 1e14)


def _axis(member: Any) -> Any:
    options = {k: v for k, v in member.options.items() if isinstance(v, (str, int, float, bool))}
    return {"name": member.name, **options} if options else member.name


def _bounds(rates: Found, design: Lattice) -> Mapping[str, list[float]]:
    """A box for each block: masses floored, the others twice the largest true coefficient."""
    family = rates.family
    found: dict[str, list[float]] = {}
    for name, block in family.unpack(rates.truth).items():
        largest = _FACTOR * max(float(np.max(np.abs(block))), 0.5)
        if name == family.gate.mass and family.gate.normalised:
            found[name] = list(_MASSES)
        elif name == family.likelihood.collapse:
            found[name] = [_least_variance(rates, design), 10.0]
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
    return float(np.ceil(least * 100.0) / 100.0)


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
