"""Warnings about rows that the distribution of a fit does not describe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from moestat.base.types import FloatArray, IntArray
from moestat.base.warnings import (
    DependentRowsWarning,
    FewRowsWarning,
    MisfitWarning,
    MoEWarning,
)
from moestat.estimation.data.data import Data
from moestat.estimation.fit.identified import Identified
from moestat.estimation.fit.relabel import mean_weights
from moestat.estimation.inference.dependence import bounded, dependence_in_groups
from moestat.estimation.inference.diagnostics import quantile_residuals
from moestat.estimation.reading.hints import FEW_LEVELS
from moestat.estimation.rules import ALARM
from moestat.model.family import Family
from moestat.model.likelihoods import LIKELIHOODS
from moestat.solvers.rules import TINY

if TYPE_CHECKING:
    from moestat.estimation.fit.fitted import Fitted


__all__ = ["Misfit", "misfits"]

_FEWEST = 50
"""Smallest number of residuals whose kurtosis is tested: at a level of .001 the test rejects .00097
of 400,000 normal samples of this size, and .00082 of samples of 20."""

Misfit = tuple[type[MoEWarning], str]
"""Class of a warning, and its message."""


@dataclass(frozen=True)
class _Checked:
    """A fit with some or all of its rows, as the checks read them."""

    family: Family
    theta: FloatArray
    data: Data = field(repr=False)
    noise: float | None
    edf: float
    name: str = "y"  # of the response, in messages

    @property
    def y(self) -> FloatArray:
        """Responses (n,), or (n, 2): bounds, or successes and failures."""
        return self.data.y

    @cached_property
    def is_point(self) -> np.ndarray:
        """Whether each real response (n,) is known: without bounds, or with equal ones."""
        return np.ones(len(self.y), bool) if self.y.ndim == 1 else self.y[:, 0] == self.y[:, 1]

    @property
    def points(self) -> FloatArray:
        """Real responses (m,) that are known."""
        return self.y if self.y.ndim == 1 else self.y[self.is_point, 0]

    @cached_property
    def values(self) -> FloatArray:
        """Different ones of the `points`, ascending."""
        return np.unique(self.points)

    @cached_property
    def has_trials(self) -> bool:
        """Whether each row has a number of trials of its own."""
        return self.family.likelihood.with_trials is not None

    @property
    def zeros(self) -> tuple[FloatArray, np.ndarray]:
        """Responses of 0 with the numbers of trials of the rows, and which rows have them (n,)."""
        if not self.has_trials:
            return np.zeros(len(self.data.X)), self.y == 0
        none = np.zeros(len(self.y))
        return np.column_stack([none, self.y.sum(axis=1)]), self.y[:, 0] == 0

    @property
    def weight(self) -> FloatArray:
        """Weights (n,)."""
        return self.data.weight

    @cached_property
    def residuals(self) -> FloatArray:
        """Standard normal values (n,) where the model is true; randomised ones of counts."""
        if self.noise is not None:
            return (self.y - self.family.mean(self.theta, self.data.X)) / np.sqrt(self.noise)
        return quantile_residuals(self.family, self.theta, self.data.X, self.y, 0)

    @cached_property
    def densities(self) -> FloatArray:
        """Densities, or probabilities, of the responses (n,)."""
        if self.noise is not None:
            return np.exp(-0.5 * self.residuals**2) / np.sqrt(2.0 * np.pi * self.noise)
        return np.exp(self._log_density(self.y))

    def _log_density(self, y: FloatArray) -> FloatArray:
        coded = self.family.likelihood.encode(y, self.family.n_classes)
        return self.family.rowwise(self.theta, np.ascontiguousarray(self.data.X.T), coded)[2]

    @cached_property
    def chance_of_zero(self) -> FloatArray:
        """Probability (n,) that a count is 0."""
        return np.exp(self._log_density(self.zeros[0]))

    @property
    def is_real(self) -> bool:
        """Whether responses are numbers on a continuum."""
        likelihood = self.family.likelihood
        return likelihood.support is None and not likelihood.counts

    def different(self, rows: IntArray) -> IntArray:
        """The first of the rows (m,) that are the same row of the data, in their order."""
        places = rows if self.data.kept is None else self.data.kept[rows]
        return rows[np.sort(np.unique(places, return_index=True)[1])]

    def name_rows(self, rows: IntArray) -> str:
        """Rows by their names, or by their numbers from 0 if they have no names."""
        index, places = self.data.index, self.data.kept
        names = rows if places is None else places[rows]
        names = names if index is None else index[rows]
        more = f" and {len(rows) - 5} more" if len(rows) > 5 else ""
        return f"row{'s' * (len(rows) > 1)} {', '.join(map(str, names[:5]))}{more}"


def misfits(
    result: Fitted, rows: Data | None = None, sizes: FloatArray | None = None
) -> list[Misfit]:
    """Warnings about rows that the fitted distribution does not describe.

    Outliers and long tails, few values or a spike of a real response, more zeros or another
    variance than counts have, rows that repeat or resemble each other, experts of few rows, and
    inputs with too few values to distinguish experts.  If the model is true, each warning is issued
    for at most one in a thousand data sets, as far as the limit distribution of its test holds.

    Responses are compared by quantile residuals (Dunn and Smyth 1996), standard normal where the
    model is true, with weights as counts of equal rows.  Outliers: the largest of n beyond its
    quantile (Bonferroni), or the kurtosis test of Anscombe and Glynn (1983).  Variance of counts:
    the sum of squares compared with a chi-square distribution.  Zeros: their number less the sum of
    their fitted probabilities, as in the score test of van den Broek (1995).

    `rows` are those of the fit, or a sample of them; `sizes` (k,) are then the sums of the
    responsibilities of each expert over all rows.
    """
    rows = result.rows if rows is None else rows
    sampled, used = rows, np.flatnonzero(rows.weight > 0)
    if used.size > ALARM.rows:
        used = np.sort(np.random.default_rng(0).choice(used, ALARM.rows, replace=False))
    if used.size < len(rows.y):
        sampled = rows.at(used)
    fits = _responses_of(result, sampled)
    kinds = [each for fit in fits for each in _check_kind(fit)]
    scales = result.family.likelihood.scales
    if any(scale in name for scale in scales for name in result.certificate.active):
        return [*kinds, *_check_experts(result, rows, sizes)]
    whole = _is_table_of_counts(rows, result.family)
    counted = _responses_of(result, _one_by_one(rows)) if whole else fits
    with np.errstate(all="ignore"):
        misfits = [*kinds, *(each for fit in counted for each in _check_responses(fit))]
        misfits += _check_experts(result, rows, sizes)
        if rows.groups is None:
            misfits += _check_dependence(fits)
        else:
            misfits += dependence_in_groups(result, rows)
    return misfits


def _responses_of(result: Fitted, rows: Data) -> list[_Checked]:
    """Each response of a fit by itself, with these rows."""
    family = result.family
    if not family.likelihood.parts:
        noise = result.residual_variance if family.is_regression else None
        return [_Checked(family, result.theta, rows, noise, result.edf)]
    fits = []
    for r, (one, (alone, places)) in enumerate(
        zip(family.likelihood.parts, family.marginals, strict=True)
    ):
        y = rows.y[:, r].astype(np.int64) if alone.likelihood.support is not None else rows.y[:, r]
        edf = result.edf / len(family.likelihood.parts)
        fits.append(_Checked(alone, result.theta[places], replace(rows, y=y), None, edf, one.name))
    return fits


def _is_table_of_counts(rows: Data, family: Family) -> bool:
    """Whether each row is a different response at some inputs, with its count as the weight.

    Other weights, such as those of a survey, are not numbers of independent rows.
    """
    used = rows.weight > 0.0
    weight = rows.weight[used]
    if np.any(weight != np.round(weight)) or not np.any(weight > 1.0):
        return False
    X = rows.X[used][:, list(family.read)]
    n_inputs = np.unique(_row_codes(X)).size
    return 2 * n_inputs <= weight.size == len(np.unique(np.column_stack([X, rows.y[used]]), axis=0))


def _one_by_one(rows: Data) -> Data:
    """Rows as often as their weights say, so that residuals of equal counts differ at random."""
    count, total = rows.weight, float(rows.weight.sum())
    if total > ALARM.rows:
        count = np.random.default_rng(0).multinomial(ALARM.rows, rows.weight / total)
    each = rows.at(np.repeat(np.arange(count.size), count.astype(np.int64)))
    return replace(each, weight=np.ones(each.weight.size))


def _check_kind(fit: _Checked) -> Iterator[Misfit]:
    """That real responses look like classes or counts, and which likelihoods describe these."""
    if not fit.is_real or fit.family.likelihood.effects is not None:
        return
    values, rows = fit.values, len(fit.points)
    whole = values.size > 0 and bool(np.all(values == np.round(values)))
    counts = whole and values[0] in (0.0, 1.0) and values.size * ALARM.enough < rows
    if not counts and not values.size <= FEW_LEVELS < rows / ALARM.enough:
        return
    if values.size == 2:
        yes = " ('binomial' if these are 0 and 1)" * (values.tolist() == [0.0, 1.0])
        kind = f"they look like two classes: use family='multinomial'{yes}"
    elif counts:
        kind = "they look like counts: use family='poisson', or 'ordinal' for classes in order"
    else:
        kind = "they may be counts, or classes in order ('ordinal')"
    yield (
        MisfitWarning,
        f"{fit.name} takes only {values.size} values, which no continuous distribution describes:"
        f" {kind}",
    )


def _check_responses(fit: _Checked) -> Iterator[Misfit]:
    """Warnings that each row's response gives by itself."""
    if fit.family.likelihood.support is not None or fit.family.likelihood.effects is not None:
        return  # with random effects residuals of rows depend on each other
    if fit.is_real:
        if any(_check_kind(fit)):
            return  # said already
        spikes = list(_find_spikes(fit)) if np.ndim(fit.y) == 1 else []
        yield from spikes
        if spikes:
            return
    r, n = fit.residuals, float(fit.weight.sum())
    limit = -special.ndtri(ALARM.level / (2.0 * max(n, 1.0)))
    far = ~(np.abs(r) <= limit)
    near, weight = r[~far], fit.weight[~far]
    if (choices := fit.family.likelihood.choices) is not None:
        inside = ~choices.at_ends(fit.y)  # nothing lies beyond the ends of noise
        near, weight, far = r[~far & inside], fit.weight[~far & inside], far & inside
    if fit.family.likelihood.link is not None:
        spread = list(_check_spread(fit, near, weight))
        yield from spread
        if spread:
            return
    tails = fit.is_real and near.size >= _FEWEST and _long_tails(near)
    if not tails and not far.any():
        return
    rows = np.flatnonzero(far)
    rows = fit.different(rows[np.argsort(-np.abs(np.nan_to_num(r[rows], nan=np.inf)))])
    evidence = f"the kurtosis of the residuals is {_kurtosis(near):.1f} instead of 3"
    if rows.size:
        lie = "lie" if rows.size > 1 else "lies"
        evidence = (
            f"{fit.name_rows(rows)} of {n:.10g} {lie} where the fit expects one row in"
            f" {n / ALARM.level:.2g}"
        )
    student = fit.family.likelihood.name in ("gaussian", "least-squares")
    other = " Compare likelihood 'student-t'." if student else ""
    yield (
        MisfitWarning,
        f"{fit.name} has outliers, or longer tails than the fitted distribution: {evidence}."
        f" Estimates and standard errors depend on them.{other} See result.explain()",
    )


def _long_tails(r: FloatArray) -> bool:
    """Whether residuals (n,) have a larger kurtosis than normal ones, Anscombe and Glynn (1983)."""
    n = float(r.size)
    mean, variance = 3.0 * (n - 1) / (n + 1), 24.0 * n * (n - 2) * (n - 3)
    variance /= (n + 1) ** 2 * (n + 3) * (n + 5)
    skew = 6 * (n * n - 5 * n + 2) / ((n + 7) * (n + 9))
    skew *= np.sqrt(6 * (n + 3) * (n + 5) / (n * (n - 2) * (n - 3)))
    a = 6 + 8 / skew * (2.0 / skew + np.sqrt(1.0 + 4.0 / skew**2))
    x = (_kurtosis(r) - mean) / np.sqrt(variance)
    cube = (1.0 - 2.0 / a) / (1.0 + x * np.sqrt(2.0 / (a - 4.0)))
    z = (1.0 - 2 / (9 * a) - np.cbrt(cube)) / np.sqrt(2 / (9 * a))
    return bool(z > -special.ndtri(ALARM.level))


def _kurtosis(r: FloatArray) -> float:
    return float(np.mean((r - r.mean()) ** 4) / np.var(r) ** 2)


def _find_spikes(fit: _Checked) -> Iterator[Misfit]:
    """A value of a real response that occurs much more often than those beside it."""
    values = fit.values
    counts = np.bincount(np.searchsorted(values, fit.y), fit.weight)
    top = int(np.argmax(counts))
    beside = np.r_[counts[max(top - 5, 0) : top], counts[top + 1 : top + 6]]
    # Ties are repetitions of a value; numbers on a continuum have none.
    ties, others = np.round(counts[top] - 1.0), np.maximum(beside - 1.0, 0.0).sum()
    if not beside.size or ties < 1.0:
        return
    share = ALARM.spike / (ALARM.spike + beside.size)
    # The binomial probability that so many of all ties, or more, are at one place.
    chance = special.betainc(ties, np.round(others) + 1.0, share)
    if chance < ALARM.level:
        end = top in (0, values.size - 1)
        other = f" If {fit.name} was cut off there, give it as two columns of bounds" if end else ""
        yield (
            MisfitWarning,
            f"{fit.name} is {values[top]:.6g} in {counts[top]:.10g} of {fit.weight.sum():.10g}"
            f" rows, and its neighbours occur {beside.mean():.3g} times each: no continuous"
            " distribution has such a spike, and experts adapt to it. Model those rows separately."
            f"{other}",
        )


_WIDER = {"poisson": "negative-binomial", "binomial": "beta-binomial"}
_EITHER = {"exponential": "weibull", "geometric": "negative-binomial"}
"""Distributions with a parameter for the variance: those that can only be wider, and those that can
be narrower, too."""


def _of_free_variance(name: str, wider: bool) -> list[str]:
    """Likelihoods that contain the named one and can vary more, or less."""
    known = {**_EITHER, **(_WIDER if wider else {})}
    return [name.removesuffix(end) + other for end, other in known.items() if name.endswith(end)]


def _check_spread(fit: _Checked, near: FloatArray, weight: FloatArray) -> Iterator[Misfit]:
    """Excess of zeros or variance of counts, and of other responses without a scale."""
    likelihood, facts, small = fit.family.likelihood, [], False
    name, others = likelihood.name, []
    bounded_counts = fit.y.ndim == 2 and not fit.has_trials
    if likelihood.counts and likelihood.ends[0] < 0.0 and not bounded_counts:
        p = fit.chance_of_zero
        expected, zeros = fit.weight @ p, float(fit.weight[fit.zeros[1]].sum())
        if zeros - expected > -special.ndtri(ALARM.level) * np.sqrt(
            fit.weight**2 @ (p * (1.0 - p))
        ):
            facts.append(f"are 0 in {zeros:.10g} rows where the fit expects {expected:.1f}")
            small = True
            others.append(f"zero-inflated-{name}")
    if not any(channel.log for channel in likelihood.channels):
        degrees = weight.sum() - fit.edf
        z = (weight @ near**2 - degrees) / np.sqrt(2.0 * float(weight @ weight))
        if abs(z) > -special.ndtri(ALARM.level / 2.0):
            facts.append(
                f"vary {weight @ near**2 / degrees:.2f} times as much as the fitted distribution"
            )
            small |= z > 0.0
            others += _of_free_variance(name, z > 0.0)
    if facts:
        known = [f"'{other}'" for other in others if other in LIKELIHOODS]
        yield (
            MisfitWarning,
            f"{fit.name}: {'counts' if likelihood.counts else 'responses'} {' and '.join(facts)}:"
            f" standard errors are {'too small' if small else 'too large'}."
            f" {'Compare ' * bool(known)}{' and '.join(known)}{', or use' if known else 'Use'}"
            " cov_type='HC0'; see result.explain()",
        )


def _check_dependence(fits: Sequence[_Checked]) -> Iterator[Misfit]:
    """Rows that repeat each other, or are more alike than the fit explains, whatever they count."""
    first_fit = fits[0]
    inputs = list(first_fit.family.read)
    X = first_fit.data.X[:, inputs]
    n = len(X)
    if not inputs or n < 10:
        return
    _, first, group = np.unique(_row_codes(X), return_index=True, return_inverse=True)
    copies = _count_copies(fits, first[group])
    if copies:
        yield (
            DependentRowsWarning,
            f"{copies} of {n} rows are copies of others, in response and inputs: they add no"
            " information, and standard errors are too small. Remove them, give subjects as"
            " groups=, or use cov_type='cluster'; see result.explain()",
        )
        return
    for fit in fits:
        alike = list(_find_alike(fit, inputs, group))
        yield from alike
        if alike:
            return


def _find_alike(fit: _Checked, inputs: Sequence[int], group: IntArray) -> Iterator[Misfit]:
    """Rows of equal inputs, or adjacent ones, whose residuals of one response are alike."""
    if fit.family.likelihood.support is not None or fit.family.likelihood.effects is not None:
        return
    X, n = fit.data.X[:, inputs], len(group)
    r = bounded(fit.residuals)
    r = (r - r.mean()) / max(float(r.std()), TINY)
    places = [(None, group)] if len(inputs) > 1 else []
    places += [(j, np.unique(X[:, c], return_inverse=True)[1]) for c, j in enumerate(inputs)]
    for column, index in places:
        size = np.bincount(index)
        sums = np.bincount(index, r) ** 2
        several = size > 1
        groups = int(several.sum())
        if groups < 2 or size[several].mean() < 2.0 or groups > n / 2:
            continue
        statistic = float(np.sum(sums[several] / size[several]))
        if special.chdtrc(groups, statistic) * len(places) < ALARM.level:
            names = fit.data.features
            what = "inputs" if column is None else f"column {names[column] if names else column}"
            yield (
                DependentRowsWarning,
                f"rows with equal values of {what} are more similar than the fit explains ({groups}"
                f" values, chi-square {statistic:.0f} with {groups} degrees of freedom). If these"
                " rows belong to one subject, standard errors are too small: use groups= or"
                " cov_type='cluster'. Otherwise the effect may be curved: use cr() or C(). See"
                " result.explain()",
            )
            return
    # Pairs that were put in order by their responses, as in a table of counts, say nothing.
    y = fit.y if np.ndim(fit.y) == 1 else fit.y[:, 0]
    beside = ~_in_order(y, np.zeros_like(group)) & ~_in_order(y, group)
    products = r[1:][beside] * r[:-1][beside]
    z = float(products.sum() / np.sqrt(max(float(products @ products), TINY)))
    if z > -special.ndtri(ALARM.level):
        correlation = float(products.sum() / (r @ r))
        yield (
            DependentRowsWarning,
            f"adjacent rows are similar (correlation of residuals {correlation:.2f}): standard"
            " errors are too small if adjacent rows belong to one subject or are near in time."
            " Use groups= or cov_type='cluster'; see result.explain()",
        )


def _in_order(y: FloatArray, group: IntArray) -> np.ndarray:
    """Adjacent pairs (n - 1,) of one group, if the responses of all such pairs are in order."""
    pairs, steps = group[1:] == group[:-1], np.diff(y)
    ordered = np.all(steps[pairs] >= 0) or np.all(steps[pairs] <= 0)
    return pairs & ordered


def _row_codes(X: FloatArray) -> FloatArray:
    """A sum of irrational multiples of the inputs (n, d): equal where rows are equal."""
    return np.sum(X * np.sqrt(np.arange(2, X.shape[1] + 2)), axis=1)


def _count_copies(fits: Sequence[_Checked], lead: IntArray) -> int:
    """Number of rows that copy the first row with their inputs; 0 if chance explains them.

    Of several responses a copy repeats all, which is at most as probable as for each of them.
    """
    later = lead != np.arange(lead.size)
    same, chance = np.ones(int(later.sum()), dtype=bool), np.ones(int(later.sum()))
    for fit in fits:
        equal = fit.y[later] == fit.y[lead[later]]
        same &= equal if equal.ndim == 1 else equal.all(axis=1)
    copies = int(np.sum(same))
    if copies < ALARM.share * lead.size:
        return 0
    for fit in fits:
        step = np.ones(len(fit.y))
        if fit.is_real:  # of a density; that of a censored response is a probability
            gap = float(np.diff(fit.values).min(initial=np.inf))
            step[fit.is_point] = gap
        one = np.nan_to_num((fit.densities * step)[lead[later]], nan=1.0)
        chance = np.minimum(chance, one)
    share = float(chance.mean())
    # At least halfway to always: a misfit at levels of discrete inputs makes no copies.
    certain = copies > 0.5 * (1.0 + share) * later.sum()
    probability = special.bdtrc(copies - 1.0, int(later.sum()), share)
    return copies if certain and probability < ALARM.level else 0


def _sizes_of_experts(result: Fitted) -> FloatArray:
    """Rows of each expert (k,): sums of responsibilities, or of weights in a regression."""
    family, rows = result.family, result.rows
    if rows.groups is not None:
        shares, weight = result.assignments
        return shares @ weight
    if family.is_regression:
        return rows.weight.sum() * mean_weights(result)
    sizes = np.zeros(family.n_experts)
    for at in range(0, len(rows.y), ALARM.rows):
        part = slice(at, at + ALARM.rows)
        y = family.likelihood.encode(rows.y[part], family.n_classes)
        X = np.ascontiguousarray(rows.X[part].T)
        sizes += family.rowwise(result.theta, X, y)[1] @ rows.weight[part]
    return sizes


def _count_own(family: Family, identified: Identified, i: int) -> int:
    """Degrees of freedom of expert i that no other shares; equal coefficients count once."""
    places: set[int] = set()
    for c in range(family.first_expert_channel, len(family.channels)):
        if not family.channels[c].shared:
            places |= {*range(first := int(family.index[i, c]), first + int(family.width[c]))}
    places &= {*np.flatnonzero(identified.estimated).tolist()}
    related = (
        np.linalg.matrix_rank(identified.aliased[sorted(places)]) if identified.aliased.size else 0
    )
    ties = [{*tie.tolist()} for tie in family.ties]
    return len(places.difference(*ties)) + sum(tie <= places for tie in ties) - int(related)


def _check_experts(result: Fitted, rows: Data, sizes: FloatArray | None) -> Iterator[Misfit]:
    """Warnings about experts of few rows, and inputs that do not distinguish experts."""
    family = result.family
    if family.n_experts == 1:
        return
    what = "rows" if rows.groups is None else "groups"
    for i, size in enumerate(_sizes_of_experts(result) if sizes is None else sizes):
        n_free = _count_own(family, result.identified, i)
        if size < ALARM.enough * n_free:
            yield (
                FewRowsWarning,
                f"{result.experts.called(i)} has {size:.1f} {what} for {n_free} parameters: it"
                f" describes these {what} only, and its standard errors and intervals are too"
                " small. Use fewer experts, or common coefficients (equal=); see result.explain()",
            )
    used = [j for j in family.read if j not in family.held]
    if not used or family.gate.n_active is not None:
        return
    X = rows.X[:: len(rows.X) // ALARM.rows + 1, used]
    distinct = np.unique(_row_codes(X)).size
    inputs = family.gate_inputs, family.expert_inputs
    read_by_both = all(part is None or set(used) <= set(part) for part in inputs)
    if distinct <= len(used) + 1 and read_by_both:
        scaled = bool(family.likelihood.scales)
        only = "only the experts' scales tell" if scaled else "nothing tells"
        yield (
            FewRowsWarning,
            f"the inputs take {distinct} different values, and each expert can have any mean at"
            f" each: {only} which of the means belong to one expert, so that other pairings may be"
            " as likely. Use a gate without inputs, equal slopes or fewer experts",
        )
