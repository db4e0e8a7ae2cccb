"""What routers share."""

from __future__ import annotations

from torch import Tensor, nn

from moestat.base.validate import positive_int

__all__ = ["Router"]


class Router(nn.Module):
    """Scores of N experts for a row; the softmax of the K largest are the weights of its experts.

    Parameters
    ----------
    n_experts : int
        N.
    """

    ranks_all = True
    """Whether the experts that are not chosen are ranked, too."""

    chooses_rows = False
    """Whether experts choose rows, and not rows experts."""

    def __init__(self, n_experts: int) -> None:
        super().__init__()
        self.n_experts = positive_int("n_experts", n_experts)

    def extra_repr(self) -> str:
        """The number of experts, for the representation of a model."""
        return f"n_experts={self.n_experts}"

    def forward(self, rows: Tensor, ids: Tensor | None = None) -> Tensor:
        """Scores (T, N) of rows (T, d); `ids` (T,) are the tokens that the rows come from."""
        raise NotImplementedError

    def select(self, scores: Tensor, top_k: int, shift: int = 0) -> tuple[Tensor, Tensor]:
        """Scores (T, K) and experts (T, K) of those that answer, of scores (T, N).

        The K best, or the K that follow the `shift` best.
        """
        values, chosen = scores.topk(top_k + shift, dim=-1)
        return values[:, shift:], chosen[:, shift:]

    def before_step(self, step: int, n_steps: int) -> None:
        """Told before step `step` of `n_steps`, from 0; most routers do nothing."""
