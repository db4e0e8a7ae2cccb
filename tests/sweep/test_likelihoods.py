"""Every likelihood and every procedure: a spec is refused when it is read, or its cell runs."""

import numpy as np
import pytest

import moestat
from moestat.model.joint import shortest_table
from moestat.model.likelihoods import LIKELIHOODS
from moestat.sweep import SweepError, parse_spec, plan_cells, run_cell
from moestat.sweep.kinds.fit.cell import data_of
from moestat.sweep.kinds.inference.procedures import PROCEDURES
from moestat.sweep.spec.template import _toml


def truth(family):
    """The table of a truth, inside a box that keeps estimates as near as a compact set does."""
    blocks = family.unpack(family.typical(1))
    likelihood = shortest_table(family.likelihood, family.n_classes)
    lines = [f"likelihood = {_toml(likelihood)}", 'gate = "softmax"']
    if family.is_regression:
        lines.append("noise = 0.01")
    if family.likelihood.support is not None:
        lines.append(f"n_classes = {family.n_classes}")
    lines += [f"{name} = {_toml(np.round(block, 2).tolist())}" for name, block in blocks.items()]
    box = {name: [-4, 4] for name in ("a", "b") if name in blocks}
    return "\n".join([*lines, f"bounds = {_toml(box)}"])


def loss(family):
    """An exponent for each block of the atoms that is estimated."""
    atoms = family.measure(family.typical(1)).atoms
    known = [name for name in atoms if name in family.likelihood.set_by_options]
    atoms = {name: value for name, value in atoms.items() if name not in known}
    return _toml(
        {
            "name": "block-exponents",
            "over": dict.fromkeys(atoms, 2),
            "vectors": [n for n, v in atoms.items() if v.ndim == 3 or n in ("a", "beta1")],
            "summed": [
                n
                for n, v in atoms.items()
                if v.ndim == 3 or (v.ndim == 2 and n not in ("a", "beta1"))
            ],
            "left_out": known,
        }
    )


def fits(family):
    return f"""
title = "t"
seed = 1
replicates = 1
n = [400]

[truth.t]
{truth(family)}

[[curve]]
name = "c"
truth = "t"
n_experts = 2
loss = {loss(family)}
"""


def inference(family, procedure):
    return f"""
kind = "inference"
title = "t"
seed = 1
replicates = 1
x = "n"
n_starts = 1
n_resamples = 3
procedures = ["{procedure}"]

[values]
n = [200]

[truth]
{truth(family)}

[[curve]]
name = "c"
"""


def what_happens(text):
    """The message of the reader, or else that of the cell."""
    try:
        spec = parse_spec(text)
    except SweepError as error:
        return f"refused: {error}"
    (cell,) = plan_cells(spec)
    return run_cell(text, cell).message


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_a_fit_of_every_likelihood_runs_or_is_refused(name):
    said = what_happens(fits(moestat.family(name, gate="softmax")))
    expected = name == "multivariate-gaussian"
    assert said == expected * (
        "refused: truth 't': likelihood: 'multivariate-gaussian' has 2 responses, and sweeps are"
        " of one"
    )


OPTIONS = [
    {"name": "binomial", "trials": 5},
    {"name": "binomial", "trials": 5, "link": "probit"},
    {"name": "beta-binomial", "trials": 5},
    {"name": "student-t", "dof": 4},
    {"name": "ordinal", "levels": 4},
]


@pytest.mark.parametrize("table", OPTIONS, ids=_toml)
def test_a_truth_has_a_likelihood_with_options(table):
    """With one expert too many, and with another gate than the truth's."""
    family = moestat.family(table, gate="softmax")
    one, two = (fits(family).replace("n_experts = 2", more) for more in _MORE)
    assert what_happens(one) == ""
    assert parse_spec(one).truths["t"].family.likelihood.options == family.likelihood.options
    other = parse_spec(two)
    assert other.fitted_family(other.curves[0]).likelihood.options == family.likelihood.options
    for name in family.likelihood.set_by_options.intersection(family.blocks):
        lines = one.splitlines()
        shorter = "\n".join(line for line in lines if not line.startswith(f"{name} ="))
        assert (
            plan_cells(parse_spec(shorter))[0].identity == plan_cells(parse_spec(one))[0].identity
        )


_MORE = ("n_experts = 3", 'n_experts = 2\ngate = "softmax-top"')


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"name": "binomial", "trials": "rows"}, "'binomial' has numbers of trials by row"),
        ({"name": "poisson", "censored": True}, "'poisson' is of censored responses"),
        ({"name": "gaussian", "random": ["1"]}, "'gaussian' has random effects"),
        ({"name": "gaussian", "trials": 3}, "'gaussian' does not take these options"),
        ({"trials": 3}, "the table needs a name"),
    ],
)
def test_what_a_sweep_cannot_draw_is_refused(table, message):
    text = fits(moestat.family("gaussian", gate="softmax"))
    with pytest.raises(SweepError, match=message):
        parse_spec(text.replace('likelihood = "gaussian"', f"likelihood = {_toml(table)}"))


def test_a_table_that_says_what_the_name_says_is_the_same_truth():
    """Stores of truths by name go on, whatever tables may say."""
    for name in ("binomial", "ordinal", "poisson"):
        family = moestat.family(name, gate="softmax")
        table = {"name": name, **family.likelihood.options}
        lines = fits(family).replace(f'likelihood = "{name}"', f"likelihood = {_toml(table)}")
        other = "\n".join(line for line in lines.splitlines() if "n_classes" not in line)
        identities = {plan_cells(parse_spec(text))[0].identity for text in (fits(family), other)}
        assert len(identities) == 1
        assert parse_spec(other).truths["t"].law["likelihood"] == name


@pytest.mark.parametrize("procedure", PROCEDURES)
@pytest.mark.parametrize("name", ["multinomial", "gaussian", "multivariate-gaussian"])
def test_every_procedure_judges_a_cell_or_is_refused(name, procedure):
    said = what_happens(inference(moestat.family(name, gate="softmax"), procedure))
    refused = {
        ("multinomial", "prediction"): "procedures: 'prediction' judges intervals of means",
        (name, "nested"): "procedures: 'nested' needs a truth with n_features >= 2, got 1",
        ("multivariate-gaussian", procedure): "likelihood: 'multivariate-gaussian' has 2 responses",
    }
    reason = refused.get((name, procedure))
    assert said == "" if reason is None else said.startswith("refused: ")
    assert (reason or "") in said


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_a_lattice_of_every_likelihood_has_a_sample_or_is_refused(name):
    family = moestat.family(name, gate="softmax")
    text = fits(family).replace("n = [400]", 'n = [400]\ndesign = { law = "lattice" }')
    if family.likelihood.law is not None or family.likelihood.parts:
        with pytest.raises(SweepError, match=r"a lattice is for classes|has 2 responses"):
            parse_spec(text)
        return
    spec = parse_spec(text)
    (cell,) = plan_cells(spec)
    assert data_of(spec, cell)[2].sum() == 400
