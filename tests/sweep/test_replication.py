"""Adaptive replication: where it adds replicates, when it stops, and that order does not matter."""

import dataclasses
import math
import random

import numpy as np
import pytest

from moestat.sweep import SweepError, create_store, open_cells, parse_spec, run_cells, summarise
from moestat.sweep.kinds.fit.replication import replication, replication_by
from moestat.sweep.store.record import DONE
from moestat.sweep.store.scan import Cells
from tests.sweep.cells import always_fails, exact_rate, stored_numbers

TARGET = "replicates = 3\ntarget_slope_halfwidth = {}\nmax_replicates = {}"


@pytest.fixture
def adaptive(text):
    def make(target, most=40):
        return parse_spec(
            text.replace("replicates = 3", TARGET.format(target, most)).replace(
                "[200, 400]", "[200, 400, 800, 1600]"
            )
        )

    return make


def noisy(text, cell):
    """Losses with noise from the cell's own seed; the curve "em" has four times as much."""
    noise = np.random.default_rng(cell.fit_seed).standard_normal()
    scale = 0.4 if cell.curve == "em" else 0.1
    loss = cell.n**-0.5 * math.exp(scale * noise)
    return dataclasses.replace(exact_rate(text, cell), loss=loss, certified=True)


def run(path, spec, cell_function=noisy, order=None, limit=None):
    """Run rounds until there are none; at most `limit` cells of each, the rest in the next."""
    rounds = []
    with create_store(path, spec) as store:
        while cells := open_cells(spec, store):
            if order:
                cells = order.sample(list(cells), len(cells))
            cells = cells[:limit]
            list(run_cells(spec, store, cells, executor="serial", cell_function=cell_function))
            rounds.append(len(cells))
        return rounds, stored_numbers(store), replication(spec, store), summarise(store)


def test_replicates_go_where_the_interval_needs_them(tmp_path, adaptive):
    rounds, _, counts, summaries = run(tmp_path / "a.sqlite", adaptive(0.15))
    newton, em = counts["newton"], counts["em"]
    assert newton.replicates < 10 < em.replicates < 40
    for count, summary in zip((newton, em), summaries, strict=True):
        assert count.settled
        assert count.halfwidth <= 0.15
        assert count.why == f"half-width {count.halfwidth:.3g} is within the target 0.15"
        low, high = summary.rate.interval
        assert (high - low) / 2 == pytest.approx(count.halfwidth)
        assert summary.planned == summary.done == 4 * count.replicates
    assert len(rounds) > 2


def test_no_round_more_than_doubles_the_replicates(tmp_path, adaptive):
    rounds, *_ = run(tmp_path / "a.sqlite", adaptive(0.02))
    assert rounds[0] == 2 * 3 * 4
    assert all(len_after <= sum(rounds[:i]) for i, len_after in enumerate(rounds) if i)


def test_it_stops_at_max_replicates_and_says_so(tmp_path, adaptive):
    _, numbers, counts, _ = run(tmp_path / "a.sqlite", adaptive(0.001, most=7))
    assert {count.replicates for count in counts.values()} == {7}
    assert counts["em"].settled
    assert counts["em"].why.startswith("max_replicates; half-width 0.")
    assert counts["em"].why.endswith(", target 0.001")
    assert len(numbers) == 2 * 4 * 7


def test_without_an_interval_the_replicates_double(tmp_path, adaptive):
    rounds, _, counts, _ = run(tmp_path / "a.sqlite", adaptive(0.1, most=10), always_fails)
    assert rounds == [24, 24, 32]
    assert counts["newton"].why == "max_replicates; there is no interval, target 0.1"


def test_order_and_interruptions_change_nothing(tmp_path, adaptive):
    spec = adaptive(0.15)
    _, expected, *_ = run(tmp_path / "a.sqlite", spec)
    for seed in range(3):
        order = random.Random(seed)
        rounds, numbers, *_ = run(tmp_path / f"{seed}.sqlite", spec, order=order, limit=13)
        assert max(rounds) == 13
        assert numbers == expected


def second_pass(text, cell):
    """Other losses than those of the first pass, and certificates where it had none."""
    first = noisy(text, cell)
    other = np.random.default_rng(cell.fit_seed + 1).standard_normal()
    certified = cell.replicate % 2 == 0
    note = {"gain": 1.0, "first_loss": first.loss}
    if certified != first.certified:
        note["first_certified"] = first.certified
    return dataclasses.replace(
        first,
        loss=first.loss * math.exp(0.7 * other),
        certified=certified,
        certificate={**first.certificate, "second_pass": note},
    )


@pytest.mark.parametrize("share", [1, 3])
def test_a_second_pass_between_rounds_adds_and_saves_no_replicates(tmp_path, adaptive, share):
    """Else a run that was interrupted before its second pass would add other replicates."""
    spec = adaptive(0.15)
    rounds, expected, counts, _ = run(tmp_path / "a.sqlite", spec)
    options = {"executor": "serial", "accept": lambda record: True}
    with create_store(tmp_path / "b.sqlite", spec) as store:
        for size in rounds:
            cells = open_cells(spec, store)
            assert len(cells) == size
            list(run_cells(spec, store, cells, cell_function=noisy, **options))
            list(run_cells(spec, store, cells[::share], cell_function=second_pass, **options))
        assert not open_cells(spec, store)
        assert stored_numbers(store).keys() == expected.keys()
        for name, count in replication(spec, store).items():
            why = f"{counts[name].why}, by the losses before the second pass"
            assert count == dataclasses.replace(counts[name], why=why)
        first = [summary.first for summary in summarise(store)]
    with create_store(tmp_path / "a.sqlite", spec) as store:
        expected_rates = [summary.rate for summary in summarise(store)]
    assert [rate.slope for rate in first] == [rate.slope for rate in expected_rates]


def test_while_a_round_is_not_complete_nothing_is_decided(tmp_path, adaptive):
    spec = adaptive(0.15)
    with create_store(tmp_path / "a.sqlite", spec) as store:
        cells = open_cells(spec, store)
        list(run_cells(spec, store, cells[:-1], executor="serial", cell_function=noisy))
        counts = replication(spec, store)
        assert not counts["em"].settled
        assert counts["em"].why == "first round, target 0.15"
        assert open_cells(spec, store)[-1] == cells[-1]


def test_a_fixed_number_of_replicates_stays(tmp_path, spec):
    _, numbers, counts, _ = run(tmp_path / "a.sqlite", spec)
    assert len(numbers) == 12
    assert (counts["em"].replicates, counts["em"].why) == (3, "")


@pytest.mark.parametrize(
    ("new", "message"),
    [
        ("replicates = 3\nmax_replicates = 5", "max_replicates: needs target_slope_halfwidth"),
        (TARGET.format(0, 5), "target_slope_halfwidth: must be > 0, got 0"),
        (TARGET.format(0.1, 2), "max_replicates: must be an integer >= 3, got 2"),
        ("replicates = 3\ntarget_slope_halfwidth = 0.1", "max_replicates: is missing"),
        ("replicates = 1\ntarget_slope_halfwidth = 0.1", "needs replicates >= 2"),
    ],
)
def test_wrong_specs(text, new, message):
    with pytest.raises(SweepError) as error:
        parse_spec(text.replace("replicates = 3", new))
    assert message in str(error.value)


@pytest.mark.slow
def test_intervals_still_cover_where_the_rule_stopped(adaptive):
    # Stopping at a short interval favours intervals that are short by chance.
    spec, draws, hits = adaptive(0.15), 400, 0
    from moestat.sweep.spec.plan import plan_cells

    for draw in range(draws):
        records = []
        while True:
            counts = replication_by(spec, lambda name, have=records: cells_of(name, have))
            if counts["em"].settled:
                break
            plan = plan_cells(spec, {name: each.replicates for name, each in counts.items()})
            have = {record.key for record in records}
            new = [cell for cell in plan if cell.curve == "em" and cell.key not in have]
            new = [dataclasses.replace(cell, fit_seed=cell.fit_seed + draw) for cell in new]
            records += [noisy(spec.text, cell) for cell in new]
        rate = summarise_one(records)
        hits += rate.interval[0] <= -0.5 <= rate.interval[1]
    print(f"coverage after stopping: {hits / draws}")
    assert hits / draws >= 0.95 - 0.02 - 3 * math.sqrt(0.05 * 0.95 / draws)


def cells_of(name, records):
    own = [record for record in records if record.curve == name]

    def column(value):
        return np.array([value(record) for record in own])

    return Cells(
        rowid=np.arange(len(own)),
        n=column(lambda record: record.n),
        replicate=column(lambda record: record.replicate),
        done=column(lambda record: record.status == DONE).astype(bool),
        certified=column(lambda record: record.certified).astype(bool),
        on_bound=np.zeros(len(own), dtype=bool),
        loss=column(lambda record: record.loss),
        seconds=column(lambda record: record.seconds),
        shape=np.zeros(len(own), dtype=int),
    )


def summarise_one(records):
    from moestat.rates.rate import fit_rate

    return fit_rate([r.n for r in records], [r.loss for r in records], n_bootstrap=0)
