"""``python -m experiments.limit_law.constants``: the constants kappa of two to eight atoms.

The largest error of a mean is kappa (|Z_2m| / s_2m)^(1 / (2 m)) n^(-1 / (4 m)) in the limit, with
one kappa for each sign of the score Z_2m and each floor of the masses (docs/theory/limit_law.md).
A shape with a floor is one with every lower floor, too, so that searches go from the highest floor
down, each from the shapes found before.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from scipy.optimize import minimize

from experiments.folders import FIGURES
from experiments.limit_law.law import coefficients, scales
from moestat.base.types import FloatArray

_INTRODUCTION = """# Constants of over-specified normal mixtures

Made by `python -m experiments.limit_law.constants`.  m normal atoms are fitted to a sample of one
normal law, with masses of a floor at least.  The largest error of a mean is
kappa (|Z| / s)^(1 / (2 m)) n^(-1 / (4 m)) in the limit, where Z is the score of order 2 m, standard
normal, and s^2 = (2 m)! (docs/theory/limit_law.md): kappa- if Z < 0, kappa+ if Z > 0.  Two atoms
have no kappa+, for their means then err by n^(-1/4).

"""
_END = """

Each is of the shape with the largest C_(2m+1) that a search ended at, from {random} random starts
at each of seven floors, from the shapes of higher floors and from these moved at random.  In
brackets: how many of the starts that ended at a shape did so at this one.  That it is the best one
and unique is not proved; where few did, a better search may well end at another.  *Not computed*:
six atoms took between one and two minutes of processor time, and seven were not done after more
than two; the same command goes on.  The equations of C_0, .., C_2m hold to {off:.0e}.
"""

__all__ = ["ATOMS", "FLOORS", "constants", "markdown"]

ATOMS = tuple(range(2, 9))
FLOORS = (0.1, 0.05, 0.01)
"""Least masses, from the highest down."""
_STEPS = (0.1, 0.07, 0.05, 0.035, 0.025, 0.017, 0.01)
"""Floors of the searches, each begun at the shapes of the higher ones."""
_RANDOM, _MOVED, _ITERATIONS = 16, 8, 500
_SAME, _EXACT = 1e-3, 1e-8
"""Relative difference of two values of one shape, and largest error of the equations."""
_NAME = "limit_law_constants"


def constants(m: int) -> list[dict[str, object]]:
    """The shapes with the largest C_(2m+1), by floor and sign.

    Parameters
    ----------
    m : int
        Atoms.

    Returns
    -------
    list of dict
        ``m``, ``floor``, ``sign``, ``kappa`` (the largest mean), ``next`` (C_(2m+1) times the
        deviation of its score), ``off`` (the largest error of the equations) and ``reached`` (of so
        many starts that ended at a shape, how many did so at this one), one for each floor and
        sign with a shape.

    Examples
    --------
    >>> [round(each["kappa"], 2) for each in constants(2)]
    [4.12, 5.05, 7.71]
    """
    found = []
    for sign in (-1, 1):
        rng, known = np.random.default_rng(m), [_gauss_hermite(m)] if sign < 0 else []
        for floor in _STEPS:
            starts = [_random(m, rng) for _ in range(_RANDOM)]
            moved = [known[-1] + 0.1 * rng.standard_normal(3 * m) for _ in range(_MOVED) if known]
            best = _best(m, sign, floor, [*starts, *known, *moved])
            if best is None:
                continue
            known.append(best[0])
            if floor in FLOORS:
                found.append({"m": m, "floor": floor, "sign": sign, **_told(m, sign, *best)})
    return found


def _random(m: int, rng: np.random.Generator) -> FloatArray:
    means, halves = 1.5 * rng.standard_normal(m), 0.7 * rng.standard_normal(m)
    return np.concatenate([rng.dirichlet(np.ones(m)), means, halves])


def _gauss_hermite(m: int) -> FloatArray:
    """The regular point of S_- in the proof, in units in which its equations hold."""
    nodes, masses = np.polynomial.hermite_e.hermegauss(m)
    size = (math.factorial(m) / math.sqrt(math.factorial(2 * m))) ** (-1.0 / (2 * m))
    halves = np.full(m, -0.5 * size**2)
    return np.concatenate([masses / masses.sum(), nodes * size, halves])


def _equations(m: int, sign: int, shape: FloatArray) -> FloatArray:
    """What is 0 of a shape: its coefficients in units of their scores, less their values."""
    target = np.zeros(2 * m + 1)
    target[0], target[-1] = 1.0, sign
    return coefficients(shape, 2 * m)[0] * scales(2 * m) - target


def _best(
    m: int, sign: int, floor: float, starts: Sequence[FloatArray]
) -> tuple[FloatArray, int, int] | None:
    """The best shape, how many starts ended there, and how many ended at a shape.

    In units of the scores' deviations means and half variances are of order 1 for every m, which a
    search needs; `limit_shape` has the units of n^(-1 / (4 m)).
    """
    last = scales(2 * m + 1)[-1]

    def objective(shape: FloatArray) -> tuple[float, FloatArray]:
        c, slopes = coefficients(shape, 2 * m + 1)
        return -c[-1] * last, -slopes[-1] * last

    ends = []
    for start in starts:
        end = minimize(
            objective,
            start,
            jac=True,
            method="SLSQP",
            bounds=[(floor, 1.0)] * m + [(None, None)] * (2 * m),
            constraints={
                "type": "eq",
                "fun": lambda shape: _equations(m, sign, shape),
                "jac": lambda shape: coefficients(shape, 2 * m)[1] * scales(2 * m)[:, None],
            },
            options={"maxiter": _ITERATIONS, "ftol": 1e-12},
        )
        ends += [each for each in (end.x, start) if _is_shape(m, sign, floor, each)]
    if not ends:
        return None
    values = np.array([-objective(shape)[0] for shape in ends])
    near = values >= values.max() - _SAME * abs(values.max())
    return ends[int(values.argmax())], int(near.sum()), len(ends)


def _is_shape(m: int, sign: int, floor: float, shape: FloatArray) -> bool:
    apart = np.abs(shape[m : 2 * m]).max() > _SAME
    allowed = shape[:m].min() >= floor * (1.0 - 1e-9)
    return bool(apart and allowed and np.abs(_equations(m, sign, shape)).max() < _EXACT)


def _told(m: int, sign: int, shape: FloatArray, reached: int, ended: int) -> dict[str, object]:
    unit = scales(2 * m)[-1] ** (1.0 / (2 * m))
    last = coefficients(shape, 2 * m + 1)[0][-1] * scales(2 * m + 1)[-1]
    return {
        "kappa": float(f"{unit * np.abs(shape[m : 2 * m]).max():.5g}"),
        "next": float(f"{last:.5g}"),
        "off": float(f"{np.abs(_equations(m, sign, shape)).max():.0e}"),
        "reached": f"{reached} of {ended}",
    }


def markdown(kept: Mapping[str, list[dict[str, Any]]]) -> str:
    """The page.

    Parameters
    ----------
    kept : mapping
        `constants` by number of atoms.

    Returns
    -------
    str
        Markdown.
    """
    cells = {
        (each["m"], each["floor"], each["sign"]): f"{each['kappa']:.3g} ({each['reached']})"
        for found in kept.values()
        for each in found
    }
    columns = [(floor, sign) for floor in FLOORS for sign in (-1, 1)]
    rows = [
        f"| {m} | " + " | ".join(cells.get((m, *column), empty) for column in columns) + " |"
        for m in ATOMS
        for empty in ("none" if str(m) in kept else "not computed",)
    ]
    worst = max(each["off"] for found in kept.values() for each in found)
    head = [f"kappa{'-' if sign < 0 else '+'}, floor {floor:g}" for floor, sign in columns]
    table = [f"| m | {' | '.join(head)} |", "|---|" + "---|" * len(columns), *rows]
    return _INTRODUCTION + "\n".join(table) + _END.format(random=_RANDOM, off=worst)


def main(
    folder: Annotated[Path, typer.Argument(help="Where the result and the page are.")] = FIGURES,
    redraw: Annotated[bool, typer.Option(help="Write the page of the kept result.")] = False,
) -> None:
    """Compute the constants that are not kept yet, and write the page."""
    path = folder / f"{_NAME}.json"
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for m in () if redraw else ATOMS:
        if str(m) not in kept:
            kept[str(m)] = constants(m)
            path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
            typer.echo(f"{m} atoms: {len(kept[str(m)])} constants")
    path.with_suffix(".md").write_text(markdown(kept), encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
