"""What the catalogue of claims and the kept measurements say of a family, found by its axes."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from experiments.atlas.cells import axes_of
from experiments.catalogue import FACTS
from experiments.claims.claim import Claim
from experiments.claims.kinds import Bound, Check, Exponent, Far, Floored, Orbit, Slope
from experiments.explorer import CASES
from experiments.verify.measured import experiment_of
from experiments.verify.results import EVIDENCE, Verification
from moestat.model.family import Family
from moestat.sweep.kinds.fit.spec import as_fits
from moestat.sweep.spec.experiments import find_spec
from moestat.sweep.spec.read import load_spec

__all__ = ["Known", "explored_orders", "key_of", "known_families"]

Key = tuple[str, str, str]
_EXPLORER = "theory_explorer.json"


def key_of(family: Family) -> Key:
    """A family by the names of its axes, with the expert's options and a gate's active experts."""
    options = ", ".join(f"{name} {value}" for name, value in sorted(family.expert.options.items()))
    expert = f"{family.expert.name} ({options})" if options else family.expert.name
    active = f" ({family.gate.n_active} active)" if family.gate.n_active is not None else ""
    return family.likelihood.name, family.gate.name + active, expert


@dataclass
class Known:
    """What is known of a family before the atlas computes anything.

    Parameters
    ----------
    claims : dict of str to str
        Claim -> verdict.
    predicted : dict of str to set of str
        What is estimated (``exact``, ``over``, ``over 3``) -> exponents of n in the papers.
    facts : dict of str to str
        Fact that proves or refutes a claim of it -> what the fact says.
    measured : dict of int to list of str
        Size of a cell -> slopes that sweeps measured in such cells.
    """

    claims: dict[str, str] = field(default_factory=dict)
    predicted: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    facts: dict[str, str] = field(default_factory=dict)
    measured: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))

    def papers(self, size: int) -> str:
        """The papers' exponents for cells of this size."""
        names = ("exact",) if size == 1 else (f"over {size}", "over")
        own = next((self.predicted[name] for name in names if name in self.predicted), set())
        return ", ".join(sorted("slow" if power == "0" else power for power in own))


def known_families(folder: Path) -> Mapping[Key, Known]:
    """All families that a check of a claim is about, with what is known of them.

    Parameters
    ----------
    folder : Path
        Where the kept evidence of the claims is.

    Returns
    -------
    mapping
        `key_of` a family -> what is known.
    """
    kept = json.loads((folder / EVIDENCE).read_text(encoding="utf-8"))
    found: dict[Key, Known] = defaultdict(Known)
    for result in Verification.restored(kept).results:
        claim = result.claim
        for key in {key for check in claim.checks for key in _keys(check)}:
            known = found[key]
            known.claims[claim.id] = result.verdict
            for what, power in claim.predicted.items():
                known.predicted[what].add(str(power))
            for name in _decisive(claim):
                known.facts[name] = claim.role(name, FACTS[name].scope)
        for each in result.checks:
            size, text = _slope(each.check), each.text.partition(", n ")[0]
            for key in _keys(each.check) if size and each.source else ():
                if text not in found[key].measured[size]:
                    found[key].measured[size].append(text)
    return found


def explored_orders(folder: Path) -> Mapping[tuple[str, str, str, int], tuple[float, str]]:
    """Orders of the worst deviation that the explorer's own cases have found.

    Parameters
    ----------
    folder : Path
        Where the explorer's results are kept.

    Returns
    -------
    mapping
        Likelihood, gate, expert (as `axes_of` has them) and size of a cell -> order and case.
    """
    path = folder / _EXPLORER
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    found = {}
    for name, case in CASES.items():
        if case.deviations and kept.get(name, {}).get("exponent") is not None:
            fitted, true_family, _ = case.families()
            largest = fitted.n_experts - true_family.n_experts + 1
            size = max(case.cells[0]) if case.cells else largest
            found[(*axes_of(case.truth), size)] = round(kept[name]["exponent"], 3), name
    return found


def _decisive(claim: Claim) -> Iterator[str]:
    """Facts that prove or refute a claim."""
    yield from (*claim.proved, *claim.supremum, *claim.fails, *claim.other)


def _slope(check: Check) -> int:
    """Size of the cells whose error a check measured; 0 if it is of no cells."""
    if isinstance(check, Floored):
        return check.size
    if isinstance(check, Slope) and not isinstance(check.quantity, str):
        return check.quantity[0]
    return 0


def _keys(check: Check) -> Iterator[Key]:
    if isinstance(check, (Bound, Exponent, Far, Orbit)):
        yield _of_case(check.case)
    elif isinstance(check, Floored):
        yield _of_curve(experiment_of(check), check.curve.removesuffix(", no expert near 0"))
    elif isinstance(check, Slope):
        yield _of_curve(check.experiment, check.curve)


@cache
def _of_case(name: str) -> Key:
    return key_of(CASES[name].families()[1])


@cache
def _of_curve(experiment: str, curve: str) -> Key:
    spec = as_fits(load_spec(find_spec(experiment)))
    return key_of(spec.truths[spec.curve(curve).truth].family)
