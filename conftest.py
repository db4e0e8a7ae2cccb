"""Which modules pytest collects where an extra is not installed; figures are closed."""

from __future__ import annotations

import sys
from importlib.util import find_spec

import pytest

collect_ignore = [] if find_spec("torch") else ["moestat/networks/smoe"]


@pytest.fixture(autouse=True)
def _close_figures():
    """Figures of pyplot stay open until they are closed, and matplotlib warns of many."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
