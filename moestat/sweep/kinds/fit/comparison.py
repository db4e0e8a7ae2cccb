"""Two curves of one store or of two: the difference of their rates."""

from __future__ import annotations

from moestat.base.door import door
from moestat.base.validate import unknown
from moestat.rates.comparisons import RateDifference, compare_rates
from moestat.sweep.errors import SweepError
from moestat.sweep.kinds.fit.replication import entering_cells
from moestat.sweep.kinds.fit.spec import as_fits
from moestat.sweep.store.store import Store


@door()
def compare_curves(store: Store, curve: str, other_store: Store, other: str) -> RateDifference:
    """Compare the rates of two curves, over the sample sizes that both have.

    If estimates of both come from the same data sets, as those of curves on one truth do, only
    those are compared, in pairs.  Estimates that do not enter their curve's rate take no part.

    Parameters
    ----------
    store, other_store : Store
        The stores of the two curves; they may be the same.
    curve, other : str
        Names of the curves.

    Returns
    -------
    RateDifference
        Slope of the first minus slope of the second.

    Raises
    ------
    SweepError
        If a store has no such curve, or there are too few estimates.
    """
    one, two = _by_data(store, curve), _by_data(other_store, other)
    shared = [data for data in one if data in two]
    sizes = {n for n, _ in one.values()} & {n for n, _ in two.values()}
    first = [one[data] for data in shared or one if one[data][0] in sizes]
    second = [two[data] for data in shared or two if two[data][0] in sizes]
    try:
        return compare_rates(
            [n for n, _ in first],
            [loss for _, loss in first],
            [n for n, _ in second],
            [loss for _, loss in second],
            paired=bool(shared),
        )
    except ValueError as error:
        raise SweepError(f"cannot compare {curve!r} and {other!r}: {error}") from None


def _by_data(store: Store, name: str) -> dict[int, tuple[float, float]]:
    """Sample size and loss of the estimates that enter a curve's rate, by their data's seed."""
    spec = as_fits(store.spec, f"the store {store.path} has no rates to compare")
    curves = [curve.name for curve in spec.curves]
    if name not in curves:
        raise SweepError(f"the store {store.path}: {unknown('curve', name, curves)}")
    curve = spec.curve(name)
    used, stamp = entering_cells(curve, store.cells(name)), spec.stamp(curve)
    places = zip(used.n.tolist(), used.replicate.tolist(), used.loss.tolist(), strict=True)
    return {stamp(n, replicate)[0]: (n, loss) for n, replicate, loss in places}
