"""Identities: plain data written in one canonical way, digested into names and seeds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable


def canonical_json(value: object, indent: int | None = None) -> str:
    """`value` as JSON with sorted keys and exact floats: equal data give equal text.

    Floats must be finite; `indent` puts one entry on a line, for people and for diffs.

    Examples
    --------
    >>> canonical_json({"b": 0.1, "a": [1, None]})
    '{"a":[1,null],"b":0.1}'
    >>> print(canonical_json({"b": 0.1, "a": 1}, indent=1))
    {
     "a": 1,
     "b": 0.1
    }
    """
    if indent is None:
        return _LINE.encode(value)
    return json.dumps(value, sort_keys=True, indent=indent, allow_nan=False, ensure_ascii=False)


_LINE = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)


def digest(value: object) -> str:
    """SHA-256 of the canonical text of plain data, in hexadecimal.

    Examples
    --------
    >>> digest(["data", 1])[:12]
    'c418a9907650'
    """
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def seed_from(*identity: object) -> int:
    """A 128-bit seed that depends only on an identity, which is plain data.

    Examples
    --------
    >>> seed_from("data", 1) == seed_from("data", 1), seed_from("data", 1) == seed_from("data", 2)
    (True, False)
    """
    return int(digest(list(identity))[:32], 16)


def digests(*first: object) -> Callable[..., str]:
    """``digest([*first, *second])`` as a function of `second`; `first` is hashed once.

    Examples
    --------
    >>> digests("data", 1)(10, 0) == digest(["data", 1, 10, 0])
    True
    """
    hasher = hashlib.sha256(canonical_json(list(first)).encode()[:-1])

    def digest_of(*second: object) -> str:
        hasher_of_both = hasher.copy()
        hasher_of_both.update(b"," + canonical_json(list(second)).encode()[1:])
        return hasher_of_both.hexdigest()

    return digest_of


def seeds(*first: object) -> Callable[..., int]:
    """``seed_from(*first, *second)`` as a function of `second`; `first` is hashed once.

    Examples
    --------
    >>> seeds("data", 1)(10, 0) == seed_from("data", 1, 10, 0)
    True
    """
    digest_of = digests(*first)
    return lambda *second: int(digest_of(*second)[:32], 16)
