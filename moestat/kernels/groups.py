"""Rows of one atom: its log-score and log-density with all derivatives in its channels.

The loops over mixtures add up over rows; where an expert is chosen once for several of them, rows
of a group are added up first.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from moestat.compiler.jit import BLOCK, compile_loop
from moestat.kernels.atom import build_atom


@cache
def atom_loop(
    gate: Callable[..., None],
    expert: Callable[..., None] | None,
    likelihood: Callable[..., None],
    reads_response: bool,
) -> Any:
    """The loop of one kind of atom, compiled on first use.

    Parameters
    ----------
    gate, expert, likelihood, reads_response
        As of `moestat.kernels.build.build_loops`.

    Returns
    -------
    callable
        ``loop(eta, layout, phi, y, order, a, da, d2a, density, dl, d2l)`` with the channels eta
        (C, n), the `Layout`, the features phi (1 + d, n) and the encoded responses y (n,).
        Outputs: log-score a (n,) with its derivatives in the gate's channels (c, n) and by their
        pairs (c (c + 1) / 2, n), and the log-density with those in the others.
    """
    forward, n_work = build_atom(gate, expert, likelihood, reads_response)

    @compile_loop
    def loop(eta, layout, phi, y, order, a, da, d2a, density, dl, d2l):
        n = eta.shape[1]
        work = np.empty((n_work(eta.shape[0], layout[2]), BLOCK))
        for start in range(0, n, BLOCK):
            m = min(BLOCK, n - start)
            own = slice(start, start + m)
            forward(
                eta[:, own],
                layout,
                phi[:, own],
                y[own],
                m,
                order,
                work,
                a[own],
                da[:, own],
                d2a[:, own],
                density[own],
                dl[:, own],
                d2l[:, own],
            )

    return loop
