"""Competition: the experts' own responses decide, ``pi_i(x) ~ m_i exp(kappa(g_i(x)))``.

g_i is the mean of expert i and kappa the activation of its response; softplus by default, where
``exp(kappa(g)) = 1 + e^g``.  The masses m_i are 1 as the paper's gate has them, or ``1 / k`` (the
same density, but a normalised mixing measure), or ``exp(c_i)`` with a free c_i, which the paper's
loss speaks of but its gate does not have.

Top-K competition lets the atoms tied with the K-th largest response take part, too.  ReLU experts
whose responses are all 0 are tied, so this happens on sets of positive measure; any choice among
tied atoms would make the density depend on their order, and not on the mixing measure alone.

Source: Nguyen et al. (2025), eq. (3) and App. C.3, eqs. (10) and (11); Pham et al. (2024), eq. (6).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from moestat.base.validate import positive_int
from moestat.compiler.jit import device
from moestat.model.activations import REFERENCES
from moestat.model.activations import activation as activation_named
from moestat.model.members import Channel, Gate, Units
from moestat.model.reference import apart


@cache
def _block(activation: str) -> Callable[..., None]:
    kappa = activation_named(activation)

    @device
    def block(eta, phi, m, order, a, da, d2a):
        """Log-score ``a = c + kappa(g)``; channels are (c, g), or (g) where masses are fixed."""
        g = eta.shape[0] - 1
        for b in range(m):
            f, f1, f2 = kappa(eta[g, b])
            a[b] = f
        if g == 1:
            for b in range(m):
                a[b] += eta[0, b]
        if order > 0:
            for b in range(m):
                f, f1, f2 = kappa(eta[g, b])
                da[0, b] = 1.0
                da[g, b] = f1
        if order > 1:
            for b in range(m):
                f, f1, f2 = kappa(eta[g, b])
                d2a[0, b] = 0.0
                d2a[g, b] = 0.0
                d2a[g * (g + 1) // 2 + g, b] = f2

    return block


def _reference(activation: str) -> Callable[..., Any]:
    def reference(blocks, X, means):
        """Log-scores (k, n) from the experts' means (k, n)."""
        scores = REFERENCES[activation](means)
        return scores + blocks["c"][:, None] if "c" in blocks else scores

    return reference


# The weights are functions of the response itself, whatever its unit.
_UNITS = Units(shift_response=False, scale_response=False)
_UNIT: dict[str, Any] = {
    "channels": lambda n_features: (),
    "mass": None,
    "translations": (),
    "bounds": {},
    "reads_response": True,
    "typical": lambda rng, n_experts, n_features: {},
}
_FREE: dict[str, Any] = {
    "channels": lambda n_features: (Channel("c"),),
    "mass": "c",
    "translations": ("c",),
    "bounds": {"c": (-10.0, 10.0)},
    "reads_response": True,
    "typical": lambda rng, n_experts, n_features: {"c": apart(rng, n_experts, (), -0.5, 0.5)},
}


def _competition(name: str, parts: dict[str, Any], activation: str = "softplus") -> Gate:
    return Gate(
        name=name,
        block=_block(activation),
        reference=_reference(activation),
        source="Nguyen et al. (2025), eq. (3)",
        units=_UNITS,
        options={"activation": activation},
        configure=partial(_competition, name, parts),
        **parts,
    )


def _top(active: int = 1, activation: str = "norm") -> Gate:
    return Gate(
        name="competition-top",
        block=_block(activation),
        reference=_reference(activation),
        source="Pham et al. (2024), eq. (6)",
        units=_UNITS,
        n_active=positive_int("active", active),
        options={"active": active, "activation": activation},
        configure=_top,
        **_UNIT,
    )


UNIT = _competition("competition", _UNIT)
NORMALISED = _competition(
    "competition-normalised", {**_UNIT, "fixed_mass": lambda n_experts: 1.0 / n_experts}
)
FREE = _competition("competition-free", _FREE)
TOP = _top()
