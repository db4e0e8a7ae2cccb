"""Records of the axes answer where 0.2.0 had them."""

from __future__ import annotations

import pytest

from moestat.base import types
from moestat.model import members


@pytest.mark.parametrize(
    "name", ["Channel", "Units", "Gate", "Symmetry", "Expert", "Likelihood", "Part"]
)
def test_records_answer_where_they_were(name):
    assert getattr(types, name) is getattr(members, name)


def test_other_names_do_not():
    with pytest.raises(AttributeError, match="nonsense"):
        _ = types.nonsense
