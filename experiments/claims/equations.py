"""Printed equations between derivatives of one atom, evaluated at random points.

First derivatives come from complex steps, second ones from central differences of these, so that
nothing about the equations is built in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import erf

from experiments.claims.kinds import IdentityEvidence
from moestat.base.types import FloatArray
from moestat.model.axes import family

__all__ = [
    "ATTENTION_8_FIRST",
    "ATTENTION_8_SECOND",
    "ATTENTION_8_THIRD",
    "ATTENTION_FOUR_ATOMS",
    "ATTENTION_OPPOSITE_GATES",
    "ATTENTION_ROW",
    "ATTENTION_SHARED_DERIVATIVE",
    "ATTENTION_SUMS_OF_GATES",
    "ATTENTION_TWO_WEIGHTS",
    "ATTENTION_ZERO_GATE",
    "COMPETE_OUTPUT_WEIGHT",
    "MLMOE_11",
    "MLMOE_11_WITH_1_TAU",
    "MLMOE_8",
    "MLMOE_8_WITH_1_TAU",
    "MLMOE_PLAIN_GATE",
    "Equation",
]

_POINTS = 40
_STEP, _IMAGINARY = 1e-4, 1e-30
Point = Mapping[str, float]
Sides = tuple[np.ndarray, np.ndarray]
Function = Callable[[FloatArray, Mapping[str, complex]], np.ndarray]


def _first(function: Function, name: str, x: FloatArray, point: Point) -> np.ndarray:
    """The derivative in one parameter, to rounding."""
    moved = {**point, name: point[name] + 1j * _IMAGINARY}
    return np.imag(function(x, moved)) / _IMAGINARY


def _second(function: Function, first: str, second: str, x: FloatArray, point: Point) -> np.ndarray:
    """The derivative in two parameters, to about 1e-9."""

    def at(step: float) -> np.ndarray:
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
        Name, by which evidence is kept.
    parameters : tuple of str
        Parameters, drawn from [0.5, 1.5].
    sides : callable
        ``sides(x, point)``: values of both sides.
    about : str
        The equation.
    """

    name: str
    parameters: tuple[str, ...]
    sides: Callable[[FloatArray, Point], Sides]
    about: str

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


def _inner(x: FloatArray, p: Mapping[str, complex]) -> np.ndarray:
    return _sigmoid((p["alpha"] * x + p["beta"]) / p["tau"]) * _sigmoid(p["a"] * x + p["b"])


def _euclidean(x: FloatArray, p: Mapping[str, complex]) -> np.ndarray:
    away = np.sign(np.real(p["alpha"]) - x) * (p["alpha"] - x)
    return _sigmoid((away + p["beta"]) / p["tau"]) * _sigmoid(p["a"] * x + p["b"])


def _quadratic(x: FloatArray, p: Mapping[str, complex]) -> np.ndarray:
    return _sigmoid(p["A"] * x**2 + p["b"] * x + p["c"]) * (p["alpha"] * x + p["beta"])


def _any_expert(x: FloatArray, p: Mapping[str, complex]) -> np.ndarray:
    """A quadratic gate before an expert of no named family."""
    answer = np.sin(p["eta"] * x) + x**3 + 0.5
    return _sigmoid(p["A"] * x**2 + p["b"] * x + p["c"]) * answer


def _zero_gate(x: FloatArray, p: Point) -> Sides:
    at = {**p, "A": 0.0, "b": 0.0}
    mass = _sigmoid(p["c"])
    return _second(_any_expert, "b", "b", x, at), (1.0 - 2.0 * mass) * _first(
        _any_expert, "A", x, at
    )


def _opposite_gates(x: FloatArray, p: Point) -> Sides:
    turned = {**p, **{name: -p[name] for name in ("A", "b", "c")}}
    return _first(_any_expert, "c", x, p), _first(_any_expert, "c", x, turned)


def _gelu(z: np.ndarray) -> np.ndarray:
    return 0.5 * z * (1.0 + erf(z / np.sqrt(2.0)))


def _relu(z: np.ndarray) -> np.ndarray:
    return z * (np.real(z) > 0.0)


def _four_atoms(unit: Callable[[np.ndarray], np.ndarray]) -> Callable[[FloatArray, Point], Sides]:
    """Two units with opposite signs against two others, all four under one gate."""

    def gated(x: FloatArray, p: Mapping[str, complex]) -> np.ndarray:
        score = p["A"] * x**2 + p["b"] * x + p["c"]
        return _sigmoid(score) * unit(p["alpha"] * x + p["beta"])

    def pair(x: FloatArray, p: Point, own: int) -> Any:
        alpha, beta = p[f"alpha{own}"], p[f"beta{own}"]
        points = ({**p, "alpha": side * alpha, "beta": side * beta} for side in (1.0, -1.0))
        return sum(_first(gated, "beta", x, point) for point in points)

    return lambda x, p: (pair(x, p, 1), pair(x, p, 2))


def _two_weights(x: FloatArray, p: Point) -> Sides:
    """The derivative in the output weight, at two weights of one unit."""

    def gated(x: FloatArray, p: Mapping[str, complex]) -> np.ndarray:
        score = p["A"] * x**2 + p["b"] * x + p["c"]
        return _sigmoid(score) * p["lambda"] * _gelu(p["alpha"] * x + p["beta"])

    return _first(gated, "lambda", x, p), _first(gated, "lambda", x, {**p, "lambda": p["second"]})


def _shared_derivative(x: FloatArray, p: Point) -> Sides:
    """The derivative of a linear expert in its intercept, at two experts under one gate."""
    other = {**p, "alpha": p["alpha2"], "beta": p["beta2"]}
    return _first(_quadratic, "beta", x, p), _first(_quadratic, "beta", x, other)


def _gates_that_run_into_one(x: FloatArray, p: Point) -> Sides:
    """The sum of two gates with one (A, b), and the gate at the sum of their masses."""
    score = p["A"] * x**2 + p["b"] * x
    first, second = (_sigmoid(score + p[name]) for name in ("c1", "c2"))
    mass = 0.5 * (_sigmoid(p["c1"]) + _sigmoid(p["c2"]))
    return first + second, _sigmoid(score + np.log(mass / (1.0 - mass)))


def _network(x: FloatArray, p: Mapping[str, complex]) -> np.ndarray:
    return p["W2"] * np.log1p(np.exp(p["W1"] * x + p["b"]))


def _output_weight(x: FloatArray, p: Point) -> Sides:
    return _second(_network, "W2", "b", x, p), _first(_network, "b", x, p) / p["W2"]


def _attention_row(x: FloatArray, p: Point) -> Sides:
    """The first row of sigmoid attention, and the mixture of Sec. 2.3 on all tokens in one."""
    tokens, width = 3, 2
    rng = np.random.default_rng(int(1e9 * p["seed"]))
    X = rng.normal(size=(tokens, width))
    B, V = rng.normal(size=(2, width, width))
    row = _sigmoid(X @ B @ X.T)[0] @ (X @ V)
    flat = X.reshape(1, -1)
    pick = [np.eye(tokens * width)[:, width * i : width * (i + 1)] for i in range(tokens)]
    mixture = sum(
        _sigmoid(flat @ pick[0] @ B @ pick[j].T @ flat.T) * (flat @ pick[j] @ V)
        for j in range(tokens)
    )
    return row, np.ravel(mixture)


def _temperature(function: Function, printed: bool) -> Callable[[FloatArray, Point], Sides]:
    def sides(x: FloatArray, p: Point) -> Sides:
        alpha, beta = (_first(function, name, x, p) for name in ("alpha", "beta"))
        last = p["beta"] * beta if printed else p["beta"] / p["tau"] * beta
        return _first(function, "tau", x, p), -p["alpha"] / p["tau"] * alpha - last

    return sides


def _plain_gate(x: FloatArray, p: Point) -> tuple[Any, np.ndarray]:
    """Class probabilities under plain sigmoid gates, and under modified ones with gamma = 0."""
    gates = [_sigmoid(p[f"alpha{i}"] * x + p[f"beta{i}"]) for i in (1, 2)]
    experts = [_sigmoid(p[f"a{i}"] * x) for i in (1, 2)]
    plain = sum(g * e for g, e in zip(gates, experts, strict=True)) / sum(gates)
    modified = family("multinomial", gate="sigmoid", n_experts=2, n_classes=2)
    blocks = {name: [p[f"{name}1"], p[f"{name}2"]] for name in ("alpha", "beta")}
    theta = modified.pack({**blocks, "gamma": [0, 0], "a": [[p["a1"]], [p["a2"]]], "b": [[0], [0]]})
    return plain, modified.probabilities(theta, x)[:, 0]


def _mixed(left: tuple[str, str], right: tuple[str, str]) -> Callable[..., Sides]:
    def sides(x: FloatArray, p: Point) -> Sides:
        return _second(_quadratic, *left, x, p), _second(_quadratic, *right, x, p)

    return sides


_GATED = ("alpha", "beta", "tau", "a", "b")
_QUADRATIC = ("A", "b", "c", "alpha", "beta")

MLMOE_8 = Equation(
    "mlmoe-8",
    _GATED,
    _temperature(_inner, printed=True),
    "du/dtau = -(1/tau) alpha' du/dalpha - beta du/dbeta",
)
MLMOE_8_WITH_1_TAU = Equation(
    "mlmoe-8-with-1/tau",
    _GATED,
    _temperature(_inner, printed=False),
    "du/dtau = -(1/tau) (alpha' du/dalpha + beta du/dbeta)",
)
MLMOE_PLAIN_GATE = Equation(
    "mlmoe-plain-gate",
    ("alpha1", "beta1", "a1", "alpha2", "beta2", "a2"),
    _plain_gate,
    "the plain sigmoid gate is the modified one with gamma = 0",
)
MLMOE_11 = Equation(
    "mlmoe-11",
    _GATED,
    _temperature(_euclidean, printed=True),
    "du/dtau = -(1/tau) alpha' du/dalpha - beta du/dbeta, Euclidean score",
)
MLMOE_11_WITH_1_TAU = Equation(
    "mlmoe-11-with-1/tau",
    _GATED,
    _temperature(_euclidean, printed=False),
    "du/dtau = -(1/tau) (alpha' du/dalpha + beta du/dbeta), Euclidean score",
)
ATTENTION_8_FIRST = Equation(
    "attention-8-first",
    _QUADRATIC,
    _mixed(("A", "c"), ("b", "b")),
    "d2F/dA dc = d2F/db db'",
)
ATTENTION_8_SECOND = Equation(
    "attention-8-second",
    _QUADRATIC,
    _mixed(("A", "beta"), ("b", "alpha")),
    "d2F/dA dbeta = d2F/db dalpha",
)
ATTENTION_8_THIRD = Equation(
    "attention-8-third",
    _QUADRATIC,
    _mixed(("b", "beta"), ("c", "alpha")),
    "d2F/db dbeta = d2F/dc dalpha",
)
ATTENTION_ZERO_GATE = Equation(
    "attention-zero-gate",
    ("c", "eta"),
    _zero_gate,
    "sigma'(c) d2F/db2 = sigma''(c) dF/dA at A = b = 0, for any expert",
)
ATTENTION_OPPOSITE_GATES = Equation(
    "attention-opposite-gates",
    ("A", "b", "c", "eta"),
    _opposite_gates,
    "dF/dc at (A, b, c, eta) = dF/dc at (-A, -b, -c, eta), for any expert",
)
ATTENTION_FOUR_ATOMS = {
    name: Equation(
        f"attention-four-atoms-{name}",
        ("A", "b", "c", *(f"{block}{own}" for own in (1, 2) for block in ("alpha", "beta"))),
        _four_atoms(unit),
        "dF/dbeta at (alpha, beta) and (-alpha, -beta) add up to the same at another"
        " (alpha, beta), all under one gate, lambda = 1",
    )
    for name, unit in (("gelu", _gelu), ("relu", _relu))
}
"""By unit."""
ATTENTION_TWO_WEIGHTS = Equation(
    "attention-two-weights",
    ("A", "b", "c", "alpha", "beta", "lambda", "second"),
    _two_weights,
    "dF/dlambda is the same at two output weights of one unit under one gate",
)
ATTENTION_SHARED_DERIVATIVE = Equation(
    "attention-shared-derivative",
    ("A", "b", "c", "alpha", "beta", "alpha2", "beta2"),
    _shared_derivative,
    "dF/dbeta = sigma(s) at every linear expert under one gate",
)
ATTENTION_SUMS_OF_GATES = Equation(
    "attention-sums-of-gates",
    ("A", "b", "c1", "c2"),
    _gates_that_run_into_one,
    "sigma(q + c1) + sigma(q + c2) = sigma(q + c) at a score q that varies",
)
ATTENTION_ROW = Equation(
    "attention-row",
    ("seed",),
    _attention_row,
    "a row of sigmoid attention = sum_j sigma(X M_ij X') X P_j on the concatenated tokens",
)
COMPETE_OUTPUT_WEIGHT = Equation(
    "compete-output-weight",
    ("W2", "W1", "b"),
    _output_weight,
    "d2g/dW2 db = (1/W2) dg/db, while d2g/dW2^2 = 0, for g = W2 softplus(W1 x + b)",
)
