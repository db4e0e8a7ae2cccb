"""The layers in plain NumPy, row by row, from the formulas; complex numbers for derivatives.

A derivative is the imaginary part of the function at z + i h with h = 1e-30: no cancellation, so
that it is exact to rounding.  Choices are made by real parts.
"""

from __future__ import annotations

import numpy as np

STEP = 1e-30


def softmax(z):
    e = np.exp(z - z.real.max())
    return e / e.sum()


def softplus(z):
    return np.log(1 + np.exp(z))


def norm(z):
    return np.sqrt((z * z).sum())


def floor(z):
    return z if z.real > 0 else 0 * z


def top(s, k):
    return np.argsort(-s.real, kind="stable")[:k]


def top_softmax(s, k):
    out = np.zeros_like(s)
    chosen = top(s, k)
    out[chosen] = softmax(s[chosen])
    return out


def mlp(weights, i, x):
    return np.tanh(x @ weights["inner"][i]) @ weights["outer"][i]


def gated(weights, i, x):
    z = x @ weights["inner"][i]
    return (z / (1 + np.exp(-z)) * (x @ weights["gate"][i])) @ weights["outer"][i]


RESPONSES = {
    "softplus": lambda outs: np.array([softplus(o).mean() for o in outs]),
    "norm": lambda outs: np.array([norm(o) for o in outs]),
    "silu": lambda outs: np.array([floor((o / (1 + np.exp(-o))).mean()) for o in outs]),
    "sigmoid": lambda outs: np.array([(1 / (1 + np.exp(-o))).mean() for o in outs]),
    "relu": lambda outs: np.array([np.where(o.real > 0, o, 0).mean() for o in outs]),
    "softmax": lambda outs: np.apply_along_axis(softmax, 0, outs).mean(axis=1),
}


def scores(weights, router, x):
    if router == "cosine":
        place = x @ weights["projection"]
        place = place / norm(place)
        units = [column / norm(column) for column in weights["directions"].T]
        return np.array([place @ unit for unit in units]) / np.exp(weights["log_temperature"])
    return x @ weights["router"]


def balance(all_scores, all_chosen):
    N = all_scores.shape[1]
    shares = np.bincount(np.ravel(all_chosen), minlength=N) / np.size(all_chosen)
    return N * sum(shares[i] * np.mean([softmax(s)[i] for s in all_scores]) for i in range(N))


def z_loss(all_scores):
    return np.mean([np.log(np.exp(s).sum()) ** 2 for s in all_scores])


def regularisation(all_scores, K, settings):
    chosen = [top(s, K) for s in all_scores]
    return settings.get("balance", 0) * balance(all_scores, chosen) + settings.get("z", 0) * z_loss(
        all_scores
    )


def smoe(weights, X, K, settings, expert=mlp, router="softmax"):
    """Outputs and auxiliary loss of the plain layer."""
    S = np.array([scores(weights, router, x) for x in X])
    Y = [
        sum(w * expert(weights, i, x) for i, w in enumerate(top_softmax(s, K)) if w != 0)
        for x, s in zip(X, S, strict=True)
    ]
    return np.array(Y), regularisation(S, K, settings)


def compete(weights, X, K, settings, expert=mlp, response="softplus", frozen=None):
    """Outputs and auxiliary loss of a competing step; `frozen` are the targets s_C of (1)."""
    N = weights["router"].shape[1]
    S, Y, distilled, diverse, targets = [], [], [], [], []
    for t, x in enumerate(X):
        outs = np.array([expert(weights, i, x) for i in range(N)])
        s = RESPONSES[response](outs)
        won = top(s, K)
        s_C = np.zeros_like(s)
        s_C[won] = s[won] / s[won].sum()
        Y.append(s_C @ outs)
        targets.append(s_C)
        target = s_C if frozen is None else frozen[t]
        S.append(scores(weights, "softmax", x))
        s_R = softmax(S[-1])
        distilled.append(
            np.mean((s_R - target) ** 2)
            + settings["alpha"] / K * sum((target[j] - s_R[j]) ** 2 for j in won)
        )
        U = [outs[j] / norm(outs[j]) for j in won]
        pairs = [U[i] @ U[j] for i in range(K) for j in range(K) if i != j]
        diverse.append(np.mean(pairs) if pairs else 0)
    extra = settings["gamma"] * np.mean(distilled) + settings["beta"] * np.mean(diverse)
    return np.array(Y), regularisation(np.array(S), K, settings) + extra, np.array(targets)


def router_loss(weights, X, K, expert=mlp):
    """Equation (3) of compete-v1, averaged over rows."""
    N = weights["router"].shape[1]
    total = 0
    for x in X:
        s_C = np.array([norm(expert(weights, i, x)) for i in range(N)])
        s_R = x @ weights["router"]
        total = total + np.mean((top_softmax(s_R, K) - top_softmax(s_C, K)) ** 2)
    return total / len(X)


def gradient(function, weights, name):
    """Derivatives of a real function of the weights with respect to one of its blocks."""
    block = weights[name].astype(complex)
    out = np.zeros(block.shape)
    for index in np.ndindex(block.shape):
        moved = block.copy()
        moved[index] += 1j * STEP
        out[index] = function({**weights, name: moved}).imag / STEP
    return out
