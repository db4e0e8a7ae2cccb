"""Tables of several fits side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moestat.base.door import door
from moestat.estimation.results.ratios import has_ratios, with_ratios
from moestat.estimation.results.results import MoEResults
from moestat.estimation.results.summary import (
    EXPONENTIATED,
    Estimate,
    estimates,
    in_order,
    label_of,
    of_scales,
    sections,
    tidy,
)
from moestat.estimation.tables import Row, Sheet, significant

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Comparison", "compare"]


@dataclass(frozen=True, repr=False)
class Comparison(Sheet):
    """A table with one column for each fit: estimates, standard errors, and quality of the fit.

    It prints as text and is shown as HTML in a notebook.  Its methods ``as_text``, ``as_latex``,
    ``as_html`` and ``as_csv`` return strings.

    Parameters
    ----------
    title, facts, head, rows, notes
        Contents of the table, see `moestat.estimation.tables.Sheet`.
    models : tuple of (str, tuple of Estimate)
        The name of each model and its parameters; `frame` has them as one data frame.
    """

    models: tuple[tuple[str, tuple[Estimate, ...]], ...] = ()

    @property
    def frame(self) -> pd.DataFrame:
        """The rows of `MoEResults.tidy` of all models, with the column ``model``."""
        import pandas as pd

        parts = {name: tidy(estimates_of_model) for name, estimates_of_model in self.models}
        return pd.concat(parts, names=["model"]).reset_index(level=0).reset_index(drop=True)


@door()
def compare(
    fits: Mapping[Any, MoEResults] | Sequence[MoEResults], *, exponentiate: bool = False
) -> Comparison:
    """Make a table of several fits for a paper, with their coefficients side by side.

    A row has the coefficients with the same term of the experts with the same number.  The fits
    may differ in likelihood, gate, inputs and number of experts.

    Parameters
    ----------
    fits : mapping of name to MoEResults, or sequence of MoEResults
        The fits; those of a sequence are called ``(1)``, ``(2)`` and so on.
    exponentiate : bool
        Whether to report rate ratios and odds ratios, as in `MoEResults.tidy`; headings say which.

    Returns
    -------
    Comparison
        The table.

    Raises
    ------
    ValueError
        If there are no fits, or one of them is not a result of a fit.

    Notes
    -----
    Log-likelihoods, AIC and BIC of fits with different responses, rows or weights are not
    comparable; the table shows them nevertheless.

    Examples
    --------
    >>> import numpy as np, moestat
    >>> X = np.linspace(-1, 1, 80)
    >>> y = np.abs(X) + 0.1 * np.sin(np.arange(80) ** 2)
    >>> fits = {f"k = {k}": moestat.fit("gaussian", X, y, n_experts=k, rng=0) for k in (1, 2)}
    >>> print(moestat.compare(fits).as_text().splitlines()[1].split())
    ['k', '=', '1', 'k', '=', '2']
    """
    if isinstance(fits, MoEResults) or not isinstance(fits, Mapping | Sequence) or not len(fits):
        raise ValueError(
            "fits must be a mapping of names to results, or a sequence of results, such as"
            f" compare({{'one expert': one, 'two experts': two}}); got {type(fits).__name__}"
        )
    if isinstance(fits, Mapping):
        models = {str(name): result for name, result in fits.items()}
    else:
        models = {f"({i})": result for i, result in enumerate(fits, start=1)}
    for name, result in models.items():
        if not isinstance(result, MoEResults):
            raise ValueError(f"fits: {name} must be a result of a fit, got {type(result).__name__}")
    estimates_by_model = {name: estimates(result) for name, result in models.items()}
    if exponentiate:
        given = {n: (r.family, r.param_names, estimates_by_model[n]) for n, r in models.items()}
        members = {name: (r.family.likelihood, r.family.expert) for name, r in models.items()}
        ratios = {name for name, each in given.items() if has_ratios(*each)}
        # One expert has no gate; beside the same experts with odds ratios of a gate it stays.
        same = [members[name] for name in ratios]
        estimates_by_model |= {
            name: with_ratios(*each)
            for name, each in given.items()
            if name in ratios or members[name] not in same
        }
    rows = _coefficients(list(estimates_by_model.values()))
    rows += [Row(("Fit",), heading=True)]
    for label, value in _REACHED.items():
        rows.append(Row((label, *map(value, models.values()))))
    return Comparison(
        "",
        (),
        ("", *models),
        tuple(rows),
        (*_notes(models), *([EXPONENTIATED] if exponentiate else [])),
        tuple((name, tuple(each)) for name, each in estimates_by_model.items()),
    )


def _coefficients(models: Sequence[Sequence[Estimate]]) -> list[Row]:
    """A heading and the rows of each section that any model has."""
    tables = [sections([e for e in each if e.status != "reference"]) for each in models]
    rows = []
    for place in sorted(dict.fromkeys(p for table in tables for p in table), key=in_order):
        estimates = [{label_of(e): e for e in table.get(place, ())} for table in tables]
        # Scales come last, whichever model has them.
        labels = dict.fromkeys(label for members in estimates for label in members)
        labels = sorted(labels, key=lambda label: label.startswith("log "))
        part, expert, equation = place
        called = {e.term.called for members in estimates for e in members.values()}
        name = called.pop() if len(called) == 1 else None
        whose = "all experts" if expert is None else name or f"expert {expert}"
        heading = f"Gate: {whose}" if part == "gate" else name or whose.capitalize()
        heading += "" if equation is None else f": {equation}"
        heading += of_scales([e for members in estimates for e in members.values()])
        rows.append(Row((heading,), heading=True))
        for label in labels:
            rows.append(Row((label, *(_cell(members.get(label)) for members in estimates))))
    return rows


def _notes(models: Mapping[str, MoEResults]) -> tuple[str, ...]:
    """Sentences below the table, with the prior densities of posterior modes."""
    notes = ["Standard errors in parentheses. The last expert is the reference of a gate."]
    modes = {name: result.prior for name, result in models.items() if result.prior is not None}
    for prior in dict.fromkeys(modes.values()):
        names = ", ".join(name for name, each in modes.items() if each == prior)
        notes.append(
            f"Posterior mode under {prior}: {names}. Free parameters are effective numbers; AIC and"
            " BIC compare only fits with the same prior."
        )
    return tuple(notes)


def _cell(each: Estimate | None) -> str:
    if each is None:
        return ""
    error = significant(each.error, 2) if each.error > 0.0 else each.status
    return f"{significant(each.estimate, 3)} ({error})"


_REACHED: dict[str, Callable[[MoEResults], str]] = {
    "Observations": lambda result: f"{result.nobs:.10g}",
    "Experts": lambda result: str(result.family.n_experts),
    "Free parameters": lambda result: f"{result.edf:.6g}",
    "Log-likelihood": lambda result: f"{result.llf:.2f}",
    "AIC": lambda result: f"{result.aic:.2f}",
    "BIC": lambda result: f"{result.bic:.2f}",
    "Certified": lambda result: "yes" if result.certificate.certified else "NO",
}
