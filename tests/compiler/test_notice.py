"""A compilation is announced: on a terminal by a line that goes again, elsewhere in the log."""

from __future__ import annotations

import io
import logging
import sys

import numpy as np
import pytest

from moestat.compiler import jit
from moestat.compiler.notice import to_log


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def loop(tmp_path, monkeypatch):
    """A loop that nobody has compiled yet."""
    monkeypatch.setattr(jit, "kernel_cache", lambda: tmp_path)
    monkeypatch.setenv("TERM", "xterm")

    def row_sums(x):
        total = 0.0
        for b in range(x.size):
            total += x[b]
        return total

    row_sums.__module__ = "moestat.kernels.made_for_a_test"
    return jit.compile_loop(row_sums)


def on_terminal(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    return sys.stderr


def test_elsewhere_it_is_logged(loop, caplog, monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with caplog.at_level(logging.INFO, "moestat.compiler"):
        assert loop(np.ones(3)) == 3.0
        first = [record.getMessage() for record in caplog.records]
        assert loop(np.ones(4)) == 4.0
    assert first[0].startswith("Compiling loop, once for this kind of model")
    assert len(first) == len(caplog.records) == 2
    assert first[1].endswith(" s")
    assert sys.stderr.getvalue() == ""


def test_on_a_terminal_there_is_a_line(loop, caplog, monkeypatch):
    terminal = on_terminal(monkeypatch)
    with caplog.at_level(logging.INFO, "moestat.compiler"):
        loop(np.ones(3))
    assert "once for this kind of model" in terminal.getvalue()
    assert not caplog.records
    shown = len(terminal.getvalue())
    loop(np.ones(4))
    assert len(terminal.getvalue()) == shown


def test_a_terminal_can_be_left_alone(loop, caplog, monkeypatch):
    terminal = on_terminal(monkeypatch)
    with to_log(), caplog.at_level(logging.INFO, "moestat.compiler"):
        loop(np.ones(3))
    assert terminal.getvalue() == ""
    assert len(caplog.records) == 2
    loop(np.ones((3,), dtype=np.float32))
    assert terminal.getvalue() != ""


def test_other_functions_are_not_ours_to_announce(caplog, monkeypatch):
    terminal = on_terminal(monkeypatch)
    import numba

    with caplog.at_level(logging.INFO, "moestat.compiler"):
        assert numba.njit(lambda x: x + 1)(1) == 2
    assert terminal.getvalue() == ""
    assert not caplog.records
