"""Check certificates of rates in interval arithmetic: ``python check_certificates.py FILE ...``.

Needs mpmath alone.  An atom is a list of operations on its channels e_c, sums of parameters times
1, inputs and their products.  Phi is exp(log_weight + value) - p* exp(log_weight) of a density p*,
exp(log_weight) (value - f*) of a function f* under a normalised gate, or exp(log_weight) value.
"""

import json
import sys
from fractions import Fraction
from math import prod
from pathlib import Path

from mpmath import bernfrac, iv

iv.dps = 90
ZERO, ONE, TINY = iv.mpf(0), iv.mpf(1), iv.mpf(10) ** -90


def number(text):
    q = Fraction(text)
    return iv.mpf(q.numerator) / q.denominator


def dot(pairs):
    """Sum of products, of which those with the constant 0 are left out."""
    total = ZERO
    for a, b in pairs:
        if a is not ZERO and b is not ZERO:
            total = a * b if total is ZERO else total + a * b
    return total


def combined(jets, f, first, second):
    """A function of jets (value, gradient, Hessian), with its derivatives in them."""
    n, count = len(jets[0][1]), range(len(jets))
    gradient = [dot((first[s], jets[s][1][i]) for s in count) for i in range(n)]
    hessian = [[ZERO] * n for _ in range(n)]
    for i in range(n):
        curved = [dot((second[s][t], jets[s][1][i]) for s in count) for t in count]
        for j in range(i + 1):
            linear = dot((first[s], jets[s][2][i][j]) for s in count)
            both = dot(zip(curved, (jets[t][1][j] for t in count), strict=True))
            hessian[i][j] = hessian[j][i] = dot([(linear, ONE), (both, ONE)])
    return f, gradient, hessian


def erfc(a):
    """The complementary error function, by a series all of whose terms have the sign of a."""
    total, term, n = ZERO, a, 0
    while n < 2 * (a * a).b or abs(term).b > TINY:
        total, n = total + term, n + 1
        term = 2 * a * a * term / (2 * n + 1)
    rest = 2 * abs(term).b * iv.mpf([-1, 1])  # each further term is less than half of the last
    return ONE - 2 / iv.sqrt(iv.pi) * iv.exp(-a * a) * (total + rest)


def log_gamma(a):
    """The logarithm of Gamma and two derivatives, by Stirling's series at a + 100.

    Its error is between 0 and the first term that is left out.
    """
    if not a > 0:
        raise ArithmeticError("Gamma of a number that may not be positive")
    z, before = a + 100, [a + i for i in range(100)]
    value = (z - 0.5) * iv.log(z) - z + iv.log(2 * iv.pi) / 2 - iv.log(prod(before))
    first = iv.log(z) - 1 / (2 * z) - sum(1 / b for b in before)
    second = 1 / z + 1 / (2 * z**2) + sum(1 / b**2 for b in before)
    for k in range(1, 42):
        p, q = bernfrac(2 * k)
        part = iv.mpf(p) / q / z ** (2 * k) * (iv.mpf([0, 1]) if k == 41 else ONE)
        value += part * z / (2 * k * (2 * k - 1))
        first, second = first - part / (2 * k), second + part / z
    return value, first, second


def slopes(name, a):
    """A function of one variable and its two derivatives."""
    if name == "exp":
        return [iv.exp(a)] * 3
    if name == "log":
        return iv.log(a), 1 / a, -1 / a**2
    if name == "sqrt":
        return iv.sqrt(a), 1 / (2 * iv.sqrt(a)), -1 / (4 * a * iv.sqrt(a))
    if name == "erfc":
        slope = -2 / iv.sqrt(iv.pi) * iv.exp(-a * a)
        return erfc(a), slope, -2 * a * slope
    if name == "lgamma":
        return log_gamma(a)
    sin, cos = iv.sin(a), iv.cos(a)
    return {"sin": (sin, cos, -sin), "cos": (cos, -sin, -cos)}[name]


def apply(name, jets):
    """One operation on jets."""
    a, b = jets[0][0], jets[-1][0]
    if name in ("add", "sub"):
        sign = 1 if name == "add" else -1
        return combined(jets, a + sign * b, [ONE, sign * ONE], [[ZERO] * 2] * 2)
    if name == "mul":
        return combined(jets, a * b, [b, a], [[ZERO, ONE], [ONE, ZERO]])
    if name == "div":
        second = [[ZERO, -1 / b**2], [-1 / b**2, 2 * a / b**3]]
        return combined(jets, a / b, [1 / b, -a / b**2], second)
    f, first, second = slopes(name, a)
    return combined(jets, f, [first], [[second]])


def constant(value, n):
    return value, [ZERO] * n, [[ZERO] * n for _ in range(n)]


def run(program, eta, x, y, constants):
    """Log-weight and value of an atom as jets in its channels."""
    leaves, done, n = {"feature": x, "response": [y], "constant": constants}, [], len(eta)
    for name, *at in program["operations"]:
        if name == "channel":
            jet = constant(eta[at[0]], n)
            jet[1][at[0]] = ONE
        elif name in leaves:
            jet = constant(leaves[name][at[0] if at else 0], n)
        else:
            jet = apply(name, [done[k] for k in at])
        done.append(jet)
    return done[program["log_weight"]], done[program["value"]]


def features(x):
    """1, the inputs and their products, those of two inputs times the root of 2."""
    pairs = [(i, j) for i in range(len(x)) for j in range(i, len(x))]
    return [ONE, *x, *(x[i] * x[j] * (1 if i == j else iv.sqrt(2)) for i, j in pairs)]


def atoms(c, x, y, runs):
    """Log-weight and value of every atom as jets in its channels; the features of the inputs."""
    pars, phi, found = c["parameters"], features(x), []
    n = 1 + max(p["channel"] for p in pars + c["masses"])
    for i, (at, constants) in enumerate(runs):
        eta = [ZERO] * n
        for p in pars + c["masses"]:
            if p["atom"] in (i, None):
                value = iv.log(number(p["value"])) if p.get("log") else number(p["value"])
                eta[p["channel"]] += value * phi[p.get("feature", 0)]
        found.append(run(c["programs"][at], eta, [ONE, *x], y, list(map(number, constants))))
    return found, phi


def active(c, found, tied=()):
    """The atoms of largest log-weight, as many as are active, besides two that are tied."""
    count = (c["active"] or len(found)) - len(tied) // 2
    order = sorted((i for i in range(len(found)) if i not in tied), key=lambda i: -found[i][0][0].a)
    on, off = order[:count], order[count:]
    pairs = [(i, k) for i in on for k in (*tied, *off)] + [(i, k) for i in tied for k in off]
    if not all(found[i][0][0] > found[k][0][0] for i, k in pairs):
        raise ArithmeticError("which atoms are active may not be decided")
    return on


def columns(c, sample):
    """The functions of the claim at a sample: masses and first derivatives, second ones."""
    y = None if sample["y"] is None else number(sample["y"])
    found, by = atoms(c, list(map(number, sample["x"])), y, sample["runs"])
    n = len(found[0][0][1])
    phi = [constant(ZERO, n) for _ in found]
    on = active(c, found)
    for i in on:
        weight, value = found[i]
        if c["function"] == "density":
            value = apply("exp", [value])
        phi[i] = apply("mul", [apply("exp", [weight]), value]), apply("exp", [weight])
    if c["function"] == "sum of atoms":
        phi = [joint for joint, _ in phi]
    else:  # relative to the density, or to the sum of weights: w (u - mean of u) in both
        total, weights = (sum(phi[i][k][0] for i in on) for k in (0, 1))
        mean = constant(total / weights, n)
        scale = constant(total if c["function"] == "density" else weights, n)
        for i in on:
            joint, weight = phi[i]
            gap = apply("sub", [joint, apply("mul", [weight, mean])])
            phi[i] = apply("div", [gap, scale])
    pars, first, second = c["parameters"], [], []
    for kind, k in c["first"]:
        if kind == "mass":
            first.append(phi[k][0])
            continue
        own = [i for i in range(len(phi)) if pars[k]["atom"] in (i, None)]
        slope = sum((phi[i][1][pars[k]["channel"]] for i in own), ZERO)
        first.append(by[pars[k]["feature"]] * slope)
    for k, m in c["second"]:
        hessian = phi[pars[k]["atom"]][2][pars[k]["channel"]][pars[m]["channel"]]
        power = by[pars[k]["feature"]] * by[pars[m]["feature"]]
        second.append(hessian * power / (2 if k == m else 1))
    return first, second


def border(c, b):
    """How a border between two sets of active atoms moves, by masses and parameters.

    The two log-weights cross between two inputs, and the densities on both sides differ there.
    """
    out, into = b["atoms"]
    low, high = (number(v) for v in b["between"])
    y = None if b["y"] is None else number(b["y"])
    gaps = []
    for x in (low, high, iv.mpf([low.a, high.b])):
        found, by = atoms(c, [x], y, b["runs"])
        gaps.append(found[out][0][0] - found[into][0][0])
    if not gaps[0] * gaps[1] < 0:
        raise ArithmeticError("the log-weights may not cross")
    on, sides = active(c, found, (out, into)), []
    for own in ([*on, out], [*on, into]):
        weights = [iv.exp(found[i][0][0]) for i in own]
        values = [
            iv.exp(found[i][1][0]) if c["function"] == "density" else found[i][1][0] for i in own
        ]
        sides.append(dot(zip(weights, values, strict=True)) / sum(weights))
    if 0 in sides[0] - sides[1]:
        raise ArithmeticError("the densities beside the border may be equal")
    row = []
    for kind, k in c["first"]:
        p = c["parameters"][k] if kind == "d" else next(m for m in c["masses"] if m["atom"] == k)
        slope = sum(
            sign * found[i][0][1][p["channel"]]
            for i, sign in ((out, ONE), (into, -ONE))
            if p["atom"] in (i, None)
        )
        row.append(by[p.get("feature", 0)] * slope)
    return row


def eliminate(rows):
    """Rows of [M | b] to the solution; an error where a pivot may be 0."""
    n = len(rows)
    for j in range(n):
        best = max(range(j, n), key=lambda i: abs(rows[i][j].mid))
        rows[j], rows[best] = rows[best], rows[j]
        if 0 in rows[j][j]:
            raise ArithmeticError("a pivot may be 0")
        rows[j] = [v / rows[j][j] for v in rows[j]]
        for i in range(n):
            if i != j:
                rows[i] = [v - rows[i][j] * w for v, w in zip(rows[i], rows[j], strict=True)]
    return [row[n:] for row in rows]


def check(c):
    """Raise an error unless the claim holds."""
    rows = [columns(c, sample) for sample in c["samples"]]
    rows += [(border(c, each), []) for each in c["borders"]]
    n, q = c["base"], len(c["first"])
    if n != q:
        raise ArithmeticError("as many samples as first derivatives are needed")
    if c["claim"] == "independent":
        eliminate([list(first) for first, _ in rows])
        return
    free = list(map(number, c["weights"]))
    right = [-sum(w * rows[n + i][0][k] for i, w in enumerate(free)) for k in range(q)]
    system = [[*(rows[i][0][k] for i in range(n)), right[k]] for k in range(q)]
    weights = [solution[0] for solution in eliminate(system)] + free
    names = sorted({k for pair in c["second"] for k in pair})
    S = [[ZERO] * len(names) for _ in names]
    for at, (k, m) in enumerate(c["second"]):
        i, j = names.index(k), names.index(m)
        value = sum(w * row[1][at] for w, row in zip(weights, rows, strict=True))
        S[i][j] = S[j][i] = value / (1 if k == m else 2)
    for j in range(len(S)):  # all pivots of the elimination are above 0
        if not S[j][j] > 0:
            raise ArithmeticError("the matrix may not be positive definite")
        for i in range(j + 1, len(S)):
            S[i] = [v - S[i][j] / S[j][j] * w for v, w in zip(S[i], S[j], strict=True)]


if __name__ == "__main__":
    for path in sys.argv[1:]:
        certificate = json.loads(Path(path).read_text(encoding="utf-8"))
        check(certificate)
        print(path, "holds:", certificate["says"])
