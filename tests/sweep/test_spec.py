import json
import re

import numpy as np
import pytest

from moestat.sweep import SweepError, load_spec, parse_spec, plan_cells, run_cell
from moestat.sweep.spec.experiments import shipped


def test_reads_everything(spec):
    assert (spec.title, spec.seed, spec.replicates) == ("A small sweep", 7, 3)
    assert spec.sizes == (200, 400)
    assert spec.n_cells == 12
    assert spec.design_table == {"law": "uniform", "low": -4.0, "high": 4.0}
    newton, em = spec.curves
    assert (newton.solver, newton.require_certificate) == ({"name": "newton"}, True)
    assert (newton.theory, em.theory, em.require_certificate) == (-0.5, None, False)
    assert spec.fitted_family(newton).n_experts == 2
    np.testing.assert_array_equal(
        spec.truths["t"].theta,
        spec.truths["t"].family.pack(
            {"beta0": [-2, 0], "beta1": [3, 0], "a": [[1], [1]], "b": [[-3], [2.5]]}
        ),
    )


def test_reads_what_only_reports_and_tables_show(text, spec):
    words = 'published = -0.49\nnote = "Other\\tlosses."\nalso = ["softmax-D2r"]'
    with pytest.raises(SweepError, match=r"curve 'newton': note: must be text on one line"):
        parse_spec(text.replace("theory = -0.5", words))
    newton, em = parse_spec(text.replace("theory = -0.5", words.replace("\\t", " "))).curves
    assert (newton.published, newton.note) == (-0.49, "Other losses.")
    assert newton.also == ("softmax-D2r",)
    assert (em.published, em.note, em.also) == (None, "", ())


def temperate(gate, tau):
    """A spec with a temperature gate, whose truth has a shared parameter."""
    return f"""
title = "Temperature"
seed = 1
replicates = 1
n = [2000]

[truth.t]
gate = "{gate}"
gamma = [0.0, 0.0]
alpha = [1.0, -2.0]
beta = [0.5, -0.3]
tau = {tau}
a = [[0.0, 0.0], [1.86, 1.0]]
b = [[0.0, 1.0], [0.96, 0.0]]

[[curve]]
name = "k = 3"
truth = "t"
n_experts = 3
loss = "{LOSS[gate]}"
starts = {{ truth = 1, noise = 0.1 }}
"""


LOSS = {"sigmoid-inner": "D2r-identified", "sigmoid-euclidean": "D3"}


@pytest.mark.parametrize("gate", LOSS)
def test_truths_may_share_a_scalar(gate):
    spec = parse_spec(temperate(gate, 0.1))
    truth = spec.truths["t"]
    assert truth.family.unpack(truth.theta)["tau"] == 0.1
    assert truth.law["tau"] == 0.1
    assert spec.fitted_family(spec.curves[0]).param_names[-1] == "tau"
    (record,) = [run_cell(spec.text, cell) for cell in plan_cells(spec)]
    assert record.message == ""
    assert len(record.params) == spec.fitted_family(spec.curves[0]).n_params


@pytest.mark.parametrize(
    ("tau", "message"),
    [
        ("[0.1, 0.1]", "truth 't': block 'tau' must have shape (), got (2,)"),
        ("-1.0", "truth 't': bounds: tau = -1 "),
        ("'x'", "truth 't': block 'tau' must hold numbers"),
    ],
)
def test_a_shared_scalar_is_checked(tau, message):
    with pytest.raises(SweepError) as error:
        parse_spec(temperate("sigmoid-inner", tau))
    assert message in str(error.value)


def test_log_spaced_sizes_hit_both_ends(text):
    spec = parse_spec(text.replace("n = [200, 400]", "n = { start = 1e2, stop = 1e4, num = 3 }"))
    assert spec.sizes == (100, 1000, 10000)


def test_log_spaced_sizes_are_distinct(text):
    spec = parse_spec(text.replace("n = [200, 400]", "n = { start = 50, stop = 53, num = 40 }"))
    assert spec.sizes == (50, 51, 52, 53)


def test_bounds_reach_the_fitted_family(text):
    table = '[truth.t.bounds]\na = [-5, 6]\n\n[[curve]]\nname = "newton"'
    spec = parse_spec(text.replace('[[curve]]\nname = "newton"', table))
    assert spec.fitted_family(spec.curves[0]).box["a"] == (-5.0, 6.0)


def test_layout_and_comments_do_not_change_the_digest(text, spec):
    same = parse_spec("# a comment\n" + text.replace("seed = 7", "seed   =   7"))
    assert same.digest == spec.digest
    assert parse_spec(text.replace("seed = 7", "seed = 8")).digest != spec.digest


def test_canonical_form_is_plain_json_with_defaults(spec):
    data = json.loads(spec.canonical)
    assert data["curve"][0]["solver"] == {"name": "newton"}
    assert data["truth"]["t"]["likelihood"] == "multinomial"


WRONG = [
    ("seed = 7", "seed = ", "is not valid TOML"),
    ("seed = 7", "seed = -1", "seed: must be an integer >= 0, got -1"),
    ("seed = 7", "seed = true", "seed: must be an integer >= 0, got True"),
    ("seed = 7\n", "", "seed: is missing"),
    ('title = "A small sweep"', 'title = ""', "title: must be text on one line, got ''"),
    ("replicates = 3", "replicates = 0", "replicates: must be an integer >= 1, got 0"),
    ("replicates = 3", "replicates = 2.5", "replicates: must be an integer >= 1, got 2.5"),
    ("replicates = 3", "replicate = 3", "replicates: is missing"),
    (
        "seed = 7",
        "seed = 7\nsead = 8",
        "unknown key 'sead' (did you mean 'seed'?); allowed: kind, title",
    ),
    ("[200, 400]", "[]", "n: must hold at least one sample size, got []"),
    ("[200, 400]", "[200, 200]", "n: must not repeat a sample size"),
    ("[200, 400]", "[200, 0]", "n: must hold whole numbers >= 1, got 0"),
    ("[200, 400]", "[200.5]", "n: must hold whole numbers >= 1, got 200.5"),
    ("[200, 400]", "100", "n: must be a list or { start, stop, num }, got 100"),
    (
        "[200, 400]",
        "{ start = 9, stop = 2, num = 3 }",
        "n: needs 1 <= start <= stop <= 1e+18, got 9",
    ),
    ("[200, 400]", "{ start = 9, stop = 20 }", "n: num: is missing"),
    ("[200, 400]", "{ start = 9, stop = inf, num = 2 }", "n: stop: must be a finite number"),
    ("[200, 400]", "[4]", "n: 4 samples cannot determine the 6 free parameters of curve 'newton'"),
    ("low = -4", "lo = -4", "design: 'uniform' does not take these options"),
    ("low = -4", "low = 5", "design: low must be below high"),
    ("low = -4", 'law = "cauchy"', "design: unknown design 'cauchy'; known: 'uniform'"),
    ('gate = "softmax"', 'gate = "soft"', "truth 't': gate: unknown gate 'soft'; known: 'softmax'"),
    ('gate = "softmax"', 'gate = "sigmoid"', "truth 't': gamma: is missing"),
    ('gate = "softmax"', 'gate = "softmax"\nexpert = "cubic"', "truth 't': expert: unknown expert"),
    (
        'gate = "softmax"',
        'gate = "softmax"\ncolour = 1',
        "truth 't': unknown key 'colour'; allowed",
    ),
    ('gate = "softmax"', 'gate = "softmax"\nn_classes = 1', "truth 't': n_classes: must be"),
    ("beta1 = [3.0, 0.0]", "beta1 = [3.0]", "truth 't': block 'beta1' must have shape (2, 1)"),
    ("beta1 = [3.0, 0.0]", "beta1 = [99.0, 0.0]", "truth 't': bounds: beta1[1,0] = 99"),
    ("beta0 = [-2.0, 0.0]", "beta0 = -2.0", "truth 't': beta0: must list one number per expert"),
    ("beta0 = [-2.0, 0.0]", 'beta0 = ["x", 0]', "truth 't': block 'beta0' must hold numbers"),
    ("a = [[1.0, 0.0], [1.0, 0.0]]", "a = [[1.0], [nan]]", "truth 't': block 'a' holds 1 NaN"),
    ('truth = "t"', 'truth = "u"', "curve 'newton': truth: unknown truth 'u'; known: 't'"),
    ('name = "em"\n', 'name = "newton"\n', "curve 'newton': name is taken by an earlier curve"),
    ('name = "em"\n', "", "curve 2: name: is missing"),
    ("n_experts = 2", "n_experts = 0", "curve 'newton': n_experts: must be an integer >= 1, got 0"),
    ('loss = "softmax-D1"', 'loss = "D9"', "curve 'newton': loss: unknown loss 'D9'; known: 'D1'"),
    ('loss = "softmax-D1"', 'loss = "D1"', "curve 'newton': loss: 'D1' needs the blocks"),
    ('loss = "softmax-D1"', "loss = 3", "curve 'newton': loss: unknown loss 3"),
    ('loss = "softmax-D1"', 'loss = { name = "softmax-D2r", r = 0.5 }', "curve 'newton': loss: r"),
    (
        '{ name = "em", max',
        '{ name = "dem", max',
        "curve 'em': solver: unknown solver 'dem'; known",
    ),
    ('{ name = "em", max', '{ name = "em", tol = 1, max', "curve 'em': solver: 'em' does not take"),
    ("noise = 0.1", "noise = -1.0", "curve 'newton': starts: noise must be"),
    ("noise = 0.1", "nose = 0.1", "curve 'newton': starts: unknown start rule 'nose'"),
    ("{ truth = 1, noise = 0.1 }", "{}", "curve 'newton': starts: must ask for at least one start"),
    ("theory = -0.5", 'published = "half"', "curve 'newton': published: must be a finite number"),
    ("theory = -0.5", 'also = "D1"', "curve 'newton': also: must be a list of losses, got 'D1'"),
    ("theory = -0.5", 'also = ["D9"]', "curve 'newton': also: unknown loss 'D9'; known: 'D1'"),
    ("theory = -0.5", 'also = ["D1"]', "curve 'newton': also: loss 'D1' needs the blocks"),
    ("theory = -0.5", 'also = [{ name = "softmax-D2r", r = 0 }]', "curve 'newton': also: r"),
    ("theory = -0.5", 'also = ["softmax-D1"]', "also: loss 'softmax-D1' is there already"),
    ("theory = -0.5", 'theory = "half"', "curve 'newton': theory: must be a finite number"),
    ('panel = "a"', "panel = 1", "curve 'newton': panel: must be text on one line, got 1"),
    ("require_certificate = false", "require_certificate = 0", "curve 'em': require_certificate"),
    (
        "require_certificate",
        "require_certificat",
        "curve 'em': unknown key 'require_certificat' (did",
    ),
]


@pytest.mark.parametrize(("old", "new", "message"), WRONG, ids=[case[2][:40] for case in WRONG])
def test_errors_name_the_key_and_what_is_allowed(text, old, new, message):
    assert old in text
    with pytest.raises(SweepError) as error:
        parse_spec(text.replace(old, new, 1))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_curves_and_truths_must_be_there():
    head = 'title = "x"\nseed = 1\nreplicates = 1\nn = [100]\n'
    with pytest.raises(SweepError, match=r"truth: is missing"):
        parse_spec(head)
    with pytest.raises(SweepError, match=r"truth: must be one or more tables \[truth.NAME\]"):
        parse_spec(head + "truth = 3\n")


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(SweepError, match=r"cannot read the spec .*nowhere.toml: No such file"):
        load_spec(tmp_path / "nowhere.toml")
    (tmp_path / "latin.toml").write_bytes(b'title = "\xe9"')
    with pytest.raises(SweepError, match=r"latin.toml: is not UTF-8 text"):
        load_spec(tmp_path / "latin.toml")


def test_errors_name_the_file(tmp_path):
    (tmp_path / "bad.toml").write_text("title = 3")
    with pytest.raises(SweepError, match=r"bad.toml: title: must be text on one line, got 3"):
        load_spec(tmp_path / "bad.toml")


def test_distances_are_a_key_that_older_stores_do_not_know(text):
    plain, none, one = (
        parse_spec(text.replace("n = [200, 400]", f"n = [200, 400]\n{line}"))
        for line in ("", "distances = []", 'distances = ["hellinger"]')
    )
    assert "distances" not in plain.canonical
    assert len({spec.digest for spec in (plain, none, one)}) == 3
    whole, without, part = (run_cell(spec.text, plan_cells(spec)[0]) for spec in (plain, none, one))
    assert {"hellinger", "total_variation"} <= set(whole.losses)
    assert not {"hellinger", "total_variation"} & set(without.losses)
    assert part.losses["hellinger"] == whole.losses["hellinger"]
    assert "total_variation" not in part.losses
    assert whole.params == without.params
    for wrong in ('["chi2"]', '"hellinger"', '["hellinger", "hellinger"]', "[3]"):
        with pytest.raises(SweepError, match="distances: must be a list of some of 'hellinger'"):
            parse_spec(text.replace("seed = 7", f"seed = 7\ndistances = {wrong}"))


LIMITS = {
    "quickstart": ("replicates = 1000000001", "n = [18446744073709551616]", 'title = "{long}"'),
    "expert_count_figure1": (
        "n_steps = 20000000000",
        "n = 18446744073709551616",
        "replicates = 1000000000",
        'title = "{long}"',
    ),
    "compete_clusters": ("n_steps = 20000000000", "n_test = 10000000000", 'title = "{long}"'),
    "coverage_order": ("n_starts = 1000000000", "n_resamples = 10000000000", 'title = "{long}"'),
}


@pytest.mark.parametrize(
    ("name", "line"), [(n, each) for n, lines in LIMITS.items() for each in lines]
)
def test_numbers_and_texts_without_a_use_are_refused_in_every_kind(name, line):
    line = line.format(long="x" * 100_000)
    key = line.partition(" ")[0]
    old = shipped()[name].read_text()
    new, changed = re.subn(rf"(?m)^{key} = .*$", line, old, count=1)
    text = new if changed else f"{line}\n{old}"
    with pytest.raises(SweepError, match=r"must (be|hold numbers) |has at most") as raised:
        parse_spec(text)
    assert key in str(raised.value)
    assert len(str(raised.value)) < 300


def test_cells_and_memory_of_runs_are_limited_too():
    text = shipped()["expert_count_figure1"].read_text()
    many = re.sub(r"(?m)^replicates = .*$", "replicates = 1000000", text)
    spec = parse_spec(re.sub(r"(?m)^n = .*$", "n = 100000000", text))
    with pytest.raises(SweepError, match=r"cells; at most 10,000,000"):
        parse_spec(many)
    with pytest.raises(SweepError, match=r"its runs need about .* GiB of memory"):
        spec.check_machine()
