"""Templates: a commented spec of a chosen family, to be edited and run."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np

from moestat.base.validate import is_mapping
from moestat.metrics.suitable import suitable_losses
from moestat.model.axes import family
from moestat.model.family import Family
from moestat.sweep.errors import SweepError

_TEXT = """\
# Fits of mixtures of experts to data of a truth, over sample sizes.
#
#     python -m moestat.sweep run {name}.toml --check     validate; cells, memory and time
#     python -m moestat.sweep run {name}.toml
#
# All keys: docs/spec.md.

title = "{name}"
seed = 1                                     # the same seed gives the same numbers
replicates = 20                              # data sets per curve and sample size
n = {{ start = 1e3, stop = 1e5, num = 5 }}     # log-spaced sample sizes, or a list

[design]                                     # distribution of the inputs
law = "uniform"
low = -2
high = 2

[truth.first]                                # the distribution that data are drawn from
{truth}

[[curve]]                                    # as many experts as the truth has
name = "k = {k}"
truth = "first"
n_experts = {k}
loss = {loss}{others}
# theory = -0.5                              # a slope that a theorem states; it is tested

[[curve]]                                    # one expert too many
name = "k = {over}"
truth = "first"
n_experts = {over}
loss = {loss}
# solver = {{ name = "em" }}                   # with require_certificate = false: EM stops early
# starts = {{ truth = 3, noise = 0.1 }}        # starts near the truth, and how near
"""


def template(
    name: str,
    likelihood: str = "multinomial",
    gate: str | Mapping[str, object] = "softmax",
    expert: str | Mapping[str, object] = "linear",
    n_experts: int = 2,
) -> str:
    """The TOML text of a spec that runs as it is, and whose comments say what to change.

    The truth's numbers are those of `Family.typical`, rounded.
    """
    try:
        model = family(likelihood, gate=gate, expert=expert, n_experts=n_experts)
    except (ValueError, TypeError) as error:
        raise SweepError(str(error)) from None
    losses = suitable_losses(model)
    if not losses:
        raise SweepError(
            f"no Voronoi loss fits gate {model.gate.name!r} with expert {model.expert.name!r} and"
            f" likelihood {likelihood!r}: the table of losses in the documentation says which fits"
            " which"
        )
    others = " or ".join(map(_toml, losses[1:]))
    return _TEXT.format(
        name=name,
        truth=_truth(model, likelihood, gate, expert),
        k=n_experts,
        over=n_experts + 1,
        loss=_toml(losses[0]),
        others=f"                           # or {others}" if others else "",
    )


def _truth(
    model: Family,
    likelihood: str,
    gate: str | Mapping[str, object],
    expert: str | Mapping[str, object],
) -> str:
    """The truth's table: the names of the axes, and its parameters block by block."""
    table: dict[str, object] = {"likelihood": likelihood, "gate": gate, "expert": expert}
    if model.likelihood.support is not None:
        table["n_classes"] = model.n_classes
    for block, values in model.unpack(model.typical(1)).items():
        table[block] = np.round(values, 2).tolist()
    if model.is_regression:
        table["noise"] = 0.01
    return "\n".join(f"{key} = {_toml(value)}" for key, value in table.items())


def _toml(value: object) -> str:
    """A value on one line of TOML."""
    if is_mapping(value):
        return "{ " + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + " }"
    return json.dumps(value)
