"""Specs to begin with: for every family with a loss there is one that is valid."""

import json

import pytest
from typer.testing import CliRunner

from moestat.base.registry import table_of
from moestat.metrics.losses import LOSSES
from moestat.metrics.suitable import suitable_losses
from moestat.model.axes import family
from moestat.model.gates import GATES
from moestat.model.likelihoods import LIKELIHOODS
from moestat.sweep import parse_spec
from moestat.sweep.cli import app
from moestat.sweep.errors import SweepError
from moestat.sweep.spec.template import template

EXPERTS = ("linear", {"name": "activation", "activation": "gelu", "weighted": False})


def families():
    for likelihood in LIKELIHOODS:
        for gate in GATES:
            for expert in EXPERTS:
                try:
                    yield family(likelihood, gate=gate, expert=expert, n_experts=2)
                except ValueError:
                    continue


FAMILIES = list(families())


def named(model):
    return model.likelihood.name, model.gate.name, table_of(model.expert)


@pytest.mark.parametrize(
    "model", list(families()), ids=lambda model: "-".join(map(str, named(model)))
)
def test_every_family_with_a_loss_has_a_spec_that_is_valid(model):
    losses = suitable_losses(model)
    if not losses:
        with pytest.raises(SweepError, match="no Voronoi loss fits gate"):
            template("mine", *named(model))
        return
    spec = parse_spec(template("mine", *named(model)))
    exact, over = spec.curves
    assert (exact.n_experts, over.n_experts) == (2, 3)
    assert exact.loss == losses[0]
    assert spec.truths["first"].family == model


def test_every_loss_fits_some_family():
    found = {
        loss if isinstance(loss, str) else loss["name"]
        for model in FAMILIES
        for loss in suitable_losses(model)
    }
    assert found == set(LOSSES)


def test_command_writes_a_spec_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = ["new", "mine", "--likelihood", "gaussian", "--gate", "softmax"]
    result = CliRunner().invoke(app, command)
    assert result.stdout == "mine.toml; next: python -m moestat.sweep run mine.toml --check\n"
    again = CliRunner().invoke(app, command)
    assert again.exit_code == 2
    assert again.stderr == "error: mine.toml exists already\n"
    text = (tmp_path / "mine.toml").read_text().replace("replicates = 20", "replicates = 1")
    (tmp_path / "mine.toml").write_text(text)
    checked = CliRunner().invoke(app, ["run", "mine.toml", "--check", "--workers", "1"])
    assert checked.exit_code == 0
    assert "10 cells to run, about 0:00:" in checked.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["mine.toml"]


def test_unknown_names_are_one_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["new", "mine", "--gate", "soft"])
    assert result.exit_code == 2
    assert result.stderr.startswith("error: unknown gate 'soft'; known: ")
    assert not list(tmp_path.iterdir())


def test_json(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["new", "mine", "--json"])
    assert json.loads(result.stdout) == {"spec": "mine.toml"}
