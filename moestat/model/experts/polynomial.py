"""Polynomial experts: ``mean = (alpha' x + beta)^p``.

Source: Yan et al. (2025), Sec. 4.1, the examples after Definition 1.
"""

from __future__ import annotations

from functools import cache

from moestat.base.validate import positive_int
from moestat.compiler.jit import device
from moestat.model.members import Channel, Expert, Symmetry, Units
from moestat.model.reference import apart


def typical(rng, n_experts, n_features, n_responses):
    """Polynomials with different roots and slopes; intercepts of one sign fix the signs."""
    return {
        "alpha": apart(rng, n_experts, (n_features,), -1.5, 1.5),
        "beta": apart(rng, n_experts, (), 0.5, 1.5),
    }


def polynomial(degree: int = 2) -> Expert:
    """The expert of one degree p, the same object for the same degree."""
    return _polynomial(positive_int("degree", degree))


@cache
def _polynomial(p: int) -> Expert:
    @device
    def block(eta, m, order, mean, d1, d2):
        """Powers of the one channel s: ``s^p``, ``p s^(p - 1)``, ``p (p - 1) s^(p - 2)``."""
        for b in range(m):
            mean[b] = eta[0, b] ** p
        if order > 0:
            for b in range(m):
                d1[0, b] = p * eta[0, b] ** (p - 1)
        if order > 1:
            for b in range(m):
                d2[0, b] = p * (p - 1) * eta[0, b] ** (p - 2) if p > 1 else 0.0

    def reference(blocks, X):
        """Means (k, n) at X (n, d)."""
        return (blocks["alpha"] @ X.T + blocks["beta"][:, None]) ** p

    return Expert(
        name="polynomial",
        channels=lambda n_features, n_responses: (Channel("beta", "alpha"),),
        block=block,
        reference=reference,
        typical=typical,
        bounds={"alpha": (-30.0, 30.0), "beta": (-30.0, 30.0)},
        source="Yan et al. (2025), Sec. 4.1",
        units=Units(
            shift_response=p == 1,
            level="beta" if p == 1 else None,
            powers={"beta": 1.0 / p},
        ),
        symmetry=Symmetry(
            flips=() if p % 2 else ("alpha", "beta"),
            linear_in=("alpha", "beta") if p == 1 else (),
        ),
        options={"degree": p},
        configure=polynomial,
    )


EXPERT = polynomial()
