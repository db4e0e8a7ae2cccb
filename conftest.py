"""Which modules pytest collects, and which tests each run has; figures are closed."""

from __future__ import annotations

import sys
from importlib.util import find_spec

import pytest

from tests.parts import mark_the_rest

collect_ignore = [] if find_spec("torch") else ["moestat/networks/smoe"]


@pytest.fixture(autouse=True)
def _close_figures():
    """Figures of pyplot stay open until they are closed, and matplotlib warns of many."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Before marks are looked at: most cells of a test run with ``pytest -m thorough``.

    Cells that are asked for by name are run.
    """
    if not any("[" in argument for argument in config.args):
        mark_the_rest(items)
