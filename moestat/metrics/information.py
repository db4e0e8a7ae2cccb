"""Fisher information at a truth: conditioning, and directions without information."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike

from moestat.base.door import door
from moestat.base.types import Encoded, FloatArray
from moestat.base.validate import as_floats, real_in
from moestat.compiler.jit import compact, compile_loop
from moestat.kernels.build import call_mixture, mixture_address
from moestat.kernels.records import NO_SUMS, Data, Sums, numbers_of
from moestat.kernels.regression import residual_loop
from moestat.kernels.views import part, row
from moestat.metrics.quadrature import known_responses, log_densities, response_rules
from moestat.model.constraints import tied_basis
from moestat.model.designs import Design, design_of, nodes_per_input
from moestat.model.family import Family, check_family
from moestat.model.generate import check_noise

_REFINEMENT = 2  # of the rule over a continuous response


@dataclass(frozen=True)
class NullDirection:
    """A direction along which the density, or regression function, is constant to first order."""

    components: dict[str, float]
    """Parameter name -> component, scaled so that the direction's own parameter moves by 1;
    components below 1e-6 are left out."""

    def __str__(self) -> str:
        return ", ".join(f"{value:+.3g} {name}" for name, value in self.components.items())


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues of the expected information per sample, and its null directions.

    Parameters
    ----------
    eigenvalues : ndarray of shape (F,)
        Eigenvalues for the F parameters that are not fixed, ascending; equal coefficients are one
        parameter.
    null_directions : tuple of NullDirection
        A basis of the directions whose scores vanish; each direction contains a parameter that the
        others do not contain.
    gap : float
        Smallest singular value of the scores that counts as positive, divided by the largest one
        that counts as zero.  A large gap means that the null directions are clear.  It is inf
        without null directions.
    """

    eigenvalues: FloatArray
    null_directions: tuple[NullDirection, ...]
    gap: float

    @property
    def identified(self) -> FloatArray:
        """Eigenvalues of the identified directions, ascending."""
        return self.eigenvalues[len(self.null_directions) :]

    @property
    def condition(self) -> float:
        """Largest over smallest eigenvalue of the identified directions."""
        return float(self.identified[-1] / self.identified[0])

    def sample_size(self, standard_error: float) -> float:
        """The n at which every identified direction has at most this standard error.

        For smaller n the asymptotic theory does not apply to the direction with least information.
        """
        target = real_in("standard_error", standard_error, 0.0, open_low=True)
        return float(1.0 / (self.identified[0] * target**2))


def _nodes(
    family: Family, theta: ArrayLike, design: Design | None, n_nodes: int, noise: float | None
) -> tuple[FloatArray, float | None, FloatArray, FloatArray]:
    """Parameters (P,) and noise, checked, and nodes (d, n) of the inputs with masses (n,)."""
    vector = as_floats("theta", theta, (family.n_params,))
    variance = check_noise(family, noise)
    if variance is not None:
        real_in("noise", variance, 0.0, open_low=True)
    size = nodes_per_input(n_nodes, family.n_features)
    return vector, variance, *design_of(design).quadrature(family.n_features, size)


def _weighted_scores(
    family: Family, theta: ArrayLike, design: Design | None, n_nodes: int, noise: float | None
) -> Iterator[FloatArray]:
    """Rows (rows, P), chunk by chunk, whose products sum to the information.

    They are the scores at nodes over x and y times the root of their weight; for a regression
    function the gradients at nodes over x, over the standard deviation of the errors too.
    """
    vector, variance, nodes, mass = _nodes(family, theta, design, n_nodes, noise)
    if variance is not None:
        yield gradient_rows(family, vector, nodes, np.sqrt(mass / variance))
        return
    for inputs, y, weight in _weighted_nodes(family, vector, nodes, mass):
        yield score_rows(family, vector, np.ascontiguousarray(inputs.T), y, np.sqrt(weight))


def _weighted_nodes(
    family: Family, theta: FloatArray, nodes: FloatArray, mass: FloatArray
) -> Iterator[tuple[FloatArray, Encoded, FloatArray]]:
    """Nodes over inputs (d, m) and responses (m,) with their probabilities (m,), by chunks."""
    for chunk, rule in response_rules([(family, theta)], nodes, _REFINEMENT):
        x = np.ascontiguousarray(nodes[:, chunk])
        density = np.exp(log_densities(family, theta, x, rule))
        weight = (density * rule.weight * mass[chunk][rule.owner, None]).ravel()
        if not abs(weight.sum() - mass[chunk].sum()) < 0.01 * mass[chunk].sum():
            raise ValueError("theta: a density there is beyond the range of float64")
        used = np.flatnonzero(weight > 0.0)
        inputs = np.repeat(x[:, rule.owner], rule.y.shape[1], axis=1)[:, used]
        yield np.ascontiguousarray(inputs), known_responses(family, rule)[used], weight[used]


def score_products(
    family: Family, theta: FloatArray, X: FloatArray, y: Encoded, weight: FloatArray
) -> FloatArray:
    """Weighted sum (P, P) of the outer products of the scores of samples X (d, n), in one pass."""
    matrices = np.empty((2, family.n_params, family.n_params))
    data, sums = Data(X, y, weight, np.empty((0, 0))), Sums(np.empty(family.n_params), *matrices)
    family.loops.log_likelihood(theta, family.coefficients, data, 3, sums)
    return matrices[1]


def score_rows(
    family: Family, theta: FloatArray, inputs: FloatArray, y: Encoded, factor: FloatArray
) -> FloatArray:
    """Score of each sample times its factor, shape (n, P); inputs are (n, d)."""
    rows, none = np.empty((len(inputs), family.n_params)), NO_SUMS.information
    if not len(inputs):
        return rows
    columns = np.ascontiguousarray(inputs)[:, :, None]
    y, factor = np.ascontiguousarray(y), np.ascontiguousarray(factor)
    one = Data(columns[0], y[:1], factor[:1], none)
    _score_loop(
        mixture_address(),
        family.loops.inputs(family.coefficients, one, 1),
        (columns, numbers_of(y), factor, none),
        np.ascontiguousarray(theta),
        rows,
    )
    return rows


@compile_loop
@compact
def _score_loop(address, first_inputs, samples, theta, rows):
    """Write the score of each sample (n, P)."""
    code, coefficients, first, by_sample, terms = first_inputs
    columns, y, factor, none = samples
    w = first[1].size
    for t in range(factor.size):
        one = Data(row(columns, t), part(y, w * t, w * (t + 1)), part(factor, t, t + 1), none)
        sums = Sums(row(rows, t), none, none)
        inputs = code, coefficients, one, by_sample, terms
        call_mixture(address, (inputs, theta, 1, sums))


def gradient_rows(
    family: Family, theta: FloatArray, X: FloatArray, factor: FloatArray
) -> FloatArray:
    """Gradient of a regression function at each node times its factor, shape (n, P)."""
    n = factor.size
    columns = np.empty((family.n_params, n))
    every = np.arange(family.n_params)
    f, unused = np.empty(n), np.empty((family.n_experts, 0))
    theta, X = np.ascontiguousarray(theta), np.ascontiguousarray(X)
    at = family.loops.regression, family.channel_places, theta, every
    residual_loop(*at, X, factor, 0, 1, f, unused, columns)
    return columns.T


@np.errstate(over="ignore", invalid="ignore")  # what is not finite is refused
@door()
def expected_information(
    family: Family,
    theta: ArrayLike,
    design: Design | None = None,
    n_nodes: int = 100,
    *,
    noise: float | None = None,
) -> FloatArray:
    """Expected Fisher information of one sample.

    Parameters
    ----------
    family : Family
        The model.
    theta : array_like of shape (P,)
        Packed parameters at which it is taken, and which generate the data.
    design : Design, optional
        Distribution of X; uniform on [0, 1]^d by default.
    n_nodes : int
        Quadrature nodes per input.
    noise : float, optional
        Variance of the errors, in squared units of y: needed for a regression function, and for
        nothing else.

    Returns
    -------
    ndarray of shape (P, P)
        ``E_X sum_y p(y | X) score score'``, in natural-log units per sample, pinned coordinates
        included; the packed parameter of a variance is its logarithm.  For a regression function
        f with normal errors it is ``E_X grad f grad f' / noise``.

    Raises
    ------
    ValueError
        If theta has another length or holds NaN, `n_nodes` < 1, or `noise` is missing, not
        positive, or given to a family with a density.

    Notes
    -----
    The sum over classes is exact; over a continuous response it is a quadrature with the rule of
    `moestat.metrics.quadrature.response_rules`.  The mean over X is the design's own rule.  A top-K
    gate has a score at almost every x, and the expectation is that of its outer product; where the
    active set changes the density jumps in theta, and the information is no bound there.

    Examples
    --------
    >>> from moestat import family
    >>> F = family("multinomial", gate="softmax", n_experts=1, n_classes=2)
    >>> expected_information(F, [0, 0, 0, 0]).round(4).diagonal().tolist()
    [0.0, 0.0, 0.25, 0.0833]

    A normal response with variance 1/4: intercept, slope and the logarithm of the variance.

    >>> F = family("gaussian", gate="competition", n_experts=1)
    >>> theta = F.pack({"b": [1], "a": [2], "nu": [0.25]})
    >>> expected_information(F, theta).round(4).diagonal().tolist()
    [4.0, 1.3333, 0.5]
    """
    check_family("family", family)
    vector, variance, nodes, mass = _nodes(family, theta, design, n_nodes, noise)
    if variance is not None:
        rows = gradient_rows(family, vector, nodes, np.sqrt(mass / variance))
        parts = [rows.T @ rows]
    else:
        chunks = _weighted_nodes(family, vector, nodes, mass)
        parts = [score_products(family, vector, *chunk) for chunk in chunks]
    total = np.sum(parts, axis=0)
    if not np.isfinite(total).all():
        raise ValueError("theta: the information there is beyond the range of float64")
    return total


@np.errstate(over="ignore", invalid="ignore")
@door()
def information_spectrum(
    family: Family,
    theta: ArrayLike,
    design: Design | None = None,
    *,
    tolerance: float = 1e-12,
    n_nodes: int = 100,
    noise: float | None = None,
) -> Spectrum:
    """Compute the information about each direction at a truth, and the directions without any.

    Parameters that are known to be undetermined (translations) are fixed first, so a null direction
    that remains belongs to this truth, or to a scaling of the gate.  The function computes singular
    values of the scores, not eigenvalues of their products, and therefore resolves eigenvalues down
    to 1e-30 of the largest.

    Parameters
    ----------
    family, theta, design, n_nodes, noise
        As in `expected_information`.
    tolerance : float
        Singular values below this share of the largest count as null.

    Returns
    -------
    Spectrum
        Eigenvalues, named null directions, condition.

    Raises
    ------
    ValueError
        As `expected_information`.

    Examples
    --------
    With one expert the density does not depend on the gate.

    >>> from moestat import family
    >>> F = family("multinomial", gate="sigmoid", n_experts=1, n_classes=2)
    >>> spectrum = information_spectrum(F, [0, 1, 1, 0, 0])
    >>> [str(direction) for direction in spectrum.null_directions]
    ['+1 beta[1]', '+1 alpha[1,0]']
    """
    check_family("family", family)
    share = real_in("tolerance", tolerance, 0.0, 1.0, open_low=True)
    basis = free_basis(family)
    scores = np.empty((0, basis.shape[1]))
    for rows in _weighted_scores(family, theta, design, n_nodes, noise):
        # The triangular factor has the singular values of all rows so far.
        scores = np.linalg.qr(np.concatenate([scores, rows @ basis]), mode="r")
    if not np.isfinite(scores).all():
        raise ValueError("theta: the information there is beyond the range of float64")
    _, singular, vectors = np.linalg.svd(scores, full_matrices=False)
    if not singular.any():
        raise ValueError("theta: the information there is zero")
    null = singular < share * singular[0]
    gap = np.inf
    if null.any():
        largest = max(float(singular[null][0]), np.finfo(float).tiny)
        gap = float(singular[~null][-1] / largest)
    names = family.param_names
    directions = (
        NullDirection({names[j]: float(v) for j, v in enumerate(column) if abs(v) > 1e-6})
        for column in (basis @ named_basis(vectors[null].T)).T
    )
    return Spectrum(singular[::-1] ** 2, tuple(directions), gap)


def free_basis(family: Family) -> FloatArray:
    """Directions (P, F) of the free parameters, of which equal coefficients are one."""
    basis = (tied_basis(family.n_params, family.ties) != 0.0).astype(np.float64)
    return basis[:, (family.lower < family.upper) @ basis > 0.0]


def named_basis(space: FloatArray) -> FloatArray:
    """A basis (F, q) of the columns' span in which each vector has a parameter of its own."""
    count = space.shape[1]
    if count == 0:
        return space
    # If two parameters have equal rows, the later one is chosen, whatever rounding does.
    later = 1.0 + 1e-9 * np.arange(space.shape[0])
    pivots: Any = scipy.linalg.qr(space.T * later, mode="r", pivoting=True)
    positions = np.sort(pivots[1][:count])
    return space @ np.linalg.inv(space[positions])
