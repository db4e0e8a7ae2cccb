"""One layer of experts, forward and backward: sorted dispatch against a loop over experts.

    python -m benchmarks.smoe

1,024 tokens, d = 64, N = 8, K = 2, one thread.  The loop is what a first implementation does: for
every expert a mask of its tokens, a product, and a weighted sum.  Numbers are the least processor
time of several rounds, in milliseconds; the two run in turn, so that they see the same machine.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch
from torch import Tensor

from moestat.networks.smoe.compete import CompeteSMoE
from moestat.networks.smoe.experts import MLPExperts
from moestat.networks.smoe.layer import SMoE, auxiliary_loss
from moestat.networks.smoe.routers import SoftmaxRouter

TOKENS, WIDTH, EXPERTS, TOP_K = 1024, 64, 8, 2


class Naive(SMoE):
    """The same layer as a loop over experts with masks."""

    def _combine(self, rows: Tensor, decision) -> Tensor:
        out = torch.zeros_like(rows)
        experts = self.experts
        for i in range(experts.n_experts):
            for k in range(self.top_k):
                mask = decision.chosen[:, k] == i
                if mask.any():
                    hidden = experts.activation(rows[mask] @ experts.inner[i])
                    out[mask] += decision.weights[mask, k, None] * (hidden @ experts.outer[i])
        return out


def step(layer: SMoE, rows: Tensor) -> Callable[[], None]:
    """A forward and a backward pass."""

    def run() -> None:
        layer.zero_grad(set_to_none=True)
        out = layer(rows)
        (out.square().mean() + auxiliary_loss(layer)).backward()

    return run


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--hidden", type=int, nargs="+", default=[64, 128, 256])
    given = parser.parse_args()
    torch.set_num_threads(1)
    for hidden in given.hidden:
        torch.manual_seed(0)
        rows = torch.randn(TOKENS, WIDTH)
        experts = MLPExperts(EXPERTS, WIDTH, hidden, WIDTH)
        router = SoftmaxRouter(WIDTH, EXPERTS)
        layers = {
            "sorted": SMoE(experts, router, TOP_K, balance=0.01),
            "naive loop": Naive(experts, router, TOP_K, balance=0.01),
            "competing step": CompeteSMoE(experts, router, TOP_K, balance=0.01),
        }
        layers["competing step"].competing = True
        torch.testing.assert_close(layers["sorted"](rows), layers["naive loop"](rows))
        steps = {name: step(layer, rows) for name, layer in layers.items()}
        best = dict.fromkeys(steps, float("inf"))
        for _ in range(given.rounds):
            for name, run in steps.items():
                began = time.process_time()
                for _ in range(5):
                    run()
                best[name] = min(best[name], (time.process_time() - began) / 5)
        shown = ", ".join(f"{name} {1e3 * seconds:.2f} ms" for name, seconds in best.items())
        ratio = best["naive loop"] / best["sorted"]
        print(f"hidden {hidden}: {shown}; the loop takes {ratio:.2f} times as long")


if __name__ == "__main__":
    main()
