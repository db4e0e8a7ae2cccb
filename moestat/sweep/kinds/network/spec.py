"""Specs of networks: the format of `moestat.sweep.kinds.runs.spec`, and what a cell trains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from moestat.base.registry import make_member
from moestat.base.validate import one_of, positive_int
from moestat.networks import ACTIVATIONS, EXPERTS, INITIALISATIONS, OPTIMISERS, Network, PatchLaw
from moestat.networks.expert_count.network import GATES_OF_PATCHES
from moestat.networks.expert_count.optimisers import Optimiser
from moestat.networks.expert_count.training import PRECISIONS
from moestat.sweep.kinds.runs.spec import RunsSpec
from moestat.sweep.spec.identity import digest, seed_from
from moestat.sweep.spec.keys import Key, declared

_DEFAULTS: dict[str, Any] = {"optimiser": "normalised-gd", "precision": "float32", "look_every": 50}
_REQUIRED = ("n", "n_steps", "n_experts", "sigma_0")


@dataclass(frozen=True)
class Run:
    """What one cell trains."""

    n: int  # examples to train on and to test on
    n_test: int
    law: PatchLaw  # their law
    network: Network  # the network
    optimiser: Optimiser  # the rule of a step
    n_steps: int  # steps T
    precision: str  # name in `moestat.networks.expert_count.training.PRECISIONS`
    look_every: int  # steps between two points of a curve


def make_run(fields: Mapping[str, object]) -> Run:
    """A run from its fields, defaults filled in; what is wrong with one raises a `ValueError`.

    Examples
    --------
    >>> make_run({"n": 100, "n_steps": 5, "n_experts": 4, "sigma_0": 0.01}).n_test
    100
    """
    for name in _REQUIRED:
        if name not in fields:
            raise ValueError(f"{name} is missing")
    given = {**_DEFAULTS, "n_test": fields["n"], **fields}
    sizes = {
        name: positive_int(name, given[name], maximum=None) for name in ("n", "n_test", "n_steps")
    }
    rates = {name: given[name] for name in ("learning_rate", "router_rate") if name in given}
    one_of("precision", given["precision"], PRECISIONS)
    return Run(
        **sizes,
        law=PatchLaw(**{name: given[name] for name in _names(PatchLaw) if name in given}),
        network=Network(**{name: given[name] for name in _names(Network) if name in given}),
        optimiser=make_member(OPTIMISERS, given["optimiser"], rates),
        precision=given["precision"],
        look_every=positive_int("look_every", given["look_every"]),
    )


def _names(record: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(record))


_LONGEST = 100_000_000
FIELDS = (
    Key("n", "integer", "Examples to train on.", True, 1, _LONGEST),
    Key("n_test", "integer", "Examples to test on; n by default.", False, 1, _LONGEST),
    *declared(
        PatchLaw, n_clusters={"minimum": 2}, n_features={"minimum": 4}, n_patches={"minimum": 3}
    ),
    *declared(
        Network,
        expert={"choices": tuple(EXPERTS)},
        activation={"choices": tuple(ACTIVATIONS)},
        initialisation={"choices": tuple(INITIALISATIONS)},
        gate={"choices": GATES_OF_PATCHES},
    ),
    Key("optimiser", "string", "The rule of a step.", choices=tuple(OPTIMISERS)),
    Key("learning_rate", "number", "Length of a step."),
    Key("router_rate", "number", "Length of the router's step; learning_rate by default."),
    Key("n_steps", "integer", "Steps T.", True, 1, _LONGEST),
    Key("precision", "string", "Arithmetic of the passes.", choices=tuple(PRECISIONS)),
    Key("look_every", "integer", "Steps between two points of a curve.", False, 1, _LONGEST),
)


@dataclass(frozen=True, kw_only=True)
class NetworkSpec(RunsSpec[Run]):
    """A sweep of networks; see `moestat.sweep.kinds.runs.spec.RunsSpec`."""

    def build_run(self, fields: Mapping[str, object]) -> Run:
        """The run with these fields."""
        return make_run(fields)

    def bytes_of(self, run: Run) -> float:
        """Both samples and their copies by patches, and what each expert makes of them."""
        law, net = run.law, run.network
        each = law.n_patches * law.n_features + net.n_experts * net.n_neurons
        weights = net.n_experts * net.n_neurons * law.n_patches * law.n_features
        return 8.0 * (2 * (run.n + run.n_test) * each + 6 * weights)

    def stamp_run(
        self, run: Run, fields: Mapping[str, object], replicate: int
    ) -> tuple[int, int, str]:
        """Data seed, seed of the run and identity of a cell.

        Runs on the same law and sizes of samples share their data seed, whatever they train on
        them, and all runs of one replicate the seed of weights and noise.
        """
        data = {**vars(run.law), "n": run.n, "n_test": run.n_test}
        trained = {
            **{name: vars(run.network)[name] for name in _names(Network)},
            **{"optimiser": type(run.optimiser).__name__, **vars(run.optimiser)},
            **{"n_steps": run.n_steps, "precision": run.precision},
            **{"look_every": run.look_every},
        }
        # Cells from before there was a choice stay what they are.
        if run.network.gate == "patch":
            del trained["gate"]
        return (
            seed_from("data", self.seed, data, replicate),
            seed_from("fit", self.seed, replicate),
            digest([self.seed, data, trained, replicate]),
        )
