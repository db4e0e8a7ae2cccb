"""What the machine finds on identifiability: PDEs, the papers' conditions, and orbits of truths.

    python -m experiments.pages.identifiability [PAGE]

writes the page figures/theory_identifiability.md, or PAGE.  It takes about two minutes on one core.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import moestat
from experiments.folders import EXPERIMENTS, FIGURES
from moestat.theory.identifiability import (
    Dependencies,
    OrbitSearch,
    check_condition,
    find_dependencies,
    find_orbits,
)

LINEAR = {"name": "polynomial", "degree": 1}


def neuron(activation: str, weighted: bool = True) -> dict[str, object]:
    """An expert with one hidden unit."""
    return {"name": "activation", "activation": activation, "weighted": weighted}


FFN = {"name": "ffn", "hidden": 1}
STARTS = 12
MLMOE = ("softmax", "sigmoid", "sigmoid-inner", "sigmoid-euclidean")
QUADRATIC = ("sigmoid-quadratic", "sigmoid-partial", "softmax-quadratic", "softmax-partial")
EXPERTS = (
    LINEAR,
    {"name": "polynomial", "degree": 2},
    neuron("relu", False),
    neuron("gelu", False),
    neuron("softplus", False),
    neuron("tanh", False),
    neuron("relu"),
    neuron("gelu"),
)
PAIRS: tuple[tuple[str, Any, str, Mapping[str, int]], ...] = (
    *((gate, "linear", "multinomial", {}) for gate in MLMOE),
    *((gate, "linear", "multinomial", {"a": 0}) for gate in MLMOE),
    *((gate, "linear", "gaussian", {}) for gate in ("softmax", "sigmoid", "competition")),
    *((gate, FFN, "gaussian", {}) for gate in ("softmax", "competition")),
    *((gate, expert, "least-squares", {}) for gate in QUADRATIC for expert in EXPERTS),
    *(
        ("sigmoid-quadratic", expert, "least-squares", {"A": 0, "b": 0})
        for expert in (LINEAR, neuron("gelu", False), neuron("tanh", False))
    ),
    *((gate, FFN, "least-squares", {}) for gate in ("softmax", "sigmoid-quadratic")),
)
INTRODUCTION = """# Identifiability, found by the machine

Nothing here is looked up: relations come from the null space of derivatives of the registered
gates, experts and likelihoods on a random design, and are then proved by exact algebra; orbits
come from least squares to a truth's law from random starts.  Ranks are numerical, with the gap
between the smallest singular value that counts and the largest that does not; *exact* is the rank
by rational arithmetic.  "Follow" are relations of second order that differentiate one of first
order.  The last column says whether displacements of atoms that merge can cancel to second order
(where weights are normalised, in numerator and denominator): if so, a loss with their squares is
not bounded by the law, and rates of over-specified cells are slower than n^(-1/4).
"""
READING = """
## What they say about the papers

- **PDE (8) of Pham et al. (2026)** is found, with beta / tau: as printed the factor 1 / tau of the
  beta term is missing.  With the plain sigmoid gate one relation remains, `∂²u/∂alpha∂b =
  ∂²u/∂beta∂a`, between mixed derivatives only: it cancels nothing.
- **Where an expert does not see x** (a = 0 for all its classes) two copies of it mix to the same
  class probabilities under every gate, the sigmoid one included: `∂²u/∂b²` is a multiple of
  `∂u/∂b`.  The second expert of Table 2 is of this kind.
- **The three PDEs (8) of Yan et al. (2025)** are found.  The first, `∂²F/∂A∂c = ∂²F/∂b²`, does not
  involve the expert: it holds for every one.  At A = b = 0 it reads
  `∂²F/∂b² = (1 - 2 sigma(c)) ∂F/∂A`, inside the first family of Definition 1: **no expert is
  strongly identifiable**, and atoms with b = ± e and A = -(1 - 2 sigma(c)) e^2 / 2 have a
  regression function e^4 from the truth's and a loss L1 of order e^2, against the lower bound of
  Theorem 1.
- **Experts with an output weight**, `lambda phi(alpha x + beta)`, have `∂²F/∂lambda² = 0`; with
  ReLU also a relation of first order, so that the named example is not even weakly identifiable.
- **Definitions 1 to 4 ask for any distinct parameters**, and then fail for every expert tried:
  two atoms with opposite scores and one expert have proportional derivatives, since sigma' is
  even; and the derivatives of a linear expert do not depend on its parameters.
- **The condition of Nguyen et al. (2025), Sec. 3**, fails for the network that it names.  What its
  theorem needs, independence of the derivatives of the weighted density, holds nevertheless.
- **The truths of Tables 2 (sigmoid), 3 and 4 of mlmoe are not identified**: a line, a ridge and a
  plane of parameters have their laws, against Proposition 1 and its counterparts.  The line comes
  from scores that are opposite, the plane ends where a position enters [0, 1].  Equal slopes
  leave a second, isolated solution.  The truths of our own experiments came out alone.
- **Over-specified**, an expert with a = 0 splits along a curve in b; and where two classes have
  one slope (the first expert of the softmax truth below) two experts with other
  intercepts mix to it as well.
- **Dense regime of attention**: a dead expert, a split and the flip represent the truth exactly,
  so that the best approximations are a set and their misfit is 0.
"""


def row(found: Dependencies, gate: str, expert: str, likelihood: str, held: str) -> str:
    """One pair in the table of ranks."""
    follow = len(found.relations) - len(found.primitive)
    assert found.cancellation is not None
    cancelled = str(found.cancellation).partition("along: ")[2] or found.cancellation.status
    rank = f"{found.rank.rank} of {found.rank.n_functions}"
    cells = (
        *(gate, expert, likelihood, held or "general", rank, f"{found.rank.gap:.0e}"),
        *(str(found.exact_rank), f"{len(found.primitive)} + {follow}", cancelled),
    )
    return f"| {' | '.join(cells)} |"


def worded(expert: Any) -> str:
    """An expert in a cell."""
    if isinstance(expert, str):
        return expert
    if expert["name"] == "polynomial":
        return f"degree {expert['degree']}"
    if expert["name"] == "ffn":
        return "ffn, 1 unit"
    return f"{'lambda ' if expert['weighted'] else ''}{expert['activation']}"


def pairs() -> Iterable[str]:
    """Table of ranks, then the relations."""
    yield "\n## Ranks, derivatives to order 2, one input\n"
    yield "| gate | expert | response | at | rank | gap | exact | relations + follow | cancels |"
    yield "|---|---|---|---|---|---|---|---|---|"
    details = []
    for gate, expert, likelihood, at in PAIRS:
        found = find_dependencies(gate, expert, likelihood, at=at)
        held = ", ".join(f"{name} = {value}" for name, value in at.items())
        yield row(found, gate, worded(expert), likelihood, held)
        details += ["", "```", found.summary(), "```"]
    yield READING
    yield "## Relations"
    yield from details


def conditions() -> Iterable[str]:
    """The papers' conditions, in full."""
    yield "\n## The conditions as printed, one input"
    for name in ("strong", "weak", "partial-strong", "partial-strong-eta", "partial-weak"):
        for expert in (LINEAR, neuron("relu"), neuron("gelu"), neuron("softplus", False)):
            yield from ("", "```", check_condition(name, expert).summary(), "```")
    for expert in (FFN, neuron("softplus", False), "linear", neuron("tanh")):
        yield from ("", "```", check_condition("algebraic", expert).summary(), "```")


def specified(path: str, name: str) -> tuple[moestat.Family, Any]:
    """Family and truth of an experiment."""
    table = tomllib.loads((EXPERIMENTS / path).read_text())["truth"][name]
    gate, n_classes = table.pop("gate"), table.pop("n_classes")
    n_experts = len(table["a"])
    family = moestat.family("multinomial", gate=gate, n_experts=n_experts, n_classes=n_classes)
    return family, family.pack(table)


def dense(expert: Any, k: int) -> tuple[moestat.Family, Any]:
    """A truth of the dense regime with k atoms, in a box in which no gate saturates."""
    family = moestat.family(
        "least-squares",
        gate="sigmoid-quadratic",
        expert=expert,
        n_experts=k,
        bounds=dict.fromkeys(("A", "b", "c", "alpha", "beta"), (-6.0, 6.0)),
    )
    blocks: dict[str, Any] = {
        "c": [0.3, -0.4],
        "b": [[1.2], [-0.7]],
        "A": [[-0.8], [0.5]],
        "alpha": [[1.0], [-0.6]],
        "beta": [0.5, 1.3],
    }
    return family, family.pack({name: block[:k] for name, block in blocks.items()})


def searches() -> Iterable[tuple[str, OrbitSearch]]:
    """All searches for other parameters, with a heading each."""
    printed = (
        ("Table 2 of mlmoe, sigmoid", "sigmoid"),
        ("Table 2 of mlmoe, softmax", "softmax"),
        ("Table 3 of mlmoe, inner product", "inner"),
        ("Table 4 of mlmoe, Euclidean", "euclidean"),
    )
    for heading, name in printed:
        yield (
            heading,
            find_orbits(*specified("microscope_published.toml", name), n_starts=STARTS, rng=0),
        )
    wide = moestat.Uniform(-3.0, 3.0)
    equal = moestat.family("multinomial", gate="sigmoid", n_experts=2, n_classes=2)
    truth = equal.pack(
        {
            "gamma": [0.4, 0.0],
            "alpha": [2.0, 2.0],
            "beta": [1.5, -0.5],
            "a": [[-2.0, 0.0], [1.5, 0.0]],
            "b": [[1.0, 0.0], [-1.0, 0.0]],
        }
    )
    yield "Sigmoid gate with equal slopes", find_orbits(equal, truth, wide, n_starts=30, rng=0)
    for name in ("softmax", "sigmoid", "inner", "euclidean"):
        family, theta = specified("microscope_mlmoe.toml", name)
        yield (
            f"Well-conditioned truth, {name}",
            find_orbits(family, theta, wide, n_starts=STARTS, rng=0),
        )
    for name in ("softmax", "softmax-regime-2"):
        family, theta = specified("microscope_mlmoe.toml", name)
        search = find_orbits(
            family.with_experts(3), theta, wide, truth_family=family, n_starts=3, rng=0
        )
        yield f"Well-conditioned truth, {name}, one atom too many", search
    for expert, k in ((LINEAR, 1), (LINEAR, 2), (neuron("relu", False), 1)):
        family, theta = dense(expert, k)
        search = find_orbits(
            family.with_experts(k + 1),
            theta,
            moestat.Uniform(-1.0, 1.0),
            truth_family=family,
            n_starts=90,
            rng=0,
        )
        yield f"Dense regime, {worded(expert)} expert, k* = {k}, one too many", search
    family, theta = dense(neuron("softplus", False), 1)
    search = find_orbits(family, theta, moestat.Uniform(-1.0, 1.0), n_starts=STARTS, rng=0)
    yield "Dense regime, softplus expert, exact-specified", search


def main() -> None:
    """Write the page."""
    page = Path(sys.argv[1]) if len(sys.argv) > 1 else FIGURES / "theory_identifiability.md"
    lines = [INTRODUCTION, *pairs()]
    lines += ["\n## Other parameters with the law of a truth"]
    for heading, search in searches():
        lines += ["", f"**{heading}.**", "", "```", search.summary(), "```"]
    lines += conditions()
    page.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
