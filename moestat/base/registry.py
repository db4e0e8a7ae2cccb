"""Registries: the one list of members on each axis of a model."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from inspect import Parameter, signature
from typing import Any, Generic, Protocol, TypeVar, cast

from moestat.base.validate import first_meant, short, unknown
from moestat.base.warnings import PluginWarning, warn_caller


class _Named(Protocol):
    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=_Named)
R = TypeVar("R")


_PLAIN: dict[str, Callable[[object], bool]] = {
    "str": lambda value: isinstance(value, str),
    "bool": lambda value: isinstance(value, bool),
    "tuple": lambda value: isinstance(value, tuple),
    "Callable": callable,
}
"""Types of fields of members that are checked, by the beginning of their annotations."""


class Registry(Mapping[str, T], Generic[T]):
    """Named members of one axis, in the order of registration; those of plug-ins come last.

    Parameters
    ----------
    kind : str
        What the members are, as error messages call them ("gate", "loss").
    group : str, optional
        The entry points by which installed packages offer members, "moestat.gates" and so on.  They
        are loaded when a name is asked for that is not here, or all names are.
    aliases : mapping, optional
        Name in other packages, in lower case with hyphens -> name of the same member here.  Spaces,
        underscores and capitals are read as these; a member's own name comes first.

    Examples
    --------
    >>> from moestat.model.gates import GATES
    >>> GATES["softmax"].name, "hard" in GATES
    ('softmax', False)
    """

    def __init__(
        self,
        kind: str,
        group: str | None = None,
        placeholder: type | None = None,
        aliases: Mapping[str, str] | None = None,
    ) -> None:
        self.kind = kind
        self.placeholder = placeholder
        self.aliases = dict(aliases or {})
        self._members: dict[str, T] = {}
        self._unread = group

    def _read_plugins(self) -> None:
        """Register the members of installed packages, once; one that fails gives a warning."""
        group, self._unread = self._unread, None
        if group is None:
            return
        from importlib.metadata import entry_points

        for offered in entry_points(group=group):
            try:
                member = offered.load()
                if self._members.get(member.name) is not member:
                    self.register(member)
            except Exception as error:
                why = f"{type(error).__name__}: {error}"
                warn_caller(
                    f"{group}: the plug-in {offered.name} = {offered.value} is left out: {why}",
                    PluginWarning,
                )

    @property
    def member_type(self) -> type:
        """The type of the members, which is that of the first."""
        return type(next(iter(self._members.values())))

    def register(self, member: T) -> T:
        """Add `member` under its own name, unless that is taken, and hand it back.

        A member has the type of the others, and its fields have theirs.
        """
        self._check(member)
        if member.name in self._members:
            raise ValueError(f"{self.kind} {member.name!r} is registered already")
        self._members[member.name] = member
        return member

    def _check(self, member: T) -> None:
        """Raise unless the member is of the type of the others, with fields of their types."""
        if not isinstance(getattr(member, "name", None), str) or not member.name:
            raise ValueError(f"register: a {self.kind} needs a name, a word; got {short(member)}")
        # Members that are only named until they are read may be of any type.
        kinds = {type(each) for each in self._members.values()}
        if len(kinds) != 1 or self.placeholder in kinds or not is_dataclass(self.member_type):
            return
        if not isinstance(member, self.member_type):
            raise ValueError(
                f"register: a {self.kind} must be a {self.member_type.__name__}, got"
                f" {short(member)}"
            )
        for each in fields(self.member_type):
            value, kind = getattr(member, each.name), str(each.type)
            check = next((c for start, c in _PLAIN.items() if kind.split("[")[0] == start), None)
            if check is not None and "|" not in kind.split("]")[-1] and not check(value):
                raise ValueError(
                    f"register: {each.name} of the {self.kind} {member.name!r} must be of the type"
                    f" {kind}, got {short(value)}"
                )

    def __getitem__(self, name: str) -> T:
        try:
            if name not in self._members:
                self._read_plugins()
            return self._members[name if name in self._members else self._named_here(name)]
        except (KeyError, TypeError):
            raise UnknownNameError(unknown(self.kind, name, self, self.aliases)) from None

    def _named_here(self, name: Any) -> Any:
        """The name of a member that another package calls `name`; `name` if there is none."""
        if not self.aliases or not isinstance(name, str):
            return name
        written = re.sub(r"[ _-]+", "-", name.strip().lower())
        return self.aliases.get(written, written)

    def __iter__(self) -> Iterator[str]:
        self._read_plugins()
        return iter(self._members)

    def __len__(self) -> int:
        self._read_plugins()
        return len(self._members)


class UnknownNameError(KeyError, ValueError):
    """A name that no registry knows."""

    def __str__(self) -> str:
        return str(self.args[0])


def _call(kind: str, name: str, make: Callable[..., R] | None, options: Mapping[str, object]) -> R:
    """``make(**options)``, or one clear error about options that it does not take, or needs."""
    parameters: dict[str, Parameter] = {} if make is None else {**signature(make).parameters}
    parameters.pop("name", None)
    whatever = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    others = [] if whatever else sorted(map(str, {*options} - {*parameters}))
    needed = [key for key, each in parameters.items() if each.default is each.empty]
    missing = [] if whatever or others else [key for key in needed if key not in options]
    what = f"does not take these options: {_listed(others or sorted(map(str, options)))}"
    what = f"needs {_listed(missing)}" if missing else what
    refusal = f"{kind} {name!r} {what}; it takes {_listed([*parameters])}"
    refusal += first_meant(others, parameters)
    if make is None or others or missing:
        raise ValueError(refusal)
    try:
        return make(**options)
    except TypeError:
        raise ValueError(refusal) from None


def _listed(keys: list[str]) -> str:
    return ", ".join(key if len(key) <= 80 else f"{key[:77]}..." for key in keys) or "none"


@dataclass(frozen=True)
class Maker:
    """A class under the name that specs call it by."""

    name: str
    make: Callable[..., Any]


def make_member(registry: Registry[Maker], name: str, options: Mapping[str, object]) -> Any:
    """An object of the class called `name`, with its options; a ValueError if either is unknown."""
    return _call(registry.kind, name, registry[name].make, dict(options))


class _Configurable(_Named, Protocol):
    @property
    def options(self) -> Mapping[str, Any]: ...

    @property
    def configure(self) -> Callable[..., Any] | None: ...


C = TypeVar("C", bound=_Configurable)


def configured(registry: Registry[C], given: str | Mapping[str, object] | C) -> C:
    """A member by its name, or a variant of it by a table with ``name`` and options, or as it is.

    A ValueError says which name or option is unknown, missing or out of range.
    """
    if isinstance(given, registry.member_type):
        return cast(C, given)
    if not isinstance(given, (str, Mapping)):
        raise ValueError(
            f"{registry.kind} must be a name or a table with a name, got {short(given)}"
        )
    table: dict[str, Any] = {"name": given} if isinstance(given, str) else dict(given)
    if "name" not in table:
        raise ValueError(f"{registry.kind}: the table needs a name; known: {', '.join(registry)}")
    member = registry[table.pop("name")]
    if not table:
        return member
    return _call(registry.kind, member.name, member.configure, table)


def table_of(member: _Configurable) -> str | dict[str, Any]:
    """The name or the table that makes `member`, the inverse of `configured`."""
    return {"name": member.name, **member.options} if member.options else member.name
