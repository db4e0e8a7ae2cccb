"""Which cells the atlas has: the explorer's families and those that differ in one axis."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from experiments.explorer import CASES
from moestat.model.axes import family
from moestat.model.experts import EXPERTS
from moestat.model.family import Family
from moestat.model.gates import GATES
from moestat.model.likelihoods import LIKELIHOODS

__all__ = ["SIZES", "AtlasCell", "atlas_cells", "axes_of"]

SIZES = (1, 2, 3, 4)
"""Fitted atoms in the cell of the first of two true atoms."""
_TRUE = 2
_DEFAULT = ("softmax", "linear")
Axis = str | Mapping[str, Any]


def _words(axis: Axis) -> str:
    """An axis on one line, its options in brackets, but for the options that registries default."""
    if isinstance(axis, str):
        return axis
    options = [f"{key} {value}" for key, value in sorted(axis.items()) if key != "name"]
    return f"{axis['name']} ({', '.join(options)})" if options else str(axis["name"])


@dataclass(frozen=True)
class AtlasCell:
    """A family of two true atoms, and how many fitted atoms share the cell of the first.

    Parameters
    ----------
    likelihood, gate, expert : str
        The axes: a name, or a JSON table with the name and options.
    size : int
        Fitted atoms in the cell; the other true atom has one.
    """

    likelihood: str
    gate: str
    expert: str
    size: int

    @property
    def axes(self) -> tuple[Axis, Axis, Axis]:
        """Likelihood, gate and expert as `moestat.family` takes them."""
        one, two, three = (
            json.loads(axis) if axis.startswith("{") else axis
            for axis in (self.likelihood, self.gate, self.expert)
        )
        return one, two, three

    @property
    def words(self) -> tuple[str, str, str]:
        """Likelihood, gate and expert for a reader."""
        one, two, three = map(_words, self.axes)
        return one, two, three

    @property
    def key(self) -> str:
        """Name of the cell in the kept results."""
        return "; ".join((*self.words, str(self.size)))

    def true_family(self) -> Family:
        """The family with two atoms."""
        likelihood, gate, expert = self.axes
        return family(likelihood, gate=gate, expert=expert, n_experts=_TRUE)

    def fitted_family(self) -> Family:
        """The family with one atom more than the cell has."""
        return self.true_family().with_experts(self.size + _TRUE - 1)


def axes_of(truth: Mapping[str, Any]) -> tuple[str, str, str]:
    """Likelihood, gate and expert of a truth's table, as `AtlasCell` has them.

    Examples
    --------
    >>> axes_of({"likelihood": "gaussian", "gate": {"name": "softmax"}})
    ('gaussian', 'softmax', 'linear')
    """
    found = []
    for axis, default in (("likelihood", "multinomial"), ("gate", "sigmoid"), ("expert", "linear")):
        value = truth.get(axis, default)
        if isinstance(value, Mapping) and set(value) == {"name"}:
            value = value["name"]
        found.append(value if isinstance(value, str) else json.dumps(dict(value), sort_keys=True))
    return found[0], found[1], found[2]


def _allowed(axes: tuple[str, str, str]) -> bool:
    """Whether the registries allow this family."""
    try:
        AtlasCell(*axes, size=1).true_family()
    except ValueError:
        return False
    return True


def atlas_cells() -> list[AtlasCell]:
    """All cells, those nearest to the papers first, so that an interrupted run has the breadth.

    The families are those of the explorer's cases, all that differ from one of these in gate or in
    expert, and the default family, a softmax gate over linear experts, with every likelihood, as
    far as the registries allow them; options of registry members are the defaults.

    Examples
    --------
    >>> cells = atlas_cells()
    >>> len(cells) > 300, cells[0].size
    (True, 1)
    """
    bases = list(dict.fromkeys(axes_of(case.truth) for case in CASES.values()))
    near = [(one, gate, three) for one, _, three in bases for gate in GATES]
    near += [(one, two, expert) for one, two, _ in bases for expert in EXPERTS]
    near += [(likelihood, *_DEFAULT) for likelihood in LIKELIHOODS]
    families = [axes for axes in dict.fromkeys([*bases, *near]) if _allowed(axes)]
    cells = [AtlasCell(*axes, size=size) for axes in families for size in SIZES]
    own = set(bases)

    def distance(cell: AtlasCell) -> int:
        return cell.size + ((cell.likelihood, cell.gate, cell.expert) not in own)

    return sorted(cells, key=distance)
