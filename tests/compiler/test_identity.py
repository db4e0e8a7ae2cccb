"""Members of one's own: an edit of anything that their compiled code is made of is seen."""

from __future__ import annotations

import os
import subprocess
import sys
from types import ModuleType

import pytest

from moestat.compiler.identity import identity, named
from moestat.compiler.jit import device
from moestat.model.activations import tanh

OWN = """
import sys
from dataclasses import replace
import helpers
from helpers import twice
from moestat.compiler.jit import device
from moestat.model.activations import ACTIVATIONS
from moestat.model.experts import EXPERTS
from moestat.model.gates import GATES
from moestat.model.likelihoods import LIKELIHOODS

FACTOR = 1.0

@device
def gate(eta, phi, m, order, a, da, d2a):
    for b in range(m):
        a[b] = FACTOR * twice(eta[0, b])

@device
def expert(eta, m, order, mean, d1, d2):
    for b in range(m):
        mean[b] = FACTOR * twice(eta[0, b])

@device
def likelihood(eta, y, m, order, value, d1, d2):
    for b in range(m):
        value[b] = FACTOR * helpers.twice(eta[0, b]) - y[b]

@device
def activation(s):
    return FACTOR * twice(s), 1.0, 0.0

ACTIVATIONS["mine"] = activation
GATES.register(replace(GATES["softmax"], name="mine", block=gate))
EXPERTS.register(replace(EXPERTS["activation"], name="mine", block=expert, configure=None))
LIKELIHOODS.register(replace(LIKELIHOODS["poisson"], name="mine", block=likelihood))
"""
HELPERS = """
from moestat.compiler.jit import device

@device
def twice(s):
    return 2.0 * s
"""
KINDS = {
    "gate": ("poisson", "mine", "linear"),
    "expert": ("gaussian", "softmax", "mine"),
    "likelihood": ("mine", "softmax", "linear"),
    "activation": ("gaussian", "softmax", {"name": "activation", "activation": "mine"}),
}
PROGRAM = """
import sys
import moestat, numpy
import mine
likelihood, gate, expert = eval(sys.argv[1])
F = moestat.family(likelihood, gate=gate, expert=expert, n_experts=2)
theta = numpy.linspace(0.1, 0.7, F.n_params)
print(F.log_density(theta, [0.5], [1.0])[0])
"""


@pytest.mark.parametrize(
    ("kind", "edit"),
    [
        pytest.param("gate", "helper", marks=pytest.mark.slow),
        pytest.param("likelihood", "other folder", marks=pytest.mark.slow),
        ("expert", "number"),
        pytest.param("activation", "code", marks=pytest.mark.slow),
    ],
)
def test_an_edit_between_processes_is_seen(tmp_path, kind, edit):
    def value(folder, own, helpers):
        folder.mkdir(exist_ok=True)
        (folder / "mine.py").write_text(own)
        (folder / "helpers.py").write_text(helpers)
        environment = {
            **os.environ,
            "MOESTAT_CACHE_DIR": str(tmp_path / "cache"),
            "PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        command = [sys.executable, "-c", PROGRAM, repr(KINDS[kind])]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return float(done.stdout)

    here = tmp_path / "here"
    own, helpers = OWN, HELPERS
    if edit == "number":
        own = OWN.replace("FACTOR = 1.0", "FACTOR = 3.0")
    elif edit == "code":
        own = OWN.replace("FACTOR * twice", "3.0 * FACTOR * twice")
    else:
        helpers = HELPERS.replace("2.0", "6.0")
    there = tmp_path / "there" if edit == "other folder" else here
    before, after = value(here, OWN, HELPERS), value(there, own, helpers)
    assert before != after
    if there != here:
        assert after == value(tmp_path / "alone", own, helpers)
        assert before == value(here, OWN, HELPERS)


def identities(own, helpers, monkeypatch):
    """Identities of functions of a module `mine` and of one that it imports."""
    modules = {}
    for name, text in (("helpers", helpers), ("mine", own)):
        module = modules[name] = ModuleType(name)
        monkeypatch.setitem(sys.modules, name, module)
        exec(compile(text, f"{name}.py", "exec"), module.__dict__)
    return [identity(getattr(modules["mine"], name)) for name in NAMES]


MODULE = """
import numpy as np
import helpers
from helpers import twice

FACTOR = 1.0
TABLE = np.arange(3.0)

def plain(s):
    return 1.0 + s

def number(s):
    return FACTOR * s

def table(s):
    return TABLE[1] * s

def calls(s):
    return twice(s)

def attribute(s):
    return helpers.twice(s)

def second(s):
    return calls(s)

def default(s, by=1.0):
    return by * s

def closed(by):
    def inner(s):
        return by(s)
    return inner

closed_over = closed(calls)

def inside(s):
    def inner():
        return FACTOR * s
    return inner()

def recursive(s):
    return recursive(s - 1.0) if s > 0.0 else 1.0

"""
NAMES = (
    *("plain", "number", "table", "calls", "attribute", "second", "default", "closed_over"),
    *("inside", "recursive"),
)


@pytest.mark.parametrize(
    ("edit", "seen"),
    [
        (("1.0 + s", "2.0 + s"), {"plain"}),
        (("FACTOR = 1.0", "FACTOR = 2.0"), {"number", "inside"}),
        (("arange(3.0)", "arange(1.0, 4.0)"), {"table"}),
        (("2.0 * s", "3.0 * s"), {"calls", "attribute", "second", "closed_over"}),
        (("return twice(s)", "return twice(-s)"), {"calls", "second", "closed_over"}),
        (("by=1.0", "by=2.0"), {"default"}),
        (("else 1.0", "else 2.0"), {"recursive"}),
        (("import numpy", "# A line more.\nimport numpy"), set()),
    ],
)
def test_what_an_identity_sees(monkeypatch, edit, seen):
    before = identities(MODULE, HELPERS, monkeypatch)
    after = identities(MODULE.replace(*edit), HELPERS.replace(*edit), monkeypatch)
    changed = {n for n, a, b in zip(NAMES, before, after, strict=True) if a != b}
    assert changed == seen


def test_functions_keep_their_names():
    """A copy is compiled; what is pickled by its name stays as it was."""

    @device
    def own(s):
        return 2.0 * s

    name = own.__qualname__
    assert named(own).__qualname__.startswith(f"{name}__made_of__")
    assert own.__qualname__ == name
    assert named(tanh) is tanh


def test_what_must_not_be_closed_over():
    value = {}

    def own(s):
        return value

    with pytest.raises(TypeError, match="must not close over"):
        identity(own)
