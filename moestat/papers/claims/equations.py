"""Printed equations between derivatives of one atom, evaluated at random points.

First derivatives come from complex steps, second ones from central differences of these, so that
nothing about the equations is built in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from moestat.base.registry import Registry
from moestat.papers.claims.evidence import IdentityEvidence

__all__ = ["EQUATIONS", "Equation"]

_POINTS = 40
_STEP, _IMAGINARY = 1e-4, 1e-30
Point = Mapping[str, float]
Function = Callable[[Any, Mapping[str, Any]], Any]


def _first(function: Function, name: str, x: Any, point: Point) -> Any:
    """The derivative in one parameter, to rounding."""
    moved = {**point, name: point[name] + 1j * _IMAGINARY}
    return np.imag(function(x, moved)) / _IMAGINARY


def _second(function: Function, first: str, second: str, x: Any, point: Point) -> Any:
    """The derivative in two parameters, to about 1e-9."""

    def at(step: float) -> Any:
        return _first(function, first, x, {**point, second: point[second] + step})

    # Fourth order: the error of the plain difference would be that of a wrong equation's sixth
    # digit.
    near, far = at(_STEP) - at(-_STEP), at(2.0 * _STEP) - at(-2.0 * _STEP)
    return (8.0 * near - far) / (12.0 * _STEP)


@dataclass(frozen=True)
class Equation:
    """An equation as printed.

    Parameters
    ----------
    name : str
        Name in the registry.
    parameters : tuple of str
        Parameters, drawn from [0.5, 1.5].
    sides : callable
        ``sides(x, point)``: values of both sides.
    text : str
        The equation.
    """

    name: str
    parameters: tuple[str, ...]
    sides: Callable[[Any, Point], tuple[Any, Any]]
    text: str

    def evidence(self) -> IdentityEvidence:
        """The largest relative difference of the two sides."""
        rng = np.random.default_rng(0)
        worst = 0.0
        for _ in range(3):
            point = {name: float(rng.uniform(0.5, 1.5)) for name in self.parameters}
            left, right = self.sides(rng.uniform(-1.0, 1.0, _POINTS), point)
            scale = max(np.max(np.abs(left)), np.max(np.abs(right)))
            worst = max(worst, float(np.max(np.abs(left - right)) / scale))
        return IdentityEvidence(worst)


def _sigmoid(s: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-s))


def _inner(x: Any, p: Mapping[str, Any]) -> Any:
    return _sigmoid((p["alpha"] * x + p["beta"]) / p["tau"]) * _sigmoid(p["a"] * x + p["b"])


def _euclidean(x: Any, p: Mapping[str, Any]) -> Any:
    away = np.sign(np.real(p["alpha"]) - x) * (p["alpha"] - x)
    return _sigmoid((away + p["beta"]) / p["tau"]) * _sigmoid(p["a"] * x + p["b"])


def _quadratic(x: Any, p: Mapping[str, Any]) -> Any:
    return _sigmoid(p["A"] * x**2 + p["b"] * x + p["c"]) * (p["alpha"] * x + p["beta"])


def _temperature(function: Function, printed: bool) -> Callable[[Any, Point], tuple[Any, Any]]:
    def sides(x: Any, p: Point) -> tuple[Any, Any]:
        alpha, beta = (_first(function, name, x, p) for name in ("alpha", "beta"))
        last = p["beta"] * beta if printed else p["beta"] / p["tau"] * beta
        return _first(function, "tau", x, p), -p["alpha"] / p["tau"] * alpha - last

    return sides


def _mixed(left: tuple[str, str], right: tuple[str, str]) -> Callable[..., tuple[Any, Any]]:
    def sides(x: Any, p: Point) -> tuple[Any, Any]:
        return _second(_quadratic, *left, x, p), _second(_quadratic, *right, x, p)

    return sides


_GATED = ("alpha", "beta", "tau", "a", "b")
_QUADRATIC = ("A", "b", "c", "alpha", "beta")

EQUATIONS: Registry[Equation] = Registry("equation")
for _equation in (
    Equation(
        "mlmoe-8",
        _GATED,
        _temperature(_inner, printed=True),
        "du/dtau = -(1/tau) alpha' du/dalpha - beta du/dbeta",
    ),
    Equation(
        "mlmoe-8-with-1/tau",
        _GATED,
        _temperature(_inner, printed=False),
        "du/dtau = -(1/tau) (alpha' du/dalpha + beta du/dbeta)",
    ),
    Equation(
        "mlmoe-11",
        _GATED,
        _temperature(_euclidean, printed=True),
        "du/dtau = -(1/tau) alpha' du/dalpha - beta du/dbeta, Euclidean score",
    ),
    Equation(
        "mlmoe-11-with-1/tau",
        _GATED,
        _temperature(_euclidean, printed=False),
        "du/dtau = -(1/tau) (alpha' du/dalpha + beta du/dbeta), Euclidean score",
    ),
    Equation(
        "attention-8-first",
        _QUADRATIC,
        _mixed(("A", "c"), ("b", "b")),
        "d2F/dA dc = d2F/db db'",
    ),
    Equation(
        "attention-8-second",
        _QUADRATIC,
        _mixed(("A", "beta"), ("b", "alpha")),
        "d2F/dA dbeta = d2F/db dalpha",
    ),
    Equation(
        "attention-8-third",
        _QUADRATIC,
        _mixed(("b", "beta"), ("c", "alpha")),
        "d2F/db dbeta = d2F/dc dalpha",
    ),
):
    EQUATIONS.register(_equation)
