"""Compiled loops are compared with plain NumPy before a fit rests on them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import moestat
from moestat.model import plain
from tests.kinds import EACH_REGRESSION, KINDS, REGRESSION, each_run, kind_id, make


@pytest.mark.parametrize(
    "kind", each_run([*KINDS, *REGRESSION], [*KINDS, *EACH_REGRESSION], kind_id)
)
def test_loops_of_every_kind_pass(kind, monkeypatch):
    monkeypatch.setattr(plain, "_CHECKED", set())
    family = make(kind, 2, 2, 3)
    plain.check_loops(family)
    assert {family.loops} == plain._CHECKED


@pytest.mark.parametrize("seed", range(3))
def test_a_fit_has_the_likelihood_that_numpy_gives(seed):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, (400, 1))
    line = np.where(rng.uniform(size=400) < 0.5, 1 + 2 * x[:, 0], -1 - x[:, 0])
    y = line + 0.3 * rng.standard_normal(400)
    fitted = moestat.fit("gaussian", x, y, n_experts=2, rng=0)
    family = fitted.family
    expected = plain.log_density(family, plain.blocks_of(family, fitted.theta), x, y).sum()
    assert fitted.llf == pytest.approx(expected, rel=1e-10)
    assert fitted.certificate.certified


def test_a_fit_refuses_to_rest_on_a_loop_that_is_wrong(monkeypatch):
    monkeypatch.setattr(plain, "_CHECKED", set())
    family = moestat.family("gaussian", n_experts=2)
    gate = family.gate
    wrong = replace(gate, reference=lambda *given: 1.2 * gate.reference(*given))
    x = np.linspace(-1, 1, 40)
    with pytest.raises(RuntimeError, match="is wrong on this processor"):
        moestat.fit(replace(family, gate=wrong), x, np.sin(5 * x), rng=0)
