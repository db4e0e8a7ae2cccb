"""Packed plain data, their columns, and checksums of rows."""

import random

import numpy as np
import pytest

from moestat.sweep.store.checksums import checksum, checksums
from moestat.sweep.store.shapes import Shape, pack

VALUE = {
    "sizes": [1, -128, 127, 128, 40_000, 2**40, -(2**63)],
    "loss": 1.0 / 3.0,
    "none": None,
    "texts": ["a", 'naïve, "quoted"\n'],
    "nested": [{"a": [0.0, -0.0, 1e-308]}, {}, [], True],
}


def test_plain_data_come_back_with_their_types():
    text, numbers = pack(VALUE)
    found = Shape(text).unpack(numbers)
    assert repr(found) == repr(VALUE)


def test_cells_that_differ_in_numbers_share_a_shape():
    assert pack({"a": [0.5, 3]})[0] == pack({"a": [-7e200, 99]})[0]
    assert pack({"a": [0.5, 3]})[0] != pack({"a": [0.5, 300]})[0]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2**63, -(2**63) - 1])
def test_numbers_that_cannot_be_stored_are_refused(value):
    with pytest.raises(ValueError, match="must"):
        pack([value])


def test_other_things_are_refused():
    with pytest.raises(TypeError, match="not plain data"):
        pack([b"bytes"])


def test_columns():
    values = [{"a": [i, 0.5 * i], "b": {"c": -1.0 * i, "d": None}} for i in range(5)]
    packed = [pack(value) for value in values]
    shape = Shape(packed[0][0])
    numbers = np.frombuffer(b"".join(each for _, each in packed), shape.dtype)
    np.testing.assert_array_equal(shape.column(numbers, "a", 1), 0.5 * np.arange(5))
    np.testing.assert_array_equal(shape.column(numbers, "b", "c"), -1.0 * np.arange(5))
    assert np.isnan(shape.column(numbers, "b", "d")).all()
    assert np.isnan(shape.column(numbers, "b", "e")).all()
    assert (shape.has("b", "d"), shape.has("b", "e")) == (True, False)
    assert (list(shape.entries("a")), shape.entries("b")) == ([0, 1], ["c", "d"])


def test_checksums_by_their_definition():
    import hashlib

    row = random.Random(0).randbytes(36)
    words = [int.from_bytes(row[i : i + 4], "little") for i in range(0, 36, 4)]
    stream = hashlib.shake_256(b"checksums").digest(8 * 10)
    keys = [int.from_bytes(stream[i : i + 8], "little") | 1 for i in range(0, 80, 8)]
    expected = keys[0] * 36 + sum(k * w for k, w in zip(keys[1:], words, strict=True))
    assert checksum(row) == expected % 2**64


def test_every_changed_bit_and_every_swap_of_words_changes_the_checksum():
    row = random.Random(1).randbytes(40)
    changed = [
        row[: bit // 8] + bytes([row[bit // 8] ^ 1 << bit % 8]) + row[bit // 8 + 1 :]
        for bit in range(8 * len(row))
    ]
    swapped = [row[4:8] + row[:4] + row[8:], row[:36] + row[36:][::-1]]
    assert checksum(row) not in set(checksums(changed + swapped).tolist())
    assert checksum(bytes(8)) != checksum(bytes(12))
