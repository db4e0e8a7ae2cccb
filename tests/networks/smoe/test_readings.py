"""Where the papers' text and the authors' code differ: both readings, term by term."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional

from moestat.networks.smoe import (
    CompeteSMoE,
    CompeteSMoEv1,
    CompetitionMoE,
    CompetitionMoEv1,
    CompetitionSchedule,
    auxiliary_loss,
)

D, N, K, T = 6, 5, 3, 40


def layer_of(kind, **options):
    torch.manual_seed(0)
    layer = kind(D, N, top_k=K, hidden=7, **options)
    layer.competing = True
    return layer


def rows():
    return torch.randn(T, D, generator=torch.Generator().manual_seed(1))


def test_the_first_version_by_its_code():
    layer = layer_of(CompeteSMoEv1, alpha=3.0, reading="code")
    out = layer(rows())
    torch.testing.assert_close(out, layer_of(CompetitionMoEv1)(rows()))
    norms = layer.experts.every(rows()).norm(dim=2).T
    best = norms.topk(K)
    target = torch.full((T, N), -1e10).scatter(1, best.indices, best.values).softmax(1)
    expected = 3.0 * functional.mse_loss(layer.router(rows()).softmax(1), target)
    loss = auxiliary_loss(layer)
    torch.testing.assert_close(loss, expected)
    loss.backward()
    assert layer.experts.outer.grad.abs().max() > 0  # the target is not held fixed
    plain = layer_of(CompeteSMoEv1, reading="code").eval()
    torch.testing.assert_close(plain(rows()), layer_of(CompeteSMoEv1).eval()(rows()))


def test_the_second_version_by_its_code():
    weights = {"balance": 0.3, "z": 7.0, "gamma": 2.0, "alpha": 0.4, "beta": 0.7}
    layer = layer_of(CompeteSMoE, reading="code", **weights)
    out = layer(rows())
    torch.testing.assert_close(out, layer_of(CompetitionMoE)(rows()))
    outputs = layer.experts.every(rows())
    scores = functional.softplus(outputs).mean(2).T
    dense, best = scores.softmax(1), scores.topk(K).indices
    routed = layer.router(rows()).softmax(1)
    hybrid = functional.mse_loss(routed, dense) + 0.4 * functional.mse_loss(
        routed.gather(1, best), dense.gather(1, best)
    )
    unit = functional.normalize(outputs.transpose(0, 1)[torch.arange(T)[:, None], best], dim=2)
    similar = (unit @ unit.transpose(1, 2)) * (1 - torch.eye(K))
    first = functional.one_hot(best[:, 0], N).float().mean(0)
    balance = (dense.mean(0) * first).mean() * N**2
    expected = 2.0 * hybrid + 0.7 * similar.mean() + 0.3 * balance
    torch.testing.assert_close(auxiliary_loss(layer), expected)
    layer.competing, layer.told = False, True
    layer(rows())
    scores = layer.router(rows())
    first = functional.one_hot(scores.argmax(1), N).float().mean(0)
    balance = N * (scores.softmax(1).mean(0) * first).sum()
    z = scores.logsumexp(1).square().mean()
    torch.testing.assert_close(auxiliary_loss(layer), 0.3 * balance + 7.0 * z)


def test_a_step_over_the_limit_goes_to_the_left_first():
    one = CompetitionSchedule(3, 60, 0.2, limit=1, rng=0, earlier_first=True)
    assert (one.active.sum(0) <= 1).all()
    assert np.array_equal(one.active.sum(1), one.drawn.sum(1))
    below = one.active[0]
    for step in np.flatnonzero(one.drawn[1] & below)[:1]:
        free = [t for t in range(step) if not below[t] and not one.drawn[1, t]]
        assert one.active[1, free[-1] if free else step + 1]
    later = CompetitionSchedule(3, 60, 0.2, limit=1, rng=0)
    assert np.array_equal(one.drawn, later.drawn)
    assert not np.array_equal(one.active, later.active)


@pytest.mark.parametrize("kind", [CompeteSMoE, CompeteSMoEv1])
def test_other_readings_are_refused(kind):
    with pytest.raises(ValueError, match="reading must be 'paper' or 'code', got 'text'"):
        kind(D, N, reading="text")
