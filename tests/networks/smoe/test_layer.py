import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from moestat.networks.smoe.compete import CompeteSMoE, CompetitionMoE
from moestat.networks.smoe.compete_v1 import CompeteSMoEv1
from moestat.networks.smoe.dense import DenseBlock
from moestat.networks.smoe.experts import GatedExperts, LinearExperts, MLPExperts
from moestat.networks.smoe.layer import SMoE, auxiliary_loss, before_step
from moestat.networks.smoe.responses import RESPONSES
from moestat.networks.smoe.routers import (
    CosineRouter,
    FixedRouter,
    HashRouter,
    SoftmaxRouter,
    StableRouter,
)
from moestat.networks.smoe.schedule import CompetitionSchedule
from tests.networks.smoe import reference

D, H, N, K, T = 5, 4, 4, 2, 7
SETTINGS = {"balance": 0.3, "z": 0.2}
COMPETE = {"gamma": 0.7, "alpha": 0.4, "beta": 0.3}


def seeded(seed):
    torch.manual_seed(seed)
    return np.random.default_rng(seed)


def experts(kind=MLPExperts):
    extra = {"activation": "tanh"} if kind is MLPExperts else {}
    return kind(N, D, H, D, **extra)


def double(layer):
    return layer.double()


def numbers(layer):
    """The layer's parameters as the reference names them."""
    rename = {"experts.": "", "router.weight": "router", "router.": ""}
    out = {}
    for name, value in layer.named_parameters():
        for old, new in rename.items():
            if name.startswith(old):
                name = name.replace(old, new, 1)
                break
        array = value.detach().numpy()
        out[name] = array[0] if name in ("router", "projection") else array
    return out


def gradients(layer):
    rename = {"router.weight": "router", "router.projection": "projection"}
    out = {}
    for name, value in layer.named_parameters():
        if value.grad is not None:
            array = value.grad.numpy()
            key = rename.get(name, name.split(".", 1)[1])
            out[key] = array[0] if key in ("router", "projection") else array
    return out


def task(layer, rng, positive=False):
    """Random rows, and the weights of a linear loss of the outputs."""
    X, A = rng.normal(size=(T, D)), rng.normal(size=(T, D))
    X = np.abs(X) if positive else X
    out = layer(torch.from_numpy(X))
    auxiliary = auxiliary_loss(layer)
    loss = (torch.from_numpy(A) * out).sum()
    return X, A, out, auxiliary, loss


def agree(layer, function, names):
    weights, found = numbers(layer), gradients(layer)
    for name in names:
        expected = reference.gradient(function, weights, name)
        np.testing.assert_allclose(found[name], expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", [MLPExperts, GatedExperts])
@pytest.mark.parametrize("router", [SoftmaxRouter, CosineRouter])
def test_layer_and_gradients_are_those_of_the_formulas(seed, kind, router):
    rng = seeded(seed)
    layer = double(SMoE(experts(kind), router(D, N), K, **SETTINGS))
    X, A, out, auxiliary, loss = task(layer, rng)
    (loss + auxiliary).backward()
    expert = reference.mlp if kind is MLPExperts else reference.gated
    named = "cosine" if router is CosineRouter else "softmax"

    def value(weights):
        Y, extra = reference.smoe(weights, X, K, SETTINGS, expert, named)
        return (A * Y).sum() + extra

    Y, extra = reference.smoe(numbers(layer), X, K, SETTINGS, expert, named)
    np.testing.assert_allclose(out.detach().numpy(), Y, rtol=0, atol=1e-10)
    assert auxiliary.item() == pytest.approx(extra, abs=1e-10)
    agree(layer, value, gradients(layer))
    routed = {"projection", "directions", "log_temperature"} if named == "cosine" else {"router"}
    assert routed | {"inner", "outer"} <= set(gradients(layer))


@pytest.mark.parametrize("response", RESPONSES)
def test_competing_step_and_gradients_are_those_of_the_formulas(response):
    rng = seeded(11)
    layer = double(
        CompeteSMoE(experts(), SoftmaxRouter(D, N), K, response=response, **SETTINGS, **COMPETE)
    )
    positive = response == "silu"  # of responses that are all 0 anyone may win
    if positive:
        with torch.no_grad():
            layer.experts.inner.abs_()
            layer.experts.outer.abs_()
    layer.competing = True
    X, A, out, auxiliary, loss = task(layer, rng, positive)
    (loss + auxiliary).backward()
    settings = {**SETTINGS, **COMPETE}
    arguments = (X, K, settings, reference.mlp, response)
    Y, extra, targets = reference.compete(numbers(layer), *arguments)
    np.testing.assert_allclose(out.detach().numpy(), Y, rtol=0, atol=1e-10)
    assert auxiliary.item() == pytest.approx(extra, abs=1e-10)

    def value(weights):
        Y, extra, _ = reference.compete(weights, *arguments, frozen=targets)
        return (A * Y).sum() + extra

    agree(layer, value, ("inner", "outer", "router"))


def test_first_version_updates_are_those_of_the_formulas():
    rng = seeded(5)
    alpha = 5.0
    layer = double(CompeteSMoEv1(experts(), SoftmaxRouter(D, N), K, alpha=alpha))
    layer.competing = True
    X, A, _, auxiliary, loss = task(layer, rng)
    (loss + auxiliary).backward()
    fixed = numbers(layer)
    assert auxiliary.item() == pytest.approx(reference.router_loss(fixed, X, K), abs=1e-10)

    def nll(weights):
        return (A * reference.smoe(weights, X, K, {})[0]).sum()

    def routers(weights):
        teacher = {**fixed, "router": weights["router"]}
        return reference.router_loss(teacher, X, K) + alpha * nll(weights)

    agree(layer, nll, ("inner", "outer"))
    agree(layer, routers, ("router",))


def test_first_version_leaves_what_comes_before_the_layer_to_the_task():
    seeded(6)
    layer = double(CompeteSMoEv1(experts(), SoftmaxRouter(D, N), K))
    layer.told = True
    X = torch.randn(T, D, dtype=torch.float64, requires_grad=True)
    plain = torch.autograd.grad(layer(X).square().sum(), X)[0]
    auxiliary_loss(layer)
    layer.competing = True
    out = layer(X)
    total = out.square().sum() + auxiliary_loss(layer)
    torch.testing.assert_close(torch.autograd.grad(total, X)[0], plain)


LAYERS = {
    "smoe": SMoE,
    "v2": CompeteSMoE,
    "v1": CompeteSMoEv1,
    "competition": CompetitionMoE,
}


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("kind", [MLPExperts, GatedExperts, LinearExperts])
def test_dispatch_is_the_dense_computation(name, kind):
    seeded(2)
    layer = double(LAYERS[name](experts(kind), SoftmaxRouter(D, N), K)).eval()
    X = torch.randn(2, T, D, dtype=torch.float64)
    decision = layer.decide(X.reshape(-1, D))
    weights = torch.zeros(2 * T, N, dtype=torch.float64).scatter(
        1, decision.chosen, decision.weights
    )
    assert ((weights > 0).sum(1) == K).all()
    torch.testing.assert_close(weights.sum(1), torch.ones(2 * T, dtype=torch.float64))
    dense = torch.einsum("tn,ntd->td", weights, layer.experts.every(X.reshape(-1, D)))
    torch.testing.assert_close(layer(X).reshape(-1, D), dense, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("competing", [False, True])
def test_experts_have_no_order(name, competing):
    seeded(3)
    layer = double(LAYERS[name](experts(), SoftmaxRouter(D, N), K))
    twin = copy.deepcopy(layer)
    order = torch.randperm(N)
    with torch.no_grad():
        twin.experts.inner.copy_(layer.experts.inner[order])
        twin.experts.outer.copy_(layer.experts.outer[order])
        twin.router.weight.copy_(layer.router.weight[:, :, order])
    X = torch.randn(T, D, dtype=torch.float64)
    for each in (layer, twin):
        each.competing, each.told = competing, True
    torch.testing.assert_close(twin(X), layer(X), rtol=0, atol=1e-12)
    torch.testing.assert_close(auxiliary_loss(twin), auxiliary_loss(layer))


@pytest.mark.parametrize("name", ["v2", "v1"])
def test_evaluation_does_not_compete(name):
    seeded(4)
    layer = LAYERS[name](experts(), SoftmaxRouter(D, N), K).eval()
    X = torch.randn(T, D)
    quiet = layer(X)
    layer.competing = True
    assert torch.equal(layer(X), quiet)
    with pytest.raises(ValueError, match="no forward pass in training"):
        auxiliary_loss(layer)


def test_one_expert_without_rows_and_no_rows_at_all():
    seeded(1)
    layer = SMoE(experts(), SoftmaxRouter(D, N), 1)
    with torch.no_grad():
        layer.router.weight.zero_()
        layer.router.weight[0, :, 2] = 1.0
    layer(torch.ones(3, D)).sum().backward()
    moved = layer.experts.inner.grad.abs().sum((1, 2)) > 0
    assert moved.tolist() == [False, False, True, False]
    assert layer(torch.ones(0, D)).shape == (0, D)


def test_autocast_and_state_dicts():
    seeded(8)
    layer = CompeteSMoE(experts(), SoftmaxRouter(D, N), K)
    X = torch.randn(T, D)
    plain = layer(X)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        low = layer(X)
        low.float().sum().backward()
    assert low.dtype == torch.bfloat16
    torch.testing.assert_close(low.float(), plain, rtol=0.1, atol=0.05)
    other = CompeteSMoE(experts(), SoftmaxRouter(D, N), K)
    other.load_state_dict(layer.state_dict())
    assert torch.equal(other(X), plain)


@pytest.mark.filterwarnings("ignore")  # the compiler's own
def test_compiled_layer_is_the_layer():
    seeded(8)
    layer = CompeteSMoE(experts(), SoftmaxRouter(D, N), K)
    X = torch.randn(T, D)
    assert torch.equal(torch.compile(layer, backend="eager")(X), layer(X))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_derivatives_are_those_of_the_dense_computation(dtype):
    """Backward twice and by `torch.func`; in single precision by products of groups."""
    seeded(6)
    layer = SMoE(MLPExperts(N, 8, 4, 8, "tanh", dtype=dtype), SoftmaxRouter(8, N, dtype=dtype), K)
    X, V = torch.randn(2, T, 8, dtype=dtype)

    def dense(rows):
        found = layer.decide(rows)
        weights = torch.zeros(T, N, dtype=dtype).scatter(1, found.chosen, found.weights)
        return torch.einsum("tn,ntd->td", weights, layer.experts.every(rows)).sin()

    def sparse(rows):
        return layer(rows).sin()

    first = torch.func.jacrev(dense)(X)
    torch.testing.assert_close(torch.func.jacrev(sparse)(X), first)
    torch.testing.assert_close(torch.autograd.functional.jacobian(sparse, X), first)
    second = torch.autograd.functional.hvp(lambda rows: dense(rows).sum(), X, V)[1]
    found = torch.autograd.functional.hvp(lambda rows: sparse(rows).sum(), X, V)[1]
    torch.testing.assert_close(found, second)
    blocks = torch.tensor([0, T])  # a gradient whose strides are zero
    MLPExperts(2, 8, 4, 8)(X.float().requires_grad_(), blocks).sum().backward()


def test_fixed_router_is_not_trained_and_stable_router_stops():
    seeded(9)
    fixed = SMoE(experts(), FixedRouter(D, N), K)
    fixed(torch.randn(T, D)).sum().backward()
    assert fixed.router.weight.grad is None
    stable = SMoE(experts(), StableRouter(D, N, first_stage=0.5), K)
    optimiser = torch.optim.Adam(stable.parameters(), lr=0.1)
    moved = []
    for step in range(4):
        before_step(stable, step, 4)
        was = stable.router.weight.detach().clone()
        optimiser.zero_grad()
        stable(torch.randn(T, D)).square().sum().backward()
        optimiser.step()
        moved.append(not torch.equal(was, stable.router.weight))
    assert moved == [True, True, False, False]


def test_hash_router_reads_tokens_alone():
    seeded(10)
    layer = SMoE(experts(), HashRouter(D, N, n_tokens=6, top_k=K), K)
    ids = torch.tensor([[0, 5], [5, 0]])
    decision = layer.decide(torch.randn(4, D), ids.reshape(-1))
    assert torch.equal(decision.chosen[0], decision.chosen[3])
    assert torch.equal(decision.weights, torch.full((4, K), 1 / K))
    assert layer(torch.randn(2, 2, D), ids).shape == (2, 2, D)
    with pytest.raises(ValueError, match="ids is missing"):
        layer(torch.randn(2, 2, D))


def test_schedule_says_who_competes():
    seeded(12)
    model = torch.nn.Sequential(
        CompeteSMoE(experts(), SoftmaxRouter(D, N), K), SMoE(experts(), SoftmaxRouter(D, N), K)
    )
    schedule = CompetitionSchedule(2, 50, rate=0.5, rng=0)
    for step in range(50):
        before_step(model, step, 50, schedule)
        assert [layer.competing for layer in model] == schedule.active[:, step].tolist()
    with pytest.raises(ValueError, match="2 layers and 49 steps"):
        before_step(model, 0, 49, schedule)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SMoE(experts(), SoftmaxRouter(D, N), 5), r"top_k must be in 1\.\.4"),
        (lambda: SMoE(experts(), SoftmaxRouter(D, N), 0), "top_k must be an integer >= 1"),
        (lambda: SMoE(experts(), SoftmaxRouter(D, 3), 2), "router must score 4 experts, got 3"),
        (lambda: SMoE(experts(), SoftmaxRouter(D, N), 2, balance=-1), "balance must be"),
        (lambda: CompeteSMoE(experts(), SoftmaxRouter(D, N), gamma=-1), "gamma must be"),
        (lambda: CompeteSMoE(experts(), SoftmaxRouter(D, N), response="exp"), "response must be"),
        (lambda: CompeteSMoEv1(experts(), SoftmaxRouter(D, N), alpha=-1), "alpha must be"),
        (lambda: MLPExperts(N, D, H, D, activation="step"), "activation must be one of"),
        (lambda: StableRouter(D, N, first_stage=2), "first_stage must be"),
        (
            lambda: SMoE(experts(), SoftmaxRouter(D, N))(torch.ones(3, 4)),
            r"x must be of floats and of shape \(..., 5\), got",
        ),
        (lambda: auxiliary_loss(torch.nn.Linear(1, 1)), "no SMoE layer"),
        (lambda: DenseBlock(3), "experts must be those of a layer, one of them, got 3"),
        (lambda: DenseBlock(experts()), "experts must be those of a layer, one of them"),
        (lambda: SMoE(D, N, shared=3), "shared must be a module or None, got 3"),
        (lambda: SMoE(D, N, router_dtype="f"), "router_dtype must be one of PyTorch's, got 'f'"),
        (lambda: MLPExperts(N, D, H, D, dtype="f"), "dtype must be one of PyTorch's, got 'f'"),
    ],
)
def test_bad_input_is_one_line(make, message):
    with pytest.raises(ValueError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)
