"""Check certificates of rates in interval arithmetic: ``python check_certificates.py FILE ...``.

Needs mpmath alone.  An atom is a list of operations on its channels e_c, sums of parameters times
powers of x; Phi = exp(log_weight + value) - p* exp(log_weight), or exp(log_weight) value.
"""

import json
import sys
from fractions import Fraction
from pathlib import Path

from mpmath import iv

iv.dps = 90
ZERO, ONE = iv.mpf(0), iv.mpf(1)


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
    if name == "exp":
        return combined(jets, iv.exp(a), [iv.exp(a)], [[iv.exp(a)]])
    if name == "log":
        return combined(jets, iv.log(a), [1 / a], [[-1 / a**2]])
    root = iv.sqrt(a)
    return combined(jets, root, [1 / (2 * root)], [[-1 / (4 * a * root)]])


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


def columns(c, sample):
    """The functions of the claim at a sample: masses and first derivatives, second ones."""
    x = [ONE, *map(number, sample["x"])]
    y = None if sample["y"] is None else number(sample["y"])
    pars, atoms = c["parameters"], range(c["n_atoms"])
    n = 1 + max(p["channel"] for p in pars + c["masses"])
    phi = []
    for i in atoms:
        eta = [ZERO] * n
        for p in pars + c["masses"]:
            if p["atom"] in (i, None):
                value = iv.log(number(p["value"])) if p.get("log") else number(p["value"])
                eta[p["channel"]] += value * x[1] ** p.get("power", 0)
        at, constants = sample["runs"][i]
        weight, value = run(c["programs"][at], eta, x, y, list(map(number, constants)))
        joint = apply("mul", [apply("exp", [weight]), value])
        if not c["regression"]:
            joint = apply("exp", [apply("add", [weight, value])])
        phi.append((joint, apply("exp", [weight])))
    if c["regression"]:
        phi = [joint for joint, _ in phi]
    else:  # relative to the density
        total, weights = (constant(sum(each[k][0] for each in phi), n) for k in (0, 1))
        parts = [[apply("div", [u, total]), apply("div", [w, weights])] for u, w in phi]
        phi = [apply("sub", part) for part in parts]
    power = [x[1] ** p["power"] for p in pars]
    first = []
    for kind, k in c["first"]:
        own = [i for i in atoms if kind == "d" and pars[k]["atom"] in (i, None)]
        part = sum(phi[i][1][pars[k]["channel"]] for i in own)
        first.append(phi[k][0] if kind == "mass" else power[k] * part)
    second = []
    for k, m in c["second"]:
        hessian = phi[pars[k]["atom"]][2][pars[k]["channel"]][pars[m]["channel"]]
        second.append(hessian * power[k] * power[m] / (2 if k == m else 1))
    return first, second


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
