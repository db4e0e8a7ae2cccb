"""How far a sweep has come: what is done, failed, in flight and open, and how long it will take."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from rich.table import Table

from moestat.base.door import door
from moestat.sweep.kinds.fit.doubts import evidence_columns
from moestat.sweep.kinds.fit.evidence import below_truth, in_doubt
from moestat.sweep.kinds.fit.replication import Replication, replication
from moestat.sweep.kinds.fit.shares import below_truth_clause
from moestat.sweep.kinds.fit.spec import Spec
from moestat.sweep.run.cost import CostModel
from moestat.sweep.run.progress import duration, time_left
from moestat.sweep.run.runner import open_cells
from moestat.sweep.spec.protocol import AnySpec
from moestat.sweep.store.lock import holder_of
from moestat.sweep.store.scan import Cells
from moestat.sweep.store.store import Store
from moestat.sweep.terminal import WideTable


@dataclass(frozen=True)
class CurveStatus:
    """How far one curve has come."""

    curve: str  # its name
    replication: Replication  # its replicates, and why so many
    # Cells in all; with an estimate; that failed; that a worker has now; without a result, those in
    # flight counted.
    cells: int
    done: int
    failed: int
    in_flight: int
    open: int
    certified: int  # estimates that are certified maxima; that lie on a bound
    on_bound: int
    # Estimates that may have missed their maximum, and the estimated share of those that have; None
    # where fits do not look for the highest one.
    doubtful: int | None = None
    missed: float | None = None
    # Estimates that recorded their log-likelihood above that of the truth, and those where it is
    # less than 0; None for sweeps of other kinds.
    compared: int | None = None
    below_truth: int | None = None


@dataclass(frozen=True)
class Status:
    """How far a sweep has come."""

    title: str
    digest: str
    """Title and digest of its spec."""
    curves: tuple[CurveStatus, ...]
    """The curves."""
    runner: Mapping[str, Any] | None
    """The process that is at work: ``process``, ``host``, and up to a hundred ``cells`` in flight;
    None if there is none."""
    work: float | None
    """Seconds of computing that the open cells should take, one after the other; None
    before the first measurement."""
    left: float | None
    """Seconds until the runner should be done with them; None without a runner."""

    def as_dict(self) -> dict[str, object]:
        """Plain data, ready for JSON."""
        return asdict(self)


@door()
def status_of(store: Store) -> Status:
    """The status of a store, also while its sweep runs.

    Parameters
    ----------
    store : Store
        An open store.

    Returns
    -------
    Status
        Counts and times.
    """
    spec, runner = store.spec, holder_of(store.path)
    counts = replication(spec, store)
    waiting = open_cells(spec, store).counts()
    open_by_curve: Counter[str] = Counter()
    for (name, _), count in waiting.items():
        open_by_curve[name] += count
    flying = (runner or {}).get("in_flight", {})
    work = CostModel.from_sums(store.timings()).total(waiting)
    time_needed = None
    if runner and "began" in runner:
        time_needed = time_left(work, runner["busy"], time.time() - runner["began"])
    return Status(
        title=spec.title,
        digest=spec.digest,
        curves=tuple(
            _status_of_curve(
                store.cells(curve.name),
                curve=curve.name,
                replication=counts[curve.name],
                cells=counts[curve.name].replicates * len(spec.sizes_of(curve)),
                in_flight=flying.get(curve.name, 0),
                open=open_by_curve[curve.name],
                **_evidence(store, spec, curve.name),
            )
            for curve in spec.curves
        ),
        runner=runner,
        work=work,
        left=time_needed,
    )


def _evidence(store: Store, spec: AnySpec, name: str) -> dict[str, Any]:
    """How many estimates of a curve are below the truth, and may have missed their maximum.

    The second is said where a curve looks for the highest one.
    """
    if not isinstance(spec, Spec):
        return {}
    columns = evidence_columns(store, name)[1]
    above = columns["above_truth"]
    facts: dict[str, Any] = {
        "compared": int((~np.isnan(above)).sum()),
        "below_truth": below_truth(above),
    }
    if "maximum" not in spec.curve(name).starts:
        return facts
    known = columns["p_higher"][~np.isnan(columns["p_higher"])]
    missed = float(known.mean()) if known.size else None
    return {**facts, "doubtful": int(in_doubt(columns).sum()), "missed": missed}


def _status_of_curve(results: Cells, **facts: Any) -> CurveStatus:
    """The status of a curve with these results; only one curve's are in memory at a time."""
    return CurveStatus(
        done=int(results.done.sum()),
        failed=int((~results.done).sum()),
        certified=int(results.certified.sum()),
        on_bound=int(results.on_bound.sum()),
        **facts,
    )


def status_table(status: Status) -> Table:
    """How far each curve has come, and how long its open cells should take."""
    names = ["cells", "done", "failed", "in flight", "open", "certified", "on bound"]
    seeking = any(curve.doubtful is not None for curve in status.curves)
    if seeking:
        names += ["in doubt", "missed"]
    table = WideTable(status.title, ["curve"], names)
    for curve in status.curves:
        counts = (curve.cells, curve.done, curve.failed, curve.in_flight, curve.open)
        doubts = ["" if curve.doubtful is None else str(curve.doubtful)]
        doubts.append("" if curve.missed is None else f"{curve.missed:.0%}")
        cells = [*map(str, (*counts, curve.certified, curve.on_bound)), *doubts]
        table.add_row(curve.curve, *cells[: len(names)])
    table.caption = "\n".join(_status_notes(status))
    return table


def _status_notes(status: Status) -> Iterable[str]:
    if any(curve.doubtful is not None for curve in status.curves):
        yield (
            "in doubt: fits that may have missed their maximum (run --confirm gives them more"
            " starts); missed: estimated share of fits that have"
        )
    if status.runner is None:
        yield "no runner is at work"
    else:
        who = f"process {status.runner.get('process')} on {status.runner.get('host')}"
        remaining = "" if status.left is None else f", about {duration(status.left)} left"
        yield f"at work: {who}{remaining}"
    if any(curve.open for curve in status.curves) and status.work is not None:
        yield f"the open cells should take {duration(status.work)} of computing"
    for curve in status.curves:
        if curve.compared and curve.below_truth:
            words = below_truth_clause(curve.below_truth, curve.compared, curve.done)
            yield f"{curve.curve}: {words}"
        if curve.replication.why:
            count = curve.replication.replicates
            yield f"{curve.curve}: {count} replicates: {curve.replication.why}"
