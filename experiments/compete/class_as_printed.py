"""Proposition 3.1 of compete over its class as printed: the best fit of all N' <= N unit masses.

The class holds the truth.  So of the fits with N' = 2 and N' = 3 atoms to the same data the one
with the higher likelihood is taken; one atom, far from the truth's two lines, is left out.
"""

from __future__ import annotations

from experiments.claims.kinds import SlopeEvidence
from experiments.claims.trial import Trial
from moestat.rates.rate import fit_rate
from moestat.sweep.run.cell import run_cell
from moestat.sweep.spec.experiments import find_spec
from moestat.sweep.spec.plan import plan_cells
from moestat.sweep.spec.read import load_spec
from moestat.sweep.store.record import DONE

__all__ = ["BEST_OF_CLASS"]

_CURVES = ("lines, unit, k = 2", "lines, unit, k = 3")
_LARGEST = 1.1e4


def _best_of_class() -> SlopeEvidence:
    """The slope of the total variation of the better fit, on data of gaussian_competition.

    Returns
    -------
    SlopeEvidence
        Over n = 1e3 to 1e4; both fits must be done for a data set to enter.
    """
    spec = load_spec(find_spec("gaussian_competition"))
    fits: dict[tuple[float, int], list] = {}
    for cell in plan_cells(spec):
        if cell.curve in _CURVES and cell.n <= _LARGEST:
            fits.setdefault((cell.n, cell.replicate), []).append(run_cell(spec.text, cell))
    pairs = [pair for pair in fits.values() if all(record.status == DONE for record in pair)]
    best = [max(pair, key=lambda record: record.log_likelihood) for pair in pairs]
    rate = fit_rate(
        [record.n for record in best],
        [record.losses["total_variation"] for record in best],
        n_bootstrap=0,
    )
    return SlopeEvidence(
        slope=rate.slope,
        interval=rate.interval,
        n=(float(min(r.n for r in best)), float(max(r.n for r in best))),
        n_fits=len(best),
        n_certified=sum(record.certified for record in best),
        n_left_out=0,
        n_failed=len(fits) - len(pairs),
    )


BEST_OF_CLASS = Trial("class as printed, best of all N' <= 3", _best_of_class)
