"""What a check found: plain numbers, from which a rule decides."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "ContrastEvidence",
    "DependenceEvidence",
    "Evidence",
    "IdentityEvidence",
    "InequalityEvidence",
    "Missing",
    "OrbitEvidence",
    "OrderEvidence",
    "PairEvidence",
    "PrintedEvidence",
    "QuantileEvidence",
    "ReplayEvidence",
    "SequenceEvidence",
    "SlopeEvidence",
]

Interval = tuple[float, float]


@dataclass(frozen=True)
class SlopeEvidence:
    """A fitted slope of log error on log n, over the last four decades of sample sizes.

    Parameters
    ----------
    slope : float
        Exponent of n.
    interval : (float, float)
        Its 95% interval; NaN where the data do not determine it.
    n : (float, float)
        Smallest and largest sample size that entered.
    n_fits : int
        Estimates that entered.
    n_certified : int
        Certified ones among them.
    n_left_out, n_failed : int
        Estimates at these sizes that did not enter, and cells without one.
    """

    slope: float
    interval: Interval
    n: Interval
    n_fits: int
    n_certified: int
    n_left_out: int
    n_failed: int


@dataclass(frozen=True)
class QuantileEvidence:
    """The slope of a quantile of errors over the last four decades of sample sizes.

    Parameters
    ----------
    slope : float
        Exponent of n.
    interval : (float, float)
        Its 95% interval, of a bootstrap over replicates.
    """

    slope: float
    interval: Interval


@dataclass(frozen=True)
class ReplayEvidence:
    """The slope of a loss in a replay of a published procedure.

    Parameters
    ----------
    slope : float
        Exponent of n, over all sample sizes of the replay.
    interval : (float, float)
        Its 95% interval.
    """

    slope: float
    interval: Interval


@dataclass(frozen=True)
class PairEvidence:
    """Two measures that the claim's assumptions allow, with one density.

    Parameters
    ----------
    distance, error : float
        Total variation of their densities, or L2 distance of their regression functions relative
        to the norm of one; and how far the number may be off.
    loss : float
        The claim's loss between them.
    n_truths : int
        Truths at which the pair was built; then the numbers are the worst of all.
    """

    distance: float
    error: float
    loss: float
    n_truths: int = 1


@dataclass(frozen=True)
class SequenceEvidence:
    """Measures that approach the truth: their losses and their distances.

    Parameters
    ----------
    losses, distances : tuple of float
        Loss and distance of each, from far to near.
    smallest : bool
        Whether each distance is the smallest that was found at its loss, so that the sequence
        says something about all measures.
    directions : str
        The parameters that move, in words.
    rounding : float
        Distances at or below it are rounding: 1e-13 for a difference of two densities, far less
        where it is the deviations that are integrated.
    """

    losses: tuple[float, ...]
    distances: tuple[float, ...]
    smallest: bool = False
    directions: str = ""
    rounding: float = 1e-13


@dataclass(frozen=True)
class DependenceEvidence:
    """The rank of a family of functions.

    Parameters
    ----------
    n_functions, rank : int
        Functions, and linearly independent ones among them.
    gap : float
        Smallest singular value that counts as positive over the largest that counts as zero.
    dependencies : tuple of str
        The dependencies by name.
    """

    n_functions: int
    rank: int
    gap: float
    dependencies: tuple[str, ...]


@dataclass(frozen=True)
class IdentityEvidence:
    """Two sides of an equation between functions.

    Parameters
    ----------
    residual : float
        Largest difference over random inputs and parameters, relative to the larger side.
    """

    residual: float


@dataclass(frozen=True)
class InequalityEvidence:
    """The two sides of an inequality.

    Parameters
    ----------
    excess : float
        Largest difference of the side that should be smaller and the other one.
    n_trials : int
        Points at which it was evaluated.
    detail : str
        Where, in words.
    """

    excess: float
    n_trials: int
    detail: str = ""


@dataclass(frozen=True)
class PrintedEvidence:
    """Numbers that a paper prints, beside a sentence of it.

    Parameters
    ----------
    n_numbers : int
        Comparisons that the sentence makes.
    against : tuple of str
        Those that the printed numbers do not bear out, in words.
    """

    n_numbers: int
    against: tuple[str, ...]


@dataclass(frozen=True)
class ContrastEvidence:
    """The difference of a metric between two sets of runs of a sweep of networks.

    Parameters
    ----------
    difference : float
        Mean over replicates of the first less the second.
    interval : (float, float)
        Its 95% t interval, the runs paired by replicate.
    n_runs : int
        Replicates that have both.
    """

    difference: float
    interval: Interval
    n_runs: int


@dataclass(frozen=True)
class OrbitEvidence:
    """What a search for other parameters with the law of a truth found.

    Parameters
    ----------
    identified : bool
        Whether the truth came out alone.
    n_reached : int
        Starts that reached the law.
    gap : float
        Ratio of the singular values on the two sides of the rank, at the clearest orbit.
    discrepancy : float
        Largest discrepancy of the law there.
    orbits : tuple of str
        The orbits in words, the truth's own first.
    """

    identified: bool
    n_reached: int
    gap: float
    discrepancy: float
    orbits: tuple[str, ...]


@dataclass(frozen=True)
class OrderEvidence:
    """What is known of rbar(m), see `moestat.theory.polynomial_systems`.

    Parameters
    ----------
    m : int
        Atoms in the cell.
    at_least, at_most : int
        Bounds.
    """

    m: int
    at_least: int
    at_most: int


@dataclass(frozen=True)
class Missing:
    """No evidence, and why.

    Parameters
    ----------
    why : str
        One sentence.
    broken : bool
        Whether something went wrong, rather than being left out.
    """

    why: str
    broken: bool = False


Evidence = (
    SlopeEvidence
    | PairEvidence
    | SequenceEvidence
    | DependenceEvidence
    | IdentityEvidence
    | ContrastEvidence
    | InequalityEvidence
    | OrbitEvidence
    | OrderEvidence
    | PrintedEvidence
    | QuantileEvidence
    | ReplayEvidence
    | Missing
)
