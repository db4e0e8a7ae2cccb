"""Numbers of the solvers, in records by who reads them; each field says why it has its value.

Gains are in natural units of log-likelihood, where a likelihood-ratio statistic is twice a gain.
Lengths are in the metric of the predictors, where a step of length one changes them by one root
mean square.  "Benchmark" is ``benchmarks/results/mutations.md``: for each number, how the passes of
pinned fits change where it is thirty times larger or smaller, or absent.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

GAIN_LIMIT = 1e-4
"""Gain below which a fit is certified: the fit is then within ``sqrt(2 * 1e-4)``, 1.4 percent of a
standard error, of the maximum."""

ZERO_CURVATURE = 1e-12
"""Part of the largest curvature below which a curvature counts as zero.  At n = 1e14, sums are
rounded by about this part (benchmark: with 0, fits of n = 1e14 are not certified)."""

NEGLIGIBLE = 1e-3
"""Part of a tolerance, or of a length, that changes no decision taken by the whole: an inner
iteration is solved so much more precisely than the outer one (benchmark of EM: thirty times more
or less costs 17 to 19 percent more passes)."""

NEWTON_TOLERANCE = 1e-9
"""Default tolerance of solvers that climb by Hessians.  A Newton step doubles the number of right
digits, so that one or two steps lead from `GAIN_LIMIT` to this."""

NEWTON_STEPS = 3000
"""Default number of iterations of these solvers: along the narrow ridges of large samples, Newton's
method needs hundreds."""

QUASI_NEWTON_TOLERANCE = 1e-6
"""Default tolerance of solvers that climb by gradients: a hundredth of `GAIN_LIMIT`, a gain that
gradients show at any n."""

QUASI_NEWTON_STEPS = 5000
"""Default number of steps of these solvers: ten times the parameters of the largest published fits,
576, where a quadratic takes as many steps as it has parameters."""

EPSILON = float(np.finfo(np.float64).eps)
"""Distance of 1 from the next larger number of float64."""

BELOW_ONE = 1.0 - float(np.finfo(np.float64).epsneg)
"""Largest number of float64 below 1: a probability that is not 1."""

HALF_OF_DIGITS = float(np.sqrt(EPSILON))
"""Root of float64's rounding: numbers that agree in half of their digits differ by this part."""

DIFFERENCE_STEP = float(np.cbrt(EPSILON))
"""Half of a central difference, as a part of the unit of its argument: the step at which rounding,
epsilon over the step, and curvature, the step squared, are of one size, 4e-11 (Nocedal and Wright
2006, Sec. 8.1)."""

TINY = 1e-300
"""Keeps divisors from 0: above the smallest number of float64 by 1e8, so that quotients stay finite
for numbers up to 1e8."""

HALVINGS = int(np.finfo(np.float64).nmant)
"""Number of bisections after which an interval is as short as the rounding of its ends."""


class TrustRegionRules(NamedTuple):
    """When a trial step is accepted, how the radius follows it, and when a climb ends."""

    rounding: float = 1e-14
    """Relative rounding of sums over the rows, 45 units in the last place of float64.  Two values
    that are closer are the same; curvatures below this part of the largest have no sign
    (benchmark: with 3e-16, fits of n = 1e12 fail)."""
    accept: float = 1e-4
    """Smallest part of the predicted decrease with which a step is accepted: the usual constant of
    Armijo's condition (Nocedal and Wright 2006, Sec. 3.1)."""
    poor: float = 0.25
    """Part of the predicted decrease below which the radius shrinks (Nocedal and Wright 2006,
    Algorithm 4.1)."""
    good: float = 0.75
    """Part of the predicted decrease above which the radius may grow (the same Algorithm 4.1)."""
    edge: float = 0.8
    """Part of the radius from which on a step has been limited by it.  The algorithm of the
    subproblem leaves a step inside by `NEGLIGIBLE` at most; steps that the box has cut are
    shorter."""
    smallest: float = 1e-10
    """Radius below which a climb has stalled: a step this short gains nothing that is not rounding
    (benchmark: with a limit of 1, Newton's method fails)."""
    largest: float = 1e4
    """Largest radius: predictors that differ by 1e4 have a gate probability of 0 in float64, and a
    longer step does not change the model (benchmark: with 300, kinked fits take 62 percent more
    passes)."""
    patience: int = 40
    """Number of iterations without a gain above `GAIN_LIMIT` after which a climb stalls, and of
    trials without a decrease after which a line search ends.  At a kink steps bounce for ever; a
    quarter of the iterations would end climbs along narrow ridges too early."""
    preview: float = 1e-2
    """Predicted gain at which a preliminary climb ends: on a preview of the data, whose maximum
    differs from that of all rows by far more, and by BFGS steps before a Hessian is worth its price
    (benchmark: thirty times more or less costs 32 to 40 percent more passes)."""


class BFGSRules(NamedTuple):
    """Quasi-Newton steps: where they start, and how far they go."""

    steps: int = 50
    """Number of steps that are remembered, and after which a new matrix is made (benchmark: with a
    quarter, least squares take 14 percent fewer passes, but more of them make a matrix)."""
    ridge: float = 1e-3
    """Part of the metric of the predictors that is added to the curvature of the complete data,
    which is singular where an atom has no responsibility."""
    growth: float = 10.0
    """Factor of that part where the matrix is not definite, and of the radius at a saddle point:
    both searches go by decades."""
    flattest: float = 1e-4
    """Smallest curvature of a Hessian without its signs: that of a predictor with a standard error
    of 100."""
    flatter: float = 0.9
    """Part of the slope that a step has to lose at least: the constant of the curvature condition
    for quasi-Newton methods (Nocedal and Wright 2006, Sec. 3.1)."""


class LeastSquaresRules(NamedTuple):
    """Least squares: where steps begin, and when they end."""

    shallowest: float = 0.1
    """Smallest curvature of the matrix that BFGS steps start from (benchmark: with a large one
    kinked fits fail; without it three tests of kinked fits lose their certificate, and smooth fits
    end farther from scipy's minimum than 1e-9 of the sum of squares)."""
    visible: float = 0.5
    """Gain that is not worth a new matrix or a finer preview: a likelihood-ratio statistic of one,
    its mean under the null hypothesis."""
    bundle: int = 600
    """Number of gradients that the certificate of a kinked fit may combine: more than the
    parameters of the largest published fits, 576, and one, as Caratheodory's theorem asks."""
    reach: float = 1e-2
    """Largest distance from which these gradients may come, a percent of one root mean square of
    the predictors (benchmark: with 3e-4 kinked fits are not certified)."""
    damping: float = 1e-3
    """First damping of Levenberg and Marquardt's method, in units of the curvatures: the one for
    starts that may be far away in Madsen et al. (2004), Sec. 3.2."""
    preview_rows: int = 10
    """Smallest number of rows of a preview for each parameter: fewer rows do not determine the
    parameters, by the usual rule of ten (Harrell 2015, Sec. 4.4)."""


class EMRules(NamedTuple):
    """The EM algorithm, and when an atom has collapsed."""

    factor: float = 4.0
    """Growth of the longest extrapolation: the default of SQUAREM (Varadhan and Roland 2008)."""
    samples: float = 2.0
    """Smallest number of rows for each parameter of an atom that describes a part of the
    population: half of the degrees of freedom are then left (benchmark: with 60, sound fits count
    as collapsed)."""
    narrow: float = 0.1
    """Part of the smallest variance of well-supported atoms below which the variance of another
    atom is suspiciously small: an F ratio of 10 has a level below one percent from six degrees of
    freedom on."""


class JumpSearchRules(NamedTuple):
    """The search across jumps of a likelihood; its lengths are in standard errors."""

    radii: tuple[float, ...] = (12.0, 4.0)
    """Radii of the probes: a large one to travel, then four standard errors, beyond which the
    quadratic model leaves e^-8 of the likelihood (benchmark: thirty times more costs three times
    the passes)."""
    ladder: float = 4.0
    """Ratio of the lengths of neighbouring probes on a line (benchmark: thirty times more saves 37
    percent of the passes by skipping lengths)."""
    shortest: float = 1e-6
    """Length of the shortest probe: pieces are as small as one over the number of rows."""
    flattest: float = 0.3
    """Smallest information of a row: where a likelihood is flat, this limits the standard error to
    about 2 / sqrt(n)."""
    ties: int = 400
    """Number of the nearest ties that bound a piece: they limit the time of non-negative least
    squares; more do not change the pinned fits."""
    crossings: int = 6
    """Number of jumps that are probed on each half of a line (benchmark: four times more costs 71
    percent more passes, a quarter saves 24)."""
    scattered: int = 20_000
    """Number of random points of the last round (benchmark: without them fits fail)."""
    pieces: int = 100
    """Number of their pieces, those of largest predicted gain, that are probed (benchmark: four
    times more costs 14 percent more passes)."""
    nudge: float = 1e-3
    """Step of the differences that give the slopes of scores.  Scores are smooth on the scale of a
    standard error, so that the error is of order 1e-3 and rounding of 1e-13."""
    seed: int = 20_240_202
    """Seed of the random probes; fixed so that runs are reproducible."""


class DetailRules(NamedTuple):
    """How data are compressed, or thinned out, for the first levels of a climb."""

    panels: tuple[int, ...] = (2048, 256, 32)
    """Numbers of panels of one compressed input, from fine to coarse.  With 32 the log-likelihood
    of 1e5 rows is right to 1e-9 for gate slopes up to 30; each level has an eighth of the panels
    of the next, which makes the coarser ones cheap."""
    nodes: int = 4
    """Number of nodes of a panel: Gauss quadrature with 4 nodes keeps the moments up to order 7."""
    cells: tuple[int, ...] = (32, 16)
    """Numbers of cells along each of two compressed inputs."""
    strides: tuple[int, ...] = (16, 4)
    """A preview has every 16th or every 4th row; each level costs a quarter of the next."""
    previewed: int = 2000
    """Smallest number of rows of a preview: with fewer, an atom too many finds a place of its
    own."""
    ridge: float = HALF_OF_DIGITS
    """Part of a metric's diagonal that is added to it, so that a constant input leaves the metric
    definite."""


class WorkRules(NamedTuple):
    """Sizes of blocks: they change seconds and memory, not results but for rounding."""

    thread: int = 10_000_000
    """Work from which on threads share a batch: a smaller pass takes less time than handing it
    over."""
    row: int = 300
    """Work of a row apart from its derivatives, in units of the work of one derivative."""
    passes: int = 10
    """Assumed number of passes of a compiled run, which is not known before."""
    part: int = 1 << 14
    """Smallest number of rows of a part of a pass: the rows of a part outweigh its sums."""
    parts: int = 8
    """The number of parts is a multiple of this, so that up to eight threads have equal shares."""
    block: int = 1 << 11
    """Smallest number of rows of a part of a preview, and number of random points, or of rows of
    groups, in memory at a time: enough that loops, not calls, take the time."""
    metric_rows: int = 20_000
    """Number of rows that determine a metric of features: to one percent."""
    values: int = 1 << 16
    """Number of residuals in memory at a time, half a megabyte."""
    free: float = 0.9
    """Part of the free memory of a device that a plan may fill: the rest is for its allocator, for
    code, and for what other processes take before the plan is carried out."""


TRUST = TrustRegionRules()
BFGS = BFGSRules()
SQUARES = LeastSquaresRules()
EM_RULES = EMRules()
JUMP_SEARCH = JumpSearchRules()
DETAIL = DetailRules()
WORK = WorkRules()
