"""Specs that ask for too much, or for something else than they say: refused in one line."""

import tracemalloc

import numpy as np
import pytest

import moestat
from moestat.sweep import SweepError, load_spec, parse_spec
from moestat.sweep.spec.limits import memory_of

DEEP = "x = " + "[" * 5000 + "]" * 5000


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("low = -4", 'name = "nope"\nlow = -4', "unknown option 'name'"),
        ("low = -4", f"low = -1{'0' * 400}", "design.low: must be at most 2"),
        ("seed = 7", f"seed = 1{'0' * 400}", "seed: must be at most"),
        ("seed = 7", f"seed = 0x{'f' * 9000}", "seed: must be at most"),
        ("seed = 7", f"seed = 1{'0' * 5000}", "is not valid TOML"),
        ("seed = 7", f"seed = 7\n{DEEP}", "nested too deeply|unknown key"),
        ("replicates = 3", f"replicates = 1{'0' * 30}", "replicates: must be at most 1,000,000"),
        ("replicates = 3", "replicates = 1e30", "replicates: must be an integer >= 1, got 1e"),
        ("replicates = 3", "replicate = 4", "replicates: is missing; is 'replicate' a missp"),
        ("n = [200, 400]", "n = { start = 10, stop = 1e6, num = 1000000000 }", "num: must be at"),
        ("n = [200, 400]", "n = [200, 1e300]", "n: must hold numbers <= 1e"),
        ("n_experts = 2", "n_experts = 1000000000", "n_experts: must be at most 1,000"),
        ("n_experts = 2", "n_experts = 1", "n_experts: must be at least the 2 of the truth"),
        ("theory = -0.5", "theory = 0.5", "theory: must be <= 0"),
        ('gate = "softmax"', 'gate = "softmax"\nn_classes = 1000000000', "n_classes: must be at"),
        ('gate = "softmax"', 'gate = { name = "softmax-top", active = 9 }', "keeps 9 active of 2"),
    ],
)
def test_what_is_out_of_bounds_is_named(text, old, new, message):
    with pytest.raises(SweepError, match=message) as raised:
        parse_spec(text.replace(old, new, 1))
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 500


def test_samples_that_fit_into_no_memory_are_refused_with_the_estimate(tmp_path, text, monkeypatch):
    monkeypatch.setattr("moestat.sweep.spec.limits.available_memory", lambda: 2**30)
    path = tmp_path / "large.toml"
    path.write_text(text.replace("[200, 400]", "[200, 100_000_000]"))
    with pytest.raises(SweepError, match=r"100000000 rows need about 13\.4 GiB of memory"):
        load_spec(path)
    path.write_text(text)
    assert load_spec(path).n_cells == 12


def test_more_cells_than_a_store_holds_are_refused(text):
    with pytest.raises(SweepError, match=r"are 12,000,000 cells; at most"):
        parse_spec(
            text.replace("replicates = 3", "replicates = 1_000_000").replace(
                "[200, 400]", "[200, 300, 400, 500, 600, 700]"
            )
        )


@pytest.mark.parametrize(("likelihood", "n_experts"), [("gaussian", 2), ("multinomial", 2)])
def test_the_estimate_is_the_peak_of_a_fit(likelihood, n_experts):
    model = moestat.family(likelihood, gate="softmax", n_experts=n_experts)
    theta = np.clip(np.random.default_rng(0).normal(size=model.n_params), model.lower, model.upper)

    def peak(n):
        tracemalloc.start()
        try:
            X, y = moestat.sample(model, theta, n, rng=0)
            moestat.fit(model, X, y, rng=0, threads=1, starts=[moestat.starts.GivenStarts([theta])])
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(1000)  # what is loaded and compiled once
    assert 0.6 < peak(100_000) / memory_of(100_000, 1) < 1.2
