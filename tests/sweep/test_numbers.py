"""True and false are no numbers, wherever a spec has one."""

import re

import pytest

from moestat.sweep import SweepError, parse_spec
from moestat.sweep.spec.experiments import shipped

FITS = """
title = "t"
seed = 1
replicates = 2
n = { start = 200, stop = 400, num = 2 }
target_slope_halfwidth = 0.1
max_replicates = 5
design = { low = -1, high = 1 }

[truth.t]
gate = "softmax"
n_classes = 2
n_features = 1
beta0 = [-2.0, 0.0]
beta1 = [3.0, 0.0]
a = [[1.0, 0.0], [1.0, 0.0]]
b = [[-3.0, 0.0], [2.5, 0.0]]
bounds = { a = [-5, 6] }

[[curve]]
name = "c"
truth = "t"
n_experts = 2
n = [300, 600]
loss = { name = "softmax-D2r", r = 2 }
theory = -0.5
alternatives = [-0.25]
published = -0.4
solver = { name = "em", tolerance = 1e-6, max_iterations = 20, m_step_iterations = 10 }

[curve.starts]
truth = 1
noise = [0.1, 0.2]
decay = { a = 0.5 }
random = 1
given = [{ beta0 = [0.0, 0.0], beta1 = [1.0, 0.0], a = [[1, 0], [1, 0]], b = [[1, 0], [1, 0]] }]

[[curve]]
name = "d"
truth = "t"
n_experts = 2
starts = { maximum = 3, measure = 1, noise = { a = 0.1 } }

[curve.loss]
name = "block-exponents"
over = { a = 2, b = 2, beta1 = 2 }
exact = 1
vectors = ["a", "beta1"]
summed = ["a", "b"]
"""
STRING_OR_NUMBER = re.compile(r"\"[^\"]*\"|(?<![\w-])(-?\d[\d.]*(?:e-?\d+)?)(?!\w)")


def every_number(text):
    """The text with one number after the other as true, and the key of each."""
    for number in STRING_OR_NUMBER.finditer(text):
        if number[1] is None:
            continue
        before = text[: number.start()]
        key = re.findall(r"(\w+) = ", before)[-1]
        yield key, f"{before}true{text[number.end() :]}"


def refused(key, text):
    try:
        parse_spec(text)
    except SweepError as error:
        return "True" in str(error) and key in str(error)
    return False


def test_no_number_of_a_sweep_of_fits_is_a_boolean():
    parse_spec(FITS)
    given = list(every_number(FITS))
    assert len(given) == 60
    assert [each for each in given if not refused(*each)] == []


@pytest.mark.parametrize("name", ["coverage_order", "coverage_tests", "coverage_selection"])
def test_no_number_of_a_sweep_of_inference_is_a_boolean(name):
    text = re.sub(r"#.*", "", shipped()[name].read_text())
    parse_spec(text)
    assert [each for each in every_number(text) if not refused(*each)] == []
