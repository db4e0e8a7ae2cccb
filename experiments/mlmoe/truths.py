"""Choose a well-conditioned, identified truth for each gate of Pham et al. (2026), by a fixed rule.

The rule: two experts, three classes, one input uniform on [-3, 3].  Draw 3000 candidates with
seed 0: gate slopes (positions, for the Euclidean gate) and expert slopes uniform on {-3, .., 3}
in steps of 1/2, without 0 among the gate's, all intercepts uniform on {-2, .., 2} in steps of
1/2, log-masses on {-1, .., 1}, temperature on {0.5, 1, 2}.  Keep those without a null direction
(beyond the gate's own scaling, for which the temperature is held) and with every expert's slopes
non-zero; take the one with the smallest trace of the inverse expected information, that is the
smallest total variance of the identified parameters at any large n.

Run ``python -m experiments.mlmoe.truths``; the truths it prints are in the specs.
"""

from __future__ import annotations

import numpy as np

import moestat

DESIGN = moestat.Uniform(-3.0, 3.0)
CANDIDATES = 3000


def draw(family, rng):
    """One candidate."""

    def grid(low, high, shape, zero=True):
        values = np.arange(low, high + 0.25, 0.5)
        return rng.choice(values if zero else values[values != 0], size=shape)

    theta = np.empty(family.n_params)
    for name, positions in family.blocks.items():
        if name == "tau":
            theta[positions] = rng.choice([0.5, 1.0, 2.0])
        elif name in ("alpha", "beta1"):
            theta[positions] = grid(-3, 3, positions.shape, zero=False)
        elif name == "a":
            theta[positions] = grid(-3, 3, positions.shape)
        elif name == family.gate.mass:
            theta[positions] = grid(-1, 1, positions.shape)
        else:
            theta[positions] = grid(-2, 2, positions.shape)
    return family.pin(theta)


def total_variance(family, theta):
    """Trace of the inverse information over identified parameters; inf with a null direction."""
    lower, upper = family.box_at(theta)
    free = np.flatnonzero(lower < upper)
    information = moestat.expected_information(family, theta, DESIGN, n_nodes=40)
    values = np.linalg.eigvalsh(information[np.ix_(free, free)])
    vanishing = np.any(np.all(family.unpack(theta)["a"] == 0, axis=(1, 2)))
    if values[0] <= 1e-9 * values[-1] or vanishing:
        return np.inf
    return float(np.sum(1.0 / values))


def main():
    """Print the best candidate of every gate."""
    for gate in ("softmax", "sigmoid", "sigmoid-inner", "sigmoid-euclidean"):
        family = moestat.family("multinomial", gate=gate, n_experts=2, n_classes=3)
        rng = np.random.default_rng(0)
        candidates = [draw(family, rng) for _ in range(CANDIDATES)]
        scores = [total_variance(family, theta) for theta in candidates]
        best = candidates[int(np.argmin(scores))]
        spectrum = moestat.information_spectrum(family, best, DESIGN)
        print(f"# {gate}: total standard error {np.sqrt(min(scores)):.1f} / sqrt(n)", end="; ")
        print(f"{sum(np.isfinite(scores))} of {CANDIDATES} candidates identified", end="; ")
        print(f"null directions: {[str(d) for d in spectrum.null_directions]}")
        for name, block in family.unpack(best).items():
            print(f"{name} = {np.round(block, 6).tolist()}")
        print()


if __name__ == "__main__":
    main()
