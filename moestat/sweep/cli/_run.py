"""The command that runs sweeps."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from moestat.sweep.cli._app import (
    PROGRAM,
    SOME_FAILED,
    AsJson,
    command,
    console,
    exit_code,
    show_json,
    tell_damage,
)
from moestat.sweep.cli._cells import show_failures
from moestat.sweep.errors import SweepError

if TYPE_CHECKING:
    from moestat.sweep.run.executors import Executor
    from moestat.sweep.spec.plan import Plan
    from moestat.sweep.spec.protocol import AnySpec
    from moestat.sweep.store.store import Store


@command("run quickstart --workers 4")
def run(
    spec: Annotated[
        str, typer.Argument(help="A spec file, or the name of a shipped experiment (see list).")
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="The store; SPEC's name with .sqlite in this directory by default."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Worker processes; all processors by default.")
    ] = None,
    limit_cells: Annotated[
        int | None, typer.Option(min=1, help="Stop after this many cells.")
    ] = None,
    executor: Annotated[str, typer.Option(help="process, serial, dask or cuda.")] = "process",
    scheduler: Annotated[
        str | None,
        typer.Option(
            help="For dask: address or JSON file of a scheduler; a cluster on this machine by"
            " default."
        ),
    ] = None,
    share: Annotated[
        str | None,
        typer.Option(
            metavar="I/N", help="Only the I-th of N shares of the cells; merge joins their stores."
        ),
    ] = None,
    extend: Annotated[
        bool,
        typer.Option(
            "--extend", help="Allow a store of an earlier SPEC, to which SPEC only adds cells."
        ),
    ] = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Run failed cells again, too.")
    ] = False,
    confirm: Annotated[
        bool | None,
        typer.Option(
            "--confirm/--no-confirm",
            help="A second pass with more starts for over-specified cells that may have missed"
            " their maximum; by default for curves of which more than half may.",
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            "--dry-run",
            help="Only check SPEC, and show the cells, memory and time that it will take.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run SPEC, or continue a run of it: cells that have a result are not run again.

    Interrupt or kill it at any time: the same command continues it, with the same final results.
    """
    from moestat.base.threads import available_cpus
    from moestat.sweep.kinds.fit.box import doubts_about_boxes
    from moestat.sweep.kinds.fit.spec import Spec, doubts
    from moestat.sweep.kinds.kind import kind_of
    from moestat.sweep.spec.experiments import find_spec
    from moestat.sweep.spec.read import load_spec
    from moestat.sweep.store.store import create_store

    progress = console(stderr=True)
    chosen = _executor(executor, scheduler, progress)
    path = find_spec(spec)
    loaded = load_spec(path)
    if chosen.together is not None and kind_of(loaded.kind).run_together is None:
        raise SweepError(f"--executor {executor} is for fits; networks run with process or dask")
    target = out or Path(f"{path.stem}.sqlite")
    count = workers or available_cpus()
    for line in doubts(loaded):
        progress.print(f"note: {line}", soft_wrap=True)
    if check and isinstance(loaded, Spec):
        for line in doubts_about_boxes(loaded):
            progress.print(f"warning: {line}", soft_wrap=True, markup=False)
    if check:
        _show_expectation(loaded, target, count, as_json)
        return
    with create_store(target, loaded, extend=extend) as store:
        tell_damage(store.drop_damaged(), set_code=False)  # they run again
        try:
            ran = _run_rounds(
                loaded, store, chosen, count, limit_cells, share, retry_failed, progress
            )
            if confirm or (confirm is None and limit_cells is None and share is None):
                ran |= _confirm(loaded, store, chosen, count, not confirm, progress)
        except KeyboardInterrupt as stop:
            sound = store.n_sound
            progress.print(
                f"interrupted: {sound} of {_planned(loaded, store)} cells have results in {target};"
                " run the same command again to continue",
                soft_wrap=True,
            )
            raise typer.Exit(exit_code(stop)) from None
        quick = not ran and not as_json and _figures_are_current(store)
        failed = _point_to_results(store) if quick else _conclude(store, as_json)
    if failed:
        raise typer.Exit(SOME_FAILED)


def _show_expectation(spec: AnySpec, target: Path, workers: int, as_json: bool) -> None:
    """What the cells without a result will take; nothing is written."""
    from dataclasses import asdict

    from moestat.sweep.kinds.fit.box import box_of
    from moestat.sweep.kinds.fit.spec import Spec
    from moestat.sweep.run.expectation import expect, expectation_table

    expectations = expect(spec, target)
    boxes = (
        {curve.name: box_of(spec, curve) for curve in spec.curves}
        if isinstance(spec, Spec)
        else dict[str, str]()
    )
    if as_json:
        facts = {"title": spec.title, "workers": workers}
        curves = [*map(asdict, expectations)]
        show_json({**facts, "curves": curves, **({"boxes": boxes} if boxes else {})})
        return
    terminal = console()
    terminal.print(expectation_table(spec.title, expectations, workers))
    for name, box in boxes.items():
        terminal.print(f"box of {name}: {box}", soft_wrap=True, markup=False)


def _executor(name: str, scheduler: str | None, progress: Console) -> Executor:
    """The executor called `name`; without a device, that of the processor in place of ``cuda``."""
    from moestat.base.registry import UnknownNameError
    from moestat.sweep.run.executors import EXECUTORS, dask_executor

    try:
        chosen = EXECUTORS[name]
    except UnknownNameError as error:
        raise SweepError(f"--executor: {error}") from None
    if scheduler is None:
        reason = chosen.unavailable()
        if reason:
            progress.print(
                f"--executor {name}: {reason}; running on the processor's cores instead, with"
                " --executor process",
                soft_wrap=True,
                markup=False,
            )
            return EXECUTORS["process"]
        return chosen
    if name != "dask":
        raise SweepError(f"--scheduler is for --executor dask, got --executor {name}")
    return dask_executor(scheduler)


def _run_rounds(
    spec: AnySpec,
    store: Store,
    executor: Executor,
    workers: int,
    limit: int | None,
    share: str | None,
    retry_failed: bool,
    progress: Console,
) -> bool:
    """Run the open cells; where replicates are added, repeat until the rule adds no more.

    Returns whether anything was open.
    """
    from moestat.sweep.run.cost import CostModel
    from moestat.sweep.run.progress import reporter
    from moestat.sweep.run.runner import open_cells, run_cells

    cells = _share_of(spec, open_cells(spec, store, retry_failed), share)
    first = f"{spec.title}: {len(cells)} of {_planned(spec, store)} cells to run"
    progress.print(f"{first}, store {store.path}", soft_wrap=True)
    if not cells:
        return False
    while cells:
        cells = cells[:limit]
        with reporter(progress, cells, CostModel.from_sums(store.timings())) as tell:
            for record in run_cells(spec, store, cells, executor=executor, workers=workers):
                tell(record)
        if limit is not None or share is not None:
            return True
        cells = open_cells(spec, store)
        if cells:
            progress.print(f"{len(cells)} cells added: {_reasons(spec, store)}", soft_wrap=True)
    return True


def _confirm(
    spec: AnySpec,
    store: Store,
    executor: Executor,
    workers: int,
    only_automatic: bool,
    progress: Console,
) -> bool:
    """Run a second pass on cells in doubt, and say what it did; whether there was any."""
    from moestat.sweep.kinds.fit.confirm import confirm_cell
    from moestat.sweep.kinds.fit.doubts import cells_in_doubt, slopes
    from moestat.sweep.kinds.fit.spec import Spec
    from moestat.sweep.run.cost import CostModel
    from moestat.sweep.run.progress import reporter
    from moestat.sweep.run.runner import run_cells
    from moestat.sweep.store.record import DONE, Record

    if not isinstance(spec, Spec):
        return False
    cells = cells_in_doubt(spec, store, only_automatic)
    if not cells:
        return False
    why = "more than half of the fits of their curve may" if only_automatic else "they may"
    progress.print(
        f"second pass: {len(cells)} cells have more starts, since {why} miss their maximum"
        " (--no-confirm leaves it out)",
        soft_wrap=True,
    )
    before, moved = slopes(spec, store), list[Record]()
    known = {record.key: record.log_likelihood for record in store.records()}

    def is_no_lower(record: Record) -> bool:
        """Whether a record may take the place of the one that is there."""
        height = known.get(record.key)
        return record.status == DONE and (
            height is None or (record.log_likelihood or height) >= height
        )

    with reporter(progress, cells, CostModel.from_sums(store.timings())) as tell:
        for record in run_cells(
            spec,
            store,
            cells,
            executor=executor,
            workers=workers,
            cell_function=confirm_cell,
            accept=is_no_lower,
        ):
            tell(record)
            if record.certificate.get("second_pass", {}).get("gain"):
                moved.append(record)
    after = slopes(spec, store)
    changed = [
        f"{name} from {before[name]:.2f} to {slope:.2f}"
        for name, slope in after.items()
        if name in before and name in {cell.curve for cell in cells}
    ]
    what = f"; slopes: {', '.join(changed)}" if changed else ""
    progress.print(
        f"{len(moved)} of {len(cells)} cells moved to a higher maximum{what}", soft_wrap=True
    )
    return True


def _share_of(spec: AnySpec, cells: Plan, share: str | None) -> Plan:
    """The cells of one share; every share has cells of every size."""
    from moestat.sweep.spec.plan import plan_cells

    if share is None:
        return cells
    part, _, parts = share.partition("/")
    if not (part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts)):
        raise SweepError(f"--share must be I/N with 1 <= I <= N, such as 1/3, got {share!r}")
    return cells.intersect(plan_cells(spec)[int(part) - 1 :: int(parts)])


def _planned(spec: AnySpec, store: Store) -> int:
    from moestat.sweep.run.runner import planned_cells

    return len(planned_cells(spec, store))


def _reasons(spec: AnySpec, store: Store) -> str:
    """Why curves get more replicates."""
    from moestat.sweep.kinds.fit.replication import replication

    counts = replication(spec, store)
    return "; ".join(
        f"{name} to {count.replicates} replicates ({count.why})"
        for name, count in counts.items()
        if not count.settled
    )


def _figure_paths(store: Store) -> list[Path]:
    return [store.path.with_suffix(suffix) for suffix in (".png", ".pdf")]


def _figures_are_current(store: Store) -> bool:
    """Whether the figures are there, and no older than the results."""
    written = store.path.stat().st_mtime_ns
    return all(p.is_file() and p.stat().st_mtime_ns >= written for p in _figure_paths(store))


def _point_to_results(store: Store) -> int:
    """Say where the results of a sweep that was complete already are; count the failed cells."""
    terminal, name = console(), shlex.quote(str(store.path))
    terminal.print(f"complete already; the rates: {PROGRAM} rates {name}", soft_wrap=True)
    show_failures(store, terminal)
    terminal.print("figures: " + ", ".join(map(str, _figure_paths(store))), soft_wrap=True)
    return sum(1 for _ in store.failed())


def _conclude(store: Store, as_json: bool) -> int:
    """Show the rates, write the figures, and count the failed cells."""
    from moestat.sweep.kinds.kind import kind_of
    from moestat.sweep.report.writing import write_figures

    spec = store.spec
    kind = kind_of(spec.kind)
    summaries = kind.summarise(store)
    paths = []
    if any(summary.drawable for summary in summaries):
        paths = _figure_paths(store)
        write_figures(kind.draw(spec.title, summaries, "screen"), paths)
    failed = sum(summary.failed for summary in summaries)
    if as_json:
        curves = [summary.as_dict() for summary in summaries]
        files = [str(path) for path in paths]
        show_json({"store": str(store.path), "failed": failed, "figures": files, "curves": curves})
        return failed
    terminal = console()
    terminal.print(kind.table(spec.title, summaries, False))
    show_failures(store, terminal)
    if paths:
        terminal.print("figures: " + ", ".join(map(str, paths)), soft_wrap=True)
    return failed
