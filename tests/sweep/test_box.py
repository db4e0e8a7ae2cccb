"""The compact set of a sweep, and what a spec is warned of before it runs."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

from moestat.sweep import parse_spec
from moestat.sweep.cli import app
from moestat.sweep.kinds.fit.analysis import uneven
from moestat.sweep.kinds.fit.box import box_of, doubts_about_boxes
from moestat.sweep.kinds.fit.spec import as_fits, doubts

SPEC = """
title = "Lines"
seed = 1
replicates = 1
n = [200, 400]

[truth.lines]
likelihood = "gaussian"
gate = "softmax"
beta0 = [0.3, 0.0]
beta1 = [1.0, 0.0]
a = [2.0, -1.5]
b = [1.0, -1.0]
nu = [0.25, 0.16]

[[curve]]
name = "over"
truth = "lines"
n_experts = 3
loss = "gaussian-softmax-D"
"""
BOUNDED = SPEC.replace("nu = [0.25, 0.16]", "nu = [0.25, 0.16]\nbounds = { nu = [0.01, 10] }")


def test_a_variance_without_a_useful_lower_bound_is_a_warning():
    (line,) = doubts_about_boxes(as_fits(parse_spec(SPEC)))
    assert line.startswith(
        "curve 'over': the lower bound 1e-06 of nu is far below the truth's 0.16"
    )
    assert "bounds = { nu = [0.02, 1e+06] }" in line
    assert not list(doubts_about_boxes(as_fits(parse_spec(BOUNDED))))
    exact = SPEC.replace("n_experts = 3", "n_experts = 2")
    assert not list(doubts_about_boxes(as_fits(parse_spec(exact))))


def test_the_box_is_named_with_whose_it_is():
    spec, bounded = as_fits(parse_spec(SPEC)), as_fits(parse_spec(BOUNDED))
    assert "all by the family's default" in box_of(spec, spec.curves[0])
    text = box_of(bounded, bounded.curves[0])
    assert "nu in [0.01, 10]" in text
    assert text.endswith("(nu by the spec)")


def test_check_says_the_box_and_its_doubts(tmp_path):
    path = tmp_path / "lines.toml"
    path.write_text(SPEC)
    result = CliRunner().invoke(app, ["run", str(path), "--check"])
    assert result.exit_code == 0
    assert "warning: curve 'over': the lower bound 1e-06 of nu" in result.output
    assert "box of over: beta0 in [-30, 30]" in result.output


def test_a_grid_of_one_size_can_have_no_rate():
    (note,) = doubts(parse_spec(SPEC.replace("n = [200, 400]", "n = [400]")))
    assert note.startswith("a slope needs two or more sample sizes")
    assert note.endswith("no rate: over")
    assert not doubts(parse_spec(SPEC))


@pytest.mark.parametrize(("late", "said"), [(0, True), (16, False)])
def test_cells_that_leave_a_rate_unevenly_are_said(late, said):
    n = np.repeat([100, 1000, 10000], 20)
    out = np.concatenate([np.arange(20) < k for k in (16, 16, late)])
    assert bool(uneven(n, ~out)) is said


def test_chance_alone_seldom_looks_uneven():
    rng, n = np.random.default_rng(0), np.repeat([100, 1000, 10000, 100000], 20)
    said = [bool(uneven(n, rng.random(n.size) > 0.2)) for _ in range(1000)]
    assert np.mean(said) < 0.025
