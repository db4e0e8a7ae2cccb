"""The summary of a fit: facts and coefficients by gate and expert, in words of the data."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from moestat.base.types import FloatArray
from moestat.base.validate import real_in
from moestat.estimation.data.naming import Term, named_terms, reference_positions
from moestat.estimation.fit.delta import normal_reach
from moestat.estimation.fit.relabel import mean_weights
from moestat.estimation.inference.random_effects import component_cells, effects_term, is_factor
from moestat.estimation.results.estimate import NOT_A_RATIO, OF_INTERCEPT, Estimate
from moestat.estimation.results.ratios import with_ratios
from moestat.estimation.tables import Row, Sheet, as_percent, significant

if TYPE_CHECKING:
    import pandas as pd

    from moestat.estimation.results.criteria import Criteria
    from moestat.model.family import Family

__all__ = ["Estimate", "Summary", "estimates", "in_order", "sections", "summarise", "tidy"]


Place = tuple[str, int | None, str | None]
"""Part of the model, expert and class."""


@dataclass(frozen=True, repr=False)
class Summary(Sheet):
    """Facts and coefficients of a fit; ``print`` shows text, a notebook HTML.

    Experts are counted from 1, or have their names; positions in arrays count from 0.

    Parameters
    ----------
    title : str
        Heading.
    facts : tuple of tuple
        Rows of two labels with their values.
    head : tuple of str
        Heads of the columns of coefficients.
    rows : tuple of Row
        Headings of sections, and rows of label, symbol, estimate, error, z, p-value and interval;
        in place of the last five there may be a word.
    notes : tuple of str
        Sentences below the tables.
    estimates : tuple of Estimate
        The coefficients as numbers; `frame` has them as `MoEResults.tidy`, ``as_csv`` as text.

    Examples
    --------
    >>> import numpy as np, moestat
    >>> x = np.linspace(-1, 1, 60)
    >>> summary = moestat.fit("poisson", x, np.arange(60) // 9, n_experts=1, rng=0).summary()
    >>> [row.cells[0] for row in summary.rows]
    ['Expert 1', 'Intercept', 'x[0]']
    """

    estimates: tuple[Estimate, ...] = ()

    @property
    def frame(self) -> pd.DataFrame:
        """One row per parameter."""
        return tidy(self.estimates)


def estimates(result: Criteria, alpha: float = 0.05) -> list[Estimate]:
    """Every parameter of a fit that its model reads, in the order in which they are packed.

    A gate of one expert has none.
    """
    from scipy.special import ndtr

    family, errors, statuses = result.family, result.theta_bse, _statuses(result)
    half = normal_reach(alpha)
    hidden = {*family.hidden_positions.tolist()}
    rows: list[Estimate] = []
    for j, term in enumerate(named_terms(family, result.data)):
        if j in hidden or (family.n_experts == 1 and statuses[j] == "reference"):
            continue
        value, status = float(result.theta[j]), statuses[j]
        error = float(errors[j]) if status == "estimated" else np.nan
        z = value / error if error > 0.0 and not term.symbol.startswith("log ") else np.nan
        pvalue = float(2.0 * ndtr(-abs(z)))
        ends = value - half * error, value + half * error
        rows.append(Estimate(term, value, error, z, pvalue, *ends, status))
    return rows


_ZERO = "0 by the penalty"


def _statuses(result: Criteria) -> list[str]:
    """The status of each parameter (P,): estimated, or the reason why it has no standard error."""
    family, errors = result.family, result.theta_bse
    lower, upper = family.box_at(result.theta)
    # If several reasons apply, the last one counts.
    statuses = np.full(lower.size, "estimated", dtype=object)
    statuses[~np.isfinite(errors)] = "not identified"
    statuses[~np.isfinite(errors) & result._at_infinity] = "no finite value"
    statuses[~result.free] = "on a bound"
    statuses[list(getattr(result.prior, "zeros", ()))] = _ZERO
    statuses[lower == upper] = "fixed: sets the scale"
    statuses[family.lower == family.upper] = "fixed"
    statuses[reference_positions(family)] = "reference"
    statuses[family.held_positions] = "fixed: constant input"
    return statuses.tolist()


def tidy(estimates: Sequence[Estimate]) -> pd.DataFrame:
    """One row per parameter, see `MoEResults.tidy`."""
    from moestat.estimation.columns import EstimateTable

    terms = [each.term for each in estimates]
    columns: dict[str, object] = {
        "part": [term.part for term in terms],
        "expert": _keys(terms),
        "response": [term.response for term in terms],
        "class": [term.outcome for term in terms],
        "term": [term.label for term in terms],
    }
    fields = {
        **{"estimate": "estimate", "std_error": "error", "statistic": "z", "p_value": "pvalue"},
        **{"conf_low": "lower", "conf_high": "upper", "status": "status"},
    }
    columns |= {name: [getattr(each, of) for each in estimates] for name, of in fields.items()}
    frame = EstimateTable({**columns, "name": [term.name for term in terms]})
    optional = {"response": [t.response for t in terms], "class": [t.outcome for t in terms]}
    return frame.drop(columns=[name for name, words in optional.items() if not any(words)])


def _keys(terms: Sequence[Term]) -> Any:
    """The expert of each term, a number or a name; missing for what all experts share."""
    import pandas as pd

    keys = [term.key for term in terms]
    named = any(isinstance(key, str) for key in keys)
    return keys if named else pd.array(keys, dtype="Int64")


_SCALES = {"odds ratio": "odds ratios", "rate ratio": "rate ratios"}
"""Plural of the scales of exponentiated coefficients; others are their own plural."""


def summarise(
    result: Criteria, alpha: float = 0.05, exponentiate: bool = False, details: bool = False
) -> Summary:
    """Tables of a fit, its certificate and its parameters, see `MoEResults.summary`."""
    family = result.family
    title = f"Mixture of experts: {family.gate.name} gate, {family.likelihood.name} experts"
    if family.likelihood.effects is not None:
        title += f" with random effects {effects_term(result)}"
    if result.data is not None and result.data.formula is not None:
        title += f"\n{result.data.formula.formula}"
    level = real_in("alpha", alpha, 0.0, 1.0, open_low=True) / 2.0
    head = ("", "", "coef", "std err", "z", "P>|z|", f"[{level:.4g}", f"{1.0 - level:.4g}]")
    parameters, weights, rows = estimates(result, alpha), _mean_weights(result), []
    if exponentiate:
        parameters = with_ratios(result.family, result.param_names, parameters)
        head = ("", "", "estimate", *head[3:])
    nodes = _nodes(family, parameters)
    for heading, members in nodes.items():
        heading = result.experts.in_words(heading)
        rows += [Row((f"Gate: {heading}",), heading=True), *map(Row, map(_cells, members))]
    places = {
        place: members
        for place, members in sections(parameters).items()
        if not (nodes and place[0] == "gate")
    }
    pinned = {
        place
        for place, members in places.items()
        if all(each.status == "reference" for each in members)
    }
    for place, members in places.items():
        if place in pinned:
            reference = result.experts.called(family.n_experts - 1)
            rows.append(Row((f"Gate: {reference} is the reference",), heading=True))
        else:
            heading = _heading(result, members[0].term, weights, bool(pinned))
            rows.append(Row((heading + of_scales(members),), heading=True))
            # Random effects have a table of standard deviations and correlations instead.
            listed = [each for each in members if not is_factor(family, each.term.symbol)]
            rows += [Row(_cells(each)) for each in listed if each.status != _ZERO]
            if len(listed) < len(members):
                rows += map(Row, component_cells(result, place[1] or 1, alpha))
    ratios = [EXPONENTIATED] if exponentiate else []
    notes = (*_references(result, parameters), *_notes(result), *ratios)
    return Summary(title, _facts(result, details), head, tuple(rows), notes, tuple(parameters))


EXPONENTIATED = (
    "Note: coefficients on a log or logit scale are exponentiated, as the headings say; their"
    " p-values test that a ratio is 1. Other parameters are as estimated."
)


def label_of(each: Estimate) -> str:
    """The term of an estimate, or the exponential of an intercept, which is no ratio."""
    label = short_label(each.term.label)
    return f"exp({label})" if each.scale == OF_INTERCEPT else label


_CODED = re.compile(r"C\((`[^`]*`|[\w.]+)(?:,[^][]*)?\)(?=\[)")
"""A column in a term that codes it by levels, such as ``C(region, Treatment('north'))``."""


def short_label(label: str) -> str:
    """A term as tables show it: ``region[south]`` for ``C(region)[T.south]``."""
    return _CODED.sub(r"\1", label).replace("[T.", "[").replace("`", "")


def _references(result: Criteria, parameters: Sequence[Estimate]) -> list[str]:
    """A note on the levels that the coefficients of factors are differences from."""
    formula = None if result.data is None else result.data.formula
    if formula is None:
        return []
    labels = [_CODED.sub(r"\1", each.term.label) for each in parameters]
    references: list[str] = []
    for name, levels in formula.variables().items():
        if levels is None:
            continue
        pattern = re.compile(rf"(?<![\w.])`?{re.escape(name)}`?\[T\.([^]]*)\]")
        found = {level for label in labels for level in pattern.findall(label)}
        others = [str(level) for level in levels if str(level) not in found]
        if found and len(others) == 1:
            references.append(f"{name} = {others[0]}")
    return [f"Reference levels: {', '.join(references)}."] if references else []


def of_scales(members: Sequence[Estimate]) -> str:
    """What the exponentials of the slopes of a section are, for its heading."""
    kinds = {each.scale for each in members}
    words = sorted(_SCALES.get(kind, kind) for kind in kinds - {NOT_A_RATIO, OF_INTERCEPT})
    return f": {', '.join(words)}" if words else ""


def _nodes(family: Family, parameters: Sequence[Estimate]) -> dict[str, list[Estimate]]:
    """Parameters of a gate that several experts share, by the heading that the gate gives them.

    Such a gate, as the hierarchical one, declares in `constraints` which parameters are equal; each
    is listed once.
    """
    nodes: dict[str, list[Estimate]] = {}
    for one in family.gate.constraints(family.n_experts) if family.n_experts > 1 else ():
        if one.value is None:
            assert one.experts is not None  # a gate names the experts of each constraint
            key = one.block, one.experts[0] + 1
            members = [each for each in parameters if (each.term.symbol, each.term.expert) == key]
            nodes.setdefault(one.heading, []).extend(members)
    return nodes


def sections(parameters: Sequence[Estimate]) -> dict[Place, list[Estimate]]:
    """Parameters by part, expert, response and class: the gate first, what all share last."""
    places: dict[Place, list[Estimate]] = {}
    for each in parameters:
        term = each.term
        places.setdefault((term.part, term.expert, term.equation), []).append(each)
    return {place: places[place] for place in sorted(places, key=in_order)}


def in_order(place: Place) -> tuple[bool, bool, int]:
    """A key that sorts sections."""
    part, expert, _ = place
    return part != "gate", expert is None, expert or 0


def _cells(each: Estimate) -> tuple[str, ...]:
    label, symbol = label_of(each), each.term.symbol
    digits = 4
    if each.status != "estimated":
        return label, symbol, significant(each.estimate, digits), each.status
    if each.error > 0.0 and each.estimate != 0.0:
        # Two digits of the error are worth showing in the estimate, at least four in all.
        size = np.floor(np.log10(abs(each.estimate))) - np.floor(np.log10(each.error))
        digits = int(np.clip(size + 2, digits, 9))
    return (
        label,
        symbol,
        significant(each.estimate, digits),
        significant(each.error, 3),
        "" if np.isnan(each.z) else f"{each.z:.2f}",
        "" if np.isnan(each.z) else f"{each.pvalue:.3f}",
        significant(each.lower, digits),
        significant(each.upper, digits),
    )


def _mean_weights(result: Criteria) -> FloatArray | None:
    """Mean gate probability (k,) of each expert over the rows of the fit, None without them."""
    data = result.data
    if result.family.is_regression or data is None or len(data.y) < result.weight.size:
        return None
    return mean_weights(result)


def _heading(result: Criteria, term: Term, weights: FloatArray | None, against: bool) -> str:
    """The heading of a section, with the mean weight and the scale of an expert."""
    family, expert = result.family, term.expert
    if term.part == "gate":
        whose = "all experts" if expert is None else result.experts.called(expert - 1)
        reference = result.experts.called(family.n_experts - 1)
        return f"Gate: {whose}" + (f" against {reference}" if against else "")
    what = "" if term.equation is None else f": {term.equation}"
    what += f" against {term.against}" if term.outcome else ""
    if expert is None:
        return f"All experts{what}"
    if (choices := family.likelihood.choices) is not None:
        what = f": {choices.names[expert - 1]}"
    facts, heading = [], f"{result.experts.heading(expert - 1)}{what}"
    if weights is not None and family.n_experts > 1:
        facts.append(f"mean weight {weights[expert - 1]:.3f}")
    if family.likelihood.name == "gaussian":
        deviation = np.sqrt(np.broadcast_to(result.blocks["nu"], family.n_experts)[expert - 1])
        facts.append(f"standard deviation {significant(float(deviation), 4)}")
    return f"{heading} ({', '.join(facts)})" if facts else heading


_ERRORS = {
    "observed": "observed information",
    "expected": "expected information",
    "cluster": "cluster sandwich",
    "survey": "survey sandwich",
    "bootstrap": "bootstrap",
}


def _counted(result: Criteria) -> str:
    """The numbers of rows and, in a fit with groups, of groups."""
    groups = result.n_groups
    return f"{result.nobs:.10g}" + ("" if groups is None else f" in {groups:.10g} groups")


def _facts(result: Criteria, details: bool) -> tuple[tuple[object, ...], ...]:
    """Rows of two labels with their values; `details` are those of the search and the solver."""
    family, certificate = result.family, result.certificate
    certified = "yes" if certificate.certified else "NO"
    if certificate.certified and (result.notes or result.prior):
        kind = "no finite" if result._is_separated else "a local"
        certified = f"{kind} maximum, see notes"
    errors = _ERRORS.get(result.cov_type, f"sandwich {result.cov_type}")
    on_bound = ("On a bound", len(certificate.active)) if certificate.active else ("", "")
    facts: list[tuple[object, ...]] = [
        ("Observations", _counted(result), "Log-likelihood", f"{result.llf:.3f}"),
        ("Experts", family.n_experts, "AIC", f"{result.aic:.3f}"),
        (
            "Free parameters" if result.prior is None else "Effective parameters",
            result.identified.rank if result.prior is None else f"{result.edf:.2f}",
            "BIC",
            f"{result.bic:.3f}",
        ),
        ("Certified", certified, *_higher(result)),
        *_offset(result),
        ("Standard errors", errors, *on_bound),
    ]
    if family.is_regression:
        variance = significant(result.residual_variance, 6)
        facts.append(("Residual variance", variance, "R-squared", f"{result.rsquared:.6f}"))
    if certificate.n_collapsed:
        experts = ", ".join(result.experts.labels[i] for i in certificate.collapsed) or "none"
        facts.append(("Collapsed experts", experts, "Collapsed starts", certificate.n_collapsed))
    if details:
        inertia = ", ".join(map(str, certificate.inertia))
        starts = f"{certificate.n_starts} ({certificate.agreement:.0%})"
        facts += [
            ("Gain left", f"{certificate.gain:.1e}", "Condition", f"{certificate.condition:.1e}"),
            ("Inertia (+, 0, -)", inertia, "Distinct optima", certificate.n_optima),
            ("Starts (agreeing)", starts, "Solver", result.solver),
            ("Status", certificate.status, "", ""),
        ]
        if certificate.kinks:
            reach = f"{certificate.reach:.1e}"
            facts.append(("Held at a kink", certificate.kinks, "Reach across kinks", reach))
    return tuple(facts)


def _offset(result: Criteria) -> list[tuple[str, ...]]:
    """The offset of the experts, by the name of its input."""
    if result.family.offset_input is None:
        return []
    place, slope = result.family.offset_input
    known = None if result.data is None else result.data.features
    name = f"x[{place}]" if known is None else known[place]
    return [("Offset", name if slope == 1.0 else f"{slope:.6g} {name}", "", "")]


def _higher(result: Criteria) -> tuple[str, str]:
    """The probability of a higher mode, or maximum, where it is estimated, as a percentage."""
    p = result.certificate.p_higher
    if p is None:
        return "", ""
    percent = as_percent(p)
    about = "" if percent.startswith("<") else "about "
    what = "mode" if result.is_of_modes else "maximum"
    return f"P(higher {what})", f"{about}{percent}"


def _sparse_notes(result: Criteria) -> list[str]:
    """A note on the coefficients that a sparse fit sets to 0."""
    zeros = len(getattr(result.prior, "zeros", ()))
    if not zeros:
        return []
    return [
        f"{zeros} coefficients are 0 by the penalty and not shown. Standard errors and p-values of"
        " the others do not take this selection and the shrinkage into account"
    ]


def _steps(result: Criteria) -> str:
    """In which steps the responses are recorded."""
    data = result.data
    if data is None or not data.resolution:
        return ""
    names = [one.name for one in result.family.likelihood.parts] or ["y"]
    each = zip(names, data.resolution, strict=True)
    return ", ".join(f"{name} is recorded in steps of {h:.4g}" for name, h in each if h > 0.0)


def _notes(result: Criteria) -> tuple[str, ...]:
    """Sentences below the tables."""
    known = result.identified.why, result._order_doubt, _steps(result), *result._of_search
    notes = tuple(result._in_words(note) for note in (*result.notes, *known) if note)
    if result.prior is not None:
        errors = "Standard errors describe the variation of the mode over repeated samples"
        if result.cov_type == "observed":
            errors = "Errors are standard deviations of the posterior density, of the curvature at"
            errors += " its mode"
        notes = (
            f"penalised: the mode of the posterior density under {result.prior}, not the maximum"
            " of the likelihood. The log-likelihood is that of the data at the mode; AIC and BIC"
            " count effective parameters and cannot be compared with those of unpenalised fits."
            f" {errors}",
            *_sparse_notes(result),
            *notes,
        )
    return tuple(f"Note: {note}." for note in notes)
