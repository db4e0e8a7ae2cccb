"""The README's Python runs, and its spec is a valid one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import moestat
from moestat.sweep.spec import parse_spec

README = (Path(__file__).parent.parent / "README.md").read_text()


def fenced(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def test_library_examples_run(capsys):
    names: dict = {}
    for block in fenced("python"):
        exec(compile(block, "README.md", "exec"), names)
    printed = capsys.readouterr().out
    assert names["result"].certificate.certified
    assert "Mixture of experts: sigmoid gate" in printed
    assert "slope" in printed
    assert len(names["losses"]) == 20
    assert names["spectrum"].null_directions == ()


def test_spec_example_is_valid():
    (block,) = fenced("toml")
    spec = parse_spec(block)
    assert [curve.name for curve in spec.curves] == ["k = 3"]


def test_every_public_name_resolves_and_is_documented():
    for name in moestat.__all__:
        if name == "MoEClassifier":
            pytest.importorskip("sklearn")
        assert getattr(moestat, name).__doc__
    with pytest.raises(AttributeError, match="no attribute 'no_such'"):
        moestat.no_such  # noqa: B018
