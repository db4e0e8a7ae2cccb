"""Identities: plain data written in one canonical way, digested into names and seeds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any


def canonical_json(value: Any, indent: int | None = None) -> str:
    """`value` as JSON with sorted keys and exact floats: equal data give equal text.

    Parameters
    ----------
    value : dict, list, str, int, float, bool or None
        Plain data; floats must be finite.
    indent : int, optional
        One entry per line, for people and for diffs.

    Returns
    -------
    str
        The text.

    Raises
    ------
    ValueError
        If a float is NaN or infinite.

    Examples
    --------
    >>> canonical_json({"b": 0.1, "a": [1, None]})
    '{"a":[1,null],"b":0.1}'
    """
    if indent is None:
        return _LINE.encode(value)
    return json.dumps(value, sort_keys=True, indent=indent, allow_nan=False, ensure_ascii=False)


_LINE = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)


def digest(value: Any) -> str:
    """SHA-256 of the canonical text of plain data, in hexadecimal.

    Parameters
    ----------
    value : dict, list, str, int, float, bool or None
        Plain data.

    Returns
    -------
    str
        64 hexadecimal digits.

    Examples
    --------
    >>> digest(["data", 1])[:12]
    'c418a9907650'
    """
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def seed_from(*identity: Any) -> int:
    """A 128-bit seed that depends on an identity and on nothing else.

    Parameters
    ----------
    *identity : plain data
        What the random numbers are for.

    Returns
    -------
    int
        Seed for `numpy.random.default_rng`.

    Examples
    --------
    >>> seed_from("data", 1) == seed_from("data", 1), seed_from("data", 1) == seed_from("data", 2)
    (True, False)
    """
    return int(digest(list(identity))[:32], 16)


def digests(*first: Any) -> Callable[..., str]:
    """``digest([*first, *rest])`` as a function of the rest; what comes first is read once.

    Examples
    --------
    >>> digests("data", 1)(10, 0) == digest(["data", 1, 10, 0])
    True
    """
    begun = hashlib.sha256(canonical_json(list(first)).encode()[:-1])

    def of(*rest: Any) -> str:
        whole = begun.copy()
        whole.update(b"," + canonical_json(list(rest)).encode()[1:])
        return whole.hexdigest()

    return of


def seeds(*first: Any) -> Callable[..., int]:
    """``seed_from(*first, *rest)`` as a function of the rest; what comes first is read once.

    Examples
    --------
    >>> seeds("data", 1)(10, 0) == seed_from("data", 1, 10, 0)
    True
    """
    of = digests(*first)
    return lambda *rest: int(of(*rest)[:32], 16)
