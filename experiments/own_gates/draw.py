"""Families drawn by a seed: gates and experts that are sums of two functions, and a truth of each.

The confirmatory part of the page on own gates has two commands.  ``python -m
experiments.own_gates.draw`` asks for the rates of the first five seeds and writes them down; its
output was committed before any of these families was swept.  ``python -m
experiments.own_gates.confirm`` runs the sweeps and compares.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import moestat
from experiments.folders import FIGURES
from experiments.own_gates.members import expert_of, gate_of
from moestat.base.types import FloatArray, Symmetry
from moestat.compiler.jit import device
from moestat.compiler.math import log1p_positive
from moestat.model.activations import tanh
from moestat.model.experts import EXPERTS
from moestat.model.family import Family
from moestat.model.gates import GATES
from moestat.theory import Rates

__all__ = ["PREDICTIONS", "drawn_family", "predict"]

FIRST, COUNT = 2026113001, 5
"""The first seed and how many: no seed is passed over, and none of them had been used before."""
DESIGN = moestat.Uniform(-3, 3)
PREDICTIONS = "own_gates_predictions.json"

_TERMS = {
    "s": ("s", "1.0", "0.0", lambda s: s),
    "tanh s": ("t", "t1", "t2", np.tanh),
    "sin s": ("math.sin(s)", "math.cos(s)", "-math.sin(s)", np.sin),
    "log(1 + s^2)": (
        "log1p_positive(s * s)",
        "2.0 * s * q",
        "2.0 * q * q * (1.0 - s * s)",
        lambda s: np.log1p(s**2),
    ),
}
_GATE = """
def block(eta, phi, m, order, a, da, d2a):
    for b in range(m):
        s = eta[1, b]
        q = 1.0 / (1.0 + s * s)
        t, t1, t2 = tanh(s)
        a[b] = eta[0, b] + {value}
        da[0, b] = 1.0
        da[1, b] = {first}
        if order > 1:
            d2a[0, b] = 0.0
            d2a[1, b] = 0.0
            d2a[2, b] = {second}
"""
_EXPERT = """
def block(eta, m, order, mean, d1, d2):
    for b in range(m):
        s = eta[0, b]
        q = 1.0 / (1.0 + s * s)
        t, t1, t2 = tanh(s)
        mean[b] = {value}
        d1[0, b] = {first}
        if order > 1:
            d2[0, b] = {second}
"""


def _sum(rng: np.random.Generator) -> list[tuple[str, float]]:
    """Two different functions with coefficients of two digits."""
    names = rng.choice(list(_TERMS), 2, replace=False)
    sizes = [rng.choice([-1, 1]) * rng.uniform(1, 2), rng.choice([-1, 1]) * rng.uniform(0.5, 1)]
    return [(str(name), round(float(c), 2)) for name, c in zip(names, sizes, strict=True)]


def _written(terms: list[tuple[str, float]], k: int) -> str:
    return " + ".join(f"({c!r}) * ({_TERMS[name][k]})" for name, c in terms)


def _compiled(text: str, terms: list[tuple[str, float]]) -> Any:
    parts = {name: _written(terms, k) for k, name in enumerate(("value", "first", "second"))}
    scope: dict[str, Any] = {
        "__name__": __name__,
        "math": math,
        "tanh": tanh,
        "log1p_positive": log1p_positive,
    }
    exec(text.format(**parts), scope)
    return device(scope["block"])


def _in_numpy(terms: list[tuple[str, float]]) -> Any:
    return lambda s: sum(c * _TERMS[name][3](s) for name, c in terms)


def drawn_family(seed: int) -> tuple[Family, FloatArray, str]:
    """The family of a seed, registered, with its truth of two atoms and what it is in words.

    Gate and expert are ``c_1 f_1(s) + c_2 f_2(s)`` of a linear score s, of two different functions
    of four; one expert in four is linear.  Responses are normal, with a variance for each expert.
    """
    rng = np.random.default_rng(seed)
    gate, expert = _sum(rng), _sum(rng)
    linear = rng.random() < 0.25
    name = f"drawn-{seed}"
    if name not in GATES:
        GATES.register(gate_of(name, _compiled(_GATE, gate), _in_numpy(gate)))
        EXPERTS.register(expert_of(name, _compiled(_EXPERT, expert), _in_numpy(expert), Symmetry()))
    family = moestat.family("gaussian", gate=name, expert="linear" if linear else name, n_experts=2)
    slopes = rng.uniform(1.0, 2.5, (2, 2)) * rng.choice([-1.0, 1.0], (2, 2))
    blocks = {
        "gamma": [rng.uniform(-0.4, 0.4), 0.0],
        "alpha": slopes[0],
        "beta": rng.uniform(-1.0, 1.0, 2),
        "a": slopes[1],
        "b": rng.uniform(-1.0, 1.0, 2),
        "nu": rng.uniform(0.05, 0.15, 2),
    }
    theta = family.pin(family.pack({k: np.round(v, 2) for k, v in blocks.items()}))
    words = [" + ".join(f"{c:g} {f}" for f, c in terms) for terms in (gate, expert)]
    told = f"gate {words[0]}, expert {'linear' if linear else words[1]}".replace("+ -", "- ")
    return family, theta, told


def predict(seed: int) -> tuple[Rates, str]:
    """What `rates` answers of a seed, and the family in words."""
    family, theta, told = drawn_family(seed)
    return moestat.theory.rates(family, theta, 3, DESIGN, seconds=600.0), told


def main(
    folder: Annotated[Path, typer.Argument(help="Where the predictions go.")] = FIGURES,
    first: Annotated[int, typer.Option(help="The first seed.")] = FIRST,
    count: Annotated[int, typer.Option(help="Families to draw.")] = COUNT,
) -> None:
    """Write down what is predicted of each family."""
    drawn: list[dict[str, Any]] = []
    for seed in range(first, first + count):
        rates, told = predict(seed)
        rows = [row for row in rates if row.cell == "2" and row.block != "mass"]
        blocks = {
            row.block: {
                "r": row.r,
                "at_least": row.at_least,
                "status": row.status,
                "n_seen": row.n_seen if math.isfinite(row.n_seen) else None,
            }
            for row in rows
        }
        drawn.append({"seed": seed, "family": told, "blocks": blocks, "spec": rates.spec(told)})
        typer.echo(f"{seed}: {told}\n{rates}")
        text = json.dumps(drawn, indent=1).replace("NaN", "null")
        (folder / PREDICTIONS).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
