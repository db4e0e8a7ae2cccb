"""Every likelihood and every procedure: a spec is refused when it is read, or its cell runs."""

import numpy as np
import pytest

import moestat
from moestat.model.likelihoods import LIKELIHOODS
from moestat.sweep import SweepError, parse_spec, plan_cells, run_cell
from moestat.sweep.kinds.fit.cell import data_of
from moestat.sweep.kinds.inference.procedures import PROCEDURES
from moestat.sweep.spec.template import _toml


def truth(family):
    """The table of a truth, inside a box that keeps estimates as near as a compact set does."""
    blocks = family.unpack(family.typical(1))
    lines = [f'likelihood = "{family.likelihood.name}"', 'gate = "softmax"']
    if family.is_regression:
        lines.append("noise = 0.01")
    if family.likelihood.support is not None:
        lines.append(f"n_classes = {family.n_classes}")
    lines += [f"{name} = {_toml(np.round(block, 2).tolist())}" for name, block in blocks.items()]
    box = {name: [-4, 4] for name in ("a", "b") if name in blocks}
    return "\n".join([*lines, f"bounds = {_toml(box)}"])


def loss(family):
    """An exponent for each block of the atoms."""
    atoms = family.measure(family.typical(1)).atoms
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
