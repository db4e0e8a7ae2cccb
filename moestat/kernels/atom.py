"""The atom: log-score and log-density of one expert, with derivatives in its channels.

Channels are ordered gate, expert, likelihood.  The gate reads the first ones and the likelihood
the last ones; a competing gate also reads the expert's, so the two ranges may overlap.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from moestat.compiler.jit import device
from moestat.kernels.views import part, row

Layout = tuple[int, int, int, int]
"""Channels that the gate reads, position of the expert's first one, their number, active atoms."""

WORK_ROWS: dict[Callable[..., None], int] = {}
"""Likelihoods that take an array of so many scratch rows as their last argument."""

VARYING: dict[Callable[..., None], Callable[..., None]] = {}
"""Blocks of likelihoods without terms that no predictor enters, such as ``log y!``: an integral
over predictors visits each row many times, and these terms may cost more than all others."""


@device
def chain(p1, p2, e1, e2, before, n_mean, m, order, d1, d2):
    """Derivatives in the channels from those in predictors, one of which is a function.

    The predictors are `before` channels, the mean, and further channels; the mean is a function
    of `n_mean` channels with derivatives e1 (n_mean, m) and e2.
    """
    n_channels = p1.shape[0] + n_mean - 1
    for c in range(n_channels):
        p = c if c < before else (before if c < before + n_mean else c - n_mean + 1)
        for b in range(m):
            d1[c, b] = p1[p, b]
        if before <= c < before + n_mean:
            for b in range(m):
                d1[c, b] *= e1[c - before, b]
    if order < 2:
        return
    for c in range(n_channels):
        p = c if c < before else (before if c < before + n_mean else c - n_mean + 1)
        c_in_mean = before <= c < before + n_mean
        for f in range(c + 1):
            q = f if f < before else (before if f < before + n_mean else f - n_mean + 1)
            f_in_mean = before <= f < before + n_mean
            row = c * (c + 1) // 2 + f
            second = p * (p + 1) // 2 + q
            for b in range(m):
                d2[row, b] = p2[second, b]
            if c_in_mean:
                for b in range(m):
                    d2[row, b] *= e1[c - before, b]
            if f_in_mean:
                for b in range(m):
                    d2[row, b] *= e1[f - before, b]
            if c_in_mean and f_in_mean:
                u = c - before
                curvature = u * (u + 1) // 2 + f - before
                for b in range(m):
                    d2[row, b] += p1[before, b] * e2[curvature, b]


@device
def linear_work(n_channels, n_mean):
    """Scratch rows of an atom whose channels are its predictors."""
    return 0


@device
def function_work(n_channels, n_mean):
    """Scratch rows of an atom with a mean that is a function of `n_mean` channels."""
    n_predictors = n_channels - n_mean + 1
    pairs = n_predictors * (n_predictors + 1) // 2
    return n_mean + n_mean * (n_mean + 1) // 2 + 4 * n_predictors + 2 * pairs


@cache
def build_atom(
    gate: Callable[..., None],
    expert: Callable[..., None] | None,
    likelihood: Callable[..., None],
    reads_response: bool,
) -> tuple[Callable[..., None], Callable[..., int]]:
    """The block function of an atom and the number of scratch rows that it needs.

    They are ``block(eta, layout, phi, y, m, order, work, a, da, d2a, density, dl, d2l)``, log-score
    a with derivatives in the gate's channels and log-density with derivatives in the others, and
    ``n_work(n_channels, n_mean)``, the rows of `work`: a likelihood may have `WORK_ROWS` of its
    own.
    """
    rows = WORK_ROWS.get(likelihood, 0)
    if expert is None and rows:

        @device
        def working(eta, layout, phi, y, m, order, work, a, da, d2a, density, dl, d2l):
            gate(part(eta, 0, layout[0]), phi, m, order, a, da, d2a)
            likelihood(part(eta, layout[1], eta.shape[0]), y, m, order, density, dl, d2l, work)

        @device
        def own_work(n_channels, n_mean):
            return rows

        return working, own_work

    if expert is None:

        @device
        def linear(eta, layout, phi, y, m, order, work, a, da, d2a, density, dl, d2l):
            gate(part(eta, 0, layout[0]), phi, m, order, a, da, d2a)
            likelihood(part(eta, layout[1], eta.shape[0]), y, m, order, density, dl, d2l)

        return linear, linear_work

    @device
    def function(eta, layout, phi, y, m, order, work, a, da, d2a, density, dl, d2l):
        n_gate, first, n_mean, _ = layout
        last = first + n_mean
        n_like = eta.shape[0] - last + 1
        n_own = first if reads_response else n_gate
        e1 = part(work, 0, n_mean)
        at = n_mean + n_mean * (n_mean + 1) // 2
        e2 = part(work, n_mean, at)
        # The gate's predictors end with the mean, the likelihood's begin with it.
        predictors = part(work, at, at + n_own + n_like)
        at += n_own + n_like
        p1 = part(work, at, at + n_like)
        at += n_like
        p2 = part(work, at, at + n_like * (n_like + 1) // 2)
        at += n_like * (n_like + 1) // 2
        expert(part(eta, first, last), m, order, row(predictors, n_own), e1, e2)
        for c in range(n_own):
            for b in range(m):
                predictors[c, b] = eta[c, b]
        for c in range(1, n_like):
            for b in range(m):
                predictors[n_own + c, b] = eta[last + c - 1, b]
        likelihood(part(predictors, n_own, n_own + n_like), y, m, order, density, p1, p2)
        if order > 0:
            chain(p1, p2, e1, e2, 0, n_mean, m, order, dl, d2l)
        if reads_response:
            g1 = part(work, at, at + n_own + 1)
            at += n_own + 1
            g2 = part(work, at, at + (n_own + 1) * (n_own + 2) // 2)
            gate(part(predictors, 0, n_own + 1), phi, m, order, a, g1, g2)
            if order > 0:
                chain(g1, g2, e1, e2, n_own, n_mean, m, order, da, d2a)
        else:
            gate(part(eta, 0, n_gate), phi, m, order, a, da, d2a)

    return function, function_work
