import pytest

from moestat.sweep import parse_spec

SPEC = """
title = "A small sweep"
seed = 7
replicates = 3
n = [200, 400]

[design]
low = -4
high = 4

[truth.t]
gate = "softmax"
beta0 = [-2.0, 0.0]
beta1 = [3.0, 0.0]
a = [[1.0, 0.0], [1.0, 0.0]]
b = [[-3.0, 0.0], [2.5, 0.0]]

[[curve]]
name = "newton"
truth = "t"
n_experts = 2
loss = "softmax-D1"
theory = -0.5
panel = "a"
starts = { truth = 1, noise = 0.1 }

[[curve]]
name = "em"
truth = "t"
n_experts = 2
loss = "softmax-D1"
panel = "a"
solver = { name = "em", max_iterations = 20 }
starts = { truth = 1, noise = 0.1 }
require_certificate = false
"""


@pytest.fixture
def text():
    return SPEC


@pytest.fixture
def spec(text):
    return parse_spec(text)


@pytest.fixture
def spec_file(tmp_path, text):
    path = tmp_path / "small.toml"
    path.write_text(text)
    return path
