"""Parameters in words of the data: names, and the part, expert and input of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from moestat.base.types import IntArray
from moestat.estimation.data.data import Data
from moestat.model.family import Family
from moestat.model.numbering import ExpertNames, in_current_names, replaced

__all__ = [
    "Term",
    "experts_of",
    "in_words",
    "names_by_term",
    "named_terms",
    "parameter_names",
    "present_names",
    "reference_positions",
    "reported_positions",
]

_MEANINGS = {
    **{"nu": "variance", "phi": "dispersion", "tau": "temperature", "sigma": "scale"},
    **{"dof": "degrees of freedom", "zero": "logit of zeros", "gap": "gap of thresholds"},
    "w": "dependence",
}
"""Labels of blocks without a slope; any other block is labelled by its symbol."""


@dataclass(frozen=True)
class Term:
    """One packed parameter in words."""

    name: str  # its name in `MoEResults.param_names`
    symbol: str  # its block in the model's formula
    part: str  # ``"gate"`` or ``"expert"``
    expert: int | None  # the number of the expert, from 1; None for a parameter that all share
    label: str  # the input or product of inputs, ``"Intercept"``, or what the parameter is
    # the class whose log-odds against the last class it is of; None without classes
    outcome: str | None = None
    against: str | None = None  # that last class
    response: str | None = None  # the response that it is of, where there are several
    called: str | None = None  # the name of the expert, if it has one

    @property
    def key(self) -> int | str | None:
        """The number of the expert, or its name, as tables have it."""
        return self.expert if self.called is None else self.called

    @property
    def equation(self) -> str | None:
        """The response, if there are several, and the class, if there are classes."""
        return ": ".join(filter(None, (self.response, self.outcome))) or None


def reference_positions(family: Family) -> IntArray:
    """Positions of the coefficients of a gate that are 0 because the last expert is a reference."""
    blocks = [family.blocks[name][-1].ravel() for name in family.gate.translations]
    return np.concatenate([np.empty(0, dtype=np.int64), *blocks])


def reported_positions(family: Family) -> IntArray:
    """Positions of the parameters that tables report, ascending.

    These are all but those that the model does not read, offsets, and references of the gate; none
    of a gate that has one expert to choose from.
    """
    hidden = [family.hidden_positions, reference_positions(family)]
    if family.n_experts == 1 and family.gate.normalised:
        gate = family.index[0, : family.first_expert_channel]
        hidden += [first + np.arange(family.width[c]) for c, first in enumerate(gate)]
    return np.setdiff1d(np.arange(family.n_params), np.concatenate(hidden))


def experts_of(family: Family, data: Data | None) -> ExpertNames:
    """What the experts of a fit are called."""
    given = None if data is None else data.experts
    # The names are of this fit; further fits to its data may have another number of experts.
    known = given is not None and len(given) == family.n_experts
    return ExpertNames(family.n_experts, given if known else None)


def present_names(text: str, family: Family, data: Data | None) -> str:
    """Equations, or a name, with present names of parameters in place of numbered and old ones."""
    return in_current_names(text, parameter_names(family, data), _numbered(family, data))


def in_words(text: str, family: Family, data: Data | None) -> str:
    """A sentence with the names of the experts in place of their numbers."""
    experts = experts_of(family, data)
    if experts.own is None:
        return text
    names = dict(zip(_numbered(family, data), parameter_names(family, data), strict=True))
    return replaced(experts.in_words(text), names)


def _numbered(family: Family, data: Data | None) -> list[str]:
    """The names of parameters with numbers of experts."""
    return parameter_names(family, None if data is None else replace(data, experts=None))


def names_by_term(family: Family, data: Data | None) -> dict[str, list[str]]:
    """Names of the reported parameters of each term, such as ``a[1,x]`` and ``a[2,x]`` of ``x``."""
    terms = named_terms(family, data)
    names: dict[str, list[str]] = {}
    for j in map(int, reported_positions(family)):
        names.setdefault(terms[j].label, []).append(terms[j].name)
    return names


def parameter_names(family: Family, data: Data | None) -> list[str]:
    """One name per packed parameter (P,), e.g. ``a[1,versicolor,width]`` of the first expert.

    Experts have their numbers from 1, or names.  Inputs and classes without names have their
    positions, from 0.
    """
    return family.param_names if data is None else [term.name for term in named_terms(family, data)]


def named_terms(family: Family, data: Data | None) -> list[Term]:
    """A description of each packed parameter (P,)."""
    numbers = [str(j) for j in range(family.n_features)]
    known = None if data is None else data.features
    inputs = list(known or numbers)
    names = list(known or (f"x[{j}]" for j in numbers))
    labels, experts = _labels(family, data), experts_of(family, data)
    terms: dict[int, Term] = {}
    for c, channel in enumerate(family.channels):
        part = "gate" if c < family.first_expert_channel else "expert"
        r = int(family.response_of[c])
        law = family.likelihood.laws[r]
        outcome = word = None
        if channel.component is not None and channel.axis is None and law.support:
            # A gap between thresholds is that of the class above the lower one.
            word = labels[r][channel.component + int(channel.log)]
            outcome = None if channel.log else word
        responses = (
            family.likelihood.parts if part == "expert" and c < family.first_pair_channel else ()
        )
        for atom in range(1 if channel.shared else family.n_experts):
            coefficients = _coefficients(family, c, inputs, names)
            for step, (symbol, at, label) in enumerate(coefficients):
                indices = [] if channel.shared else [experts.labels[atom]]
                if channel.axis is None and channel.component is not None:
                    indices.append(word or str(channel.component))
                indices += at
                name = f"{symbol}[{','.join(indices)}]" if indices else symbol
                expert = None if channel.shared else atom + 1
                position = int(family.index[atom, c]) + step
                full_label = f"{label}: {word}" if channel.log and word else label
                terms[position] = Term(
                    name,
                    symbol,
                    part,
                    expert,
                    full_label,
                    outcome,
                    None if outcome is None else labels[r][-1],
                    responses[r].name if responses else None,
                    None if channel.shared or experts.own is None else experts.labels[atom],
                )
    return [terms[position] for position in range(family.n_params)]


def _labels(family: Family, data: Data | None) -> list[list[str]]:
    """Labels of the classes of each response."""
    sizes = [one.n_classes for one in family.likelihood.parts] or [family.n_classes]
    known = None if data is None else data.class_labels
    given = [known] if not family.likelihood.parts or known is None else known
    given = given if len(given) == len(sizes) else [None] * len(sizes)
    return [
        list(map(str, range(size) if labels is None else labels))
        for size, labels in zip(sizes, given, strict=True)
    ]


def _coefficients(
    family: Family, c: int, inputs: list[str], names: list[str]
) -> Iterator[tuple[str, list[str], str]]:
    """Symbol, indices after the atom's, and label of each coefficient of a channel, in order."""
    unit, channel = "", family.channels[c]
    law = family.likelihood.laws[int(family.response_of[c])]
    if channel.component is not None and channel.axis is None and not law.support:
        what = "unit" if channel.reads is None else "factor"
        unit = f"{what} {channel.component + 1}: "
    symbol = f"log {channel.intercept}" if channel.log else channel.intercept
    if channel.axis is not None:
        yield symbol, [inputs[channel.axis]], names[channel.axis]
        return
    meanings = {family.gate.mass: "log mass", **_MEANINGS}
    label = meanings.get(family.plain_name(c), family.plain_name(c))
    label = f"log {label}" if channel.log else label
    if channel.slope or channel.products:
        label = "Intercept"
    yield symbol, [], unit + label
    if channel.slope is not None:
        for name, word in zip(inputs, names, strict=True):
            yield channel.slope, [name], unit + word
    if channel.products is not None:
        for f, g in zip(*np.triu_indices(family.n_features), strict=True):
            product = f"{inputs[f]}*{inputs[g]}"
            word = f"{names[f]}^2" if f == g else f"{names[f]}:{names[g]}"
            yield channel.products, [product], unit + word
