"""Kinds of layers with options, in every way in which the guide says that they run.

A way gives outputs, auxiliary losses and gradients of a copy of the layer: they are those of the
plain layer, or the way is refused in a sentence.  All pairs run with ``pytest -m slow``; each run
of the suite has a fixed part, spread over kinds, options and ways.
"""

from __future__ import annotations

import copy
import io
import pickle
import zlib

import pytest

torch = pytest.importorskip("torch")

from torch import nn
from torch.utils.checkpoint import checkpoint

from moestat.networks.smoe import auxiliary_loss
from tests.networks.smoe.kinds import KINDS, D, N, T

OPTIONS = {
    "plain": {},
    "balance": {"balance": 0.5},
    "z": {"z": 0.5},
    "balance, z": {"balance": 0.5, "z": 0.5},
    "shared": {"balance": 0.5, "shared": True},
    "jitter": {"balance": 0.5, "jitter": 0.2},
    "capacity": {"balance": 0.5, "capacity": 0.6},
    "mask": {"balance": 0.5, "mask": True},
    "dropout": {"balance": 0.5, "dropout": 0.3},
    "bias": {"z": 0.5, "bias": True},
    "router in float64": {"balance": 0.5, "router_dtype": torch.float64},
}
DRAWS = ("jitter", "dropout")


class Case:
    """A layer of a kind with some options, rows, and whether it is in training."""

    def __init__(self, kind, option, training):
        given = dict(OPTIONS[option])
        self.masked = given.pop("mask", False)
        torch.manual_seed(0)
        if given.get("shared"):
            given["shared"] = nn.Linear(D, D)
        self.layer = KINDS[kind](D, N, top_k=2, hidden=16, **given)
        self.layer.competing = self.layer.told = True
        self.layer.train(training)
        self.option, self.training = option, training

    def rows(self, dtype=torch.float32):
        x = torch.randn(T, D, generator=torch.Generator().manual_seed(1)).to(dtype)
        return x.requires_grad_()

    @property
    def more(self):
        return {"mask": torch.arange(T) % 3 > 0} if self.masked else {}

    def answer(self, layer, call=None, auxiliary=True):
        """Outputs, the auxiliary loss, and gradients of parameters and rows, by name."""
        x = self.rows()
        torch.manual_seed(7)
        out = (layer if call is None else call)(x, **self.more)
        total = out.square().sum()
        loss = None
        if self.training and auxiliary:
            loss = auxiliary_loss(layer)
            total = total + loss
        if total.requires_grad:
            total.backward()
        found = {name: p.grad for name, p in layer.named_parameters()}
        return {"outputs": out.detach(), "loss": loss, "rows": x.grad} | found


def compiled(backend):
    def way(case):
        layer = copy.deepcopy(case.layer)
        torch._dynamo.reset()
        with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
            call = torch.compile(layer, fullgraph=True, backend=backend)
            return case.answer(layer, call)

    return way


def through_file(case):
    stored = io.BytesIO()
    torch.save(case.layer.state_dict(), stored)
    stored.seek(0)
    other = copy.deepcopy(case.layer)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.zero_()
    other.load_state_dict(torch.load(stored))
    return case.answer(other)


def checkpointed(case):
    layer = copy.deepcopy(case.layer)
    return case.answer(layer, lambda x, **more: checkpoint(layer, x, use_reentrant=False, **more))


def accumulated(case):
    """Two passes of the same rows, whose gradients add up, halved."""
    layer = copy.deepcopy(case.layer)
    case.answer(layer)
    found = case.answer(layer)
    for parameter in layer.parameters():
        if parameter.grad is not None:
            parameter.grad /= 2.0
    return found


WAYS = {
    "copy": lambda case: case.answer(copy.deepcopy(case.layer)),
    "pickle": lambda case: case.answer(pickle.loads(pickle.dumps(case.layer))),
    "state_dict": through_file,
    "checkpoint": checkpointed,
    "accumulation": accumulated,
    "aot_eager": compiled("aot_eager"),
    "inductor": compiled("inductor"),
}


def check(kind, option, way, training):
    case = Case(kind, option, training)
    expected = case.answer(copy.deepcopy(case.layer))
    found = WAYS[way](case)
    assert found.keys() == expected.keys()
    assert [n for n in found if found[n] is None] == [n for n in expected if expected[n] is None]
    told = {n: value.detach() for n, value in found.items() if value is not None}
    wanted = {n: value.detach() for n, value in expected.items() if value is not None}
    torch.testing.assert_close(told, wanted, rtol=1e-4, atol=1e-5)


CELLS = [
    (kind, option, way, training)
    for kind in KINDS
    for option in OPTIONS
    for way in WAYS
    for training in (True, False)
]
COSTS = {"aot_eager": 60, "inductor": 75}
"""Of how many cells one is in each run of the suite, where compiling takes seconds."""


def in_each_run(cell):
    return zlib.crc32(repr(cell).encode()) % COSTS.get(cell[2], 3) == 0


def name(cell):
    return ", ".join([*cell[:3], "training" if cell[3] else "evaluation"])


PARTS = [
    pytest.param(cell, id=name(cell), marks=[pytest.mark.thorough] * (cell[2] in COSTS))
    for cell in CELLS
    if in_each_run(cell)
]
"""Cells of each run, and those that compile, which are thorough."""


@pytest.fixture(autouse=True)
def draws_of_the_plain_layer():
    """Compiled code draws the noise of the plain layer."""
    import torch._inductor.config as inductor

    with inductor.patch(fallback_random=True):
        yield


@pytest.mark.filterwarnings("ignore")  # the compiler's own
@pytest.mark.parametrize("cell", PARTS)
def test_a_way_to_run_a_layer_changes_nothing(cell):
    check(*cell)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # the compiler's own
@pytest.mark.parametrize("cell", [c for c in CELLS if not in_each_run(c)], ids=name)
def test_all_other_ways_to_run_a_layer_change_nothing(cell):
    check(*cell)


@pytest.mark.parametrize("option", [o for o in OPTIONS if o != "plain"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_checkpoint_that_enters_again_is_refused_where_a_loss_would_be_lost(kind, option):
    case = Case(kind, option, training=True)
    out = checkpoint(lambda x: case.layer(x, **case.more), case.rows(), use_reentrant=True)
    lost = bool(case.layer.last.losses)
    if lost:
        with pytest.raises(RuntimeError, match="use_reentrant=False"):
            auxiliary_loss(case.layer)
    elif option not in DRAWS:
        plain = copy.deepcopy(case.layer)
        torch.testing.assert_close(out, plain(case.rows(), **case.more))


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("training", [True, False], ids=["training", "evaluation"])
def test_reduced_precision_is_near(kind, option, training):
    case = Case(kind, option, training)
    case.layer.router_dtype = torch.float32  # rounded scores choose other experts for some rows
    torch.manual_seed(7)
    plain = copy.deepcopy(case.layer)(case.rows(), **case.more)
    layer = copy.deepcopy(case.layer)
    torch.manual_seed(7)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = layer(case.rows(), **case.more)
        loss = auxiliary_loss(layer) if training else out.new_zeros(())
    near = (out.float() - plain).abs().max(1).values < 0.1 * plain.abs().max()
    # Competition ranks outputs that are rounded: a few rows have other winners.
    assert near.float().mean() >= (1.0 if kind == "smoe" and option not in DRAWS else 0.8)
    (out.float().square().sum() + loss).backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in layer.parameters())


@pytest.mark.parametrize("option", [o for o in OPTIONS if o != "mask"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_layer_on_meta_has_the_shapes(kind, option):
    case = Case(kind, option, training=True)
    layer = copy.deepcopy(case.layer).to("meta")
    out = layer(torch.zeros(T, D, device="meta"))
    assert out.shape == (T, D)
    assert auxiliary_loss(layer).is_meta


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("option", [o for o in OPTIONS if o != "mask"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_exported_layer_is_the_layer(kind, option):
    case = Case(kind, option, training=False)
    sizes = ({0: torch.export.Dim("rows")},)
    exported = torch.export.export(case.layer, (torch.zeros(33, D),), dynamic_shapes=sizes)
    torch.testing.assert_close(exported.module()(case.rows()), case.layer(case.rows()))
