"""What a user should know about a maximum besides that it is one: kinds of doubt, in words."""

from __future__ import annotations

from functools import partial

import numpy as np

from moestat.base.types import FloatArray, IntArray
from moestat.base.warnings import (
    AliasedWarning,
    BoundWarning,
    DisagreementWarning,
    IdentificationWarning,
    LimitWarning,
    MoEWarning,
    SeparationWarning,
    UncertifiedWarning,
    UnitsWarning,
)
from moestat.estimation.data.naming import Term, named_terms
from moestat.estimation.data.priors import as_prior
from moestat.estimation.fit.components import factor_places, undetermined_components
from moestat.estimation.fit.fitted import Fitted, objective_of
from moestat.estimation.fit.identified import Identified, gap_places, related_columns
from moestat.estimation.fit.standardise import Standardised, data_units
from moestat.estimation.rules import DOUBT, MODES, SAME_HEIGHT
from moestat.model.family import Family
from moestat.solvers.problem import Problem, Rows
from moestat.solvers.rules import GAIN_LIMIT
from moestat.solvers.solution import Solution

__all__ = ["Doubt", "doubts"]

Doubt = tuple[type[MoEWarning], str]
"""The category and the message of a warning."""


def doubts(standard: Standardised, result: Fitted, risk: float) -> list[Doubt]:
    """Reasons not to take a fit to data as the maximum of its likelihood.

    A higher maximum is one if it is more probable than `DOUBT.higher`, or `ModeRules.higher` in a
    search for modes, or than a larger risk.
    """
    assert result.standard is not None
    certificate, family = result.standard.solution.certificate, standard.problem.family
    lost = _lost(standard, result.identified)
    parameter_doubts, far = _at_infinity(standard, result, lost)
    default = [
        name
        for name in certificate.active
        if _block(name) not in family.given and not far[family.param_names.index(name)]
    ]
    narrow = [name for name in default if _block(name) in standard.problem.resolved]
    default = [name for name in default if name not in narrow]
    fewer = "fewer experts, or " if family.n_experts > 1 else ""
    if default:
        more = f" and {len(default) - 3} more" if len(default) > 3 else ""
        why = (
            f"The {objective_of(result)} still rises there, and may have no maximum:"
            f" {fewer}bounds= of your own"
        )
        if {_block(name) for name in default} <= {*family.likelihood.scales}:
            why = (
                "Responses lie on the fitted curve itself, where the likelihood has no maximum:"
                " coefficients are valid, but their standard errors only reflect the bound"
            )
        parameter_doubts.append(
            (
                BoundWarning,
                f"on a default bound: {', '.join(default[:3])}{more}. {why}",
            )
        )
    if narrow:
        parameter_doubts.append(_narrow(family, result, narrow))
    return (
        parameter_doubts
        + _uncertified(result, {kind for kind, _ in parameter_doubts})
        + _disagreement(result, fewer, risk)
        + _aliased(standard, result)
        + (_components(standard, result) or _undetermined(standard, result, lost, far))
        + _unit_doubts(standard)
    )


def _disagreement(result: Fitted, fewer: str, risk: float) -> list[Doubt]:
    """That a higher maximum may exist, by its probability where that is estimated."""
    certificate = result.solution.certificate
    runs, chance = certificate.n_starts, certificate.p_higher
    reached = round(certificate.agreement * runs)
    accepted = max(risk, MODES.higher if result.is_of_modes else DOUBT.higher)
    if runs == 1 or (reached > 1 if chance is None else chance <= accepted):
        return []
    agreeing = f"only one of {runs} runs" if reached <= 1 else f"{reached} of {runs} runs"
    what = "there may be a higher one"
    if chance is not None:
        what = f"there is a higher one with a probability of about {chance:.0%}"
    other = " or use fewer experts" * bool(fewer)
    height = "log-likelihood" if result.prior is None else objective_of(result)
    if result.prior is None and result.is_of_modes:
        height = "posterior density under the weak prior, where the climb of the likelihood began,"
    return [
        (
            DisagreementWarning,
            f"{agreeing} reached the best {height} found: {what}, and another seed may"
            f" return other coefficients. Search longer (n_starts=50){other}; see result.explain()",
        )
    ]


_TOLD = frozenset({BoundWarning, SeparationWarning})
"""Kinds of doubt that say why a fit is no maximum, and what to do."""


def _uncertified(result: Fitted, told: set[type[MoEWarning]]) -> list[Doubt]:
    """That a fit is not certified, with the reason, where no other doubt has it."""
    certificate, family = result.solution.certificate, result.family
    if certificate.certified or told & _TOLD:
        return []
    is_late = certificate.status == "time limit"
    search = "Give the fit more time" if is_late else "Search longer (n_starts=50)"
    prior = "" if family.is_regression or result.prior is not None else 'prior="weak"'
    simpler = " or ".join(filter(None, (prior, "fewer experts" * (family.n_experts > 1))))
    if certificate.collapsed:
        experts = result.experts.called(*certificate.collapsed)
        why = (
            f"{experts} {'describe' if len(certificate.collapsed) > 1 else 'describes'} a few"
            " rows almost exactly, where the likelihood has no bound"
        )
        cure = f"Use {simpler or 'another likelihood'}, or bounds= of your own for its variance"
    elif not np.isfinite(result.solution.log_likelihood):
        why, cure = "the log-likelihood is not finite there", "Give the data in other units"
    elif family.has_jumps:
        why = "the likelihood has jumps, and derivatives do not show its maxima"
        cure = "Leave out solver=, so that the fit searches across the jumps"
    elif certificate.inertia[2]:
        why, cure = "the log-likelihood is curved upwards there, as at a saddle point", search
    elif certificate.gain > GAIN_LIMIT:
        why = (
            f"a further step would raise the log-likelihood by about {certificate.gain:.2g}"
            f" ({certificate.status})"
        )
        cure = f"{search}, or use {simpler}" if simpler else search
    else:
        why, cure = (
            "derivatives do not show that it is one",
            f"{search}, or use {simpler}" if simpler else search,
        )
    return [
        (
            UncertifiedWarning,
            f"the fit is not certified as a local maximum of the {objective_of(result)}: {why}. Do"
            f" not report it. {cure}; see result.explain()",
        )
    ]


def _narrow(family: Family, result: Fitted, names: list[str]) -> Doubt:
    """Experts that are as narrow as the steps of a response let them be."""
    terms = named_terms(family, result.data)
    at = [family.param_names.index(name) for name in names]
    experts = list(dict.fromkeys(expert - 1 for j in at if (expert := terms[j].expert)))
    called = result.experts.called(*experts) if experts else "all experts"
    whose = f"{called} {'is' if len(experts) == 1 else 'are'}"
    return (
        BoundWarning,
        f"{whose} as narrow as the rounding of y allows ({_some(names)} on this bound): because of"
        " the rounding many responses are equal, so that the data do not determine this variance."
        " Use fewer experts, or set the step by resolution=",
    )


def _at_infinity(
    standard: Standardised, result: Fitted, lost: np.ndarray
) -> tuple[list[Doubt], np.ndarray]:
    """Doubts about parameters that have come far out where the likelihood is flat, and these (P,).

    What the parameters have of the flat directions is doubled and taken away: at a maximum at
    infinity the first costs nothing, the second does; along parameters that are not identified
    neither costs anything.
    """
    assert result.standard is not None
    problem, solution = standard.problem, result.standard.solution
    family, theta = problem.family, solution.theta
    far = np.zeros(theta.size, dtype=bool)
    if family.is_regression:
        return [], far
    identified, metric = result.identified, result.standard.metric
    assert metric is not None
    along = identified.flat @ (identified.flat.T @ (metric @ theta))
    simpler = _limits(family, theta, along)
    logs, gaps = [c for c, channel in enumerate(family.channels) if channel.log], gap_places(family)
    scales = np.zeros(theta.size, dtype=bool)
    scales[family.index[:, logs]] = True
    scales[gaps] = False
    lower, upper = family.box_at(theta)
    ends = (
        (simpler != "")
        & identified.estimated
        & ~identified.held
        & ((theta <= lower) | (theta >= upper))
    )
    at_infinity: list[Doubt] = []
    for chosen, doubt in ((~scales & (simpler == ""), _separation), (simpler != "", _limit)):
        move, culprits = np.where(chosen, along, 0.0), chosen & ends
        double = move.copy()
        double[gaps] = np.minimum(move[gaps], np.log(2.0))
        if move @ metric @ move >= DOUBT.far**2 and _rises(problem, solution, double, move):
            culprits |= chosen & lost
        if culprits.any():
            far |= culprits
            terms, at = named_terms(family, result.data), np.flatnonzero(culprits)
            at_infinity.append(doubt(result, terms, at, simpler))
    return at_infinity, far


def _lost(standard: Standardised, identified: Identified) -> np.ndarray:
    """Parameters (P,) that are estimated, off all bounds, and not determined by the data."""
    return ~identified.seen(standard.coordinates.matrix) & ~identified.held & identified.estimated


def _limits(family: Family, theta: FloatArray, along: FloatArray) -> np.ndarray:
    """What the likelihood becomes at the end (P,) of each parameter to which it tends; "" else."""
    words = np.full(theta.size, "", dtype=object)
    lower, upper = family.box_at(theta)
    for block, (low, high) in family.likelihood.limits.items():
        at = np.ravel(family.blocks[block])
        rises = (theta[at] >= upper[at]) | ((theta[at] > lower[at]) & (along[at] > 0.0))
        words[at] = np.where(rises, high, low)
    return words


def _rises(problem: Problem, solution: Solution, step: FloatArray, back: FloatArray) -> bool:
    """Whether the log-likelihood does not decrease by `step`, but decreases by minus `back`.

    With a prior density this is said of the log-posterior density.
    """

    def height(at: FloatArray) -> float:
        return problem.data.sum_parts(partial(_height, problem, at)) - problem.prior_of(at)

    least = solution.log_likelihood - problem.prior_of(solution.theta) - SAME_HEIGHT
    return height(solution.theta + step) > least > height(solution.theta - back)


def _separation(result: Fitted, terms: list[Term], at: IntArray, _: np.ndarray) -> Doubt:
    """Parameters at infinity, by name, with the inputs and classes that they belong to."""
    family, data = result.family, result.data
    # The first coefficient of a channel is of no input, unless it is a place among the inputs.
    first = [
        family.index[:, c] for c, channel in enumerate(family.channels) if channel.axis is None
    ]
    slopes = list(dict.fromkeys(terms[j].label for j in np.setdiff1d(at, np.concatenate(first))))
    classes = list(dict.fromkeys(terms[j].outcome for j in at if terms[j].outcome))
    parts = {terms[j].part for j in at}
    likelihood = family.likelihood
    laws = likelihood.laws
    what = "counts of 0 and others" if all(law.counts for law in laws) else "experts' rows"
    if likelihood.support is not None:
        last = "others" if data is None or data.class_labels is None else data.class_labels[-1]
        what = f"classes ({_some(classes)} against {last})" if classes else "classes"
    by = f" by column{'s' * (len(slopes) > 1)} {_some(slopes)}" if slopes else ""
    # A gate by distance that is too flat, whatever its places, puts them ever farther away, too.
    far = "gate" in parts and any(channel.axis is not None for channel in family.channels)
    apart = ["regions of the gate"] * ("gate" in parts and not far) + [what] * ("expert" in parts)
    causes = ["places of the gate diverge from the data"] * far
    if likelihood.effects is not None and np.isin(at, factor_places(family)).any():
        causes += ["responses are the same within nearly every group"]
    else:
        causes += [f"{' and '.join(apart)} are separated{by}"] * bool(apart)
    others = "fewer experts or " * (family.n_experts > 1) + "bounds= of your own"
    cure = 'Use prior="weak"' + " or fewer experts" * (family.n_experts > 1)
    bent = any(c.axis is not None or c.products is not None for c in family.channels)
    # The weak prior is on gates that are linear in the inputs, and not on gaps of thresholds.
    without = (bent and "gate" in parts) or bool(np.isin(at, gap_places(family)).any())
    without |= likelihood.effects is not None  # such fits have no prior density
    if without or result.prior == as_prior("weak", family):
        cure = f"{others.capitalize()} make the maximum finite"
    diverge = "diverge" if at.size > 1 else "diverges"
    # Held-out rows are often in classes whose probability is then next to 0: see separation.py
    # among the benchmarks.
    hold = "Predictions are valid"
    if likelihood.support is not None:
        hold = "Predicted probabilities are too near 0 and 1"
    return (
        SeparationWarning,
        f"the {objective_of(result)} has no finite maximum: {', '.join(causes)}, and"
        f" {_some([terms[j].name for j in at], 2)} {diverge} (no standard error). {hold}."
        f" {cure}; see result.explain()",
    )


def _limit(result: Fitted, terms: list[Term], at: IntArray, simpler: np.ndarray) -> Doubt:
    """Parameters of the likelihood that went to the end of their range."""
    family = result.family
    experts = list(dict.fromkeys(str(terms[j].expert) for j in at if terms[j].expert))
    whose = ""
    if family.n_experts > 1 and experts:
        whose = f" of expert{'s' * (len(experts) > 1)} {_some(experts)}"
    name = family.likelihood.name
    if (choices := family.likelihood.choices) is not None:
        name = " and ".join(dict.fromkeys(choices.names[int(each) - 1] for each in experts))
    tend = "tends to the limit of its range" if at.size == 1 else "tend to limits of their ranges"
    return (
        LimitWarning,
        f"{_some([terms[j].name for j in at])} {tend}, where the"
        f" distribution{whose} becomes {' and '.join(dict.fromkeys(simpler[at]))}, simpler than"
        f" {name}: other estimates and standard errors are those of the simpler distribution,"
        " which you can fit and report",
    )


def _some(words: list[str], limit: int = 4) -> str:
    """The first words, at most `limit` of them, and how many more there are."""
    more = f" and {len(words) - limit} more" if len(words) > limit else ""
    return ", ".join(words[:limit]) + more


def _aliased(standard: Standardised, result: Fitted) -> list[Doubt]:
    """Inputs of the gate, or of the experts, that are linear functions of each other."""
    family, data = standard.problem.family, result.data
    # Fixed coefficients may tell apart what the inputs do not, as without an intercept.
    if not family.is_regression and not result.identified.aliased.size:
        return []
    offset = () if family.offset_input is None else family.offset_input[:1]
    among: set[int] = set()
    for part in {family.gate_inputs, family.expert_inputs}:
        inputs = range(family.n_features) if part is None else part
        used = np.setdiff1d(inputs, [*family.held, *offset]).astype(int)
        among |= related_columns(standard.original.data, used)[0]
    if not among:
        return []
    features = None if data is None else data.features
    columns = [str(j if features is None else features[j]) for j in sorted(among)]
    message = (
        f"X: columns {', '.join(columns)} are linear functions of each other:"
        " predictions are valid, but the data do not determine their coefficients separately."
        " Remove one of the columns"
    )
    return [(AliasedWarning, message)]


def _undetermined(
    standard: Standardised, result: Fitted, lost: np.ndarray, far: np.ndarray
) -> list[Doubt]:
    """Parameters that are not determined, for no reason that another doubt gives."""
    identified, family = result.identified, standard.problem.family
    certified = result.certificate.certified and identified.definite
    # If the likelihood has jumps, derivatives do not show how well their places are determined.
    if not certified or far.any() or family.has_jumps:
        return []
    lost = lost & ~identified.related(standard.coordinates.matrix)
    lost &= ~np.isin(family.param_names, result.certificate.active)
    if not lost.any():
        return []
    terms, at = named_terms(family, result.data), np.flatnonzero(lost)
    fewer = "fewer experts, or " * (family.n_experts > 1)
    return [
        (
            IdentificationWarning,
            f"the data do not determine {_some([terms[j].name for j in at])} (no standard error):"
            f" other values fit these rows as well. Use {fewer}a simpler gate or expert; see"
            " result.explain()",
        )
    ]


def _components(standard: Standardised, result: Fitted) -> list[Doubt]:
    """Variances of random effects that the rows of the groups do not tell from each other."""
    family = result.family
    data = result.data
    if family.likelihood.effects is None or data is None or not data.y.size or data.groups is None:
        return []
    identified = result.identified
    scale = np.ravel(family.blocks["nu"]) if "nu" in family.blocks else []
    if not np.all(identified.estimated[np.append(scale, factor_places(family)).astype(int)]):
        return []  # components that are given may determine the others
    lost = undetermined_components(family, data)
    if not lost:
        return []
    sizes = np.unique(data.groups, return_counts=True)[1]
    most = "one row" if sizes.max() == 1 else f"at most {sizes.max()} rows"
    return [
        (
            IdentificationWarning,
            f"groups: the data do not determine {_some(lost)} (other values of them fit these rows"
            f" as well), because the groups, of {most}, are too small or alike in the inputs with"
            " random effects. Use fewer random effects, or groups with more rows",
        )
    ]


def _block(name: str) -> str:
    """The block of a parameter, from its name."""
    return name.removeprefix("log ").split("[")[0]


def _height(problem: Problem, theta: FloatArray, part: Rows) -> float:
    """The log-likelihood of some rows."""
    return float(part.weight @ problem.rowwise(theta, part)[2])


def _unit_doubts(standard: Standardised) -> list[Doubt]:
    """Data far from unit scale in what the family does not follow."""
    family = standard.original.family
    inner = data_units(standard.original.data).compose(standard.coordinates.units)
    used = np.array(family.read, dtype=np.int64)
    far = []
    scale = inner.scale[used]
    if np.any((scale > DOUBT.units) | (scale < 1.0 / DOUBT.units)):
        far.append("inputs whose scales differ")
    if np.any(np.abs(inner.centre[used]) > DOUBT.units * scale) and not family.given:
        far.append("inputs far from 0")
    ends = zip(family.likelihood.laws, np.ravel(inner.level), np.ravel(inner.unit), strict=True)
    for law, level, unit in ends:
        if law.support is not None or law.link is not None:
            continue
        if not 1.0 / DOUBT.units <= unit <= DOUBT.units:
            far.append(f"a response of standard deviation {unit:.3g}")
        if abs(level) > DOUBT.units * unit:
            far.append("a response far from 0")
    if not far:
        return []
    message = (
        f"{' and '.join(far)}: the fit of a {family.gate.name} gate with {family.expert.name}"
        " experts depends on these units. Give the data in units near 1"
    )
    return [(UnitsWarning, message)]
