"""Sums over blocks have the same bits here and on workers, whoever adds them."""

import numpy as np
import pytest

from moestat.base.sums import added
from moestat.estimation.rows.sums import sum_in_tree, sum_on_workers
from moestat.solvers.problem import ValueGradient


@pytest.mark.thorough
@pytest.mark.parametrize("count", [1, 7, 8, 9, 63, 64, 65, 73, 600])
def test_the_tree_is_the_same_wherever_it_is_added(count):
    delayed = pytest.importorskip("dask.delayed").delayed
    rng = np.random.default_rng(count)
    values = [[v, ValueGradient(v, np.full(2, v))] for v in rng.standard_normal(count).tolist()]
    values[count // 2] = None if count > 1 else values[0]  # a part without rows
    steps = []

    def watch(parts, n_steps):
        steps.append(n_steps)
        return iter(parts)

    here = sum_in_tree(iter(values))
    there = sum_on_workers([delayed(value) for value in values], None, watch)
    assert here[0] == there[0]
    assert np.array_equal(here[1].gradient, there[1].gradient)
    assert here[1].value == here[0] == pytest.approx(sum(v[0] for v in values if v))


def test_unlike_lists_are_not_added():
    with pytest.raises(ValueError, match="shorter"):
        added([1, 2], [1])
