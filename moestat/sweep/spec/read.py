"""Reading specs: a TOML file, or its text, to the checked spec of its kind."""

from __future__ import annotations

import tomllib
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from pathlib import Path

from moestat.base.door import door
from moestat.base.validate import as_path, check_kind, one_of
from moestat.sweep.errors import SweepError
from moestat.sweep.spec.protocol import AnySpec
from moestat.sweep.spec.tables import Table, check_values


@door()
def load_spec(path: str | Path) -> AnySpec:
    """Read and check the spec in a TOML file.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    Spec
        The checked spec, of whatever kind.

    Raises
    ------
    SweepError
        If the file cannot be read or anything in it is wrong; the message names the file, the
        key, what was given and what is allowed.
    """
    path = as_path("path", path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not UTF-8 text"
        raise SweepError(f"cannot read the spec {path}: {reason}") from None
    try:
        spec = parse_spec(text)
        spec.check_machine()
    except SweepError as error:
        raise SweepError(f"{path}: {error}") from None
    return spec


@door()
def parse_spec(text: str) -> AnySpec:
    """Check the TOML text of a spec.

    Parameters
    ----------
    text : str
        TOML.

    Returns
    -------
    Spec
        The checked spec, of whatever kind.

    Raises
    ------
    SweepError
        If anything is wrong.
    """
    check_kind("text", text, str, "TOML text")
    return _parse(text)


@lru_cache(maxsize=8)
def _parse(text: str) -> AnySpec:
    spec = _read(text)
    check = import_module("moestat.sweep.kinds.kind").kind_of(spec.kind).check
    if check is not None:
        check(spec)
    return spec


OLDER_DEFAULT = 'estimate = "near-truth"\n'
"""What a spec of fits has to say to mean what it meant when all fits began near the truth."""


def stored_spec(text: str, canonical: str = "") -> AnySpec:
    """The spec with this TOML text, which was checked in full before.

    A text of a store means what it meant when the store was made: where the spec is not the
    store's, by its `canonical` form, it is read with the default of that time.
    """
    spec = _read(text)
    if canonical and spec.canonical != canonical:
        with suppress(SweepError):
            older = _read(OLDER_DEFAULT + text)
            if older.canonical == canonical:
                return older
    return spec


@lru_cache(maxsize=8)
def _read(text: str) -> AnySpec:
    try:
        values = tomllib.loads(text)
        check_values(values)
        top = Table(values, "")
    except RecursionError:
        raise SweepError("is nested too deeply") from None
    except SweepError:
        raise
    except ValueError as error:  # also of numbers with thousands of digits
        raise SweepError(f"is not valid TOML: {error}") from None
    # The kinds import this module, so that one is imported only when a spec asks for it.
    kinds = import_module("moestat.sweep.kinds.kind")
    kind = top.build("kind", one_of, "kind", top.text("kind", "fit"), kinds.KINDS)
    return kinds.kind_of(kind).parse(top, text)
