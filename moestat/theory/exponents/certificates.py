"""Certificates: what `rates` decided by derivatives, as records that others can check.

A record holds the truth in rationals, some samples, what the atoms compute as lists of elementary
operations, and a witness.  `docs/theory/check_certificates.py` checks it in interval arithmetic
without this library and without NumPy.

*independent*: the functions are independent, shown by elimination at as many samples, whose pivots
are intervals without 0.

*no-cancellation*: a functional, a weighted sum over samples, vanishes on masses and first
derivatives and is a positive definite matrix on second derivatives of the cells: no relation has a
positive semidefinite second-order part, so r = 2.  Weights of the samples beyond as many as there
are first derivatives are given as rationals; the others follow from them, enclosed in intervals.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from moestat.base.types import FloatArray
from moestat.theory.exponents._cells import FirstOrder, Moments
from moestat.theory.exponents._linear import solve
from moestat.theory.exponents._point import Parameter, Point, exact
from moestat.theory.exponents._series import fixed
from moestat.theory.exponents._tapes import Group

if TYPE_CHECKING:
    from moestat.theory.exponents._found import Found

__all__ = ["certificates_of", "without_records", "write_certificates"]

_DIGITS = 40
"""Digits of the rational weights: the matrix is positive definite by far more than 1e-40."""
_ELEMENTARY = {
    *("channel", "feature", "response", "constant", "add", "sub", "mul", "div"),
    *("exp", "log", "sqrt", "erfc", "lgamma", "sin", "cos"),
}
"""Operations that the checker has in interval arithmetic."""
_BORDER = Fraction(1, 10**12)
"""Distance of a border from the ends of its interval: its place is a float, right to 1e-15."""


def certificates_of(rates: Found) -> list[dict[str, Any]]:
    """A record for each certified answer of a table of rates.

    Parameters
    ----------
    rates : Found
        What `moestat.theory.rates` answered.

    Returns
    -------
    list of dict
        Ready for JSON; empty where the checker cannot follow, see `without_records`.
    """
    found = rates.analysis
    point, first = found.point, found.first
    if point is None or first is None or without_records(rates):
        return []
    records = []
    if not first.relations.dependent:
        records.append(_record(point, first, None, (), first.relations.rows, []))
    for atoms, moments in found.second.items():
        witness = moments.witness(atoms)
        if witness is None:
            continue
        record = _witness_record(point, first, moments, witness)
        if record is not None:
            records.append(record)
    return records


def without_records(rates: Found) -> str:
    """Why certified rows of a table have no record; empty where they have."""
    point, first = rates.analysis.point, rates.analysis.first
    if point is None or first is None:
        return "nothing was decided by derivatives"
    unknown = sorted(_operations(point) - _ELEMENTARY)
    if unknown:
        return f"the checker has no interval arithmetic of {', '.join(unknown)}"
    if first.relations.dependent:
        # That a relation holds exactly cannot be seen in intervals.
        return "first derivatives have a relation, which intervals cannot prove"
    return ""


def write_certificates(rates: Found, folder: str | Path, name: str) -> list[Path]:
    """Write the records of a table, one file each.

    Parameters
    ----------
    rates : Found
        What `moestat.theory.rates` answered.
    folder : str or Path
        Where to.
    name : str
        Beginning of the files' names.
    """
    paths = []
    for at, record in enumerate(certificates_of(rates)):
        path = Path(folder) / f"{name}-{at}.json"
        path.write_text(
            json.dumps(record, indent=None, ensure_ascii=False) + "\n", encoding="utf-8"
        )
        paths.append(path)
    return paths


def _operations(point: Point) -> set[str]:
    """Names of the operations in all tapes."""
    return {
        operation[0]
        for i in range(point.family.n_experts)
        for group in point.groups(i)
        for operation in group.operations
    }


def _record(
    point: Point,
    first: FirstOrder,
    moments: Moments | None,
    atoms: Sequence[int],
    base: Sequence[int],
    weights: Sequence[tuple[int, Fraction]],
) -> dict[str, Any]:
    """The record with samples `base`, and further ones with rational weights."""
    family = point.family
    place = {p.position: k for k, p in enumerate(point.parameters)}
    programs: list[Any] = []
    samples = []
    groups = [
        {int(row): (group, at) for group in point.groups(i) for at, row in enumerate(group.rows)}
        for i in range(family.n_experts)
    ]
    n = point.samples.y.size
    numbered = point.samples.y.dtype.kind != "c" and family.likelihood.support is None
    numbered &= not family.is_regression

    def run(group: Group, at: int) -> list[Any]:
        program = {
            "operations": [list(operation) for operation in group.operations],
            "log_weight": group.weight,
            "value": group.value,
        }
        if program not in programs:
            programs.append(program)
        numbers = [str(exact(float(v))) for v in group.constants[:, at]]
        return [programs.index(program), numbers]

    for row in [*(row for row in base if row < n), *(row for row, _ in weights)]:
        samples.append(
            {
                "x": [str(exact(float(v))) for v in point.samples.X[:, row]],
                "y": str(exact(float(point.samples.y[row]))) if numbered else None,
                "runs": [run(*each[row]) for each in groups],
            }
        )
    borders = []
    for jump in (first.jumps[row - n] for row in base if row >= n):
        y, x = jump.told_by(point), exact(jump.x)
        tapes = [jump.tape(point, i, y) for i in range(family.n_experts)]
        borders.append(
            {
                "between": [str(x - _BORDER), str(x + _BORDER)],
                "atoms": [jump.leaves, jump.enters],
                "y": str(exact(float(y.real))) if numbered else None,
                "runs": [run(tape, 0) for tape in tapes],
            }
        )
    functions = (
        "masses, first derivatives and borders" if borders else "masses and first derivatives"
    )
    claim = "independent" if moments is None else "no-cancellation"
    named = " and ".join(str(atom + 1) for atom in atoms)
    cells = f"atom {named}" if len(atoms) == 1 else f"atoms {named}"
    return {
        "claim": claim,
        "says": f"{functions} of all atoms are independent: r = 1 in cells of one"
        if moments is None
        else f"no displacements in cells of true {cells} cancel to second order: r = 2",
        "family": {**family.table},
        "truth": {name: np.asarray(block).tolist() for name, block in _blocks(point).items()},
        "function": _kind(point),
        "active": family.gate.n_active if family.has_jumps else None,
        "parameters": [_parameter(point, p) for p in point.parameters],
        "masses": _masses(point),
        "n_atoms": family.n_experts,
        "programs": programs,
        "samples": samples,
        "borders": borders,
        "first": [
            ["mass", p] if isinstance(p, int) else ["d", place[p.position]]
            for p in first.parameters
        ],
        "second": []
        if moments is None
        else [
            [place[moments.parameters[i].position], place[moments.parameters[j].position]]
            for i, j in moments._pairs()
        ],
        "base": len(base),
        "weights": [str(weight) for _, weight in weights],
    }


def _kind(point: Point) -> str:
    """What the atoms make together."""
    if not point.family.is_regression:
        return "density"
    return "average of atoms" if point.family.gate.normalised else "sum of atoms"


def _blocks(point: Point) -> dict[str, FloatArray]:
    return dict(point.family.unpack(point.theta))


def _parameter(point: Point, p: Parameter) -> dict[str, Any]:
    log = point.family.channels[p.channel].log
    value = float(point.theta[p.position])
    rational = exact(float(np.exp(value)), 14) if log else exact(value)
    return {
        "name": p.name,
        "atom": p.atom if p.atom >= 0 else None,
        "channel": p.channel,
        "feature": p.feature,
        "value": str(rational),
        "log": log,
    }


def _masses(point: Point) -> list[dict[str, Any]]:
    """The log-masses: their channel and value; of gates without masses nothing."""
    family = point.family
    mass = family.gate.mass if family.gate.normalised else None
    if mass is None:
        return []
    channel = next(c for c in range(family.layout[0]) if family.channels[c].intercept == mass)
    at = np.ravel(family.blocks[mass])
    return [
        {"atom": i, "channel": channel, "value": str(exact(float(point.theta[position])))}
        for i, position in enumerate(at)
    ]


def _witness_record(
    point: Point, first: FirstOrder, moments: Moments, S: FloatArray
) -> dict[str, Any] | None:
    """The functional of a witness, on the samples at which pivots were found."""
    relations = moments.relations
    pivots, rows = relations.pivots, relations.rows
    pairs = moments._pairs()
    n_first = len(first.columns)
    # S as the functional has it: entries off the diagonal are of both (i, j) and (j, i).
    target = np.array(
        [0] * n_first + [fixed(float(S[i, j] * (1.0 if i == j else 2.0))) for i, j in pairs],
        dtype=object,
    )[pivots]
    columns = np.stack([moments.columns[p] for p in pivots], axis=1)[rows]
    weights = solve(columns.T.copy(), target)
    if weights is None:
        return None
    scale = max(abs(int(w)) for w in weights)
    base, free = rows[:n_first], rows[n_first:]
    rational = [
        (row, Fraction(round(Fraction(int(w), scale) * 10**_DIGITS), 10**_DIGITS))
        for row, w in zip(free, weights[n_first:], strict=True)
    ]
    return _record(point, first, moments, moments.atoms, base, rational)
