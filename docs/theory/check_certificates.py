"""Check certificates of rates in interval arithmetic: ``python check_certificates.py FILE ...``.

Needs mpmath alone.  An atom is a list of operations on its channels e_c = sum of parameters times
powers of x; Phi = exp(log_weight + value) - p* exp(log_weight), or exp(log_weight) value.
"""

import json
import sys
from fractions import Fraction

from mpmath import iv

iv.dps = 90


def number(text):
    q = Fraction(text)
    return iv.mpf(q.numerator) / q.denominator


def through(f, f1, f2, a):  # a function of a jet (value, gradient, Hessian)
    _, g, H = a
    n = range(len(g))
    return f, [f1 * v for v in g], [[f2 * g[i] * g[j] + f1 * H[i][j] for j in n] for i in n]


def times(a, b):
    n = range(len(a[1]))
    first = [a[0] * b[1][i] + a[1][i] * b[0] for i in n]
    cross = lambda i, j: a[1][i] * b[1][j] + a[1][j] * b[1][i]
    second = [[a[0] * b[2][i][j] + a[2][i][j] * b[0] + cross(i, j) for j in n] for i in n]
    return a[0] * b[0], first, second


def plus(a, b, s=1):
    n = range(len(a[1]))
    return a[0] + s * b[0], [a[1][i] + s * b[1][i] for i in n], [[a[2][i][j] + s * b[2][i][j] for j in n] for i in n]


def run(program, eta, x, y, constants):
    n, done = range(len(eta)), []
    flat = lambda v: (v, [iv.mpf(0) for _ in n], [[iv.mpf(0) for _ in n] for _ in n])
    for name, *at in program["operations"]:
        a = done[at[0]] if name not in ("channel", "feature", "response", "constant") else None
        if name == "channel":
            jet = flat(eta[at[0]])
            jet[1][at[0]] = iv.mpf(1)
        elif a is None:
            jet = flat({"feature": lambda: x[at[0]], "response": lambda: y, "constant": lambda: constants[at[0]]}[name]())
        elif name in ("add", "sub"):
            jet = plus(a, done[at[1]], 1 if name == "add" else -1)
        elif name in ("mul", "div"):
            b = done[at[1]]
            jet = times(a, b if name == "mul" else through(1 / b[0], -1 / b[0] ** 2, 2 / b[0] ** 3, b))
        else:
            v = a[0]
            root = iv.sqrt(v) if name == "sqrt" else None
            f = {"exp": lambda: [iv.exp(v)] * 3, "log": lambda: (iv.log(v), 1 / v, -1 / v**2),
                 "sqrt": lambda: (root, 1 / (2 * root), -1 / (4 * v * root))}[name]()
            jet = through(*f, a)
        done.append(jet)
    return done[program["log_weight"]], done[program["value"]]


def columns(c, sample):  # the functions of the claim at a sample
    x = [iv.mpf(1), *map(number, sample["x"])]
    y = None if sample["y"] is None else number(sample["y"])
    pars, atoms = c["parameters"], range(c["n_atoms"])
    n = 1 + max(p["channel"] for p in pars + c["masses"])
    jets = []
    for i in atoms:
        eta = [iv.mpf(0) for _ in range(n)]
        for p in pars + c["masses"]:
            if p["atom"] in (i, None):
                value = number(p["value"])
                eta[p["channel"]] += (iv.log(value) if p.get("log") else value) * x[1] ** p.get("power", 0)
        at, constants = sample["runs"][i]
        jets.append(run(c["programs"][at], eta, x, y, list(map(number, constants))))
    exp = lambda a: through(*[iv.exp(a[0])] * 3, a)
    weights = [exp(w) for w, _ in jets]
    joints = [times(e, v) if c["regression"] else exp(plus(w, v)) for e, (w, v) in zip(weights, jets)]
    total = sum(j[0] for j in joints)
    p = total / sum(w[0] for w in weights)
    phi = joints if c["regression"] else [plus(j, times(w, (p, [0] * n, [[0] * n] * n)), -1) for j, w in zip(joints, weights)]
    if not c["regression"]:  # relative to the density
        phi = [(a / total, [v / total for v in g], [[v / total for v in r] for r in H]) for a, g, H in phi]
    power = lambda k: x[1] ** pars[k]["power"]
    first = [
        phi[k][0] if kind == "mass"
        else power(k) * sum(phi[i][1][pars[k]["channel"]] for i in atoms if pars[k]["atom"] in (i, None))
        for kind, k in c["first"]
    ]
    second = [
        phi[pars[k]["atom"]][2][pars[k]["channel"]][pars[l]["channel"]] * power(k) * power(l) / (2 if k == l else 1)
        for k, l in c["second"]
    ]
    return first, second


def eliminate(A):  # rows of [M | b] to [I | solution]; an error if a pivot may be 0
    n = len(A)
    for j in range(n):
        best = max(range(j, n), key=lambda i: abs(A[i][j].mid))
        A[j], A[best] = A[best], A[j]
        if 0 in A[j][j]:
            raise ArithmeticError("a pivot may be 0")
        A[j] = [v / A[j][j] for v in A[j]]
        for i in range(n):
            if i != j:
                A[i] = [v - A[i][j] * w for v, w in zip(A[i], A[j])]
    return [row[n:] for row in A]


def check(c):
    rows = [columns(c, sample) for sample in c["samples"]]
    n, q = c["base"], len(c["first"])
    assert n == q, "as many samples as first derivatives"
    if c["claim"] == "independent":
        eliminate([list(first) for first, _ in rows])
        return
    free = list(map(number, c["weights"]))
    right = [-sum(w * rows[n + i][0][k] for i, w in enumerate(free)) for k in range(q)]
    weights = [v[0] for v in eliminate([[rows[i][0][k] for i in range(n)] + [right[k]] for k in range(q)])] + free
    names = sorted({k for pair in c["second"] for k in pair})
    S = [[iv.mpf(0) for _ in names] for _ in names]
    for at, (k, l) in enumerate(c["second"]):
        i, j = names.index(k), names.index(l)
        value = sum(w * row[1][at] for w, row in zip(weights, rows)) / (1 if k == l else 2)
        S[i][j] = S[j][i] = value
    for j in range(len(S)):  # positive definite: all pivots of the elimination are above 0
        assert S[j][j] > 0, "the matrix is not positive definite"
        for i in range(j + 1, len(S)):
            S[i] = [v - S[i][j] / S[j][j] * w for v, w in zip(S[i], S[j])]


if __name__ == "__main__":
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            certificate = json.load(file)
        check(certificate)
        print(path, "holds:", certificate["says"])
