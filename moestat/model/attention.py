"""Self-attention, and each of its rows as a mixture of experts with quadratic scores.

With tokens ``x_1, ..., x_N`` in R^d side by side, ``x = (x_1, ..., x_N)`` in R^(N d), row i is

    sum_j w(x' M_ij x + bias) P_j' x,   M_ij = E_i B E_j',   P_j = E_j W_V,   x E_i = x_i,

with ``B = W_Q W_K' / sqrt(d_k)``: N atoms with a quadratic score and a linear expert, which share
B and W_V.  The weight w is the sigmoid function, or softmax over j.  Of ``M_ij`` the score sees
the symmetric part only.

Source: Yan et al. (2025), Sec. 2.1, eqs. (1) and (2); Sec. 2.3; App. E.2, eq. (85) for the bias.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from moestat.base.symmetric import pack_symmetric, unpack_symmetric
from moestat.base.types import FloatArray
from moestat.base.validate import as_floats, positive_int, real_in, short
from moestat.model.axes import family
from moestat.model.family import Family
from moestat.model.reference import log_sigmoid, log_sum_exp

__all__ = [
    "AttentionRow",
    "RowWeights",
    "attention_row",
    "length_bias",
    "row_weights",
    "sigmoid_attention",
    "softmax_attention",
]

_GATES = {"sigmoid": "sigmoid-partial", "softmax": "softmax-partial"}
_EXPERT = {"name": "polynomial", "degree": 1}
_STRUCTURE = 1e-9  # of the largest coefficient: what still counts as the structure of a row


def length_bias(n_tokens: int) -> float:
    """The bias ``-log n`` of sigmoid attention over n tokens, Yan et al. (2025), eq. (85).

    Examples
    --------
    >>> round(length_bias(8), 6)
    -2.079442
    """
    return -math.log(positive_int("n_tokens", n_tokens))


def _projections(W_Q: ArrayLike, W_K: ArrayLike, W_V: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """B (d, d) and W_V (d, d_v)."""
    query = as_floats("W_Q", W_Q, (None, None))
    key = as_floats("W_K", W_K, query.shape)
    values = as_floats("W_V", W_V, (query.shape[0], None))
    return query @ key.T / math.sqrt(query.shape[1]), values


def _tokens(tokens: ArrayLike, d: int) -> FloatArray:
    array = np.asarray(tokens, dtype=np.float64)
    if array.ndim < 2:
        raise ValueError(f"tokens must have shape (..., N, d), got {array.shape}")
    return as_floats("tokens", array, (*array.shape[:-1], d))


def _scores(
    tokens: ArrayLike, W_Q: ArrayLike, W_K: ArrayLike, W_V: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Scores (..., N, N) and values (..., N, d_v)."""
    B, values = _projections(W_Q, W_K, W_V)
    x = _tokens(tokens, len(values))
    return x @ B @ np.swapaxes(x, -1, -2), x @ values


def sigmoid_attention(
    tokens: ArrayLike, W_Q: ArrayLike, W_K: ArrayLike, W_V: ArrayLike, bias: float = 0.0
) -> FloatArray:
    """``sigma(Q K' / sqrt(d_k) + bias) V``, the sigmoid element by element.

    Parameters
    ----------
    tokens : array_like of shape (..., N, d)
        Sequences of N tokens.
    W_Q, W_K : array_like of shape (d, d_k)
        Projections to queries and keys.
    W_V : array_like of shape (d, d_v)
        Projection to values.
    bias : float
        Added to every score; `length_bias` is the paper's choice.

    Returns
    -------
    ndarray of shape (..., N, d_v)
        One context vector per token.

    Raises
    ------
    ValueError
        If shapes do not fit or a value is not finite.

    Notes
    -----
    Yan et al. (2025), eqs. (2) and (85).

    Examples
    --------
    >>> sigmoid_attention([[0.0], [1.0]], [[1.0]], [[1.0]], [[2.0]]).round(4).tolist()
    [[1.0], [1.4621]]
    """
    scores, values = _scores(tokens, W_Q, W_K, W_V)
    return np.exp(log_sigmoid(scores + real_in("bias", bias))) @ values


def softmax_attention(
    tokens: ArrayLike, W_Q: ArrayLike, W_K: ArrayLike, W_V: ArrayLike
) -> FloatArray:
    """``Softmax(Q K' / sqrt(d_k)) V``, the softmax row by row.

    Parameters
    ----------
    tokens, W_Q, W_K, W_V
        As of `sigmoid_attention`, with its errors.

    Returns
    -------
    ndarray of shape (..., N, d_v)
        One context vector per token.

    Notes
    -----
    Yan et al. (2025), eq. (1).

    Examples
    --------
    >>> softmax_attention([[0.0], [1.0]], [[1.0]], [[1.0]], [[2.0]]).round(4).tolist()
    [[1.0], [1.4621]]
    """
    scores, values = _scores(tokens, W_Q, W_K, W_V)
    return np.exp(scores - log_sum_exp(scores, axis=-1)[..., None]) @ values


@dataclass(frozen=True)
class AttentionRow:
    """One row of self-attention as mixtures of experts, one per coordinate of the values.

    Make one with `attention_row`.  The mixtures have the same gate and different experts.
    """

    family: Family = field(repr=False)
    """Regression functions of N d inputs with N experts."""
    theta: FloatArray = field(repr=False)
    """Packed parameters of each coordinate; shape (d_v, P)."""
    row: int
    """Position of the row, from 0."""

    def __call__(self, tokens: ArrayLike) -> FloatArray:
        """The row's context vector (..., d_v) for tokens (..., N, d)."""
        n_tokens = self.family.n_experts
        x = _tokens(tokens, self.family.n_features // n_tokens)
        if x.shape[-2] != n_tokens:
            raise ValueError(f"tokens must have shape (..., {n_tokens}, d), got {x.shape}")
        flat = x.reshape(-1, self.family.n_features)
        columns = [self.family.mean(theta, flat) for theta in self.theta]
        return np.stack(columns, axis=-1).reshape(*x.shape[:-2], len(columns))


def attention_row(
    W_Q: ArrayLike,
    W_K: ArrayLike,
    W_V: ArrayLike,
    n_tokens: int,
    row: int = 0,
    kind: str = "sigmoid",
    bias: float = 0.0,
) -> AttentionRow:
    """The mixture of experts that a row of self-attention is.

    Parameters
    ----------
    W_Q, W_K : array_like of shape (d, d_k)
        Projections to queries and keys.
    W_V : array_like of shape (d, d_v)
        Projection to values.
    n_tokens : int
        Length N of the sequences.
    row : int
        Which row i, from 0.
    kind : {"sigmoid", "softmax"}
        The attention.
    bias : float
        Added to every score: the c of every atom.  Softmax does not see it.

    Returns
    -------
    AttentionRow
        Called with tokens, it gives what `sigmoid_attention` or `softmax_attention` has in that
        row.

    Raises
    ------
    ValueError
        If shapes do not fit, a value is not finite, the kind is unknown or there is no such row.

    Notes
    -----
    Yan et al. (2025), Sec. 2.3: ``M_ij = E_i W_Q W_K' E_j' / sqrt(d_k)`` and ``P_j = E_j W_V``.

    Examples
    --------
    >>> tokens = [[0.0], [1.0]]
    >>> attention_row([[1.0]], [[1.0]], [[2.0]], n_tokens=2, row=1)(tokens).round(4).tolist()
    [1.4621]
    """
    B, values = _projections(W_Q, W_K, W_V)
    n = positive_int("n_tokens", n_tokens)
    i = positive_int("row", row, 0)
    if i >= n:
        raise ValueError(f"row must be in 0..{n - 1}, got {row}")
    if kind not in _GATES:
        raise ValueError(f"kind must be 'sigmoid' or 'softmax', got {short(kind)}")
    d = len(values)
    model = family(
        "least-squares", gate=_GATES[kind], expert=_EXPERT, n_experts=n, n_features=n * d
    )
    M = np.zeros((n, n, d, n, d))
    P = np.zeros((n, n, d, values.shape[1]))
    for j in range(n):
        M[j, i, :, j, :] = B
        P[j, j] = values
    gate = {
        "A": M.reshape(n, n * d, n * d),
        "c": np.full(n, real_in("bias", bias)),
        "beta": np.zeros(n),
    }
    slopes = P.reshape(n, n * d, -1)
    theta = [model.pack({**gate, "alpha": slopes[..., v]}) for v in range(slopes.shape[-1])]
    return AttentionRow(model, np.array(theta), i)


class RowWeights(NamedTuple):
    """What a row's mixture says about the attention it comes from.

    ``scores`` (d, d) is ``W_Q W_K' / sqrt(d_k)``, from which W_Q and W_K cannot be told apart;
    ``values`` (d, d_v) is W_V; ``bias`` is 0 for softmax.
    """

    scores: FloatArray
    values: FloatArray
    bias: float


def row_weights(mixture: AttentionRow) -> RowWeights:
    """The attention weights of a row's mixture of experts, the inverse of `attention_row`.

    Parameters
    ----------
    mixture : AttentionRow
        The row; a softmax gate may be translated, for instance by `Family.pin`.

    Returns
    -------
    RowWeights
        Scores, values and bias.

    Raises
    ------
    ValueError
        If there is one token only, whose mixture has the symmetric part of the scores alone, or
        if the mixture does not have the structure of a row of attention.

    Examples
    --------
    >>> row = attention_row([[1.0]], [[3.0]], [[2.0]], n_tokens=2, bias=length_bias(2))
    >>> [float(x.item()) for x in row_weights(row)[:2]], round(row_weights(row).bias, 4)
    ([3.0, 2.0], -0.6931)
    """
    model, i = mixture.family, mixture.row
    n = model.n_experts
    d = model.n_features // n
    if n < 2:
        raise ValueError("mixture: one token shows the symmetric part of the scores only")
    blocks = [model.unpack(theta) for theta in mixture.theta]
    scores_of_atoms = unpack_symmetric(blocks[0]["A"]).reshape(n, n, d, n, d)
    c = blocks[0]["c"]
    if model.gate.normalised:
        # What all atoms have in common is not theirs: each block of A belongs to one atom at most.
        common = np.empty((n, d, n, d))
        for a, b in np.ndindex(n, n):
            owner = b if a == i else a if b == i else None
            common[a, :, b] = np.mean(
                [scores_of_atoms[j, a, :, b] for j in range(n) if j != owner], axis=0
            )
        scores_of_atoms -= common
        c = c - c[0]
    others = [j for j in range(n) if j != i]
    scores = 2.0 * np.mean([scores_of_atoms[j, i, :, j, :] for j in others], axis=0)
    slopes = np.stack([block["alpha"] for block in blocks], axis=-1).reshape(n, n, d, -1)
    values = np.mean([slopes[j, j] for j in range(n)], axis=0)
    bias = float(np.mean(c))
    expected = attention_row(
        math.sqrt(d) * scores,
        np.eye(d),
        values,
        n,
        i,
        "softmax" if model.gate.normalised else "sigmoid",
        bias,
    )
    projected = np.array(mixture.theta)
    projected[:, model.blocks["A"]] = pack_symmetric(scores_of_atoms.reshape(n, n * d, n * d))
    projected[:, model.blocks["c"]] = c
    size = max(float(np.abs(projected).max()), 1e-300)
    if np.abs(projected - expected.theta).max() > _STRUCTURE * size:
        raise ValueError("mixture does not have the structure of a row of attention")
    return RowWeights(scores, values, bias)


def __dir__() -> list[str]:
    return sorted(__all__)
