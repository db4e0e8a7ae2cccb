"""Losses beside that of the task: what routers and experts are trained on."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from moestat.base.door import door

__all__ = [
    "balance_loss",
    "distillation_loss",
    "diversity_loss",
    "load_of",
    "router_loss",
    "z_loss",
]


def _mean(values: Tensor) -> Tensor:
    """The mean; 0 of nothing, where a batch is empty or masked."""
    # Without a branch: under a compiler the number of rows that a mask keeps is not known.
    return values.sum() / torch.sym_max(values.numel(), 1)


def _at_least_single(values: Tensor) -> Tensor:
    """In single precision at least: in half of it counts and squares overflow."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def _top_softmax(scores: Tensor, top_k: int) -> Tensor:
    """``softmax(TopK(s))``, zero outside the K largest."""
    scores = _at_least_single(scores)
    values, chosen = scores.topk(top_k, dim=-1)
    return torch.zeros_like(scores).scatter(-1, chosen, values.softmax(-1))


@door()
def distillation_loss(routed: Tensor, competed: Tensor, winners: Tensor, alpha: float) -> Tensor:
    """How far a router is from a competition, eq. (1) of Nguyen et al. (2025), averaged over rows.

    Parameters
    ----------
    routed : Tensor of shape (T, N)
        Affinities of the router, over all experts.
    competed : Tensor of shape (T, N)
        Affinities of the competition, zero for experts that lost.
    winners : Tensor of shape (T, K)
        The experts that won.
    alpha : float
        Weight of the winners' errors.

    Returns
    -------
    Tensor
        ``mean((s_R - s_C)^2) + alpha / K * sum over winners of (s_C - s_R)^2``.

    Examples
    --------
    >>> routed, competed = torch.tensor([[0.5, 0.5]]), torch.tensor([[1.0, 0.0]])
    >>> round(distillation_loss(routed, competed, torch.tensor([[0]]), 0.1).item(), 6)
    0.275
    """
    errors = (_at_least_single(routed) - _at_least_single(competed)).square()
    return _mean(errors) + float(alpha) * _mean(errors.gather(1, winners))


@door()
def diversity_loss(outputs: Tensor) -> Tensor:
    """Mean cosine between the outputs of two winners, eq. (2) of Nguyen et al. (2025).

    Parameters
    ----------
    outputs : Tensor of shape (T, K, D)
        Outputs of the K winners.

    Returns
    -------
    Tensor
        The mean over rows and pairs; 0 where K = 1.

    Notes
    -----
    "Correlation matrix" and ``O O' / ||O||_2^2`` are read as: each row of O over its own norm.

    Examples
    --------
    >>> diversity_loss(torch.tensor([[[1.0, 0.0], [0.0, 2.0]]])).item()
    0.0
    """
    top_k = outputs.shape[-2]
    if top_k == 1:
        return _at_least_single(outputs).new_zeros(())
    unit = functional.normalize(_at_least_single(outputs), dim=-1)
    cosines = unit @ unit.transpose(-1, -2)
    pairs = cosines.sum((-1, -2)) - cosines.diagonal(dim1=-2, dim2=-1).sum(-1)
    return _mean(pairs) / (top_k * (top_k - 1))


@door()
def router_loss(scores: Tensor, responses: Tensor, top_k: int) -> Tensor:
    """How far a router is from a competition, eq. (3) of Pham et al. (2024).

    Parameters
    ----------
    scores, responses : Tensor of shape (T, N)
        Scores of the router, and the experts' responses.
    top_k : int
        K.

    Returns
    -------
    Tensor
        Mean squared difference of ``softmax(TopK(.))`` of the two.

    Examples
    --------
    >>> router_loss(torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]]), 1).item()
    1.0
    """
    errors = _top_softmax(scores, top_k) - _top_softmax(responses, top_k)
    return _mean(errors.square())


@door()
def load_of(chosen: Tensor, scores: Tensor) -> Tensor:
    """Shares (N,) of all choices (T, K) of each expert, of scores (T, N); 0 where none are."""
    flat = chosen.reshape(-1)
    counts = flat.new_zeros(scores.shape[-1]).scatter_add(0, flat, torch.ones_like(flat))
    return counts.to(_at_least_single(scores).dtype) / counts.sum().clamp_min(1)


@door()
def balance_loss(scores: Tensor, chosen: Tensor) -> Tensor:
    """``N sum_i f_i P_i``: shares of choices times mean probabilities (Fedus et al., 2022, eq. 4).

    Parameters
    ----------
    scores : Tensor of shape (T, N)
        Scores of the router.
    chosen : Tensor of shape (T, K)
        The experts of each row.

    Returns
    -------
    Tensor
        1 where all experts are used alike, for every K; libraries that count choices per row
        rather than shares of all choices report K times as much.

    Examples
    --------
    >>> balance_loss(torch.zeros(2, 2), torch.tensor([[0], [1]])).item()
    1.0
    """
    scores, n_experts = _at_least_single(scores), scores.shape[-1]
    shares = load_of(chosen, scores)
    means = scores.softmax(-1).sum(0) / torch.sym_max(scores.shape[0], 1)
    return n_experts * (shares * means).sum()


@door()
def z_loss(scores: Tensor) -> Tensor:
    """Mean squared log of the sum of exponentials (Zoph et al., 2022, eq. 5).

    Parameters
    ----------
    scores : Tensor of shape (T, N)
        Scores of the router.

    Returns
    -------
    Tensor
        The mean over rows.

    Examples
    --------
    >>> round(z_loss(torch.zeros(3, 2)).item(), 6)
    0.480453
    """
    return _mean(_at_least_single(scores).logsumexp(-1).square())
