"""Laws of names: every surface that names an expert uses the same word for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import moestat
from moestat.estimation.columns import OLD_NAMES
from tests.laws.cases import Case
from tests.laws.laws import FAILS, HOLDS, REFUSED, Cell, _through_file, asked, law
from tests.laws.questions import _by_group, _told

NAMES = ("chronic", "acute illness", "well", "d", "e")


def of_parameters(result: Any) -> list[Any]:
    """The words for experts in names of parameters, in the order of the experts."""
    family, words = result.family, []
    for i in range(family.n_experts):
        own = [
            result.param_names[int(np.ravel(at[i])[0])]
            for at in family.blocks.values()
            if np.ndim(at)
        ]
        found = {re.split(r"[][,]", name)[1] for name in own}
        words.append(found.pop() if len(found) == 1 else sorted(found))
    return words


def of_summary(result: Any) -> list[Any]:
    """The experts that a summary has headings of."""
    heads = [row.cells[0] for row in result.summary().rows if row.heading]
    words = [re.split(r" \(mean weight|: | \(standard", head)[0] for head in heads]
    words = [word for word in words if word not in ("Gate", "All experts")]
    return list(dict.fromkeys(word.removeprefix("Expert ") for word in words))


def of_legend(axes: Any) -> list[Any]:
    """The experts that a legend has."""
    texts = [text.get_text() for text in axes.get_legend().get_texts()]
    return [text.removeprefix("expert ") for text in texts]


def columns_of(values: Any, result: Any) -> list[Any]:
    """The columns of a table; probabilities of classes by expert are an array without names."""
    return [*values.columns] if values.ndim < 3 else result.experts.labels


SURFACES: dict[str, Callable[[Case, Any], list[Any]]] = {
    "param_names": lambda case, r: of_parameters(r),
    "tidy": lambda case, r: list(dict.fromkeys(r.tidy()["expert"].dropna())),
    "summary": lambda case, r: of_summary(r),
    "gate": lambda case, r: [*r.predict(case.rows[:5], "gate").columns],
    "experts": lambda case, r: columns_of(r.predict(case.rows[:5], "experts"), r),
    "classification_table": lambda case, r: [*r.classification_table(_by_group(case) > 0).columns],
    "classes": lambda case, r: [*dict.fromkeys(r.classes().index.get_level_values("class"))],
    "distal": lambda case, r: [*r.distal(_by_group(case)).classification.index],
    "variance_components": lambda case, r: [
        *dict.fromkeys(r.variance_components().index.get_level_values("expert"))
    ],
    "plot_gate": lambda case, r: of_legend(r.plot_gate()),
    "plot_posterior": lambda case, r: [
        axes.get_title().removeprefix("expert ") for axes in r.plot_posterior()
    ],
}
"""What shows the experts, each once and in order."""


@law
def experts_have_one_name(case: Case) -> Iterator[Cell]:
    """Numbers from 1, or the names that were given, wherever an expert is named."""
    result = case.result
    k = result.family.n_experts
    if k == 1 or case.member.kind == "several":
        return
    named = result.named({i + 1: name for i, name in enumerate(NAMES[:k])})
    kept = _through_file(named)
    for what, one in (("numbers", result), ("names", named), ("names of a file", kept)):
        want = one.experts.labels
        for surface, words in SURFACES.items():
            if one is kept and surface not in ("param_names", "summary"):
                continue
            found, refusal, foreign = asked(lambda words=words, one=one: words(case, one))
            if refusal or foreign:
                verdict = FAILS if foreign else REFUSED
                yield Cell(f"{what}, {surface}", verdict, foreign or refusal or "")
                continue
            same = [*map(str, found)] == want
            yield Cell(f"{what}, {surface}", HOLDS if same else FAILS, f"{found} for {want}")
    same = np.array_equal(named.theta, result.theta)
    yield Cell("estimate", HOLDS if same else FAILS, "it moved")
    turned = named.experts.keys[::-1]
    found, refusal, foreign = asked(lambda: named.relabel(turned).experts.keys)
    verdict = FAILS if foreign else REFUSED if refusal else HOLDS if found == turned else FAILS
    yield Cell("another order", verdict, foreign or refusal or f"{found} for {turned}")


TABLES: dict[str, Callable[[Case, Any], Any]] = {
    "tidy": lambda case, r: r.tidy(),
    "exponentiated": lambda case, r: r.tidy(exponentiate=True),
    "summary": lambda case, r: r.summary().frame,
    "compare": lambda case, r: moestat.compare([r]).frame,
    "conf_int": lambda case, r: r.conf_int(),
    "classes": lambda case, r: r.classes(),
    "variance_components": lambda case, r: r.variance_components(),
    "wald_test_terms": lambda case, r: r.wald_test_terms(),
    "t_test": lambda case, r: r.t_test(f"{_told(r)} = 0").summary_frame(),
    "get_margeff": lambda case, r: r.get_margeff().tidy(),
    "effects on the gate": lambda case, r: r.get_margeff(which="gate").tidy(),
    "comparisons": lambda case, r: r.comparisons({"x": 0.0}, {"x": 0.5}).tidy(),
    "distal": lambda case, r: r.distal(_by_group(case)).frame,
    "bootstrap": lambda case, r: r.bootstrap(3, rng=0).summary_frame(),
}
"""Tables of estimates, errors, tests or intervals."""


@law
def tables_have_one_set_of_columns(case: Case) -> Iterator[Cell]:
    """Standard errors, statistics, p-values and intervals have one name in every table."""
    for question, table in TABLES.items():
        if question == "bootstrap" and case.option != "plain":
            continue
        found, refusal, foreign = asked(lambda table=table: table(case, case.result))
        if refusal or foreign:
            yield Cell(question, FAILS if foreign else REFUSED, foreign or refusal or "")
            continue
        columns = [*found.columns]
        old = {*columns} & {*OLD_NAMES}
        whole = ("conf_low" in columns) == ("conf_high" in columns)
        whole &= ("estimate" in columns) <= ({"std_error", "conf_low"} <= {*columns})
        whole &= ("p_value" in columns) <= ("statistic" in columns)
        yield Cell(question, HOLDS if whole and not old else FAILS, f"columns {columns}")
