"""The compact set of a sweep's fits: the box that they are maximised over, and doubts about it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from moestat.sweep.kinds.fit.spec import Curve, Spec

_LEAST = 1e-2
"""Part of the truth's smallest variance below which a lower bound is no use: an atom on it gains
2.3 units of log-likelihood, half the logarithm of 100, for each row that it describes alone, so
that a few rows outweigh a further atom."""


def box_of(spec: Spec, curve: Curve) -> str:
    """The box of a curve's fits in words, block by block, and whose it is.

    Blocks with bounds of their own for each coefficient have the widest of them.
    """
    family, named = spec.fitted_family(curve), spec.truths[curve.truth].bounds
    ends = [
        f"{block} in [{np.min(low):g}, {np.max(high):g}]"
        for block, (low, high) in family.box.items()
        if block in family.blocks
    ]
    by_spec = [block for block in named if block in family.blocks]
    whose = f"{', '.join(by_spec)} by the spec" if by_spec else "all by the family's default"
    return f"{', '.join(ends)} ({whose})"


def doubts_about_boxes(spec: Spec) -> Iterator[str]:
    """Sentences on variances without a useful lower bound; usually none.

    A likelihood with a scale has no bound where an atom shrinks onto a few rows, so that the
    maximum over a box that allows it says nothing about the truth.
    """
    for curve in spec.curves:
        if curve.n_experts <= spec.truths[curve.truth].family.n_experts:
            continue
        family, truth = spec.fitted_family(curve), spec.truths[curve.truth]
        for block in family.likelihood.scales:
            low = float(np.min(family.box[block][0]))
            smallest = float(np.min(truth.family.unpack(truth.theta)[block]))
            if low < _LEAST * smallest:
                yield (
                    f"curve {curve.name!r}: the lower bound {low:g} of {block} is far below the"
                    f" truth's {smallest:g}, so that the maximum may be a further atom on a few"
                    f" rows; name a bound such as bounds = {{ {block} = [{0.1 * smallest:.1g},"
                    f" {np.max(family.box[block][1]):g}] }} in truth {curve.truth!r}"
                )
