"""What the warnings of a fit mean for its numbers, and what to do about them, in order."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from moestat.estimation.fit.fitted import objective_of
from moestat.estimation.tables import TERMINAL, as_percent

if TYPE_CHECKING:
    from moestat.estimation.fit.fitted import Fitted


__all__ = ["ADVICE", "Advice", "Explanation", "explain"]


class Advice(NamedTuple):
    """The meaning of a kind of warning, independent of the data."""

    title: str
    """The kind of warning in a few words."""
    means: str
    """The consequences for estimates, standard errors and predictions."""
    steps: tuple[str, ...]
    """What to do, the first remedy first."""


ADVICE: dict[str, Advice] = {
    "SeparationWarning": Advice(
        "No finite maximum",
        "A column separates the regions of the gate, the classes, or zero from positive counts."
        " The log-likelihood increases as the named coefficients grow, so they have no finite"
        " estimate, no standard error and no p-value. The log-likelihood, the other coefficients"
        " and predicted means remain valid; their intervals are wide near the boundary. Predicted"
        " probabilities of classes are too near 0 and 1.",
        (
            "Check the named column: a code that copies the response, or a level of a factor with"
            " few rows, separates the data for no reason of interest. Merge or drop it.",
            "If the separation is real, report a sharp boundary, and give no standard error for"
            " its coefficients.",
            'For finite coefficients use prior="weak", and report that the estimate is a posterior'
            " mode.",
            "Try fewer experts: compare them by moestat.select(...).",
        ),
    ),
    "UncertifiedWarning": Advice(
        "Not a maximum",
        "The checks by derivatives do not show that the estimate is a local maximum. Estimates,"
        " standard errors and criteria are those of a point where the search ended.",
        (
            "Follow the warning: it names the reason.",
            "Search longer: n_starts=50, or more time_limit=; repeat the call with rng=1, 2, 3.",
            'Use prior="weak", or fewer experts: a model that is too large for the data often has'
            " no maximum that can be reached.",
        ),
    ),
    "DisagreementWarning": Advice(
        "A higher maximum may exist",
        "A higher maximum may exist than the one that was reached, and another seed may"
        " return other coefficients, so do not interpret the experts yet.",
        (
            "Search longer: n_starts=50, or risk=0.01 for a smaller probability of a higher"
            " maximum.",
            "Repeat the call with rng=1, 2, 3; report the highest log-likelihood (with a prior, the"
            " highest log_posterior) and how many calls reached it.",
            'Beside a SeparationWarning use prior="weak": the posterior density has fewer maxima.',
            "Try fewer experts: disagreement is common when there is one expert too many.",
        ),
    ),
    "FewRowsWarning": Advice(
        "Too little data for an expert",
        "The expert describes a handful of rows. With fewer than five rows per parameter, nominal"
        " 95% intervals of its coefficients cover at most 90%. Coefficients of the other experts"
        " and predictions where these have most of the weight are affected little.",
        (
            "Look at the rows: result.responsibilities.argmax(axis=1) names the expert of each."
            " They may be recording errors.",
            "Try fewer experts: moestat.select(...).",
            "Share coefficients among experts: equal=['nu'] for variances, equal=['a'] for slopes.",
            "Take intervals from result.profile(name) or result.bootstrap(500).",
        ),
    ),
    "MisfitWarning": Advice(
        "The distribution does not describe the response",
        "Some responses are improbable under the fitted distribution: outliers, a repeated value,"
        " too many zeros, or a variance that the likelihood does not allow. Standard errors,"
        " p-values, AIC and BIC assume the distribution; an extra expert may only describe the"
        " misfit.",
        (
            "Look at result.plot_qq() and at the named rows.",
            "Fit the likelihood that the warning names, and compare BIC by moestat.compare.",
            "If the mean is all that you need, use"
            " result.get_robustcov_results('HC0'), which is valid when the variance is wrong.",
        ),
    ),
    "DependentRowsWarning": Advice(
        "Rows that are not independent",
        "Rows of one subject, or near in time, are more similar than the model explains. The fit"
        " treats them as independent: standard errors are then too small, and tests and criteria"
        " favour too many experts.",
        (
            "If rows belong to subjects, give the subjects as groups: groups=, or '| id' at the"
            " end of a formula. Each subject then has one expert.",
            "If an expert may change within a subject, use"
            " result.get_robustcov_results('cluster', groups).",
            "If an input has a curved effect, add terms such as bs(x, df=4) or C(x).",
        ),
    ),
    "BoundWarning": Advice(
        "An estimate on a bound",
        "The likelihood still increases at the end of the default box, so the estimate depends on"
        " the box. Standard errors are conditional on the parameters that lie on the bound.",
        (
            "Plot the data and look for an input with extreme values or a very small group.",
            'Use prior="weak", or fewer experts.',
            "If y is rounded and an expert is as narrow as the rounding allows, set the step of y"
            " by resolution=.",
            "Set bounds (bounds=) that you can justify from your field of study, and report them.",
        ),
    ),
    "LimitWarning": Advice(
        "A simpler distribution suffices",
        "A parameter of the distribution converges to the limit of its range, where the"
        " distribution becomes a simpler one. Estimates and standard errors are those of the"
        " simpler distribution.",
        ("Fit the simpler likelihood and report it.",),
    ),
    "AliasedWarning": Advice(
        "Columns that are linearly dependent",
        "The data do not determine the coefficients of these columns separately. Predictions and"
        " the log-likelihood do not depend on this.",
        ("Remove one of the named columns.",),
    ),
    "IdentificationWarning": Advice(
        "Coefficients that the data do not determine",
        "Other values of the named coefficients fit these rows as well, so they have no standard"
        " error. The log-likelihood and predictions at these rows do not depend on this;"
        " predictions far from them may.",
        (
            "Do not interpret the named coefficients; hold one at a value of your choice (fixed=)"
            " if the others are of interest.",
            "Use fewer experts, or a gate or an expert with fewer coefficients.",
        ),
    ),
    "UnitsWarning": Advice(
        "Units far from 1",
        "The fit of this family depends on the units of the data, so its default bounds and"
        " starts may not suit the data.",
        ("Rescale the named columns to a standard deviation near 1, and fit again.",),
    ),
    "InterruptedWarning": Advice(
        "A search that was stopped",
        "The result is the best of the starts so far. A higher maximum may exist.",
        ("Repeat the call with more time before you report the result.",),
    ),
}
"""What each kind of warning of a fit means; the page "Warnings" of the guide has the same kinds."""


@dataclass(frozen=True)
class Explanation:
    """What a fit shows and does not show, and each of its warnings with its remedies.

    Parameters
    ----------
    certificate : str
        What the certificate and the agreement of the starts say.
    found : tuple of (str, str)
        The class of each warning of the fit, and what it said.

    Examples
    --------
    >>> import numpy as np, moestat
    >>> x = np.linspace(-1, 1, 40)
    >>> result = moestat.fit("gaussian", x, x + np.sin(7 * x), n_experts=1, rng=0)
    >>> isinstance(result.explain(), Explanation)
    True
    """

    certificate: str
    found: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        lines = textwrap.wrap(self.certificate, TERMINAL)
        for number, (kind, message) in enumerate(self.found, 1):
            advice = ADVICE.get(kind)
            lines += [
                "",
                f"{number}. {advice.title if advice else 'Note'}" + f" ({kind})" * bool(kind),
            ]
            lines += _part("Seen", message)
            if advice is not None:
                lines += _part("Means", advice.means)
                for place, step in enumerate(advice.steps):
                    lines += _part("" if place else "Do", f"{place + 1}) {step}")
        if self.found:
            lines += ["", "More: the page 'Warnings' of the user guide, guide/warnings.html."]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)


def _part(label: str, text: str) -> list[str]:
    """A labelled paragraph, indented."""
    first = f"   {label + ':' if label else '':<7}"
    return textwrap.wrap(
        text.rstrip(".") + ".", TERMINAL, initial_indent=first, subsequent_indent=" " * len(first)
    )


def explain(result: Fitted) -> Explanation:
    """The explanation of a result, `moestat.estimation.results.results.MoEResults.explain`."""
    certificate = result.certificate
    agree = round(certificate.agreement * certificate.n_starts)
    statement = f"is a local maximum of the {objective_of(result)} in its box (certified)"
    if result._is_separated:
        statement = (
            "ends where a further step gains less than 1e-4 (certified), but it is not a local"
            f" maximum: the {objective_of(result)} keeps increasing as some coefficients grow"
        )
    if not certificate.certified:
        statement = "is not certified as a local maximum; do not report it"
    sentences = [f"The fit {statement}."]
    if certificate.n_starts > 1:
        what = "mode" if result.is_of_modes else "maximum"
        if result.prior is None and result.is_of_modes:
            others = result.seen is not None and result.seen.collapsed > 0
            sentences.append(
                "It is the maximum to which the highest mode of the posterior density under the"
                f" weak prior leads{' that leads to a proper one' * others}."
            )
        sentences.append(
            f"{agree} of {certificate.n_starts} starts ended at the best {what}. This is evidence,"
            f" but not a proof, that no higher {what} exists."
        )
    if certificate.p_higher is not None:
        sentences.append(
            "The probability that one exists is estimated as"
            f" {as_percent(certificate.p_higher)}, from the results of the search."
        )
    sentences += [f"{note[0].upper()}{note[1:]}." for note in result._of_search]
    notes = list(zip(result.kinds or ("",) * len(result.notes), result.notes, strict=True))
    if not notes:
        sentences.append("The fit raised no warning.")
    return Explanation(" ".join(sentences), tuple(notes))
