"""Tests of the number of experts, for which the likelihood ratio has no chi-square distribution."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from moestat.base.door import door
from moestat.base.types import FloatArray, Seed
from moestat.base.validate import as_generator, check_keywords, positive_int
from moestat.base.warnings import InterruptedWarning, MoEWarning, warn_caller
from moestat.estimation.data.data import Data
from moestat.estimation.data.groups import Grouping, encoded_rows
from moestat.estimation.data.priors import Prior
from moestat.estimation.fit.batches import fit_data, fit_data_sets
from moestat.estimation.fit.fitted import Fitted
from moestat.estimation.inference.inner_fit import check_likelihood, check_maximum
from moestat.estimation.inference.nested import check_same_data
from moestat.estimation.inference.resampling import parametric_samples
from moestat.estimation.progress import reported
from moestat.estimation.results.results import MoEResults
from moestat.estimation.rules import MOST_FITS, RESAMPLES
from moestat.estimation.search.agreement import GrownStarts, Race
from moestat.estimation.starts import GivenStarts
from moestat.model.family import Family

__all__ = ["OrderTest", "bootstrap_lrt"]

_ROUNDS = 3
"""Largest number of resamples that replace those left out, as a multiple of `n_resamples`."""

_SOLVING = ("solver", "starts", "target", "prior")
"""Arguments of `moestat.fit` that both models share."""


@dataclass(frozen=True, repr=False)
class OrderTest:
    """Result of a parametric bootstrap test of k experts against more.

    Parameters
    ----------
    statistic : float
        Twice the difference of the log-likelihoods.
    replicates : ndarray of shape (B,)
        The statistics of data drawn from the smaller fit; resamples without certified fits are left
        out.
    n_resamples, n_left_out : int
        Number of resamples that were requested, and that were left out.  After an interrupt, not
        all requested resamples were fitted.
    """

    statistic: float
    replicates: FloatArray = field(repr=False)
    n_resamples: int
    n_left_out: int

    @property
    def interrupted(self) -> bool:
        """Whether the user interrupted it before all resamples were fitted."""
        return self.replicates.size + self.n_left_out < self.n_resamples

    @property
    def pvalue(self) -> float:
        """``(1 + #{T* >= T}) / (1 + B)``."""
        larger = int(np.sum(self.replicates >= self.statistic))
        return (1 + larger) / (1 + self.replicates.size)

    @property
    def pvalue_se(self) -> float:
        """Monte Carlo standard error of the p-value."""
        p = self.pvalue
        return float(np.sqrt(p * (1.0 - p) / max(self.replicates.size, 1)))

    def __repr__(self) -> str:
        return f"<OrderTest: {self}>"

    def __str__(self) -> str:
        return (
            f"bootstrap likelihood ratio: {self.statistic:.4f}, p = {self.pvalue:.4g}"
            f" +- {self.pvalue_se:.2g} ({self.replicates.size} of {self.n_resamples} resamples"
            f"{', interrupted' * self.interrupted})"
        )


@door()
def bootstrap_lrt(
    small: MoEResults,
    large: MoEResults,
    n_resamples: int = 199,
    *,
    rng: Seed = None,
    threads: int | None = None,
    verbose: bool = False,
    **options: Any,
) -> OrderTest:
    """Test k experts against more by refitting data drawn from the smaller fit.

    With one expert too many, the truth lies on the boundary of the larger model, where the
    information is singular.  The likelihood ratio has no chi-square distribution at any n.

    Parameters
    ----------
    small, large : MoEResults
        Fits of one family to the same data, with k experts and with more.  Both may be posterior
        modes under one prior; the refits then use this prior as well.
    n_resamples : int
        Number B of data sets drawn from the smaller fit.
    rng : numpy.random.Generator, int or None
        Source of data and starts.
    threads : int, optional
        Threads; all cores by default.
    verbose : bool
        Whether to show the progress on standard error.
    **options
        Further arguments of `moestat.fit_many`, those of the fits that are compared.

    Returns
    -------
    OrderTest
        Statistic, p-value and its Monte Carlo error.

    Raises
    ------
    ValueError
        If the fits are not of one family and one data set, or the family has no density.

    Notes
    -----
    The test is the parametric bootstrap of McLachlan (1987).  A resample is left out if one of its
    two fits is not certified.  Such resamples are counted and replaced by further ones, at most
    three times `n_resamples`.

    The observed statistic comes from new fits to the data, which are searched in the same way as
    the fits to the resamples, so that the maxima are comparable.  The smaller model starts from
    the parameters from which the resamples are drawn.  The larger model is fitted by a race that
    starts from the new smaller fit with one of its experts split, or with a new expert.  If you
    give ``starts=``, all fits use these starts instead.

    After an interrupt (Ctrl-C), the function issues an `InterruptedWarning` and returns the result
    of the resamples so far.

    Examples
    --------
    >>> from moestat import Uniform, family, fit, sample
    >>> F = family("gaussian", gate="softmax", n_experts=1)
    >>> theta = F.pack({"beta0": [0], "beta1": [0], "a": [2], "b": [1], "nu": [1]})
    >>> X, y = sample(F, theta, n=200, rng=0)
    >>> one, two = fit(F, X, y, rng=0), fit(F.with_experts(2), X, y, rng=0)
    >>> bootstrap_lrt(one, two, 19, rng=0).pvalue > 0.05
    True
    """
    count = positive_int("n_resamples", n_resamples, maximum=MOST_FITS)
    prior = small.prior
    if not isinstance(prior, Prior) or prior != large.prior:
        for result in (small, large):
            check_maximum(result)
    elif "prior" not in options:
        options["prior"] = prior
    check_likelihood("bootstrap_lrt", small.family)
    if small.family.with_experts(large.family.n_experts) != large.family:
        raise ValueError("small and large must be fits of one family, with k and more experts")
    if large.family.n_experts <= small.family.n_experts:
        raise ValueError(
            f"large must have more experts than small, got {large.family.n_experts} and"
            f" {small.family.n_experts}"
        )
    rows = small.rows
    check_same_data(small, large, ("small", "large"))
    check_keywords("bootstrap_lrt", options, _SOLVING)
    model, theta = small.family, small.theta
    data = encoded_rows(model, rows)
    labels = None if rows.groups is None else rows.groups[Grouping(rows.groups).order]
    generator = as_generator(rng)

    def ratios(sets: list[Data]) -> FloatArray:
        fit_both = partial(
            _fit_from_starts if "starts" in options else _fit_by_growing, small, large.family
        )
        solving = {**options, "threads": threads}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MoEWarning)
            pairs = fit_both(sets, generator.spawn(1)[0], solving)
        heights = [[f.llf if f.certificate.certified else np.nan for f in fits] for fits in pairs]
        return 2.0 * (np.array(heights[1]) - np.array(heights[0]))

    def draw(size: int) -> list[Data]:
        samples = parametric_samples(model, data, theta, size, generator)
        decode = model.likelihood.decode
        kept = {"groups": labels, "resolution": rows.resolution}
        return [Data(s.X.T, decode(s.y), s.weight, **kept) for s in samples]

    # The data themselves are fitted in the same way: a likelihood ratio of maxima that were looked
    # for less thoroughly would be too small.
    with reported("bootstrap_lrt", verbose, count, "resamples") as report:
        observed = float(ratios([rows])[0])
        if not np.isfinite(observed):
            raise ValueError(
                "the fits to the data, which are repeated in the same way as those to resamples,"
                " are not certified"
            )
        values = np.empty(0)
        # Further resamples replace those left out: the smallest p-value stays 1 / (B + 1).
        max_fits = (1 + _ROUNDS) * count
        try:
            while (missing := count - int(np.isfinite(values).sum())) and values.size < max_fits:
                size = min(missing, RESAMPLES.searches)
                values = np.append(values, ratios(draw(size)))
                report.count(int(np.isfinite(values).sum()))
        except KeyboardInterrupt:
            if not values.size:
                raise
            warn_caller(f"interrupted: {values.size} resamples were fitted", InterruptedWarning)
    certified = np.isfinite(values)
    return OrderTest(observed, np.maximum(values[certified], 0.0), count, int(np.sum(~certified)))


def _fit_from_starts(
    small: MoEResults,
    larger: Family,
    sets: list[Data],
    rng: np.random.Generator,
    options: Mapping[str, Any],
) -> list[list[Fitted]]:
    """Fits of both models to each data set, from the starting values that the user gave."""
    return [
        fit_data_sets([(model, one) for one in sets], rng.spawn(1)[0], **options)
        for model in (small.family, larger)
    ]


def _fit_by_growing(
    small: MoEResults,
    larger: Family,
    sets: list[Data],
    rng: np.random.Generator,
    options: Mapping[str, Any],
) -> list[list[Fitted]]:
    """Fits of the small model from the truth, then of the larger model from these."""
    starts = [GivenStarts(small.theta[None])]
    pairs = [(small.family, one) for one in sets]
    before = fit_data_sets(pairs, rng.spawn(1)[0], starts=starts, **options)
    after = []
    for one, fitted in zip(sets, before, strict=True):
        assert fitted.standard is not None
        grown = GrownStarts(fitted.standard.family, fitted.standard.solution.theta)
        child = rng.spawn(1)[0]
        after.append(fit_data(larger, one, starts=[Race(grown)], rng=child, **options))
    return [before, after]
