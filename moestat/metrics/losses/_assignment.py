"""The cheapest assignment of rows to columns."""

from __future__ import annotations

from moestat.base.types import FloatArray, IntArray


def linear_sum_assignment(cost: FloatArray) -> tuple[IntArray, IntArray]:
    """Rows and columns of the assignment with the smallest sum (Crouse 2016, in SciPy).

    Examples
    --------
    >>> import numpy as np
    >>> linear_sum_assignment(np.array([[1.0, 2.0], [0.0, 3.0]]))[1].tolist()
    [1, 0]
    """
    from scipy.optimize import linear_sum_assignment as assigned  # half a second to import

    return assigned(cost)
