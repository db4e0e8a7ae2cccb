"""The layer in the training loops that people have: checkpoints, copies, files, processes."""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from torch import nn
from torch.utils.checkpoint import checkpoint

from moestat.base.warnings import MoEWarning
from moestat.networks.smoe import (
    CompeteSMoE,
    CompeteSMoEv1,
    CompetitionMoE,
    CosineRouter,
    FixedRouter,
    GatedExperts,
    HashRouter,
    LinearExperts,
    SMoE,
    SMoEEncoderLayer,
    SoftmaxRouter,
    StableRouter,
    auxiliary_loss,
    before_step,
    copy_gated,
    copy_linear,
    copy_mixtral,
)
from moestat.networks.smoe.experts.stacked import HIDDEN_ACTIVATIONS, _multiplies_groups
from moestat.networks.smoe.responses import RESPONSES
from tests.networks.smoe.kinds import KINDS, D, N, T


def layer_of(kind=SMoE, **options):
    torch.manual_seed(0)
    layer = kind(D, N, top_k=2, hidden=16, balance=1.0, z=0.1, **options)
    layer.competing = True
    return layer


def rows(n=T, seed=1):
    return torch.randn(n, D, generator=torch.Generator().manual_seed(seed))


def gradients(layer):
    return {
        name: None if p.grad is None else p.grad.clone() for name, p in layer.named_parameters()
    }


def same(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert (found[name] is None) == (value is None), name
        if value is not None:
            torch.testing.assert_close(found[name], value)


def plain_gradients(kind):
    layer = layer_of(kind)
    loss = layer(rows()).square().sum() + auxiliary_loss(layer)
    loss.backward()
    return gradients(layer)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_checkpoints_that_do_not_enter_again_change_nothing(kind):
    expected = plain_gradients(kind)
    layer = layer_of(kind)
    for _ in range(2):
        layer.zero_grad()
        out = checkpoint(layer, rows(), use_reentrant=False)
        (out.square().sum() + auxiliary_loss(layer)).backward()
        same(gradients(layer), expected)


def test_the_first_pass_of_a_process_may_be_in_a_checkpoint():
    layer = layer_of(SMoE)
    assert layer.experts._fit_together(rows())
    _multiplies_groups.cache_clear()  # what it saves was taken for the layer's
    checkpoint(layer, rows(), use_reentrant=False).sum().backward()


@pytest.mark.parametrize("kind", [SMoE, CompeteSMoE, CompeteSMoEv1])
def test_checkpoints_that_enter_again_are_refused(kind):
    layer = layer_of(kind)
    checkpoint(layer, rows().requires_grad_(), use_reentrant=True)
    with pytest.raises(RuntimeError, match="use_reentrant=False"):
        auxiliary_loss(layer)


def test_competition_without_a_router_needs_no_graph():
    layer = layer_of(CompetitionMoE)
    checkpoint(layer, rows().requires_grad_(), use_reentrant=True).sum().backward()
    assert auxiliary_loss(layer).item() == 0.0


@pytest.mark.parametrize("kind", [SMoE, CompeteSMoE, CompeteSMoEv1])
def test_passes_since_the_last_call_add_up(kind):
    layer = layer_of(kind)
    parts = []
    for seed in (1, 2, 3):
        layer(rows(seed=seed))
        parts.append(auxiliary_loss(layer).item())
    for seed in (1, 2, 3):
        layer(rows(seed=seed))
    assert auxiliary_loss(layer).item() == pytest.approx(sum(parts))
    with pytest.raises(ValueError, match="no forward pass in training"):
        auxiliary_loss(layer)


def test_losses_that_nobody_takes_are_dropped_with_a_warning(monkeypatch):
    monkeypatch.setattr("moestat.networks.smoe.layer._MOST_PENDING", 3)
    layer = layer_of()
    for _ in range(3):
        layer(rows(2))
    with pytest.warns(UserWarning, match="auxiliary_loss has not been called for 3 passes"):
        layer(rows(2))


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_copies_and_files_hold_the_layer_and_no_graph(kind):
    layer = layer_of(kind)
    expected = layer(rows())
    stored = io.BytesIO()
    torch.save(layer, stored)
    stored.seek(0)
    others = copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))
    for other in (*others, torch.load(stored, weights_only=False)):
        assert torch.equal(other(rows()), expected)
        auxiliary_loss(other)


@pytest.mark.parametrize("response", RESPONSES)
@pytest.mark.parametrize("activation", HIDDEN_ACTIVATIONS)
def test_every_response_and_activation_can_be_stored(response, activation):
    layer = layer_of(CompeteSMoE, response=response, activation=activation)
    assert torch.equal(pickle.loads(pickle.dumps(layer))(rows()), layer(rows()))


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("competing", [False, True])
def test_a_batch_without_rows_has_no_loss(kind, competing):
    layer = layer_of(kind)
    layer.competing, layer.told = competing, True
    out = layer(rows(0))
    loss = auxiliary_loss(layer)
    assert out.shape == (0, D)
    assert loss.item() == 0.0
    (out.sum() + loss).backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in layer.parameters())


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_padding_counts_nowhere(kind):
    x, mask = rows().view(4, T // 4, D), torch.ones(4, T // 4, dtype=torch.bool)
    mask[0, 3:] = mask[2, 1:] = False
    layer = layer_of(kind)
    padded = x.clone()
    padded[~mask] = 1e3
    out = layer(padded, mask=mask)
    assert (out[~mask] == 0).all()
    found = auxiliary_loss(layer)
    torch.testing.assert_close(out[mask], layer(x[mask]))
    torch.testing.assert_close(found, auxiliary_loss(layer))
    with pytest.raises(ValueError, match=r"mask must be of bool and of shape \(4, 8\)"):
        layer(x, mask=mask[0])


def test_silu_ranks_before_it_cuts():
    layer = layer_of(CompeteSMoE, response="silu")
    outputs = layer.experts.every(rows(400))
    means = nn.functional.silu(outputs).mean(-1).T
    layer(rows(400))
    assert ((means < 0).sum(1) > 2).any()  # there two winners at least would be arbitrary
    assert torch.equal(layer.trace or layer.competition(rows(400)), means)


def test_the_router_in_full_precision_under_autocast():
    layer = layer_of(router_dtype=torch.float32).eval()
    plain = layer.decide(rows(400)).chosen
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(layer.decide(rows(400)).chosen, plain)
        layer.router_dtype = None
        assert not torch.equal(layer.decide(rows(400)).chosen, plain)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore")  # the compiler's own
@pytest.mark.parametrize(
    ("kind", "backend"),
    [
        pytest.param(CompeteSMoE, "inductor", marks=pytest.mark.slow),
        *((kind, "aot_eager") for kind in KINDS.values()),
    ],
)
def test_a_compiled_layer_is_the_layer_without_a_break(kind, backend):
    layer = layer_of(kind)
    out = torch.compile(layer, fullgraph=True, backend=backend)(rows())
    (out.square().sum() + auxiliary_loss(layer)).backward()
    for name, expected in plain_gradients(kind).items():
        found = layer.get_parameter(name).grad
        assert (found is None) == (expected is None)
        if expected is not None:
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore")  # the compiler's own
@pytest.mark.parametrize(
    ("weights", "backend"),
    [
        ({"balance": 0.01}, "aot_eager"),
        pytest.param({"balance": 0.01}, "inductor", marks=pytest.mark.slow),  # the default
        pytest.param({"z": 0.01}, "inductor", marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_a_layer_with_one_auxiliary_loss_trains_under_a_compiler(weights, backend):
    """A sum of one term and the term itself, kept for logging, are one tensor to a compiler."""
    layer = SMoE(D, N, 2, 16, **weights)
    plain = copy.deepcopy(layer)
    for each, call in ((layer, torch.compile(layer, backend=backend)), (plain, plain)):
        (call(rows()).square().sum() + auxiliary_loss(each)).backward()
    assert set(layer.last.losses) == set(weights)
    for name, expected in plain.named_parameters():
        found = layer.get_parameter(name).grad
        torch.testing.assert_close(found, expected.grad, rtol=1e-4, atol=1e-5)


def test_a_layer_that_could_compete_says_once_that_nobody_tells_it_of_steps():
    layer = CompeteSMoE(D, N, 2, 16, balance=0.01)
    layer(rows())
    with pytest.warns(MoEWarning, match="before_step has not been called"):
        auxiliary_loss(layer)
    layer(rows())
    auxiliary_loss(layer)  # once
    told = CompeteSMoE(D, N, 2, 16, balance=0.01)
    before_step(told, 0, 10)
    told(rows())
    auxiliary_loss(told)


def test_layers_and_passes_show_sizes_and_no_tensors():
    layer = CompeteSMoE(D, N, 2, 16, balance=0.01)
    assert "n_hidden=16" in repr(layer)
    assert f"n_experts={N}" in repr(layer.router)
    layer(rows())
    assert "tensor" not in repr(layer.last)
    assert "balance" in repr(layer.last)


@pytest.mark.parametrize("options", [{}, {"bias": True, "capacity": 0.7}])
def test_an_exported_layer_takes_any_number_of_rows(options):
    layer = layer_of(**options).eval()
    sizes = ({0: torch.export.Dim("rows")},)
    exported = torch.export.export(layer, (rows(33),), dynamic_shapes=sizes).module()
    torch.testing.assert_close(exported(rows(7)), layer(rows(7)))


def test_a_layer_without_storage_knows_its_shapes():
    layer = CompeteSMoE(D, N, 2, 16, bias=True, device="meta")
    layer.competing = True
    assert layer(torch.zeros(3, 5, D, device="meta")).shape == (3, 5, D)
    assert auxiliary_loss(layer).is_meta


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_half_precision_in_whole_and_under_autocast(kind, dtype):
    for n, router in ((T, None), (T, torch.float32), (0, None)):
        for own in (dtype, torch.float32):
            layer = layer_of(kind, dtype=own, router_dtype=router)
            with torch.autocast("cpu", dtype=dtype, enabled=own == torch.float32):
                out = layer(rows(n).to(own))
                loss = auxiliary_loss(layer)
            assert out.dtype == dtype
            (out.float().square().sum() + loss).backward()
            assert all(p.grad is None or p.grad.isfinite().all() for p in layer.parameters())
    many = layer_of(dtype=dtype)  # more choices than half precision can count
    many(torch.randn(40_000, D).to(dtype))
    assert auxiliary_loss(many).isfinite()


ROUTERS = {
    "cosine": CosineRouter(D, N),
    "fixed": FixedRouter(D, N),
    "stable": StableRouter(D, N),
    "hash": HashRouter(D, N, 5, 2),
}


@pytest.mark.parametrize("router", ROUTERS)
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_router_with_nothing_and_with_padding_alone(kind, router):
    for experts in (GatedExperts(N, D, 4, D, bias=True), LinearExperts(N, D, n_outputs=D)):
        layer = kind(experts, ROUTERS[router], 2, balance=0.1, z=0.1)
        layer.competing = True
        for n, share in ((T, 0.5), (T, 0.0), (0, 1.0)):
            mask, ids = torch.arange(n) < share * n, torch.arange(n) % 5
            out = layer(rows(n), ids=ids, mask=mask)
            assert out.isfinite().all()
            assert auxiliary_loss(layer).isfinite()
    with pytest.raises(ValueError, match=r"ids must have shape \(32,\), got \(3,\)"):
        layer(rows(), ids=ids.new_zeros(3))


def test_an_encoder_layer_keeps_its_experts_in_evaluation():
    torch.manual_seed(0)
    model = nn.TransformerEncoder(
        SMoEEncoderLayer(D, 2, layer_of(), batch_first=True, dropout=0.0),
        num_layers=2,
        enable_nested_tensor=False,
    )
    x = rows().view(4, -1, D)
    trained = model(x)
    auxiliary_loss(model).backward()
    model.eval()
    with torch.no_grad():
        torch.testing.assert_close(model(x), trained)
        with torch.no_grad():
            model.layers[0].experts.experts.outer.zero_()
        assert not torch.allclose(model(x), trained)
    with pytest.raises(ValueError, match="experts must have widths"):
        SMoEEncoderLayer(2 * D, 2, layer_of())


class Block(nn.Module):
    """A decoder block as libraries write it, with a slot named mlp."""

    def __init__(self, mlp):
        super().__init__()
        self.norm, self.mlp = nn.LayerNorm(D), mlp

    def forward(self, x):
        return x + self.mlp(self.norm(x))


def test_experts_in_the_slot_of_a_trained_block_begin_as_its_copies():
    torch.manual_seed(0)
    gate, up = nn.Linear(D, 16, bias=False), nn.Linear(D, 16, bias=False)
    down = nn.Linear(16, D, bias=False)
    layer = SMoE(GatedExperts(N, D, 16, D), SoftmaxRouter(D, N), top_k=2)
    copy_gated(layer, gate, up, down)
    expected = down(nn.functional.silu(gate(rows())) * up(rows()))
    torch.testing.assert_close(layer(rows()), expected)
    model = nn.Sequential(Block(layer), Block(layer_of()))
    model(rows()).sum().backward()
    assert auxiliary_loss(model).item() > 0
    with pytest.raises(ValueError, match="must both have biases"):
        copy_linear(layer_of(), nn.Linear(D, 16), nn.Linear(16, D))


@pytest.mark.parametrize("stacked", [False, True])
def test_the_experts_of_a_mixtral_block(stacked):
    torch.manual_seed(0)
    names = {"w1": (D, 16), "w3": (D, 16), "w2": (16, D)}
    experts = [
        SimpleNamespace(**{n: nn.Linear(*shape, bias=False) for n, shape in names.items()})
        for _ in range(N)
    ]
    router = nn.Linear(D, N, bias=False)
    given = experts
    if stacked:
        both = [torch.cat([e.w1.weight, e.w3.weight]) for e in experts]
        down = torch.stack([e.w2.weight for e in experts])
        given = SimpleNamespace(gate_up_proj=torch.stack(both), down_proj=down)
    layer = SMoE(GatedExperts(N, D, 16, D), SoftmaxRouter(D, N), top_k=2)
    copy_mixtral(layer, SimpleNamespace(experts=given, gate=router))
    values, chosen = router(rows()).topk(2)
    answers = torch.stack(
        [e.w2(nn.functional.silu(e.w1(rows())) * e.w3(rows())) for e in experts], 1
    )
    picked = answers.gather(1, chosen.unsqueeze(2).expand(-1, -1, D))
    torch.testing.assert_close(layer(rows()), (values.softmax(-1).unsqueeze(2) * picked).sum(1))


def test_shared_experts_capacity_and_jitter():
    shared = nn.Linear(D, D)
    layer = layer_of(shared=shared)
    plain = layer_of()
    torch.testing.assert_close(layer(rows()), plain(rows()) + shared(rows()))
    tight = layer_of(capacity=0.5)
    chosen = tight.decide(rows()).chosen
    most = -(-(T * 2) // (2 * N))
    rank = (nn.functional.one_hot(chosen.reshape(-1), N).cumsum(0) - 1).view(T, 2, N)
    kept = rank.gather(2, chosen.unsqueeze(2)).squeeze(2) < most
    decision = plain.decide(rows())
    weights = torch.zeros(T, N).scatter(1, chosen, decision.weights * kept)
    answers = plain.experts.every(rows())
    torch.testing.assert_close(tight(rows()), torch.einsum("tn,ntd->td", weights, answers))
    noisy = layer_of(jitter=0.3)
    assert not torch.equal(noisy.decide(rows()).scores, plain.decide(rows()).scores)
    noisy.eval()
    assert torch.equal(noisy.decide(rows()).scores, plain.decide(rows()).scores)


def test_what_a_pass_did_can_be_logged():
    layer = layer_of(CompeteSMoE)
    layer(rows())
    last = layer.last
    assert set(last.losses) == {"balance", "z", "distillation", "diversity"}
    assert auxiliary_loss(layer).item() == pytest.approx(sum(last.losses.values()).item())
    assert last.scores.shape == (T, N)
    assert not last.scores.requires_grad
    assert last.load.sum().item() == pytest.approx(1.0)
    assert "top_k=2" in repr(layer)


def test_sizes_and_parts():
    layer = CompeteSMoE(D, N, 2, 16, bias=True, dropout=0.1, dtype=torch.float64)
    assert {p.dtype for p in layer.parameters()} == {torch.float64}
    assert layer.experts.inner.shape == (N, D, 16)
    assert layer.experts.inner_bias is not None
    assert SMoE(D, N, activation=torch.sin)(rows()).shape == (T, D)
    for make, message in (
        (lambda: SMoE(D, SoftmaxRouter(D, N)), "modules both, or a width"),
        (lambda: SMoE(0, N), "d_model must be an integer >= 1"),
        (lambda: SMoE(D, N, hidden=2.5), "hidden must be an integer"),
        (
            lambda: SMoE(GatedExperts(N, D, 4, D), SoftmaxRouter(D, N), hidden=3),
            "allowed only with sizes",
        ),
        (lambda: SMoE(D, N, capacity=0), "capacity must be"),
    ):
        with pytest.raises(ValueError, match=message):
            make()
    with pytest.raises(TypeError, match="biases"):
        SMoE(D, N, biases=True)


def _steps_of_a_process(rank, port, steps):
    import torch.distributed as dist

    address = f"tcp://127.0.0.1:{port}"
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=2)
    try:
        for kind in KINDS.values():
            for unused in (False, True):
                layer = layer_of(kind)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    model = nn.parallel.DistributedDataParallel(
                        layer, find_unused_parameters=unused
                    )
                for competing in (True, False, True):
                    layer.competing = competing
                    model.zero_grad()
                    out = model(rows(seed=rank))
                    (out.square().sum() + auxiliary_loss(model)).backward()
                total = layer.experts.inner.grad.clone()
                dist.all_reduce(total)
                torch.testing.assert_close(total, 2 * layer.experts.inner.grad)
                steps[rank] += 1
    finally:
        dist.destroy_process_group()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_distributed_data_parallel_with_and_without_unused_parameters():
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    steps = torch.zeros(2, dtype=torch.int64).share_memory_()
    torch.multiprocessing.spawn(_steps_of_a_process, (port, steps), nprocs=2)
    assert steps.tolist() == [2 * len(KINDS)] * 2
