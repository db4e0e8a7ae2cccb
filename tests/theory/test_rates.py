"""Rates of blocks near a truth: against theorems, facts that were found by hand, and a checker."""

from __future__ import annotations

import json
import math
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import moestat
from moestat.base.registry import table_of
from moestat.compiler.jit import device
from moestat.metrics.losses import make_loss, voronoi_loss
from moestat.model.experts import EXPERTS
from moestat.model.gates import GATES
from moestat.model.joint import shortest_table
from moestat.model.likelihoods import LIKELIHOODS
from moestat.model.members import Channel, Gate, Units
from moestat.sweep import parse_spec
from moestat.theory.exponents._cells import first_order, second_order
from moestat.theory.exponents._distance import _packed, hellinger_to
from moestat.theory.exponents._family import rows_needed
from moestat.theory.exponents._jumps import find_jumps
from moestat.theory.exponents._orders import nodes_apart
from moestat.theory.exponents._point import Point, draw_samples
from moestat.theory.exponents._search import Ladder, climb_down, pinned_atom, spread
from moestat.theory.exponents._series import BITS, exp_fixed, fixed, log_fixed, to_floats
from moestat.theory.exponents._strata import _candidates, exponents_by_derivatives
from moestat.theory.exponents._work import LADDER, exponent_of, search_point
from moestat.theory.exponents.certificates import certificates_of
from tests.laws.cases import is_plain

CHECKER = Path(__file__).parents[2] / "docs" / "theory" / "check_certificates.py"
WIDE = moestat.Uniform(-2, 2)


def lines():
    family = moestat.family("gaussian", gate="softmax", n_experts=2)
    blocks = {"beta0": [0.3, 0], "beta1": [1, 0], "a": [2, -1], "b": [0, 1], "nu": [0.2, 0.3]}
    return family, blocks


def classes(alpha, beta, a, b):
    family = moestat.family("multinomial", gate="sigmoid", n_experts=2, n_classes=2)
    slopes, intercepts = ([[v, 0] for v in each] for each in (a, b))
    return family, {"gamma": [0, 0], "alpha": alpha, "beta": beta, "a": slopes, "b": intercepts}


GENERIC = classes([1, 1.7], [0.3, -0.7], [2.3, -1.4], [0.6, -0.9])
SWAPPED = classes([1, 1.7], [0.3, -0.7], [1.7, 1], [-0.7, 0.3])
RESONANT = classes([1, 2], [0, 0], [1, -1], [0, 0])


def test_elementary_functions_have_all_digits():
    import mpmath

    values = [-30.5, -1.0, -1e-7, 0.0, 0.3, 2.0, 11.0]
    with mpmath.workprec(BITS + 60):
        found = exp_fixed(np.array([fixed(v) for v in values], dtype=object))
        for value, one in zip(values, found, strict=True):
            exact = mpmath.exp(mpmath.mpf(repr(value)))
            assert abs(mpmath.mpf(one) / 2**BITS - exact) < exact * mpmath.mpf(2) ** (
                8 - BITS
            ) + mpmath.mpf(2) ** (2 - BITS)
            back = log_fixed(np.array([one], dtype=object))[0]
            if one > 1 << (BITS - 40):
                assert abs(mpmath.mpf(back) / 2**BITS - mpmath.mpf(repr(value))) < 1e-70


def test_first_derivatives_are_those_of_the_density():
    family, blocks = GENERIC
    theta = family.pack(blocks)
    samples = draw_samples(family, theta, WIDE, 12)
    point = Point(family, theta, samples)

    def density(at):
        return family.log_density(at, samples.X.T, family.likelihood.decode(samples.y))

    for parameter in point.parameters:
        if not parameter.free:
            continue
        step = np.zeros(theta.size)
        step[parameter.position] = 1e-6
        slope = (density(theta + step) - density(theta - step)) / 2e-6
        assert to_floats(point.first(parameter)) == pytest.approx(slope, rel=1e-6, abs=1e-9)


def test_gaussian_lines_have_the_exponents_of_the_theorem():
    family, blocks = lines()
    found = moestat.theory.rates(family, blocks, 3, WIDE, seconds=0)
    assert [found.rate(name).r for name in ("mass", "beta1", "a", "b", "nu")] == [1.0] * 5
    intercepts = found.rate("b", 2)
    assert (intercepts.r, intercepts.status) == (4.0, "proved")
    assert found.rate("nu", 2).r == 2.0
    cells = [0, 0, 1]
    few = search_point(found.analysis, cells)
    pin = 0, next(p for p in few.parameters if (p.atom, p.block) == (0, "b"))

    def start(h):
        return nodes_apart(few, cells, 0, "b", h)

    ladder = climb_down(few, cells, start, pin, LADDER, math.inf)
    assert ladder is not None
    assert ladder.exponent == pytest.approx(4.0, abs=0.05)
    # The minimum that more steps do not lower; without corrections it is 26 times as large.
    assert ladder.distances[-1] < 5e-14


def test_classes_in_general_position_are_certified():
    family, blocks = GENERIC
    found = moestat.theory.rates(family, blocks, 4, WIDE, seconds=0.1)
    for name in ("alpha", "beta", "a", "b"):
        assert (found.rate(name).r, found.rate(name).status) == (1.0, "certified")
        for cell in (2, "2, 2"):
            assert (found.rate(name, cell).r, found.rate(name, cell).status) == (2.0, "certified")


def test_swapped_experts_are_not_identified():
    family, blocks = SWAPPED
    found = moestat.theory.rates(family, blocks, 2, WIDE, seconds=5)
    for name in ("beta", "b", "mass"):
        assert math.isinf(found.rate(name).r)
        assert found.rate(name).status == "not identified"
    for name in ("alpha", "a"):
        assert found.rate(name).r == 1.0


def test_resonant_slopes_are_seen_in_two_cells_of_two_alone():
    off = exponents_by_derivatives(*packed(GENERIC), WIDE)
    on = exponents_by_derivatives(*packed(RESONANT), WIDE)
    assert set(off.values()) == {"r = 1", "r = 2"}
    changed = {key for key, value in on.items() if off[key] != value}
    assert changed
    assert {cell for _, cell in changed} == {"2, 2"}


def packed(case):
    family, blocks = case
    return family, family.pack(blocks)


def test_a_sum_of_lines_has_a_free_direction():
    family = moestat.family(
        "least-squares",
        gate="sigmoid-partial",
        expert={"name": "polynomial", "degree": 1},
        n_experts=2,
    )
    blocks = {"A": [0.0, 0.8], "c": [0.3, -0.2], "alpha": [2.0, -1.5], "beta": [0.5, 1.0]}
    found = moestat.theory.rates(family, blocks, 3, moestat.Uniform(-3, 3), seconds=6)
    for name in ("alpha", "beta"):
        assert found.rate(name, 2).status == "not identified"


def test_borders_that_can_stay_leave_the_rate_of_derivatives():
    family = moestat.family("gaussian", gate={"name": "competition-top", "active": 1}, n_experts=2)
    blocks = {"a": [2.0, -1.5], "b": [1.0, -0.4], "nu": [0.25, 0.16]}
    found = moestat.theory.rates(family, blocks, 2, WIDE, seconds=2)
    assert [found.rate(name).r for name in ("a", "b", "nu")] == [1.0] * 3


def test_a_gate_without_masses_has_no_larger_cells():
    family = moestat.family("gaussian", gate="competition", n_experts=2)
    blocks = {"a": [2.0, -1.5], "b": [1.0, -0.4], "nu": [0.25, 0.16]}
    found = moestat.theory.rates(family, blocks, 3, WIDE, seconds=1)
    assert {found.rate(name, 2).status for name in ("a", "b", "nu")} == {"no such measure"}


def test_certificates_hold_and_a_changed_one_does_not(tmp_path):
    family, blocks = GENERIC
    records = certificates_of(moestat.theory.rates(family, blocks, 4, WIDE, seconds=0.1))
    assert [record["claim"] for record in records] == ["independent", *["no-cancellation"] * 3]
    broken = json.loads(json.dumps(records[1]))
    broken["weights"] = [
        str(-int(w)) if "/" not in w else f"-{w}".replace("--", "") for w in broken["weights"]
    ]
    repeated = json.loads(json.dumps(records[0]))
    repeated["samples"][1] = repeated["samples"][0]
    runs = []
    for at, record in enumerate([*records, broken, repeated]):
        path = tmp_path / f"{at}.json"
        path.write_text(json.dumps(record))
        runs.append(subprocess.run([sys.executable, CHECKER, path], capture_output=True).returncode)
    assert runs[:4] == [0] * 4
    assert all(code != 0 for code in runs[4:])


@pytest.fixture(scope="module")
def checker():
    """The functions of the program that checks certificates."""
    return runpy.run_path(str(CHECKER))


def drawn(likelihood, seed=0, **options):
    """A family with a truth of two decimals."""
    family = moestat.family(likelihood, **options)
    blocks = family.unpack(family.typical(rng=seed))
    return family, {name: np.round(block, 2) for name, block in blocks.items()}


GELU = {"name": "activation", "activation": "gelu", "weighted": False}
TANH = {"name": "activation", "activation": "tanh", "weighted": False}
TOP = {"name": "softmax-top", "active": 2}
TWO_OF_THREE = {
    "beta0": [0.4, 0.2, 0],
    "beta1": [1.3, -1, 0],
    "a": [2, -1.5, 0.3],
    "b": [1, -0.4, 0],
    "nu": [0.25, 0.16, 0.3],
}
"""Experts under `TOP`, with two borders among the inputs."""
KINDS = {
    "the error function": (drawn("gaussian", gate="softmax", expert=GELU, n_experts=2), 3),
    "two inputs": (drawn("gaussian", gate="softmax", n_experts=2, n_features=2), 2),
    "products of inputs": (
        drawn("least-squares", gate="softmax-quadratic", n_experts=2, n_features=2),
        2,
    ),
    "an average of functions": (
        drawn("least-squares", seed=3, gate="softmax", expert=TANH, n_experts=2),
        3,
    ),
    "borders": ((moestat.family("gaussian", gate=TOP, n_experts=3), TWO_OF_THREE), 3),
    "log gamma": (drawn("negative-binomial", gate="softmax", n_experts=2), 2),
}


@pytest.mark.parametrize("kind", KINDS)
def test_certificates_of_every_kind_hold(kind, checker):
    (family, blocks), n_experts = KINDS[kind]
    found = moestat.theory.rates(family, blocks, n_experts, WIDE, seconds=0)
    records = [json.loads(json.dumps(record)) for record in found.certificates()]
    assert len(records) == {2: 1, 3: 3}[n_experts] if kind != "borders" else len(records) == 1
    assert {row.status for row in found} == {"certified"}
    for record in records:
        checker["check"](record)
        record["samples"][-1] = record["samples"][0]
        with pytest.raises(ArithmeticError):
            checker["check"](record)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda record: record["borders"][0].update(between=["1/10", "1/9"]), "may not cross"),
        (lambda record: record["borders"][0].update(between=["-2", "2"]), "may not be decided"),
        (
            lambda record: record["borders"][0].update(
                atoms=[i for i in (0, 1, 2) if i != record["borders"][0]["atoms"][0]]
            ),
            "may not cross|may not be decided",
        ),
        (lambda record: record.update(active=1), "as many samples|a pivot may be 0|not be decided"),
    ],
    ids=["elsewhere", "wide", "other atoms", "one active"],
)
def test_a_wrong_border_is_refused(change, message, checker):
    (family, blocks), n_experts = KINDS["borders"]
    found = moestat.theory.rates(family, blocks, n_experts, WIDE, seconds=0)
    (record,) = found.certificates()
    assert record["borders"]
    change(record)
    with pytest.raises(ArithmeticError, match=message):
        checker["check"](record)


def test_a_border_between_equal_densities_is_no_certificate(checker):
    (family, blocks), _ = KINDS["borders"]
    record = moestat.theory.rates(family, blocks, 3, WIDE, seconds=0).certificates()[0]
    out, into = record["borders"][0]["atoms"]
    by = {
        (p["atom"], p["name"].removeprefix("log ").split("[")[0]): p
        for p in record["parameters"]
        if p["atom"] is not None
    }
    for name in ("a", "b", "nu"):
        by[into, name]["value"] = by[out, name]["value"]
    with pytest.raises(ArithmeticError, match="may be equal"):
        checker["border"](record, record["borders"][0])


@pytest.mark.parametrize("value", [-6.5, -0.3, 0.0, 1e-9, 0.5, 2.25, 7.0])
def test_the_checker_encloses_special_functions(value, checker):
    import mpmath

    with mpmath.workdps(120):
        x = mpmath.mpf(value)
        at = checker["iv"].mpf(value)
        known = [(checker["erfc"](at), mpmath.erfc(x))]
        if value > 0:
            functions = (mpmath.loggamma, mpmath.digamma, lambda v: mpmath.psi(1, v))
            exact = [function(x) for function in functions]
            known += zip(checker["log_gamma"](at), exact, strict=True)
        for found, right in known:
            assert found.a <= right <= found.b
            assert found.delta < mpmath.mpf(10) ** -60 * max(1, abs(right))
    if value < 0:
        with pytest.raises(ArithmeticError):
            checker["log_gamma"](at)


def test_certified_rows_without_a_record_say_why():
    family, blocks = drawn("multinomial", gate="sigmoid-inner", n_experts=2, n_classes=2)
    found = moestat.theory.rates(family, blocks, 2, WIDE, seconds=0)
    assert not found.certificates()
    text = " ".join(str(found).split())
    assert "no record for the checker: first derivatives have a relation" in text
    assert "no record for the checker" in found._repr_html_()
    family, blocks = lines()
    assert "no record" not in str(moestat.theory.rates(family, blocks, 2, WIDE, seconds=0))


def test_masses_of_equal_experts_are_not_identified():
    family, blocks = lines()
    equal = {**blocks, "a": [2, 2], "b": [1, 1], "nu": [0.2, 0.2]}
    found = moestat.theory.rates(family, equal, 2, WIDE, seconds=0)
    for name, status in (
        ("mass", "not identified"),
        ("beta1", "not identified"),
        ("a", "certified"),
    ):
        assert found.rate(name).status == status


def test_an_atom_that_is_seldom_drawn_is_identified():
    # On [5, 10] the second line has at most half a percent of the rows, 15 or more away.
    family, blocks = lines()
    found = moestat.theory.rates(family, blocks, 2, np.linspace(5, 10, 30), seconds=0)
    assert {row.status for row in found} == {"certified"}
    counts, slopes = drawn("poisson", gate="softmax", n_experts=2)
    slopes |= {"beta0": [9, 0], "beta1": [0.1, 0], "a": [0.1, -0.2], "b": [5, -1]}
    found = moestat.theory.rates(counts, slopes, 2, WIDE, seconds=0)
    assert {row.status for row in found} == {"certified"}


def test_finitely_many_inputs_have_no_border():
    family = moestat.family("gaussian", gate={"name": "softmax-top", "active": 1}, n_experts=2)
    blocks = {"beta0": [0.4, 0], "beta1": [1.3, 0], "a": [2, -1.5], "b": [1, -0.4]}
    blocks["nu"] = [0.25, 0.16]
    theta = family.pack(blocks)
    for design, borders in ((WIDE, 1), (moestat.Lattice(-2, 2, nodes=20), 0)):
        point = Point(family, theta, draw_samples(family, theta, design, 40))
        assert len(find_jumps(family, theta, design, point)) == borders


def test_a_border_where_lines_cross_is_undecided():
    # With equal variances the density is continuous across it: d ~ ε^(3/2), not ε^(1/2).
    family = moestat.family("gaussian", gate={"name": "softmax-top", "active": 1}, n_experts=2)
    blocks = {"beta0": [0.5, 0], "beta1": [1, 0], "a": [2, -1.5], "nu": [0.25, 0.25]}
    for b, status in (([1, -0.75], "undecided"), ([1.5, -0.75], "not identified")):
        found = moestat.theory.rates(family, {**blocks, "b": b}, 2, WIDE, seconds=0)
        assert found.rate("beta1").status == status
    # Only between the old border and the new one is there a difference.
    X, y, b = np.linspace(-0.75, -0.5, 200)[:, None], np.linspace(-5, 5, 120), [1, -0.75]

    def density(shift):
        theta = family.pack({**blocks, "b": b, "beta0": [0.5 + shift, 0]})
        logs = family.log_density(theta, np.repeat(X, y.size, axis=0), np.tile(y, len(X)))
        return np.exp(0.5 * logs)

    far, near = (np.sum((density(h) - density(0.0)) ** 2) for h in (0.2, 0.1))
    assert math.log2(far / near) == pytest.approx(3.0, abs=0.15)


def test_borders_of_two_inputs_are_undecided():
    top = {"name": "softmax-top", "active": 1}
    family = moestat.family("gaussian", gate=top, n_experts=2, n_features=2)
    blocks = {"beta0": [0.4, 0], "beta1": [[1.3, 0.5], [0, 0]], "a": [[2, 1], [-1.5, 0]]}
    blocks |= {"b": [1, -0.4], "nu": [0.25, 0.16]}
    found = moestat.theory.rates(family, blocks, 2, WIDE, seconds=0)
    assert found.rate("beta1").status == "undecided"
    assert found.rate("a").status == "certified"
    assert any("one input only" in note for note in found.notes)


def test_inputs_of_ones_own_count_whatever_their_order():
    # The neuron is off on the first half of the sorted inputs.
    expert = {"name": "activation", "activation": "relu", "weighted": False}
    family = moestat.family("gaussian", gate="softmax", expert=expert, n_experts=2)
    blocks = {"beta0": [0.4, 0], "beta1": [0.5, 0], "beta": [-0.5, 0.7], "alpha": [1, -0.6]}
    blocks["nu"] = [0.25, 0.16]
    x = np.linspace(-2, 2, 400)
    answers = [
        [
            (row.block, row.r, row.status)
            for row in moestat.theory.rates(family, blocks, 2, X, seconds=0)
        ]
        for X in (x, x[::-1, None])
    ]
    assert answers[0] == answers[1]
    assert {r for _, r, _ in answers[0]} == {1.0}


def test_atoms_count_from_one_in_words():
    family, blocks = classes([1, 1.7], [0.3, -0.7], [1.701, 1], [-0.7, 0.3])
    names = [name for name, _ in _candidates(family, family.pack(blocks))]
    assert {"alpha[1] = 0", "alpha[2] = 0", "(beta, alpha)[1] = (beta, alpha)[2]"} <= set(names)
    assert not any("[0]" in name for name in names)
    for ratio in (2, 3):
        assert any(name.startswith(f"alpha[1] = {ratio} alpha[2], a[1]") for name in names)


@pytest.mark.parametrize(
    "every",
    [12, pytest.param(1, marks=pytest.mark.thorough)],  # all take a third of a minute
)
def test_the_kept_certificates_hold(every):
    kept = sorted((CHECKER.parents[2] / "figures" / "certificates").glob("*.json"))[::every]
    assert kept
    out = subprocess.run([sys.executable, CHECKER, *kept], capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    assert out.stdout.count("holds:") == len(kept)


def test_the_checker_imports_neither_the_library_nor_numpy():
    asked = "print('numpy' in sys.modules, 'moestat' in sys.modules)"
    code = f"import runpy, sys; runpy.run_path({str(CHECKER)!r}); {asked}"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["False", "False"]


def test_loss_and_spec_follow_the_rates():
    family, blocks = lines()
    found = moestat.theory.rates(family, blocks, 3, WIDE, seconds=0.1)
    loss = found.loss()
    powers = {term.block: loss.exponents(term) for term in loss.terms}
    assert powers["b"] == (1.0, 4.0)
    assert powers["nu"] == (1.0, 2.0)
    truth = family.measure(found.truth)
    assert voronoi_loss(truth, truth, loss) == 0.0
    table = tomllib.loads(found.spec())
    named = make_loss(table["curve"][0]["loss"])
    assert named.terms == loss.terms
    assert table["truth"]["own"]["b"] == [0.0, 1.0]


def test_a_spec_has_the_names_and_the_inputs_that_were_asked():
    def channels(n_features):
        return (Channel("δ"), Channel("s&t.2"))

    def scores(blocks, X, means):
        return blocks["δ"][:, None] + blocks["s&t.2"][:, None] * np.sin(X[:, 0])

    gate = Gate(
        name="odd names",
        channels=channels,
        block=tidal,
        reference=scores,
        typical=lambda rng, n_experts, n_features: {},
        mass="δ",
        translations=("δ", "s&t.2"),
        bounds={"δ": (-10.0, 10.0), "s&t.2": (-30.0, 30.0)},
        source="an example of the documentation",
        units=Units(shift_inputs=False),
    )
    family = moestat.family("gaussian", gate=gate, n_experts=2)
    blocks = {"δ": [0.3, 0], "s&t.2": [1, 0], "a": [2, -1], "b": [0, 1], "nu": [0.2, 0.3]}
    found = moestat.theory.rates(family, blocks, 2, np.linspace(1, 3, 20), seconds=0)
    table = tomllib.loads(found.spec())
    assert table["truth"]["own"]["s&t.2"] == [1.0, 0.0]
    assert (table["design"]["low"], table["design"]["high"]) == (1, 3)
    assert r"\texttt{s\&t.2}" in found.to_latex()
    assert "20 given inputs" in str(found)


def test_tables_fit_on_80_columns():
    family, blocks = lines()
    found = moestat.theory.rates(family, blocks, 3, WIDE, seconds=0.1)
    assert max(map(len, str(found).splitlines())) <= 80
    assert found._repr_html_().count("<tr>") == len(found) + 1
    assert found.to_latex().count("\\\\") == len(found) + 1
    assert len(found.to_frame()["r"]) == len(found)


def test_wrong_arguments_are_named():
    family, blocks = lines()
    with pytest.raises(ValueError, match="n_experts must be at least the truth's 2, got 1"):
        moestat.theory.rates(family, blocks, 1)
    with pytest.raises(ValueError, match="truth"):
        moestat.theory.rates(family, [0.0, 1.0])
    for seconds in (-1, math.nan, "5", None, True):
        with pytest.raises(ValueError, match="seconds must be a number >= 0, got"):
            moestat.theory.rates(family, blocks, 2, seconds=seconds)
    for design in (3, lambda n: n):
        with pytest.raises(ValueError, match=r"design must be a design such as .* or inputs"):
            moestat.theory.rates(family, blocks, 2, design)
    with pytest.raises(ValueError, match=r"design must have shape \(any, 1\), got \(5, 2\)"):
        moestat.theory.rates(family, blocks, 2, np.zeros((5, 2)))
    with pytest.raises(ValueError, match="progress must be True, False, None or a function"):
        moestat.theory.rates(family, blocks, 2, progress="yes")
    found = moestat.theory.rates(family, blocks, 2, WIDE, seconds=0.1)
    with pytest.raises(KeyError, match="no row of block 'c'"):
        found.rate("c")
    with pytest.raises(KeyError, match="no cells of 5; known: '1'"):
        found.n_seen(5)
    with pytest.raises(ValueError, match="seconds must be a number >= 0, got -1"):
        found.exceptional(-1)
    with pytest.raises(ValueError, match="name must be a text, got 3"):
        found.spec(3)
    with pytest.raises(ValueError, match="ax must be axes of matplotlib, got 'x'"):
        found.plot("x")


def test_without_mpmath_one_sentence_says_what_to_install(monkeypatch):
    family, blocks = lines()
    monkeypatch.setattr("moestat.theory.exponents._rates.find_spec", lambda name: None)
    with pytest.raises(
        ImportError, match="rates need mpmath: install moestat with the extra 'theory'"
    ):
        moestat.theory.rates(family, blocks)


def test_a_relation_is_written_with_its_coefficients():
    family, blocks = lines()
    theta = family.pack(blocks)
    point = Point(family, theta, draw_samples(family, theta, WIDE, 90))
    first = first_order(point)
    moments = second_order(point, first, (0,))
    null = moments.relations.null_space
    names = [moments.labels[j] for j in moments.relations.dependent]
    assert "∂²p/∂b[1]²/2" in names
    at = names.index("∂²p/∂b[1]²/2")
    used = {moments.labels[k]: round(float(v), 12) for k, v in enumerate(null[:, at]) if v}
    # The derivative in log nu is nu times that in nu: half of 2 / .2.
    assert used == {"∂²p/∂b[1]²/2": 1.0, "∂p/∂log nu[1]": -5.0}


@device
def tidal(eta, phi, m, order, a, da, d2a):
    """Log-score ``gamma + s sin(x)``, the example of docs/theory/rates.md."""
    for b in range(m):
        f = math.sin(phi[1, b])
        a[b] = eta[0, b] + eta[1, b] * f
        da[0, b] = 1.0
        da[1, b] = f
        if order > 1:
            d2a[0, b] = 0.0
            d2a[1, b] = 0.0
            d2a[2, b] = 0.0


def _tidal_scores(blocks, X, means):
    return blocks["gamma"][:, None] + blocks["s"][:, None] * np.sin(X[:, 0])


def _tidal_typical(rng, n_experts, n_features):
    return {"gamma": rng.normal(size=n_experts), "s": rng.normal(size=n_experts)}


def test_a_gate_of_a_nonlinear_function_of_x():
    gate = Gate(
        name="tidal",
        channels=lambda n_features: (Channel("gamma"), Channel("s")),
        block=tidal,
        reference=_tidal_scores,
        typical=_tidal_typical,
        mass="gamma",
        translations=("gamma", "s"),
        bounds={"gamma": (-10.0, 10.0), "s": (-30.0, 30.0)},
        source="an example of the documentation",
        units=Units(shift_inputs=False),
    )
    family = moestat.family("gaussian", gate=gate, expert={"name": "ffn", "hidden": 1}, n_experts=2)
    blocks = {"gamma": [0.3, 0], "s": [1, 0], "nu": [0.3, 0.2], "b1": [[0.5], [0.3]]}
    blocks |= {"W1": [[[1.5]], [[-1.0]]], "W2": [[1.5], [-1.2]]}
    found = moestat.theory.rates(family, blocks, 3, moestat.Uniform(-3, 3), seconds=0)
    assert {row.r for row in found if row.cell == "1"} == {1.0}
    assert {row.r for row in found if row.cell == "2" and row.block != "mass"} == {2.0}
    assert {row.status for row in found} == {"certified"}


def test_regression_functions_under_a_softmax_gate():
    family = moestat.family("least-squares", gate="softmax", n_experts=2)
    blocks = {"beta0": [0.3, 0], "beta1": [1, 0], "a": [2, -1], "b": [0, 1]}
    found = moestat.theory.rates(family, blocks, 3, WIDE, seconds=0)
    assert {row.r for row in found if row.cell == "1"} == {1.0}
    assert {found.rate(name, 2).status for name in ("a", "b")} == {"not identified"}


def test_several_responses_are_refused():
    family = moestat.family("multivariate-gaussian", gate="softmax", n_experts=2)
    with pytest.raises(ValueError, match="rates are for one response of independent rows"):
        moestat.theory.rates(family, family.typical(rng=0))


def test_a_common_translation_is_no_deviation():
    # Gates of softmax may all move by one slope; the last atom's slope is the reference.
    family, blocks = lines()
    theta = family.pack(blocks)
    cells = [1, 1, 0]
    few = Point(family, theta, draw_samples(family, theta, WIDE, 40, seed=1))
    (slope,) = (p for p in few.parameters if (p.atom, p.block) == (1, "beta1"))
    assert not slope.free
    pin = pinned_atom(cells, slope), slope
    begun = spread(few, cells, None, 0.1, 0, pin)
    moved = begun.values[1][slope.position] - begun.values[0][slope.position]
    assert begun.values[0][slope.position] == few.values[slope.position]
    assert to_floats(np.array([moved], dtype=object))[0] == pytest.approx(0.1, rel=1e-12)
    ladder = climb_down(
        few, cells, lambda h: spread(few, cells, None, h, 0, pin), pin, (1e-1, 1e-2), math.inf, 8
    )
    assert ladder is not None
    assert ladder.distances[-1] > 1e-8


def ladder_of(distance, deviations=(1e-1, 1e-2, 1e-3)):
    parameter = lines()[0]
    return Ladder(parameter, list(deviations), [distance(h) for h in deviations], [], [])


@pytest.mark.parametrize("r", [1.0, 1.5, 2.0, 3.0, 4.0, 6.0])
@pytest.mark.parametrize("a", [-4.0, 0.0, 8.0])
def test_an_exponent_is_settled_where_its_next_term_is_small(r, a):
    found = ladder_of(lambda h: 1e-3 * (h * (1.0 + a * h)) ** r)
    assert exponent_of(found) == (r, True)


@pytest.mark.parametrize("power", [2.2, 3.25, 4.3])
def test_an_exponent_between_halves_is_not_settled(power):
    assert exponent_of(ladder_of(lambda h: h**power)) == (math.floor(power), False)


def test_two_deviations_do_not_settle_an_exponent():
    assert not exponent_of(ladder_of(lambda h: h**4, (1e-1, 1e-2)))[1]


def test_a_truth_six_digits_off_an_exceptional_set_is_off_it():
    family, on = RESONANT
    _, off = classes([1, 2.000001], [0, 0], [1, -1], [0, 0])
    for blocks, is_on in ((on, True), (off, False)):
        theta = family.pack(blocks)
        point = Point(family, theta, draw_samples(family, theta, WIDE, rows_needed(family)))
        moments = second_order(point, first_order(point), (0, 1))
        assert (moments.cancelling("beta", 2, (0, 1)) is not None) == is_on


def test_the_nearest_exceptional_truths_are_in_the_answer():
    family, blocks = classes([1, 1.7], [0.3, -0.7], [1.701, 1], [-0.7, 0.3])
    found = moestat.theory.rates(family, blocks, 2, WIDE, seconds=math.inf)
    assert found.nearest is not None
    assert found.nearest.name == "b, a = (beta, alpha) of the other atom"
    assert found.nearest.distance == pytest.approx(0.001 / math.sqrt(2.0), rel=1e-3)
    assert "Nearest exceptional truths" in str(found)
    assert found.nearest.name in found._repr_html_()


def test_two_points_bound_the_error_of_a_mean():
    family = moestat.family("gaussian", gate="softmax", n_experts=1)
    blocks = {"beta0": [0], "beta1": [0], "a": [2], "b": [1], "nu": [0.25]}
    found = moestat.theory.rates(family, blocks, 1, WIDE)
    bound = found.lower_bound("b")
    assert bound is not None
    # 1 and x are orthogonal, so that the law in b is a normal one with variance nu.
    assert bound.hellinger == pytest.approx(1.0 / math.sqrt(8.0 * 0.25), rel=1e-6)
    # The mean of n values errs by (2 nu / pi n)^(1/2), which no bound may exceed.
    assert 0.1 < bound.constant / math.sqrt(2.0 * 0.25 / math.pi) < 1.0
    assert found.lower_bound("mass") is None


def test_two_points_of_a_cell_have_the_hellinger_distance_that_is_said():
    family, blocks = lines()
    found = moestat.theory.rates(family, blocks, 3, WIDE, seconds=0)
    bound = found.lower_bound("b", 2)
    assert bound is not None
    assert bound.r == 4.0
    cells = [0, 0, 1]
    h = 0.2 * math.sqrt(0.2)
    pair = nodes_apart(search_point(found.analysis, cells), cells, 0, "b", h)
    distance = hellinger_to(family, found.truth, WIDE, pair)
    fitted = family.with_experts(3)
    theta = _packed(family, fitted, found.truth, pair)
    nodes = {"design": WIDE, "n_nodes": 64}
    known = moestat.hellinger(fitted, theta, family, found.truth, **nodes).value
    # The mean over x of the distance, where ours is the root of the mean square.
    assert known <= distance < 2.0 * known
    # The pair of the other atom may be nearer.
    assert bound.hellinger <= distance / h**4


def test_a_lower_bound_has_the_unit_of_the_response():
    family, blocks = lines()
    scaled = {**blocks, "a": [0.2, -0.1], "b": [0, 0.1], "nu": [0.002, 0.003]}
    one, two = (
        moestat.theory.rates(family, each, 3, WIDE, seconds=0).lower_bound("b", 2)
        for each in (blocks, scaled)
    )
    assert one is not None
    assert two is not None
    assert two.constant == pytest.approx(0.1 * one.constant, rel=1e-6)


def test_nodes_beyond_a_standard_deviation_leave_some_variance():
    family, blocks = lines()
    theta = family.pack({**blocks, "nu": [0.002, 0.003]})
    few = Point(family, theta, draw_samples(family, theta, WIDE, 30, seed=1))
    start = nodes_apart(few, [0, 0, 1], 0, "b", 0.1)
    assert max(abs(int(v)) for values in start.values for v in values) < fixed(20.0)


def test_an_expert_that_is_active_on_a_narrow_interval_has_two_borders():
    family = moestat.family("gaussian", gate={"name": "softmax-top", "active": 1}, n_experts=3)
    blocks = {"beta0": [0, 0, 0.02], "beta1": [-10, 10, 0], "a": [2, -1.5, 0.3], "b": [1, -0.4, 0]}
    theta = family.pin(family.pack({**blocks, "nu": [0.25, 0.16, 0.3]}))
    point = Point(family, theta, draw_samples(family, theta, WIDE, 40))
    borders = [jump.x for jump in find_jumps(family, theta, WIDE, point)]
    assert borders == pytest.approx([-0.002, 0.002], abs=1e-9)


def test_opposite_displacements_bound_what_is_certified_without_a_search():
    family = moestat.family("gaussian", gate="competition-free", n_experts=2)
    blocks = {"c": [0.4, 0], "a": [2, -1.5], "b": [1, -1], "nu": [0.25, 0.16]}
    found = moestat.theory.rates(family, blocks, 4, WIDE, seconds=0)
    for name in ("a", "b", "nu"):
        of_two = found.lower_bound(name, 2)
        assert of_two is not None
        assert of_two.r == 2.0
        for cell in (3, "2, 2"):
            assert found.lower_bound(name, cell).constant == of_two.constant


def test_lower_bounds_of_regression_functions():
    family = moestat.family(
        "least-squares",
        gate="softmax",
        expert={"name": "activation", "activation": "tanh", "weighted": False},
        n_experts=2,
    )
    theta = family.typical(rng=3)
    found = moestat.theory.rates(family, theta, 3, WIDE, seconds=0)
    for row in found:
        bound = found.lower_bound(row.block, row.cell)
        if row.status == "certified" and row.block != "mass":
            assert bound is not None
            assert bound.constant > 0.0


def test_a_common_scale_is_free_in_larger_cells_too():
    family = moestat.family("gaussian", gate={"name": "softmax-top", "active": 1}, n_experts=2)
    blocks = {"beta0": [0.4, 0], "beta1": [1.3, 0], "a": [2, -1.5], "b": [1, -0.4]}
    found = moestat.theory.rates(family, {**blocks, "nu": [0.25, 0.16]}, 3, WIDE, seconds=0)
    for cell in (1, 2):
        assert found.rate("beta1", cell).status == "not identified"


def test_a_block_is_in_larger_cells_no_faster_than_in_cells_of_one(monkeypatch):
    family = moestat.family("multinomial", gate="sigmoid-inner", n_experts=2, n_classes=2)
    theta = family.typical(rng=0)
    for relation in (lambda *_: True, lambda *_: False):
        monkeypatch.setattr("moestat.theory.exponents._single._declared", relation)
        monkeypatch.setattr("moestat.theory.exponents._single._follow", lambda *_: None)
        found = moestat.theory.rates(family, theta, 4, WIDE, seconds=0)
        for name in ("alpha", "beta"):
            one = found.rate(name)
            assert not one.r <= 1.0
            for cell in (2, 3, "2, 2"):
                assert found.rate(name, cell).status == one.status


def _members():
    found = [
        (name, "softmax" if each.block is not None else "sigmoid-quadratic", "linear")
        for name, each in LIKELIHOODS.items()
    ]
    found += [("gaussian", name, "linear") for name in GATES]
    return found + [("gaussian", "softmax", name) for name in EXPERTS]


@pytest.mark.thorough  # a second for each member
@pytest.mark.parametrize(("likelihood", "gate", "expert"), _members())
def test_every_member_is_answered_or_refused_in_a_sentence(likelihood, gate, expert):
    """At a typical truth the errors of single atoms are regular, where they are identified."""
    more = {"n_classes": 3} if likelihood in ("multinomial", "ordinal") else {}
    table = {"name": gate, "tree": [0, 1]} if gate == "hierarchical" else gate
    try:
        family = moestat.family(likelihood, gate=table, expert=expert, n_experts=2, **more)
        truth = family.typical(0)
        found = moestat.theory.rates(family, truth, 3, WIDE, seconds=0.0)
    except ValueError as error:
        if not is_plain(error):
            raise
        return
    alone = [row for row in found.rows if row.cell == "1"]
    assert alone
    assert all(row.r == 1.0 or row.status in ("not identified", "undecided") for row in alone)
    assert_read_or_refused(found)


def assert_read_or_refused(found):
    """The spec is one that a sweep reads, for this model, or is refused in one sentence."""
    try:
        text = found.spec()
    except ValueError as error:
        if not is_plain(error):
            raise
        return str(error)
    spec = parse_spec(text)
    spec.check_machine()
    truth = spec.truths["own"]
    assert truth.law["likelihood"] == shortest_table(
        found.family.likelihood, found.family.n_classes
    )
    assert table_of(truth.family.gate) == table_of(found.family.gate)
    assert table_of(truth.family.expert) == table_of(found.family.expert)
    assert truth.theta == pytest.approx(found.family.pack(found.family.unpack(found.truth)))
    return ""


@pytest.mark.parametrize(
    ("likelihood", "more"),
    [
        ({"name": "binomial", "trials": 5}, {}),
        ({"name": "student-t", "dof": 4}, {}),
        ("ordinal", {"n_classes": 4}),
        ("poisson", {"n_features": 2}),
        ("least-squares", {"gate": "softmax"}),
        ("gaussian", {"n_features": 3, "n_experts": 1}),
        ("gaussian", {"gate": {"name": "hierarchical", "tree": [[0, 1], 2]}, "n_experts": 3}),
    ],
)
def test_a_spec_has_the_options_and_sizes_of_the_model(likelihood, more):
    family = moestat.family(likelihood, **{"gate": "softmax", "n_experts": 2, **more})
    n_experts = family.n_experts + (family.gate.name != "hierarchical")
    found = moestat.theory.rates(family, family.typical(0), n_experts, WIDE, seconds=0)
    assert assert_read_or_refused(found) == ""


@pytest.mark.parametrize(
    ("likelihood", "more", "words"),
    [
        ("gaussian", {"equal": "nu"}, "no equal or fixed coefficients"),
        ("gaussian", {"fixed": {"b": {1: 0.5}}}, "no equal or fixed coefficients"),
        ("gaussian", {"gate_inputs": []}, "no inputs of the gate"),
        ({"name": "binomial", "trials": "rows"}, {}, "numbers of trials by row"),
        ({"name": "poisson", "censored": True}, {}, "censored responses"),
    ],
)
def test_a_model_that_sweeps_do_not_have_is_refused(likelihood, more, words):
    """Specs left out what they have no key for, and were of another model."""
    family = moestat.family(likelihood, gate="softmax", n_experts=2, **more)
    found = moestat.theory.rates(family, family.typical(0), 3, WIDE, seconds=0)
    assert words in assert_read_or_refused(found)


def test_the_box_of_a_spec_holds_its_truth():
    family, blocks = lines()
    for own in ({"beta0": [4.0, 0]}, {"beta0": [0, 3.0]}, {"nu": [2e-5, 3e-5]}, {"nu": [40, 60]}):
        found = moestat.theory.rates(family, {**blocks, **own}, 3, WIDE, seconds=0)
        assert assert_read_or_refused(found) == ""
    with pytest.raises(ValueError, match="name must be text on one line"):
        found.spec("two\nlines")
