"""Tuning constants of searches, warnings and methods of estimation, in records.

`python -m tests.mutations` shows which tests notice a change of those of the search; those of the
alarms are measured in `benchmarks/alarms.py`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from moestat.solvers.rules import GAIN_LIMIT, NEGLIGIBLE, ZERO_CURVATURE

SAMPLED = 100_000
"""Number of rows of the sample of a larger source, on which starts are searched and Newton's method
begins.  A lazy frame with no more rows is collected."""

SPARE = 4
"""Largest part of the sample that one part of a source gives, as a multiple of its even share:
parts differ in size."""

MOST_LEVELS = 1000
"""Largest number of levels of a factor, or of classes, in a source: a design has a column for each
level."""

MOST_FITS = 100_000
"""Largest number of starts or resamples in one call.  A small fit from this number of starts takes
a quarter of a minute, and this number of resamples minutes; larger fits take days."""

SAME_HEIGHT = 1e-2
"""Difference of log-likelihoods, in natural-log units, below which two ends count as one maximum.
The likelihoods then differ by at most one percent, and a certified fit is a hundred times closer to
its maximum (`GAIN_LIMIT`)."""

RUN_TOLERANCE = 0.1 * SAME_HEIGHT
"""Predicted gain below which runs of a search end, so that two runs to the same maximum have the
same height."""


class SearchRules(NamedTuple):
    """Constants of a search, in addition to the fields of its rules."""

    least: int = 1000
    """Smallest number of rows in the first rung of a race: a quarter of them, or all, give the same
    maxima of five sets of 2500 rows."""
    in_all: int = 20
    """Total rows that one search may visit, as a multiple of the rows in the first rung."""
    work: float = 9e7
    """Rows times squared parameters, of all searches together: some seconds on one core.  How long
    a call may take is a choice; no benchmark gives its best value."""
    finalists: int = 2
    """Number of finalists of a race (`benchmarks/search.py`: of real sets with three and four
    experts .61 and .37 come to the best known, with four finalists .58 and .40, with one .60 and
    .34)."""
    returned: int = 3
    """Number of results of a search that are refined on all rows."""
    hessians: int = 30
    """Number of parameters above which runs are by BFGS instead of Newton's method
    (`benchmarks/search.py`: from 30 on for 70 gives the same maxima in .86 of the time with four
    experts, and in .6 with five to eight)."""
    bfgs: int = 2
    """Number of steps of BFGS in place of one of Newton's method: half or twice as many give the
    same maxima of five sets with 44 parameters."""
    clustered: int = 2000
    """Largest number of rows for which memberships of clusters are drawn, which bounds their cost:
    with all of 2500 rows maxima of five sets are the same."""
    planes: int = 10
    """Number of planes that are tried for an expert: one, or 40, miss no maximum of 19 sets that
    ten find."""


class ModeRules(NamedTuple):
    """Constants of the search for the highest posterior mode."""

    name: str = "modes"
    """Of its starts: a fit whose best run began at one of them is of modes."""
    starts: int = 4
    """Number of starts in a batch: one of each kind."""
    batches: int = 4
    """Largest number of batches for each expert."""
    work: float = 2e10
    """Rows times squared parameters, of all batches together: half a minute on one core.  How long
    a call may take is a choice; no benchmark gives its best value."""
    first: int = 12
    """Number of starts that are drawn and run at once at the beginning: with the default risk
    fewer, all of which reach one mode, do not end a search.  Of 175 calls on problems that nobody
    had used, 14 missed a higher mode in silence with one batch for each expert at once and a third
    covariate, and 3 of 168 with this rule, at 1.12 to 1.15 times the time."""
    risk: float = 0.03
    """Largest accepted probability of a higher mode: three batches whose runs all reach one mode
    end a search.  With .04, of 904 calls three more miss a higher mode in silence, in .97 times the
    time (`benchmarks/modes.py`); with .02 such a search needs one batch more."""
    coefficients: tuple[float, float, float] = (0.389, -1.939, 0.898)
    """Coefficients of the probability of a higher mode: of 1, of ln(runs + 1/2), where runs is the
    number of runs that reached the best mode, and of ln(1 + neighbours), the number of neighbours
    of it without a gain (`benchmarks/modes.py`)."""
    higher: float = 0.05
    """Probability of a higher mode above which a fit warns.  Of 497 calls with as many experts as
    the truth 3 miss a higher mode in silence, and 77 warn in vain; of 407 with one more 13 and 194;
    with .04, 2 and 86, and 11 and 215; with .10, 10 and 38, and 19 and 117
    (`benchmarks/modes.py`)."""
    rows: int = 30
    """Rows of a part for each parameter; a part has at least `SearchRules.least` rows."""
    steps: int = 20
    """Number of steps on a part, or on resamples of it, before a run goes on to all rows."""
    kept: int = 3
    """Where one run takes a second, the best of so many goes on after `steps` steps."""
    longest: int = 200
    """Largest number of steps of a run on all rows: longer ones go along ridges.  A problem with
    four Laplace gates of classes takes 48 s with `NEWTON_STEPS` and 7 s with 300, to the same end;
    the best run is climbed to its end in any case."""
    most: float = 1.5
    """Rows, in parts, above which runs begin on a part."""
    wide: int = 3
    """Rows, in parts, on which runs converge; of more rows the best modes are refined."""


class PathRules(NamedTuple):
    """Constants of a path of penalised fits.

    Each set of inputs is searched once, with a risk of 1: searches that go on to the risk of a fit
    take three times as long, and the paths from their ends are worse (`benchmarks/lasso.py`).
    """

    stationary: float = 1e-6
    """Violation of the conditions of a minimum, in units of the penalty, that counts as 0: paths
    end at 1e-9 (`benchmarks/results/lasso.md`), and a thousand times as much is a failure."""
    chosen: int = 6
    """Number of sets of inputs of a path that are searched (`benchmarks/lasso.py`: with two, BIC of
    3 of 10 data sets is higher by about 190, with 12 or 24 it is the same)."""
    added: int = 3
    """Number of inputs that each search adds (`benchmarks/lasso.py`: with one, BIC of 2 of 6 data
    sets is higher by about 190, with eight that of 4)."""
    followed: int = 3
    """Number of best searches whose paths are followed (`benchmarks/lasso.py`: with one, BIC of one
    of 6 data sets is higher by 184)."""
    all_zero: float = 1e9
    """Penalty at which every slope is zero.  Inputs are standardised, and a variance is at least a
    millionth of that of y, so that a mean score is at most about 1e6."""
    matrices: int = 12
    """Number of matrices of all parameters that a path holds in memory at its peak, as measured."""


class DoubtRules(NamedTuple):
    """Thresholds of the warnings about a fit."""

    part: float = float(np.sqrt(ZERO_CURVATURE))
    """Part of a unit direction that a parameter has in it, if more: the square of a smaller part is
    a curvature that counts as zero."""
    far: float = 3.0
    """Distance, in root mean squares of the predictors, from which on a flat rise may lead to
    infinity: a predictor that differs by 3 changes a probability of one half to .95."""
    units: float = 10.0
    """Typical sizes of inputs, or of a response, from which on the box of a family that does not
    follow units is meant for other data: papers' boxes and starts are for sizes near 1, and this is
    an order of magnitude."""
    higher: float = 0.15
    """Probability of a higher maximum above which a fit warns.  Of 796 calls on data sets that were
    drawn at random, 28 end lower in silence and 153 warn in vain; 23 and 251 with .1, 31 and 78
    with .3 (`benchmarks/fresh_sets.py`)."""
    wild: float = 10.0
    """Distance of a predicted mean from the responses, in ranges of the responses, beyond which a
    prediction warns: a straight line through them is as far only ten ranges of an input away from
    the rows."""


class ResampleRules(NamedTuple):
    """How many resamples are fitted together: seconds and memory, not results."""

    batch: int = 64
    """Largest number of data sets in memory at a time; with more, compiled runs gain nothing."""
    rows: int = 200_000
    """Number of rows, of all data sets together, that ends a batch: a pass over as many outweighs
    what a batch costs, and they take some megabytes."""
    hessians: int = 1 << 26
    """Bytes of the Hessians of resamples that share a pass over a source: 64 MB are little beside
    a block, and with thirty parameters nine thousand resamples share a pass."""
    searches: int = 4
    """Number of resamples whose fits are searched for at a time: the searches share threads, and
    an interruption loses no more than these."""


class PictureRules(NamedTuple):
    """Choices in pictures of a fit."""

    long: float = 20.0
    """Length of an interval, in medians, beyond which it does not set the limits of the axis: the
    others would be shorter than a twentieth of it, some points on paper."""
    faint: float = 0.05
    """Smallest opacity of the curve of an expert, where the gate gives it no rows: still seen on
    white."""
    rows: int = 500
    """Largest number of rows over which partial dependence is averaged: a mean of 500 has an error
    of a twentieth of a standard deviation, less than a line is wide."""


class AlarmRules(NamedTuple):
    """Thresholds of the warnings that the model does not fit the data."""

    level: float = 1e-3
    """Probability of each alarm where the model is true, by its test's law for large n: with about
    ten alarms, one sound fit in a hundred is warned."""
    rows: int = 50_000
    """Largest number of rows that are looked at, drawn at random from more: a share among so many
    has a standard error of at most .0022."""
    enough: float = 5.0
    """Rows for each parameter of an expert, below which its normal 95% intervals hold less than
    90%.  Of a regression with normal errors: an error from the maximum-likelihood variance is
    smaller by the root of 1 - 1/5, and t with four degrees of freedom a parameter has heavier
    tails than z."""
    spike: float = 3.0
    """Ratio of the ties of a spike to the mean of its five neighbours on each side: a smooth
    density does not triple within eleven neighbouring values."""
    share: float = 0.05
    """Smallest share of copied rows that is mentioned: fewer make standard errors too small by less
    than 3 percent, the root of 1 - .05."""


class HigherRules(NamedTuple):
    """The probability that a higher maximum exists, as `benchmarks/calibration.py` fits it."""

    coefficients: tuple[float, ...] = (-0.934, 0.679, -2.616)
    """Coefficients of 1, of the logarithm of the number of heights that a pool reaches, and of the
    share of further runs that reach the best height."""
    modes: tuple[float, ...] = (-2.161, 0.357, -3.412)
    """The same for posterior modes with the weak prior."""


class RoundingRules(NamedTuple):
    """Constants of the search for the step in which a response is recorded."""

    few: int = 2000
    """Number of values in which a common step is sought first; if they have none, all have none."""
    errors: float = 4.0
    """Largest error of a difference of two values, in units of float's epsilon: each value is
    rounded when it is recorded, and again when its unit changes."""
    clear: float = 1e3
    """Smallest step, in these errors, that is not an effect of rounding: of a smaller one fewer
    than three digits are known."""
    part: float = 0.125
    """Part of a step to which its multiples have to be known: half of a step would take one
    multiple for the next, and this is a quarter of that."""
    share: float = 0.5
    """Share of the residual variance of linear regression that the least variance of steps may be:
    where rounding is all that is left of a line, an expert may be the line."""


class EMTestRules(NamedTuple):
    """The EM test of Li and Chen (2010), and its EM."""

    shares: tuple[float, ...] = (0.1, 0.3, 0.5)
    """Initial shares of one half of a component that is split: those of Li and Chen (2010)."""
    steps: int = 3
    """Number of EM steps after the constrained maximum: that of Li and Chen (2010)."""
    tolerance: float = NEGLIGIBLE * GAIN_LIMIT
    """Gain below which EM ends, in natural units of log-likelihood."""
    most: int = 5000
    """Largest number of EM steps to the constrained maximum: that of the authors' R package
    MixtureInf."""


class RequiredRules(NamedTuple):
    """Constants of `required_n`."""

    nodes: int = 24
    """Smallest number of inputs of the lattice on which large data sets are counts: Gauss nodes,
    exact for polynomials of degree 47."""
    starts: int = 4
    """Number of starts of a fit near the truth and of as many farther away; they begin within the
    merging experts."""
    narrow: float = 0.3
    """Smallest variance of an expert, in that of the truth: the lattice of responses is spaced by
    the truth, and does not resolve narrower densities."""
    first: float = 1e3
    """Number of rows at which the search begins; it goes on by decades."""
    least: float = 1e2
    """Smallest number of rows: fewer do not determine the experts."""
    largest: float = 1e14
    """Largest number of rows: sums are then rounded by `ZERO_CURVATURE`."""
    drawn: float = 1e4
    """Largest number of rows that are drawn one by one, from any distribution of the inputs; more
    are counts on a lattice, whose fits take the time of as many rows as it has nodes."""
    batches: int = 16
    """Largest number of batches of data sets on both sides of the answer: sixteen times the
    replicates make the interval a quarter as long."""
    known: float = 1.25
    """Factor to which the answer is to be known, the ends of its 95% interval over it: costs of a
    study are not known more exactly."""
    near: float = 5.0
    """Factor of the numbers of rows about the answer between which its power law is fitted: over
    less, noise decides the exponent, and over more the law is not one of powers."""
    rounds: int = 25
    """Number of Fisher's steps of the fit of that law, which converge in fewer."""


SEARCH, MODES, PATH = SearchRules(), ModeRules(), PathRules()
DOUBT, ALARM, EM_TEST, REQUIRED = DoubtRules(), AlarmRules(), EMTestRules(), RequiredRules()
ROUNDING, HIGHER = RoundingRules(), HigherRules()
RESAMPLES, PICTURES = ResampleRules(), PictureRules()
