"""Names of parameters in the words of the data: columns and classes in place of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from moestat.estimation.data import Data
from moestat.model.family import Family

__all__ = ["parameter_names"]


def parameter_names(family: Family, data: Data | None) -> list[str]:
    """One name per packed parameter (P,), e.g. ``a[0,versicolor,width]`` for ``a[0,1,0]``.

    The first number is the atom.  Inputs and classes without names keep their numbers, from 0.

    Examples
    --------
    >>> import numpy as np
    >>> from moestat import family
    >>> data = Data(np.empty((0, 1)), np.empty(0), np.empty(0), ("age",), "cost")
    >>> parameter_names(family("gaussian", gate="softmax", n_experts=1), data)
    ['beta0[0]', 'beta1[0,age]', 'b[0]', 'a[0,age]', 'log nu[0]']
    """
    names = family.param_names
    if data is None:
        return names
    inputs = data.features or tuple(map(str, range(family.n_features)))
    classes = list(map(str, range(family.n_classes)))
    if data.classes is not None and data.classes.dtype.kind in "US":
        classes = data.classes.tolist()
    words = _words(family, inputs, classes)
    for name, positions in family.blocks.items():
        for where, position in np.ndenumerate(positions):
            if not where:
                continue
            shown = [str(where[0])]
            for axis, number in enumerate(where[1:], start=1):
                table = words.get((name, axis))
                shown.append(table[number] if table else str(number))
            head = names[int(position)].partition("[")[0]
            names[int(position)] = f"{head}[{','.join(shown)}]"
    return names


def _words(family: Family, inputs: Any, classes: Any) -> dict[tuple[str, int], list[str]]:
    """What the numbers along an axis of a block stand for."""
    words: dict[tuple[str, int], list[str]] = {}
    rows, columns = np.triu_indices(family.n_features)
    products = [f"{inputs[f]}*{inputs[g]}" for f, g in zip(rows, columns, strict=True)]
    first = family.first_expert_channel
    for c, channel in enumerate(family.channels):
        last = 1 if channel.component is None else 2
        if channel.axis is not None:
            words[channel.intercept, 1] = list(inputs)
        elif channel.component is not None and c >= first and family.likelihood.support is not None:
            for name in filter(None, (channel.intercept, channel.slope)):
                words[name, 1] = list(classes)
        if channel.slope is not None:
            words[channel.slope, last] = list(inputs)
        if channel.products is not None:
            words[channel.products, last] = products
    return words
