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
    """When a step of a trust region is made, and when its solver ends."""

    rounding: float = 1e-14
    """Part of a value by which a difference of two is rounded, and of the largest curvature down to
    which the sign of one is beyond doubt: 45 units of float64's."""
    accept: float = 1e-4
    """Part of the predicted decrease from which on a step is made; in (0, .25)."""
    smallest: float = 1e-10
    largest: float = 1e4
    """Radii: with a smaller one a solver has stalled, a larger one is not needed."""
    patience: int = 40
    look: int = 10
    """Iterations that may gain no more than `GAIN_LIMIT` together: at a kink, as an M-step or an
    activation may have one, steps keep bouncing; and iterations after which one looks where
    threads share a pass, which is dear."""
    preview: float = 1e-2
    """A part of the data says no more about the optimum than this gain."""
    scans: int = 20
    """Scans of the locations of all atoms for their best cells between kinks at most."""
    reach: float = 1.0
    """Largest change of a location across kinks, at first and at most."""


class BFGSRules(NamedTuple):
    """How far BFGS climbs from one matrix, and along a line."""

    near: float = 1e-2
    """Predicted gain at which it ends by default, where Newton's method or a
    certificate follows."""
    steps: int = 50
    """Steps that it remembers, and between two matrices."""
    ridge: float = 1e-3
    """Part of the predictors' metric that is added to the curvature of complete data."""
    growth: float = 10.0
    """Growth of that where it is not enough, and of the radius after a step to its edge."""
    flattest: float = 1e-4
    """Least curvature of a Hessian whose signs are dropped."""
    margin: float = 1e-10
    """By how much a diagonal is longer: rounding would make a matrix indefinite."""
    flatter: float = 0.9
    """Part of the slope down to which a trial has to come; in (`TrustRegionRules.accept`, 1)."""
    trials: int = 40
    """Trials along a line at most; each halves what is left."""


class SquaresRules(NamedTuple):
    """Least squares: where steps begin and end."""

    shallowest: float = 0.1
    """Least curvature of the matrix that BFGS steps begin from."""
    last: float = 0.5
    """Gain of a round between kinks below which the next one is long and the last: a new matrix
    would forget what the updates have learnt."""
    crossings: int = 30
    """Steps along balanced gradients at most."""
    preview: float = 0.5
    """A part of the data says no more about the minimum than this gain."""
    bundle: int = 600
    """Gradients that the certificate of a kinked fit may balance."""
    reach: float = 1e-2
    """How far away balanced gradients may come from."""
    finest: float = 1e-6
    """Gain down to which gradients show a decrease that values are rounded away."""
    damping: float = 1e-3
    """First damping of Levenberg and Marquardt, in units of curvatures."""
    preview_rows: int = 10
    """Rows of a preview for each parameter at least: fewer do not determine theta."""


class EMRules(NamedTuple):
    """EM, and where one of its atoms has collapsed."""

    negligible: float = 1e-3
    """Part of the outer tolerance that changes no outer decision."""
    factor: float = 4.0
    """Growth of the longest extrapolation: the published default of SQUAREM."""
    samples: float = 2.0
    """Samples for each parameter of an atom that fits a part of the population."""
    narrow: float = 0.1
    """Part of the least variance of such atoms below which that of others is narrow; in (0, 1)."""


class SearchRules(NamedTuple):
    """Probes across jumps of a likelihood, with lengths in standard errors."""

    radii: tuple[float, ...] = (12.0, 4.0)
    """How far probes reach: first to travel, then to make sure."""
    ladder: float = 4.0
    shortest: float = 1e-6
    """Probes on a line are this far apart, as a ratio, down to the shortest."""
    flattest: float = 0.3
    """Information of a sample where a flat likelihood gives no standard error."""
    margin: float = 1e-7
    """A step ends this short of a tie."""
    inner: float = 1e-2
    """Steps within a piece go on to this part of the tolerance."""
    independent: float = 0.05
    """Ties whose normals differ by less count as one direction."""
    ties: int = 400
    crossings: int = 6
    checked: int = 12
    """Nearest ties that a piece is made of, jumps looked at on half a line,
    predictions checked in a round."""
    scatters: int = 4
    scattered: int = 20_000
    pieces: int = 100
    """Times that random points are scattered, their number, and the pieces tried."""
    nearest: float = -1.5
    """log10 of the length of the shortest of their steps, as a part of the radius."""
    warm_up: int = 100
    """Newton steps before the search at most."""
    seed: int = 20_240_202
    """Of the random points, the same in every run."""


class DetailRules(NamedTuple):
    """How data are thinned out, or compressed, for first looks."""

    panels: tuple[int, ...] = (2048, 256, 32)
    """Panels of one input that is compressed, from fine to coarse."""
    nodes: int = 4
    """Nodes of a panel: these keep the moments up to order 7 of all rows."""
    cells: tuple[int, ...] = (32, 16)
    """Cells along each of two inputs that are compressed."""
    strides: tuple[int, ...] = (16, 4)
    """A preview has every so many-th row."""
    previewed: int = 2000
    """Rows of a preview at least."""
    ridge: float = 1e-8
    """Of a metric, as a part of its diagonal, for inputs that are constant."""


class WorkRules(NamedTuple):
    """Sizes of blocks: they change seconds and memory, not results but for rounding."""

    thread: int = 10_000_000
    """Work from which on threads share a batch: handing a smaller pass over costs more."""
    row: int = 300
    """What costs as much for a row in any model, in derivatives of one."""
    passes: int = 10
    """Passes of a run of which the number is unknown."""
    part: int = 1 << 14
    parts: int = 8
    """Rows of a part of a pass at most, and of what the number of parts is a multiple."""
    preview_part: int = 1 << 11
    """Rows of a part of a preview at least."""
    group_rows: int = 2048
    """Rows of groups whose slopes are in memory at a time."""
    metric_rows: int = 20_000
    """Rows that a metric of features looks at."""
    values: int = 1 << 16
    """Rows of residuals in memory at a time."""


TRUST = TrustRegionRules()
BFGS = BFGSRules()
SQUARES = SquaresRules()
EM_RULES = EMRules()
SEARCH = SearchRules()
DETAIL = DetailRules()
WORK = WorkRules()
