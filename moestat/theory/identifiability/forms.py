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

from moestat.theory.identifiability.atoms import Atom

__all__ = ["SymbolicAtom"]

Term = tuple[int, ...]
sp: Any = sympy  # whose annotations know neither functions of our own nor their arithmetic


class sigma(sp.Function):  # noqa: N801  (printed under this name)
    """``1 / (1 + e^-s)``."""

    def fdiff(self, argindex: int = 1) -> Any:
        return self * (1 - self)


class log_sigma(sp.Function):  # noqa: N801
    """``log sigma(s)``."""

    def fdiff(self, argindex: int = 1) -> Any:
        return 1 - sigma(self.args[0])


class softplus(sp.Function):  # noqa: N801
    """``log(1 + e^s)``."""

    def fdiff(self, argindex: int = 1) -> Any:
        return sigma(self.args[0])


class exponential(sp.Function):  # noqa: N801
    """``e^s``, which sympy must not take apart."""

    def fdiff(self, argindex: int = 1) -> Any:
        return self


class tanh(sp.Function):  # noqa: N801
    """Hyperbolic tangent."""

    def fdiff(self, argindex: int = 1) -> Any:
        return 1 - self**2


class Phi(sp.Function):
    """The normal distribution function."""

    def fdiff(self, argindex: int = 1) -> Any:
        return density(self.args[0])


class density(sp.Function):  # noqa: N801
    """The normal density."""

    def fdiff(self, argindex: int = 1) -> Any:
        return -self.args[0] * self


class step(sp.Function):  # noqa: N801
    """1 where the argument is positive, 0 elsewhere; its own square."""

    def fdiff(self, argindex: int = 1) -> Any:
        return sp.Integer(0)


class sign(sp.Function):  # noqa: N801
    """Sign; its square is 1."""

    def fdiff(self, argindex: int = 1) -> Any:
        return sp.Integer(0)


class norm(sp.Function):  # noqa: N801
    """Euclidean length of a vector; its square is a polynomial."""

    def fdiff(self, argindex: int = 1) -> Any:
        return self.args[argindex - 1] / self


class log_share(sp.Function):  # noqa: N801
    """``-log(1 + sum_l e^(eta_l))``, the log-probability of the reference class."""

    def fdiff(self, argindex: int = 1) -> Any:
        return -share(argindex, *self.args)


class share(sp.Function):  # noqa: N801
    """Probability of class l = 1 .. K - 1, its first argument."""

    def fdiff(self, argindex: int = 1) -> Any:
        same = 1 if self.args[0] == argindex - 1 else 0
        return self * (same - share(argindex - 1, *self.args[1:]))


ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "softplus": softplus,
    "sigmoid": sigma,
    "relu": lambda s: s * step(s),
    "silu": lambda s: s * sigma(s),
    "exp": exponential,
    "norm": lambda s: s * sign(s),
    "tanh": tanh,
    "gelu": lambda s: s * Phi(s),
}


_ELEMENTARY: dict[Any, Callable[..., Any]] = {
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


def _linear(expert: Any, eta: list[Any]) -> Any:
    return eta[0]


def _polynomial(expert: Any, eta: list[Any]) -> Any:
    return eta[0] ** expert.options["degree"]


def _neuron(expert: Any, eta: list[Any]) -> Any:
    value = ACTIVATIONS[expert.options["activation"]](eta[0])
    return eta[1] * value if len(eta) > 1 else value


def _ffn(expert: Any, eta: list[Any]) -> Any:
    n_hidden = len(eta) // 2
    return sum(eta[n_hidden + h] * softplus(eta[h]) for h in range(n_hidden))


_EXPERTS = {"linear": _linear, "polynomial": _polynomial, "activation": _neuron, "ffn": _ffn}


def _score(gate: Any, eta: list[Any], x: list[Any]) -> Any:
    return eta[-1]


def _sigmoid(gate: Any, eta: list[Any], x: list[Any]) -> Any:
    return log_sigma(eta[-1])


def _inner(gate: Any, eta: list[Any], x: list[Any]) -> Any:
    return log_sigma(eta[1] / eta[2])


def _euclidean(gate: Any, eta: list[Any], x: list[Any]) -> Any:
    away = [alpha - place for alpha, place in zip(eta[1:-2], x, strict=True)]
    length = away[0] * sign(away[0]) if len(x) == 1 else norm(*away)
    return log_sigma((length + eta[-2]) / eta[-1])


def _competition(gate: Any, eta: list[Any], x: list[Any]) -> Any:
    return ACTIVATIONS[gate.options["activation"]](eta[-1])


_GATES = {
    "softmax": _score,
    "softmax-top": _score,
    "softmax-quadratic": _score,
    "softmax-partial": _score,
    "sigmoid": _sigmoid,
    "sigmoid-quadratic": _sigmoid,
    "sigmoid-partial": _sigmoid,
    "sigmoid-inner": _inner,
    "sigmoid-euclidean": _euclidean,
    "competition": _competition,
    "competition-normalised": _competition,
    "competition-free": _competition,
    "competition-top": _competition,
}


class SymbolicAtom:
    """The functions of an atom as polynomials, and exact linear algebra with them.

    Parameters
    ----------
    atom : Atom
        The atom.
    at : dict of str to int
        Parameters that are fixed at a number after differentiation, by name.

    Raises
    ------
    ValueError
        If the gate or expert has no symbolic form.
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
        eta: list[Any] = [sp.Integer(0) for _ in atom.channels]
        for symbol, parameter in zip(self.symbols, atom.parameters, strict=True):
            feature = sp.Mul(*[self.x[j] for j in parameter.inputs])
            eta[parameter.channel] += symbol * feature
        self._eta = eta
        n_gate = len(atom.gate.channels(atom.n_features))
        own = eta[n_gate:]
        means = own[: len(own) - len(atom.likelihood.channels if atom.likelihood else ())]
        self.mean = _EXPERTS[atom.expert.name](atom.expert, means) if not self._classes else None
        gate = eta[:n_gate]
        if atom.gate.reads_response:
            gate = [*gate, self.mean]
        self.log_weight = _GATES[atom.gate.name](atom.gate, gate, self.x)
        self._responses = own
        self._generators: dict[Any, Any] = {}
        self._constants: dict[Any, Any] = {}
        # Divisions by the one length that an atom may have are undone for all functions alike.
        lengths = self.log_weight.atoms(norm)
        self._cleared = sp.Mul(*lengths) ** 4

    @property
    def _classes(self) -> bool:
        return self.atom.likelihood is not None and self.atom.likelihood.support is not None

    def _log_functions(self) -> list[Any]:
        """The logarithm of u; one for each class."""
        if self._classes:
            eta = self._responses
            rest = self.log_weight + log_share(*eta)
            return [rest + value for value in (*eta, 0)]
        variance = self._responses[-1]
        square = (self.y - self.mean) ** 2
        return [self.log_weight - square / (2 * variance) - sp.log(variance) / 2]

    def derivatives(self, term: Term, product: bool = False) -> list[Any]:
        """A derivative of the atom's function, divided by a common factor; one per class.

        `term` holds the positions of the parameters; none for the function itself.  Products of
        derivatives are known of means only.
        """
        assert not product
        at = [self.symbols[j] for j in term]
        if self.atom.likelihood is None:
            a, g = self.log_weight, self.mean
            if not at:
                return [g]
            if len(at) == 1:
                return [sp.diff(a, at[0]) * g + sp.diff(g, at[0])]
            aj, ak = (sp.diff(a, s) for s in at)
            gj, gk = (sp.diff(g, s) for s in at)
            curvature = sp.diff(aj, at[1]) + aj * ak
            return [curvature * g + aj * gk + ak * gj + sp.diff(gj, at[1])]
        found = []
        for h in self._log_functions():
            if not at:
                found.append(sp.Integer(1))
            elif len(at) == 1:
                found.append(sp.diff(h, at[0]))
            else:
                hj, hk = (sp.diff(h, s) for s in at)
                found.append(sp.diff(hj, at[1]) + hj * hk)
        return found

    def mean_derivatives(self, term: Term, product: bool = False) -> list[Any]:
        """A derivative of the expert's mean, or a product of two first ones."""
        at = [self.symbols[j] for j in term]
        return (
            [sp.diff(self.mean, at[0]) * sp.diff(self.mean, at[1])]
            if product
            else [sp.diff(self.mean, *at)]
        )

    def collect(self, expressions: list[Any]) -> dict[Any, Any]:
        """Coefficients, functions of the parameters, by class and monomial in functions of x."""
        found: dict[Any, Any] = {}
        for row, expression in enumerate(expressions):
            for monomial, coefficient in self._coefficients(expression.subs(self.at)).items():
                found[row, monomial] = coefficient
        return found

    def _coefficients(self, expression: Any) -> dict[Any, Any]:
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

    def _reduced(self, polynomial: Any, generators: list[Any]) -> Any:
        """The polynomial with squares of indicators, signs and lengths replaced."""
        for at, generator in enumerate(generators):
            function = self._generators.get(generator)
            if function is None or function.func not in (step, sign, norm):
                continue
            total = sp.Integer(0)
            for powers, coefficient in polynomial.terms():
                rest = sp.Mul(
                    *[
                        g**e
                        for i, (g, e) in enumerate(zip(generators, powers, strict=True))
                        if i != at
                    ]
                )
                power = powers[at]
                if function.func is step:
                    own = generator ** min(power, 1)
                elif function.func is sign:
                    own = generator ** (power % 2)
                else:
                    square = sum(value**2 for value in function.args)
                    own = generator ** (power % 2) * square ** (power // 2)
                total += coefficient * rest * own
            polynomial = sp.Poly(sp.expand(total), *generators)
        return polynomial

    def solve(self, target: dict[Any, Any], others: list[dict[Any, Any]]) -> list[Any] | None:
        """Coefficients c with ``target = sum c_i others_i``, or None where there are none."""
        rows = sorted({*target, *(key for column in others for key in column)}, key=str)
        matrix = sp.Matrix(
            [[*(column.get(row, 0) for column in others), target.get(row, 0)] for row in rows]
        )
        reduced, pivots = _rref(matrix)
        if len(others) in pivots or len(pivots) < len(others):
            return None
        return [sp.factor(reduced[i, len(others)]) for i in range(len(others))]

    def value(self, coefficient: Any, theta: Any) -> float:
        """A coefficient at the parameters (p,)."""
        constants = {name: f.subs(self.at) for name, f in self._constants.items()}
        plain = elementary(coefficient.subs(constants))
        return float(plain.subs(dict(zip(self.symbols, map(float, theta), strict=True))))

    def rank(self, columns: list[dict[Any, Any]], seed: int = 0) -> int:
        """Rank at a random rational point: of the generic point it is a lower bound, exactly."""
        draw = random.Random(seed)
        names = sorted(
            {s for column in columns for c in column.values() for s in sp.sympify(c).free_symbols},
            key=lambda s: s.name,
        )
        values = {s: sp.Rational(draw.randint(11, 97), draw.randint(11, 97)) for s in names}
        rows = sorted({key for column in columns for key in column}, key=str)
        where = {row: i for i, row in enumerate(rows)}
        matrix = sp.zeros(len(rows), len(columns))
        for j, column in enumerate(columns):
            for row, coefficient in column.items():
                matrix[where[row], j] = sp.sympify(coefficient).xreplace(values)
        if not rows:
            return 0
        return _field_matrix(matrix).rank()


def _rref(matrix: Any) -> tuple[Any, tuple[int, ...]]:
    """Reduced row echelon form over the field that the entries generate."""
    reduced, pivots = _field_matrix(matrix).rref()
    return reduced.to_Matrix(), pivots


def _field_matrix(matrix: Any) -> Any:
    from sympy.polys.matrices import DomainMatrix

    return DomainMatrix.from_Matrix(matrix).to_field()
