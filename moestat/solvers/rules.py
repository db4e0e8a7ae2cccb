"""Numbers that the solvers are tuned by, in records; `python -m tests.mutations` shows who notices.

A gain is in units of log-likelihood, a length in the metric of the predictors.
"""

from __future__ import annotations

from typing import NamedTuple

GAIN_LIMIT = 1e-4
"""A fit is certified when no step can gain more than this many units of log-likelihood.

It then lies within ``sqrt(2 * 1e-4)``, 1.4 percent of a standard error, of the maximum.
"""

ZERO_CURVATURE = 1e-12
"""Part of the largest curvature below which one counts as zero in `Certificate.inertia`."""


class TrustRegionRules(NamedTuple):
    """When a step of a trust region is made, and when its solver ends.

    Parameters
    ----------
    rounding : float
        Part of a value by which a difference of two is rounded, and of the largest curvature down
        to which the sign of one is beyond doubt: 45 units of float64's.
    accept : float
        Part of the predicted decrease from which on a step is made; in (0, .25).
    smallest, largest : float
        Radii: with a smaller one a solver has stalled, a larger one is not needed.
    patience, look : int
        Iterations that may gain no more than `GAIN_LIMIT` together: at a kink, as an M-step or an
        activation may have one, steps keep bouncing; and iterations after which one looks where
        threads share a pass, which is dear.
    preview : float
        A part of the data says no more about the optimum than this gain.
    scans : int
        Scans of the locations of all atoms for their best cells between kinks at most.
    reach : float
        Largest change of a location across kinks, at first and at most.
    """

    rounding: float = 1e-14
    accept: float = 1e-4
    smallest: float = 1e-10
    largest: float = 1e4
    patience: int = 40
    look: int = 10
    preview: float = 1e-2
    scans: int = 20
    reach: float = 1.0


class BFGSRules(NamedTuple):
    """How far BFGS climbs from one matrix, and along a line.

    Parameters
    ----------
    near : float
        Predicted gain at which it ends by default, where Newton's method or a certificate follows.
    steps : int
        Steps that it remembers, and between two matrices.
    ridge : float
        Part of the predictors' metric that is added to the curvature of complete data.
    growth : float
        Growth of that where it is not enough, and of the radius after a step to its edge.
    flattest : float
        Least curvature of a Hessian whose signs are dropped.
    margin : float
        By how much a diagonal is longer: rounding would make a matrix indefinite.
    flatter : float
        Part of the slope down to which a trial has to come; in (`TrustRegionRules.accept`, 1).
    trials : int
        Trials along a line at most; each halves what is left.
    """

    near: float = 1e-2
    steps: int = 50
    ridge: float = 1e-3
    growth: float = 10.0
    flattest: float = 1e-4
    margin: float = 1e-10
    flatter: float = 0.9
    trials: int = 40


class SquaresRules(NamedTuple):
    """Least squares: where steps begin and end.

    Parameters
    ----------
    shallowest : float
        Least curvature of the matrix that BFGS steps begin from.
    last : float
        Gain of a round between kinks below which the next one is long and the last: a new matrix
        would forget what the updates have learnt.
    crossings : int
        Steps along balanced gradients at most.
    preview : float
        A part of the data says no more about the minimum than this gain.
    bundle : int
        Gradients that the certificate of a kinked fit may balance.
    reach : float
        How far away balanced gradients may come from.
    finest : float
        Gain down to which gradients show a decrease that values are rounded away.
    damping : float
        First damping of Levenberg and Marquardt, in units of curvatures.
    preview_rows : int
        Rows of a preview for each parameter at least: fewer do not determine theta.
    """

    shallowest: float = 0.1
    last: float = 0.5
    crossings: int = 30
    preview: float = 0.5
    bundle: int = 600
    reach: float = 1e-2
    finest: float = 1e-6
    damping: float = 1e-3
    preview_rows: int = 10


class EMRules(NamedTuple):
    """EM, and where one of its atoms has collapsed.

    Parameters
    ----------
    negligible : float
        Part of the outer tolerance that changes no outer decision.
    factor : float
        Growth of the longest extrapolation: the published default of SQUAREM.
    samples : float
        Samples for each parameter of an atom that fits a part of the population.
    narrow : float
        Part of the least variance of such atoms below which that of others is narrow; in (0, 1).
    """

    negligible: float = 1e-3
    factor: float = 4.0
    samples: float = 2.0
    narrow: float = 0.1


class SearchRules(NamedTuple):
    """Probes across jumps of a likelihood, with lengths in standard errors.

    Parameters
    ----------
    radii : tuple of float
        How far probes reach: first to travel, then to make sure.
    ladder, shortest : float
        Probes on a line are this far apart, as a ratio, down to the shortest.
    flattest : float
        Information of a sample where a flat likelihood gives no standard error.
    margin : float
        A step ends this short of a tie.
    inner : float
        Steps within a piece go on to this part of the tolerance.
    independent : float
        Ties whose normals differ by less count as one direction.
    ties, crossings, checked : int
        Nearest ties that a piece is made of, jumps looked at on half a line, predictions checked
        in a round.
    scatters, scattered, pieces : int
        Times that random points are scattered, their number, and the pieces tried.
    nearest : float
        log10 of the length of the shortest of their steps, as a part of the radius.
    warm_up : int
        Newton steps before the search at most.
    seed : int
        Of the random points, the same in every run.
    """

    radii: tuple[float, ...] = (12.0, 4.0)
    ladder: float = 4.0
    shortest: float = 1e-6
    flattest: float = 0.3
    margin: float = 1e-7
    inner: float = 1e-2
    independent: float = 0.05
    ties: int = 400
    crossings: int = 6
    checked: int = 12
    scatters: int = 4
    scattered: int = 20_000
    pieces: int = 100
    nearest: float = -1.5
    warm_up: int = 100
    seed: int = 20_240_202


class DetailRules(NamedTuple):
    """How data are thinned out, or compressed, for first looks.

    Parameters
    ----------
    panels : tuple of int
        Panels of one input that is compressed, from fine to coarse.
    nodes : int
        Nodes of a panel: these keep the moments up to order 7 of all rows.
    cells : tuple of int
        Cells along each of two inputs that are compressed.
    strides : tuple of int
        A preview has every so many-th row.
    previewed : int
        Rows of a preview at least.
    ridge : float
        Of a metric, as a part of its diagonal, for inputs that are constant.
    """

    panels: tuple[int, ...] = (2048, 256, 32)
    nodes: int = 4
    cells: tuple[int, ...] = (32, 16)
    strides: tuple[int, ...] = (16, 4)
    previewed: int = 2000
    ridge: float = 1e-8


class WorkRules(NamedTuple):
    """Sizes of blocks: they change seconds and memory, not results but for rounding.

    Parameters
    ----------
    thread : int
        Work from which on threads share a batch: handing a smaller pass over costs more.
    row : int
        What costs as much for a row in any model, in derivatives of one.
    passes : int
        Passes of a run of which the number is unknown.
    part, parts : int
        Rows of a part of a pass at most, and of what the number of parts is a multiple.
    preview_part : int
        Rows of a part of a preview at least.
    group_rows : int
        Rows of groups whose slopes are in memory at a time.
    metric_rows : int
        Rows that a metric of features looks at.
    values : int
        Rows of residuals in memory at a time.
    """

    thread: int = 10_000_000
    row: int = 300
    passes: int = 10
    part: int = 1 << 14
    parts: int = 8
    preview_part: int = 1 << 11
    group_rows: int = 2048
    metric_rows: int = 20_000
    values: int = 1 << 16


TRUST = TrustRegionRules()
BFGS = BFGSRules()
SQUARES = SquaresRules()
EM_RULES = EMRules()
SEARCH = SearchRules()
DETAIL = DetailRules()
WORK = WorkRules()
