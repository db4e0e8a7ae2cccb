"""One layer of experts, forward and backward: moestat's dispatch against four others.

    python -m benchmarks.smoe

d = 64, K = 2, float32, one thread.  Contenders: the loop of most libraries (for every expert, the
rows that chose it, and an addition in place), a loop over masks, rows sorted and split in ten
lines, and `torch._grouped_mm`.  They run in turn, each round in another order, and are compared by
the median of the ratios of their processor times in a round.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor

from moestat.networks.smoe import MLPExperts, SMoE, SoftmaxRouter, auxiliary_loss
from moestat.networks.smoe.layer import Decision

WIDTH, TOP_K = 64, 2


def one_expert(experts: MLPExperts, i: int, rows: Tensor) -> Tensor:
    """What one expert answers."""
    return experts.activation(rows @ experts.inner[i]) @ experts.outer[i]


class UsualLoop(SMoE):
    """For every expert the rows that chose it; answers are added in place."""

    def _combine(self, rows: Tensor, decision: Decision) -> Tensor:
        out = torch.zeros_like(rows)
        for i in range(self.experts.n_experts):
            row, choice = torch.where(decision.chosen == i)
            answer = one_expert(self.experts, i, rows[row])
            out.index_add_(0, row, answer * decision.weights[row, choice, None])
        return out


class Masks(SMoE):
    """For every expert and choice a mask of its rows."""

    def _combine(self, rows: Tensor, decision: Decision) -> Tensor:
        out = torch.zeros_like(rows)
        for i in range(self.experts.n_experts):
            for k in range(self.top_k):
                mask = decision.chosen[:, k] == i
                answer = one_expert(self.experts, i, rows[mask])
                out[mask] += decision.weights[mask, k, None] * answer
        return out


class SortAndSplit(SMoE):
    """Rows sorted by expert, split, answered and added up."""

    def _combine(self, rows: Tensor, decision: Decision) -> Tensor:
        flat = decision.chosen.flatten()
        order = flat.argsort(stable=True)
        counts = torch.bincount(flat, minlength=self.experts.n_experts).tolist()
        row = order // self.top_k
        inner, outer = self.experts.inner.unbind(0), self.experts.outer.unbind(0)
        parts = zip(rows[row].split(counts), inner, outer, strict=True)
        answers = torch.cat([self.experts.activation(x @ a) @ b for x, a, b in parts])
        answers = answers * decision.weights.flatten()[order, None]
        return torch.zeros_like(rows).index_add(0, row, answers)


class Grouped(SMoE):
    """The products of all experts in one call of PyTorch's."""

    def _combine(self, rows: Tensor, decision: Decision) -> Tensor:
        flat = decision.chosen.flatten()
        order = flat.argsort(stable=True)
        ends = torch.bincount(flat, minlength=self.experts.n_experts).cumsum(0).int()
        row = order // self.top_k
        hidden = self.experts.activation(torch._grouped_mm(rows[row], self.experts.inner, ends))
        answers = torch._grouped_mm(hidden, self.experts.outer, ends)
        answers = answers * decision.weights.flatten()[order, None]
        return torch.zeros_like(rows).index_add(0, row, answers)


CONTENDERS: dict[str, type[SMoE]] = {
    "moestat": SMoE,
    "usual loop": UsualLoop,
    "masks": Masks,
    "sort and split": SortAndSplit,
    "grouped_mm": Grouped,
}


def step(layer: SMoE, rows: Tensor) -> Callable[[], None]:
    """A forward and a backward pass."""

    def run() -> None:
        layer.zero_grad(set_to_none=True)
        out = layer(rows)
        (out.square().mean() + auxiliary_loss(layer)).backward()

    return run


def compared(tokens: int, hidden: int, n_experts: int, rounds: int) -> dict[str, list[float]]:
    """Processor seconds of each contender in each round."""
    torch.manual_seed(0)
    rows = torch.randn(tokens, WIDTH, requires_grad=True)
    parts = MLPExperts(n_experts, WIDTH, hidden, WIDTH), SoftmaxRouter(WIDTH, n_experts)
    layers = {name: kind(*parts, TOP_K, balance=0.01) for name, kind in CONTENDERS.items()}
    for layer in layers.values():
        torch.testing.assert_close(layer(rows), layers["moestat"](rows), rtol=1e-4, atol=1e-5)
        auxiliary_loss(layer)
    steps = {name: step(layer, rows) for name, layer in layers.items()}
    repeats = max(1, 8192 // tokens)
    found: dict[str, list[float]] = {name: [] for name in steps}
    turn = random.Random(0)
    for _ in range(rounds):
        for name in turn.sample(list(steps), len(steps)):
            began = time.process_time()
            for _ in range(repeats):
                steps[name]()
            found[name].append((time.process_time() - began) / repeats)
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--tokens", type=int, nargs="+", default=[1024, 8192])
    parser.add_argument("--hidden", type=int, nargs="+", default=[64, 128, 256])
    parser.add_argument("--experts", type=int, nargs="+", default=[8, 16])
    given = parser.parse_args()
    torch.set_num_threads(1)
    print("| tokens | hidden | experts | ms |", " | ".join(f"{n} / own" for n in CONTENDERS), "|")
    print("|---" * (4 + len(CONTENDERS)) + "|")
    for tokens in given.tokens:
        for hidden in given.hidden:
            for n_experts in given.experts:
                found = compared(tokens, hidden, n_experts, given.rounds)
                own = found["moestat"]
                ratios = [
                    statistics.median(a / b for a, b in zip(times, own, strict=True))
                    for times in found.values()
                ]
                best = f"{1e3 * min(own):.1f}"
                shown = [tokens, hidden, n_experts, best, *(f"{ratio:.2f}" for ratio in ratios)]
                print("|", " | ".join(map(str, shown)), "|", flush=True)


if __name__ == "__main__":
    main()
