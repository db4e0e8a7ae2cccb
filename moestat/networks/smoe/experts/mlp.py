"""Experts with one hidden layer, with or without a gate on its units."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from moestat.base.door import door
from moestat.base.validate import real_in
from moestat.networks.smoe.experts.stacked import (
    Activation,
    Product,
    StackedExperts,
    activation_called,
    stacked_matrix,
)

__all__ = ["GatedExperts", "MLPExperts"]


class MLPExperts(StackedExperts):
    """``g_i(x) = phi(x A_i) B_i``.

    Parameters
    ----------
    n_experts, n_inputs, n_hidden, n_outputs : int
        N and the widths; A_i is (n_inputs, n_hidden), B_i (n_hidden, n_outputs).
    activation : str or callable, optional
        phi, a name in `moestat.networks.smoe.experts.stacked.HIDDEN_ACTIVATIONS` or a function;
        ``"gelu"`` by default.
    bias : bool
        Whether every product with a matrix has an intercept.
    dropout : float
        Probability with which a hidden unit is dropped in training.
    device, dtype
        Of the parameters, as `torch.nn.Linear` takes them.
    """

    _from_inputs: tuple[str, ...] = ("inner",)
    _usual = "gelu"

    @door()
    def __init__(
        self,
        n_experts: int,
        n_inputs: int,
        n_hidden: int,
        n_outputs: int,
        activation: str | Activation | None = None,
        bias: bool = False,
        dropout: float = 0.0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(n_experts, n_inputs, n_outputs)
        self.activation = activation_called(self._usual if activation is None else activation)
        self.dropout = nn.Dropout(real_in("dropout", dropout, 0.0, 1.0))
        factory = {"device": device, "dtype": dtype}
        shapes = dict.fromkeys(self._from_inputs, (n_inputs, n_hidden))
        shapes |= {"outer": (n_hidden, n_outputs)}
        for name, shape in shapes.items():
            setattr(self, name, stacked_matrix(n_experts, *shape, **factory))
        for name, shape in shapes.items():
            setattr(self, f"{name}_bias", self.biases(bias, *shape, **factory))

    def sizes(self) -> dict[str, int]:
        """See `StackedExperts.sizes`; n_hidden is the number of hidden units of an expert."""
        return super().sizes() | {"n_hidden": int(self.get_parameter("outer").shape[1])}

    def run(self, rows: Tensor, product: Product) -> Tensor:
        """See `StackedExperts.run`."""
        hidden = self.activation(product(rows, self.inner, self.inner_bias))
        return product(self.dropout(hidden), self.outer, self.outer_bias)


class GatedExperts(MLPExperts):
    """``g_i(x) = (phi(x A_i) * (x C_i)) B_i``, element by element (Shazeer (2020)).

    Parameters
    ----------
    n_experts, n_inputs, n_hidden, n_outputs : int
        N and the widths; A_i and C_i are (n_inputs, n_hidden), B_i (n_hidden, n_outputs).
    activation : str or callable, optional
        As `MLPExperts` takes it; ``"silu"`` by default.
    bias, dropout, device, dtype
        As `MLPExperts` takes them.
    """

    _from_inputs = ("inner", "gate")
    _usual = "silu"

    def run(self, rows: Tensor, product: Product) -> Tensor:
        """See `StackedExperts.run`."""
        hidden = self.activation(product(rows, self.inner, self.inner_bias))
        hidden = hidden * product(rows, self.gate, self.gate_bias)
        return product(self.dropout(hidden), self.outer, self.outer_bias)
