"""Loops over the data on the CPU, around the row programmes of one kind of atom.

The numbers of atoms, inputs and classes are run-time values: the inner loops run over samples,
so one compiled loop serves them all at full speed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import types

from moestat.compiler.jit import BLOCK, compile_code, compile_loop
from moestat.compiler.math import log
from moestat.compiler.pointers import call_by_address
from moestat.kernels.rows import (
    expect,
    fill,
    fill_products,
    join_moments,
    join_shared,
    join_slopes,
    load,
    load_records,
    padded,
    pairs,
    predict_channel,
    scale_rows,
    scatter_hessian,
    scatter_score,
    select_top,
    take_shares,
    within_atoms,
)
from moestat.kernels.terms import ONES, ZEROS, first_rows
from moestat.kernels.tiles import LANES, PRODUCTS, multiply, sum_products
from moestat.kernels.views import empty_rows, keep, part, row, rows_at, start_of

SAMPLES = 96
"""Samples per block at most, a multiple of 32.

With fewer than elsewhere the rows of second derivatives stay in the first cache level, too.
"""


def atom_loop(
    atom: Callable[..., None], n_work: Callable[..., int], records: Callable[..., Any]
) -> Callable[..., None]:
    """One atom at a block of samples, called by `mixture`: ``loop(*arguments)`` of `_call_atom`.

    The working rows are at the given addresses, and `records` gives the responses their kind
    (`moestat.kernels.views.records_at`).  From row ``ONES + n_phi`` on they have the atom's
    channels, and from each of the `outputs` on they get log-score a with its derivatives,
    log-density l with its derivatives.
    """

    @compile_code
    def loop(places, layout, n_channels, n_phi, size, order, outputs):
        at_response, at_rows, at_work = places
        n_gate, first, n_mean, _ = layout
        a, da, d2a, density, du, d2l = outputs
        n_like = n_channels - first
        # Of this length the compiler knows that full vectors divide it.
        m = size >> 5 << 5
        atom(
            rows_at(at_rows, ONES + n_phi, n_channels, SAMPLES),
            layout,
            rows_at(at_rows, ONES, n_phi, SAMPLES),
            records(at_response, m),
            m,
            order,
            rows_at(at_work, 0, n_work(n_channels, n_mean), SAMPLES),
            row(rows_at(at_rows, a, 1, SAMPLES), 0),
            rows_at(at_rows, da, n_gate, SAMPLES),
            rows_at(at_rows, d2a, pairs(n_gate), SAMPLES),
            row(rows_at(at_rows, density, 1, SAMPLES), 0),
            rows_at(at_rows, du, n_like, SAMPLES),
            rows_at(at_rows, d2l, pairs(n_like), SAMPLES),
        )

    return loop


_call_atom = call_by_address(types.none)

NO_ATOM = (0, 0, 0), (0, 0, 0, 0), 0, 0, 0, 0, (0, 0, 0, 0, 0, 0)
"""Arguments of an `atom_loop`, for their kinds."""


@compile_loop
def mixture(inputs, theta, order, sums):
    """A log-likelihood with score and Hessian, or the E-step, in one pass over the data.

    One loop does it all for every kind of atom, because compiling is what a first fit waits for: it
    calls an `atom_loop` by its address, once per block and atom.  Arguments are a `Pass`, theta
    (P,), the order of what is wanted, and the outputs `Sums`, which are overwritten, as are those
    by sample.

    Without columns in tau the value is the observed-data log-likelihood ``sum w log p``.  With
    given responsibilities tau it is the complete-data one,
    ``Q = sum w (sum_i tau_i (a_i + l_i) - LSE(a))``, whose maximiser is the M-step of EM.  The loop
    returns the value and fills score (P,) and hessian (P, P) up to the order, 1 or 2, and from
    order 3 on information (P, P), the sum of the outer products of the scores.

    With rows in log_density (n,), the loop fills it, prior (k, n) and posterior (k, n), and neither
    reads the weights nor returns a value.
    """
    code, coefficients, data, by_sample, terms = inputs
    at_atom, n_work = code
    index, width, layout = coefficients
    X, y, weight, tau = data
    score, hessian, information = sums
    prior, posterior, log_density = by_sample
    score_terms, within, squares, weighted, between, outer = terms
    k, n_channels = index.shape
    d, n = X.shape
    n_gate, first, _, n_active = layout
    n_like = n_channels - first
    complete = tau.shape[1] > 0
    # Only the atoms of largest log-score take part; gate and likelihood read common channels.
    sparse, shared = n_active < k, first < n_gate
    is_by_sample = log_density.size > 0
    g2 = n_gate * (n_gate + 1) // 2
    e2 = n_like * (n_like + 1) // 2
    n_products = (1 + d) * (2 + d) // 2
    # The loop of the atom alone knows what kind of numbers a response is made of.
    n_words = y.size // n if n > 0 else 1
    response = empty_rows(1, n_words * SAMPLES)
    # The fewer working rows there are the more samples fit into the first cache level: rows
    # that are not needed at the same time are the same.
    at_spread, at_excess, at_tau, at_pi, at_da, at_du, at_d2a, at_d2l, n_rows = first_rows(
        k, n_gate, n_channels, n_like, 1 + d
    )
    rows = empty_rows(n_rows, SAMPLES)
    work = empty_rows(n_work, SAMPLES)
    at_response = start_of(response)
    at_rows = start_of(rows)
    at_work = start_of(work)
    phi = part(rows, ONES, at_spread)
    eta = part(rows, at_spread, at_spread + n_channels)
    excess, share = part(rows, at_excess, at_excess + k), part(rows, at_tau, at_pi)
    pi = part(rows, at_pi, at_da)
    da, du = part(rows, at_da, at_du), part(rows, at_du, at_d2a)
    d2a, d2l = part(rows, at_d2a, at_d2l), part(rows, at_d2l, n_rows)
    scratch = empty_rows(1 + max(4, padded(n_products)), SAMPLES)
    w = row(scratch, 0)
    psi = part(scratch, 1, scratch.shape[0])
    top = row(psi, 0)
    total = row(psi, 1)
    top_prior = row(psi, 2)
    total_prior = row(psi, 3)
    steps = padded(n_products) // PRODUCTS
    score_sums = empty_rows(score_terms.shape[0] * steps, PRODUCTS * LANES)
    within_sums = empty_rows(within.shape[0] * steps, PRODUCTS * LANES)
    square_sums = empty_rows(squares.shape[0] * steps, PRODUCTS * LANES)
    between_sums = empty_rows(between.shape[0] * steps, PRODUCTS * LANES)
    outer_sums = empty_rows(outer.shape[0] * steps, PRODUCTS * LANES)
    slopes = empty_rows(k * n_channels if order > 2 else 0, SAMPLES)
    value = 0.0
    fill(0.0, part(rows, ZEROS, ZEROS + 1))
    fill(1.0, part(rows, ONES, ONES + 1))
    # Rows that fill up a group of three must not be subnormal numbers: those cost time.
    fill(0.0, scratch)
    fill(0.0, score_sums)
    fill(0.0, within_sums)
    fill(0.0, square_sums)
    fill(0.0, between_sums)
    fill(0.0, outer_sums)
    # Blocks of one length, of which the compiler knows that full vectors divide it; samples of
    # weight 0 fill up the last one.  No samples are no blocks, of any length.
    n_blocks = (n + SAMPLES - 1) // SAMPLES
    size = (n + n_blocks - 1) // n_blocks + 31 >> 5 << 5 if n > 0 else SAMPLES
    for start in range(0, n, size):
        m = n - start if n - start < size else size
        for f in range(d):
            load(part(row(X, f), start, start + m), m, size, row(phi, 1 + f))
        records = part(y, n_words * start, n_words * (start + m))
        load_records(records, n_words, m, size, row(response, 0))
        for i in range(k):
            for c in range(n_channels):
                predict_channel(theta, index[i, c], width[c], phi, size, row(eta, c))
            outputs = (
                at_pi + i,
                at_da + i * n_gate,
                at_d2a + i * g2,
                at_tau + i,
                at_du + i * n_channels + first,
                at_d2l + i * e2,
            )
            places = at_response, at_rows, at_work
            _call_atom(at_atom, (places, layout, n_channels, 1 + d, size, order, outputs))
        if sparse:
            select_top(pi, n_active, size)
        for i in range(k):
            for b in range(size):
                share[i, b] += pi[i, b]

        # log p = top - top_prior + log(total / total_prior): one logarithm and one division
        # for the two log-sum-exps and the inverses of their sums.
        if complete:
            fill(0.0, part(psi, 0, 1))
            fill(1.0, part(psi, 1, 2))
            expect(share, tau, start, sparse, m, top, total)
            for i in range(k):
                for b in range(m, size):
                    share[i, b] = 0.0
        else:
            take_shares(share, size, top, total)
        take_shares(pi, size, top_prior, total_prior)
        for b in range(size):
            inverse = 1.0 / (total[b] * total_prior[b])
            ratio = total[b] * (total[b] * inverse)
            top[b] += log(ratio) - top_prior[b]
            # Now the inverses.
            total[b], total_prior[b] = total_prior[b] * inverse, total[b] * inverse
        scale_rows(pi, size, total_prior)
        if not complete:
            scale_rows(share, size, total)
        if is_by_sample:
            for b in range(m):
                log_density[start + b] = top[b]
            for i in range(k):
                for b in range(m):
                    prior[i, start + b] = pi[i, b]
                for b in range(m):
                    posterior[i, start + b] = share[i, b]
            continue
        load(part(weight, start, start + m), m, size, w)
        for b in range(m, size):
            w[b] = 0.0
        block_value = 0.0
        for b in range(size):
            block_value += w[b] * top[b]
        value += block_value
        if order == 0:
            continue

        fill_products(phi, w, 1 + d if order > 1 else 1, size, psi)
        for i in range(k):
            for b in range(size):
                excess[i, b] = share[i, b] - pi[i, b]
        sum_products(rows, score_terms, psi, size, score_sums, 0)
        if order == 1:
            continue
        if order > 2:
            for i in range(k):
                join_slopes(
                    row(share, i),
                    row(excess, i),
                    part(da, i * n_gate, (i + 1) * n_gate),
                    part(du, i * n_channels, (i + 1) * n_channels),
                    first,
                    size,
                    part(slopes, i * n_channels, (i + 1) * n_channels),
                )
            sum_products(slopes, outer, psi, size, outer_sums, 0)

        # With du = d(a + l), the curvature in the channels of two atoms is
        # pi da pi' da' - tau du tau' du', and in those of one atom
        # tau d2(a + l) - pi d2 a + tau (1 - tau) du du' - pi (1 - pi) da da'.
        # Given responsibilities do not vary: terms in tau tau' are theirs to leave out.
        if shared:
            for i in range(k):
                join_shared(
                    row(share, i),
                    row(pi, i),
                    row(excess, i),
                    part(da, i * n_gate, (i + 1) * n_gate),
                    part(d2a, i * g2, (i + 1) * g2),
                    first,
                    size,
                    part(du, i * n_channels, (i + 1) * n_channels),
                    part(d2l, i * e2, (i + 1) * e2),
                )
        within_atoms(rows, at_spread, at_tau, at_pi, k, complete, within, psi, size, within_sums)
        sum_products(rows, squares, psi, size, square_sums, 0)
        for r in range(weighted.shape[0]):
            multiply(rows, weighted[r, 0], weighted[r, 1], weighted[r, 2], size)
        sum_products(rows, between, psi, size, between_sums, 0)

    if order > 0:
        gradient = empty_rows(k * n_channels, 1 + d)
        fill(0.0, gradient)
        join_moments(score_terms, score_sums, gradient)
        scatter_score(gradient, index, width, score)
    if order > 1:
        moments = empty_rows(pairs(k * n_channels), n_products)
        fill(0.0, moments)
        join_moments(within, within_sums, moments)
        join_moments(squares, square_sums, moments)
        join_moments(between, between_sums, moments)
        scatter_hessian(moments, index, width, 1 + d, hessian)
    if order > 2:
        products = empty_rows(pairs(k * n_channels), n_products)
        fill(0.0, products)
        join_moments(outer, outer_sums, products)
        scatter_hessian(products, index, width, 1 + d, information)
    keep(scratch)
    keep(response)
    keep(work)
    return value


def response_loop(expert: Callable[..., None]) -> Callable[..., None]:
    """Mean of an expert that is not linear.

    It is ``loop(eta, mean)`` with the expert's channels eta (C, n) and the output mean (n,).
    """

    @compile_loop
    def loop(eta, mean):
        n_channels, n = eta.shape
        d1 = empty_rows(n_channels, BLOCK)
        d2 = empty_rows(pairs(n_channels), BLOCK)
        for start in range(0, n, BLOCK):
            m = n - start if n - start < BLOCK else BLOCK
            expert(eta[:, start : start + m], m, 0, part(mean, start, start + m), d1, d2)

    return loop
