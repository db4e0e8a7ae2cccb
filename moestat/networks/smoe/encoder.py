"""An encoder layer of PyTorch's with experts in the place of its feed-forward block."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from moestat.base.door import door
from moestat.base.validate import positive_int
from moestat.networks.smoe.layer import SMoE

__all__ = ["SMoEEncoderLayer"]


class SMoEEncoderLayer(nn.TransformerEncoderLayer):
    """`torch.nn.TransformerEncoderLayer` whose feed-forward block is a layer of experts.

    In evaluation PyTorch's layer takes a fast path that reads the weights of its own two linear
    maps, and would leave the experts out in silence; here these maps are gone, and so is that path.

    Parameters
    ----------
    d_model, nhead : int
        As `torch.nn.TransformerEncoderLayer` takes them.
    experts : SMoE
        The layer of experts, from d_model to d_model.
    **options
        The other arguments of `torch.nn.TransformerEncoderLayer`.

    Raises
    ------
    ValueError
        If the experts have other widths.

    Examples
    --------
    >>> import torch
    >>> layer = SMoEEncoderLayer(16, 2, SMoE(16, 4, hidden=8), batch_first=True).eval()
    >>> encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    >>> tuple(encoder(torch.zeros(3, 5, 16)).shape)
    (3, 5, 16)
    """

    @door()
    def __init__(self, d_model: int, nhead: int, experts: SMoE, **options: Any) -> None:
        if positive_int("d_model", d_model) % positive_int("nhead", nhead):
            raise ValueError(f"nhead must divide d_model = {d_model}, got {nhead}")
        widths = experts.experts.n_inputs, experts.experts.n_outputs
        if widths != (d_model, d_model):
            raise ValueError(f"experts must have widths {(d_model, d_model)}, got {widths}")
        super().__init__(d_model, nhead, **options)
        del self.linear1, self.linear2
        self.activation_relu_or_gelu = 0  # the fast path asks for this first
        self.experts = experts

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout2(self.experts(x))
