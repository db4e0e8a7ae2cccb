"""Gates, experts and likelihoods as sympy expressions, for exact statements.

A function of x is written as a polynomial in x, y and a few transcendental functions of x
(``sigma(s)``, ``softplus(s)``, class probabilities, ...), whose derivatives are again such
polynomials.  For parameters in general position these functions are algebraically independent
over the rational functions of x, so that functions are linearly dependent exactly when their
coefficients are.  Independence is a theorem of Ax for exponentials of different non-constant
polynomials; with logarithms, ``Phi`` and half-line indicators it is elementary.

Needs sympy (extra ``theory``).  What is found with these forms is checked against the registered
functions numerically.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import sympy
from sympy import Expr, Matrix, Poly, Symbol

from moestat.base.types import FloatArray
from moestat.model.members import Expert, Gate
from moestat.theory.identifiability.atoms import Atom
from moestat.theory.identifiability.derivatives import Term

__all__ = ["SymbolicAtom"]

sp: Any = sympy  # whose annotations know neither functions of our own nor their arithmetic


def _function(name: str, slope: Callable[[Any, int], Any]) -> Any:
    """A function of its own, by its derivative in an argument counted from 1."""
    return type(name, (sp.Function,), {"fdiff": lambda self, argindex=1: slope(self, argindex)})


sigma = _function("sigma", lambda f, at: f * (1 - f))  # 1 / (1 + e^-s)
log_sigma = _function("log_sigma", lambda f, at: 1 - sigma(f.args[0]))
softplus = _function("softplus", lambda f, at: sigma(f.args[0]))  # log(1 + e^s)
exponential = _function("exponential", lambda f, at: f)  # e^s, which sympy must not take apart
tanh = _function("tanh", lambda f, at: 1 - f**2)
Phi = _function("Phi", lambda f, at: density(f.args[0]))  # the normal distribution function
density = _function("density", lambda f, at: -f.args[0] * f)  # the normal density
# 1 where the argument is positive, 0 elsewhere; its own square.
step = _function("step", lambda f, at: sp.Integer(0))
sign = _function("sign", lambda f, at: sp.Integer(0))  # its square is 1
# Euclidean length of a vector; its square is a polynomial.
norm = _function("norm", lambda f, at: f.args[at - 1] / f)
# -log(1 + sum_l e^(eta_l)), the log-probability of the reference class.
log_share = _function("log_share", lambda f, at: -share(at, *f.args))
# Probability of class l = 1 .. K - 1, its first argument.
share = _function(
    "share", lambda f, at: f * (int(f.args[0] == at - 1) - share(at - 1, *f.args[1:]))
)


ACTIVATIONS: dict[str, Callable[[Expr], Expr]] = {
    "softplus": softplus,
    "sigmoid": sigma,
    "relu": lambda s: s * step(s),
    "silu": lambda s: s * sigma(s),
    "exp": exponential,
    "norm": lambda s: s * sign(s),
    "tanh": tanh,
    "gelu": lambda s: s * Phi(s),
}


_ELEMENTARY: dict[Any, Callable[..., Expr]] = {
    sigma: lambda s: 1 / (1 + sp.exp(-s)),
    softplus: lambda s: sp.log(1 + sp.exp(s)),
    exponential: sp.exp,
    tanh: sp.tanh,
    Phi: lambda s: (1 + sp.erf(s / sp.sqrt(2))) / 2,
    density: lambda s: sp.exp(-(s**2) / 2) / sp.sqrt(2 * sp.pi),
    step: lambda s: sp.Heaviside(s, 0),
    sign: sp.sign,
    norm: lambda *v: sp.sqrt(sum(value**2 for value in v)),
    share: lambda k, *eta: sp.exp(eta[k - 1]) / (1 + sum(sp.exp(value) for value in eta)),
}


def elementary(expression: Any) -> Any:
    """The expression in functions that sympy can evaluate."""
    for function, form in _ELEMENTARY.items():
        expression = expression.replace(function, form)
    return expression


def _neuron(expert: Expert, eta: list[Expr]) -> Expr:
    value = ACTIVATIONS[expert.options["activation"]](eta[0])
    return eta[1] * value if len(eta) > 1 else value


def _ffn(expert: Expert, eta: list[Expr]) -> Any:
    n_hidden = len(eta) // 2
    return sum(eta[n_hidden + h] * softplus(eta[h]) for h in range(n_hidden))


_EXPERTS: dict[str, Callable[[Expert, list[Expr]], Expr]] = {
    "linear": lambda expert, eta: eta[0],
    "polynomial": lambda expert, eta: eta[0] ** expert.options["degree"],
    "activation": _neuron,
    "ffn": _ffn,
}


def _score(gate: Gate, eta: list[Expr], x: list[Expr]) -> Expr:
    return eta[-1]


def _sigmoid(gate: Gate, eta: list[Expr], x: list[Expr]) -> Expr:
    return log_sigma(eta[-1])


def _euclidean(gate: Gate, eta: list[Expr], x: list[Expr]) -> Expr:
    away = [alpha - place for alpha, place in zip(eta[1:-2], x, strict=True)]
    length = away[0] * sign(away[0]) if len(x) == 1 else norm(*away)
    return log_sigma((length + eta[-2]) / eta[-1])


def _competition(gate: Gate, eta: list[Expr], x: list[Expr]) -> Expr:
    return ACTIVATIONS[gate.options["activation"]](eta[-1])


_GATES: dict[str, Callable[[Gate, list[Expr], list[Expr]], Expr]] = {
    **dict.fromkeys(("softmax", "softmax-top", "softmax-quadratic", "softmax-partial"), _score),
    **dict.fromkeys(("sigmoid", "sigmoid-quadratic", "sigmoid-partial"), _sigmoid),
    "sigmoid-inner": lambda gate, eta, x: log_sigma(eta[1] / eta[2]),
    "sigmoid-euclidean": _euclidean,
    **dict.fromkeys(
        ("competition", "competition-normalised", "competition-free", "competition-top"),
        _competition,
    ),
}


Monomial = tuple[tuple[str, int], ...]
"""Names of functions of x with their powers."""
Coefficients = dict[tuple[int, Monomial], Expr]
"""Coefficients, functions of the parameters, by class and monomial."""


class SymbolicAtom:
    """The functions of an atom as polynomials, and exact linear algebra with them.

    Parameters named in `at` are fixed at a number after differentiation.
    """

    def __init__(self, atom: Atom, at: dict[str, int]) -> None:
        self.atom = atom
        if atom.gate.name not in _GATES or atom.expert.name not in _EXPERTS:
            raise ValueError(
                f"gate {atom.gate.name!r} with expert {atom.expert.name!r} has no symbolic form"
            )
        self.symbols = [sp.Symbol(name) for name in atom.names]
        self.at = {self.symbols[atom.names.index(name)]: value for name, value in at.items()}
        self.x = [sp.Symbol(f"x_{j}") for j in range(atom.n_features)]
        self.y = sp.Symbol("y")
        eta: list[Expr] = [sp.Integer(0) for _ in atom.channels]
        for symbol, parameter in zip(self.symbols, atom.parameters, strict=True):
            feature = sp.Mul(*[self.x[j] for j in parameter.inputs])
            eta[parameter.channel] += symbol * feature
        n_gate = len(atom.gate.channels(atom.n_features))
        predictors = eta[n_gate:]
        means = predictors[
            : len(predictors) - len(atom.likelihood.channels if atom.likelihood else ())
        ]
        self.mean = _EXPERTS[atom.expert.name](atom.expert, means) if not self._classes else None
        gate = eta[:n_gate]
        if atom.gate.reads_response:
            gate = [*gate, self.mean]
        self.log_weight = _GATES[atom.gate.name](atom.gate, gate, self.x)
        self._responses = predictors
        self._generators: dict[Symbol, Any] = {}
        self._constants: dict[Symbol, Any] = {}
        # Divisions by the one length that an atom may have are undone for all functions alike.
        lengths = self.log_weight.atoms(norm)
        self._cleared = sp.Mul(*lengths) ** 4

    @property
    def _classes(self) -> bool:
        return self.atom.likelihood is not None and self.atom.likelihood.support is not None

    def _parts(self, of_mean: bool) -> list[tuple[Expr, Any]]:
        """Logarithms and factors, whose ``e^log factor`` are the mean, F, or u of each class."""
        if of_mean or self.atom.likelihood is None:
            return [(sp.Integer(0) if of_mean else self.log_weight, self.mean)]
        if self._classes:
            log_weight = self.log_weight + log_share(*self._responses)
            return [(log_weight + value, sp.Integer(1)) for value in (*self._responses, 0)]
        variance = self._responses[-1]
        square = (self.y - self.mean) ** 2
        log = self.log_weight - square / (2 * variance) - sp.log(variance) / 2
        return [(log, sp.Integer(1))]

    def derivatives(self, term: Term, of_mean: bool = False) -> list[Expr]:
        """A derivative of the atom's function, or its mean, over a common factor; one per class."""
        at = [self.symbols[j] for j in term.at]
        if term.product:
            return [sp.Mul(*(sp.diff(self.mean, s) for s in at))]
        derivatives = []
        for log, factor in self._parts(of_mean):
            for s in at:
                factor = sp.diff(factor, s) + sp.diff(log, s) * factor
            derivatives.append(factor)
        return derivatives

    def collect(self, expressions: list[Expr]) -> Coefficients:
        """Coefficients, functions of the parameters, by class and monomial in functions of x."""
        coefficients: Coefficients = {}
        for row, expression in enumerate(expressions):
            for monomial, coefficient in self._coefficients(expression.subs(self.at)).items():
                coefficients[row, monomial] = coefficient
        return coefficients

    def _coefficients(self, expression: Expr) -> dict[Monomial, Expr]:
        variables = {*self.x, self.y}
        expression = expression * self._cleared.subs(self.at)
        names = {}
        for function in sorted(expression.atoms(sp.Function), key=sp.default_sort_key):
            if function.func is sp.log:
                continue
            moving = bool(function.free_symbols & variables)
            name = names[function] = sp.Symbol(str(function))
            (self._generators if moving else self._constants)[name] = function
        plain = sp.expand(expression.subs(names))
        moving = plain.free_symbols & {*self._generators}
        generators = sorted({*moving, *variables}, key=lambda s: s.name)
        plain = self._reduced(sp.Poly(plain, *generators), generators)
        return {
            tuple((g.name, e) for g, e in zip(generators, powers, strict=True) if e): c
            for powers, c in plain.terms()
            if c != 0
        }

    def _reduced(self, polynomial: Poly, generators: list[Symbol]) -> Poly:
        """The polynomial with squares of indicators, signs and lengths replaced."""
        for generator in generators:
            function = self._generators.get(generator)
            if function is None or function.func not in (step, sign, norm):
                continue
            square = generator if function.func is step else sp.Integer(1)
            if function.func is norm:
                square = sum(value**2 for value in function.args)
            others = [each for each in generators if each != generator]
            relation = generator**2 - square
            remainder = sp.reduced(polynomial.as_expr(), [relation], generator, *others)[1]
            polynomial = sp.Poly(remainder, *generators)
        return polynomial

    def solve(self, target: Coefficients, others: list[Coefficients]) -> list[Expr] | None:
        """Coefficients c with ``target = sum c_i others_i``, or None where there are none."""
        rows = sorted({*target, *(key for column in others for key in column)}, key=str)
        matrix = sp.Matrix(
            [[*(column.get(row, 0) for column in others), target.get(row, 0)] for row in rows]
        )
        field, pivots = _field_matrix(matrix).rref()
        if len(others) in pivots or len(pivots) < len(others):
            return None
        reduced = field.to_Matrix()
        return [sp.factor(reduced[i, len(others)]) for i in range(len(others))]

    def value(self, coefficient: Any, theta: FloatArray) -> float:
        """A coefficient at the parameters (p,)."""
        constants = {name: f.subs(self.at) for name, f in self._constants.items()}
        plain = elementary(coefficient.subs(constants))
        return float(plain.subs(dict(zip(self.symbols, map(float, theta), strict=True))))

    def rank(self, columns: list[Coefficients], seed: int = 0) -> int:
        """Rank at a random rational point: of the generic point it is a lower bound, exactly."""
        draw = random.Random(seed)
        names = sorted(
            {s for column in columns for c in column.values() for s in sp.sympify(c).free_symbols},
            key=lambda s: s.name,
        )
        values = {s: sp.Rational(draw.randint(11, 97), draw.randint(11, 97)) for s in names}
        rows = sorted({key for column in columns for key in column}, key=str)
        matrix = [[sp.sympify(c.get(row, 0)).xreplace(values) for c in columns] for row in rows]
        return _field_matrix(sp.Matrix(matrix)).rank() if rows else 0


def _field_matrix(matrix: Matrix) -> Any:
    """The matrix over the field that its entries generate."""
    from sympy.polys.matrices import DomainMatrix

    return DomainMatrix.from_Matrix(matrix).to_field()
