import tomllib
from pathlib import Path

import pytest

import moestat
from moestat.sweep import SweepError
from moestat.sweep.spec.experiments import find_spec, shipped

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A package elsewhere, with the given files beside and inside it."""

    def make(*files):
        for name in files:
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        monkeypatch.setattr(moestat, "__file__", str(tmp_path / "moestat" / "__init__.py"))
        return tmp_path

    return make


def test_a_checkout_is_looked_at_first(installed):
    root = installed("pyproject.toml", "experiments/a.toml", "moestat/_experiments/b.toml")
    assert shipped() == {"a": root / "experiments" / "a.toml"}
    assert find_spec("a") == root / "experiments" / "a.toml"
    with pytest.raises(
        SweepError,
        match=r"nor a shipped experiment of this name \(.* shows the 1 that",
    ):
        find_spec("b")


def test_an_installed_package_carries_its_own(installed):
    root = installed("experiments/other.toml", "moestat/_experiments/b.toml")
    assert shipped() == {"b": root / "moestat" / "_experiments" / "b.toml"}
    assert find_spec("b").name == "b.toml"


def test_a_package_without_any(installed):
    installed("moestat/__init__.py")
    assert shipped() == {}
    with pytest.raises(SweepError, match=r"the 0 that are shipped"):
        find_spec("quickstart")


def test_a_wheel_takes_the_checkout_s_experiments_where_the_package_looks():
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = table["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert "experiments" in wheel["only-include"]
    assert wheel["sources"] == {"experiments": "moestat/_experiments"}
    assert wheel["exclude"] == ["/experiments/**/*.py"]
    assert {path.parent for path in shipped().values()} == {ROOT / "experiments"}


def test_misspelt_experiments_are_told_the_nearest_names_alone():
    with pytest.raises(SweepError) as raised:
        find_spec("mlmoe_figure.toml")
    assert "did you mean 'mlmoe_figure1' or 'mlmoe_figure1_softmax_four'? (" in str(raised.value)
    assert len(str(raised.value)) < 250
