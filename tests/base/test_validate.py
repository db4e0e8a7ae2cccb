"""What a public function reads: nothing is dropped in silence, and loops see one signature."""

from __future__ import annotations

from datetime import datetime
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

import moestat
from moestat.base.validate import as_design, as_floats, as_weights, real_in
from moestat.kernels.cpu import mixture

FAMILY = moestat.family("gaussian", gate="softmax", n_experts=2, n_features=2)
THETA = np.linspace(-1.0, 1.0, FAMILY.n_params)
X = np.arange(12.0).reshape(6, 2) / 12.0
Y = np.linspace(-1.0, 1.0, 6)

REFUSED = {
    "None": (lambda v: None, "is missing: it must be an array, got None"),
    "a word": (lambda v: "word", "must hold numbers|must have shape"),
    "words": (lambda v: v.astype(str), "must hold numbers, got an array of dtype <U"),
    "words among numbers": (lambda v: np.array([*v.flat, "2"], dtype=object), "must hold numbers"),
    "a date": (lambda v: datetime(2020, 1, 1), "must hold numbers|must have shape"),
    "dates": (lambda v: v.astype("M8[s]"), r"holds dates or times \(datetime64"),
    "durations": (lambda v: v.astype("m8[s]"), r"holds dates or times \(timedelta64"),
    "complex": (lambda v: v + 0j, "must be real, got complex128: Complex data not supported"),
    "masked": (
        lambda v: np.ma.array(v, mask=np.arange(v.size).reshape(v.shape) == 2),
        "has 1 masked entries",
    ),
    "sparse": (lambda v: sparse.csr_array(np.atleast_2d(v)), r"sparse matrix.*toarray\(\)"),
    "ragged": (lambda v: [[1.0, 2.0], [1.0]], r"must be an array, got \[\[1.0, 2.0\], \[1.0\]\]"),
    "too large": (lambda v: [10**400], "must hold numbers"),
    "records": (lambda v: np.zeros(3, dtype=[("a", float)]), "must hold numbers"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_real_numbers_is_refused_by_name(case):
    spoil, message = REFUSED[case]
    for name, read in {
        "X": lambda: FAMILY.log_density(THETA, spoil(X), Y),
        "y": lambda: FAMILY.log_density(THETA, X, spoil(Y)),
        "theta": lambda: FAMILY.log_density(spoil(THETA), X, Y),
    }.items():
        with pytest.raises(ValueError, match=f"^{name} .*({message})"):
            read()
    if case != "None":
        with pytest.raises(ValueError, match=r"^sample_weight "):
            as_weights(spoil(np.ones(6)), 6)


@pytest.mark.parametrize("case", ["None", "complex", "masked", "dates", "sparse"])
def test_classes_are_refused_in_the_same_words(case):
    spoil, message = REFUSED[case]
    family = moestat.family("multinomial", gate="softmax", n_features=2)
    with pytest.raises(ValueError, match=f"^y .*{message}"):
        family.log_density(np.zeros(family.n_params), X, spoil(np.array([1, 2, 1, 2, 1, 2])))


FORMS = {
    "list": lambda v: v.tolist(),
    "objects": lambda v: v.astype(object),
    "fractions": lambda v: np.vectorize(Fraction, otypes=[object])(v),
    "mask without entries": lambda v: np.ma.array(v, mask=False),
    "columns first": np.asfortranarray,
    "strided": lambda v: np.repeat(v, 2, axis=0)[::2],
    "backwards": lambda v: v[::-1].copy()[::-1],
    "other byte order": lambda v: v.astype(v.dtype.newbyteorder()),
    "read-only": lambda v: _read_only(v),
    "read-only columns first": lambda v: _read_only(np.asfortranarray(v)),
}


def _read_only(v):
    copy = v.copy(order="K")
    copy.flags.writeable = False
    return copy


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_the_same_numbers_has_one_signature(form):
    change = FORMS[form]
    expected = FAMILY.log_density(THETA, X, Y)
    before = list(mixture.signatures)
    given = change(THETA), change(X), change(Y)
    assert np.array_equal(FAMILY.log_density(*given), expected)
    assert mixture.signatures == before
    assert np.array_equal(FAMILY.log_density(*given), expected)  # what was given is as it was


@pytest.mark.parametrize("form", FORMS)
def test_one_input_has_the_same_signature(form):
    for given in (X[:, 0], X[:, :1]):
        design = as_design(FORMS[form](given))
        assert design.shape == (1, 6)
        assert design.dtype == np.float64
        assert design.flags.carray
        assert np.array_equal(design[0], X[:, 0])


def test_numbers_keep_their_values():
    assert np.array_equal(as_floats("v", np.array([True, False]), (2,)), [1.0, 0.0])
    assert np.array_equal(as_floats("v", np.float16([0.5, 2.0]), (None,)), [0.5, 2.0])
    assert as_floats("v", X, (6, 2)) is X
    with pytest.raises(ValueError, match=r"v must be a number in \[0, 1\], got 10{50,}\.\.\.$"):
        real_in("v", 10**400, 0.0, 1.0)
