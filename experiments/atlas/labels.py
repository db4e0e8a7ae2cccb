"""What the density does not see of a family, in words, and which orders no search is needed for.

Null directions are those of derivatives at one truth.  Derivatives are blind to jumps, name the
coefficients of a truth where a whole orbit is meant, and count conventions of a parametrisation.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from experiments.atlas.cells import AtlasCell
from experiments.claims.witnesses.quadratic_gates import THRESHOLD
from moestat.base.registry import table_of
from moestat.base.types import FloatArray
from moestat.model.family import Family

__all__ = ["BY_GATES", "gate_name", "order_of_gates", "unseen"]

BY_GATES = "at least, by two quadratic gates"
"""What is told of an order that two gates attain, whatever the expert."""
_AT_THRESHOLD = 1e-6
"""A gate's value this near to the threshold counts as it."""
_COEFFICIENT = re.compile(r"([A-Za-z_]+\d*)\[")
_HELD = {"dense-to-sparse": "tau = 1 and beta = 0 held: the softmax gate"}
_CONVENTIONS = {
    "perturbed-cosine": "a translation of alpha / (|alpha| + tau1), which softmax rows pin",
    "softmax-top": "the common scale of beta0 and beta1; the switch is seen, at r = 1/2",
    "sigmoid-inner": "the common scale of alpha, beta and tau; experts are identified",
}
"""What is not seen under a gate, whatever the experts."""


def _gate(model: Family) -> str:
    table = table_of(model.gate)
    return table if isinstance(table, str) else str(table["name"])


def gate_name(cell: AtlasCell) -> str:
    """The gate for a reader, with what its defaults hold.

    Examples
    --------
    >>> gate_name(AtlasCell("gaussian", "dense-to-sparse", "linear", 1))
    'dense-to-sparse (tau = 1 and beta = 0 held: the softmax gate)'
    """
    name = cell.words[1]
    return f"{name} ({_HELD[name]})" if name in _HELD else name


def unseen(model: Family, null: Sequence[str]) -> str:
    """What the density does not see, in words; empty where the information is nonsingular.

    Parameters
    ----------
    model : Family
        The family.
    null : sequence of str
        Null directions of the information at its truth.

    Returns
    -------
    str
        The orbit where it is known for the gate, else the blocks that move along the directions.

    Examples
    --------
    >>> from moestat import family
    >>> model = family("gaussian", gate="softmax", n_experts=2)
    >>> unseen(model, ["+1 c[0], +0.262 lambda[0]"])
    'c, lambda'
    """
    if not null:
        return ""
    known = _CONVENTIONS.get(_gate(model))
    if known is not None:
        return known
    blocks = dict.fromkeys(name for text in null for name in _COEFFICIENT.findall(text))
    return ", ".join(blocks)


def order_of_gates(model: Family, theta: FloatArray, size: int) -> int | None:
    """The order that two quadratic gates attain at a truth whose first gate is constant.

    Parameters
    ----------
    model : Family
        The family of the truth.
    theta : FloatArray (P,)
        The truth.
    size : int
        Fitted atoms in the first cell.

    Returns
    -------
    int or None
        4, 5 or 6 by the gate's value, by the fact quadratic-gates; None for other gates or sizes.
    """
    if _gate(model) != "sigmoid-quadratic" or size != 2:
        return None
    centre = float(np.ravel(model.measure(theta).atoms["c"])[0])
    share = 1.0 / (1.0 + np.exp(-centre))
    if abs(share - THRESHOLD) <= _AT_THRESHOLD:
        return 6
    return 5 if share > THRESHOLD else 4
