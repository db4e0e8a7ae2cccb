"""One full-batch step of Algorithm 1 of expert-count, against a plain PyTorch implementation.

    OPENBLAS_NUM_THREADS=1 python benchmarks/networks.py

n = 16,000, d = 50, J = 8, float32, one core, milliseconds of processor time.  A step draws the
noise, routes, computes loss and gradients and updates all weights.  The PyTorch implementation has
dense patches and one matrix product per expert for the samples that it gets; it is left out where
PyTorch is not installed.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from results import save

from moestat.networks import Network, NormalisedGradientDescent, PatchData, PatchLaw, Weights
from moestat.networks.expert_count.passes import Passes

CASES = [
    (expert, M, P) for expert in ("mlp", "cnn") for M, P in ((8, 4), (64, 4), (64, 8))
]  # fmt: skip
N_SAMPLES = 16_000
N_STEPS, REPEATS = 10, 3
ETA, ETA_R, SIGMA_0 = 0.001, 0.1, 0.001


def moestat_step(expert: str, data: PatchData, start: Weights) -> Callable[[int], float]:
    """A step of the compiled programmes, and its loss."""
    network = Network(expert, len(start.router))
    passes, rule = Passes(network, data, np.float32), NormalisedGradientDescent(ETA, ETA_R)
    weights = start.astype(np.float32)

    def step(t: int) -> float:
        passes.route(weights.router, (0, t))
        loss, gradient = passes.loss_and_gradient(weights)
        rule.step(weights, gradient, None)
        return loss

    return step


def torch_step(data: PatchData, start: Weights) -> Callable[[int], float] | None:
    """The same step with automatic derivatives; None without PyTorch."""
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(1)
    torch.manual_seed(0)
    x = torch.tensor(data.dense, dtype=torch.float32)
    y = torch.tensor(data.label, dtype=torch.float32)
    w = torch.tensor(start.experts, dtype=torch.float32, requires_grad=True)
    theta = torch.tensor(start.router, dtype=torch.float32, requires_grad=True)
    n, M = len(y), len(theta)

    def step(t: int) -> float:
        h = x.reshape(n, -1) @ theta.reshape(M, -1).T
        chosen = (h.detach() + torch.rand(n, M)).argmax(dim=1)
        gate = torch.softmax(h, dim=1)[torch.arange(n), chosen]
        parts, members = [], []
        for m in range(M):
            mine = (chosen == m).nonzero()[:, 0]
            z = torch.einsum("bjd,npd->njp" if w.shape[1] == 1 else "pjd,npd->njp", w[m], x[mine])
            parts.append((z**3).sum(dim=(1, 2)))
            members.append(mine)
        order = torch.cat(members)
        margin = y[order] * gate[order] * torch.cat(parts)
        loss = torch.nn.functional.softplus(-margin).mean()
        loss.backward()
        with torch.no_grad():
            norm = w.grad.flatten(1).norm(dim=1)
            w.sub_(ETA * w.grad / norm[:, None, None, None])
            theta.sub_(ETA_R * theta.grad)
            w.grad = theta.grad = None
        return loss.item()

    return step


def milliseconds(step: Callable[[int], float]) -> tuple[float, float]:
    """Least mean processor time of a step over some rounds, and the loss at the end."""
    loss, t = step(0), 1
    best = float("inf")
    for _ in range(REPEATS):
        began = time.process_time()
        for _ in range(N_STEPS):
            loss, t = step(t), t + 1
        best = min(best, (time.process_time() - began) / N_STEPS)
    return 1e3 * best, loss


def main() -> None:
    """Time every case and save the table."""
    rows = []
    for expert, M, P in CASES:
        data = PatchLaw(n_patches=P, scale=10.0).sample(N_SAMPLES, rng=0)
        start = Network(expert, M, sigma_0=SIGMA_0).initial(P, 50, rng=1)
        ours, loss = milliseconds(moestat_step(expert, data, start))
        row = {"experts": f"{expert}, M = {M}, P = {P}", "moestat": ours, "loss": loss}
        other = torch_step(data, start)
        if other is not None:
            row["PyTorch"], row["PyTorch loss"] = milliseconds(other)
        rows.append(row)
        print(row, flush=True)
    save("networks", rows)


if __name__ == "__main__":
    main()
