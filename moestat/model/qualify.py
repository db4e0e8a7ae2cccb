"""Names of blocks, qualified by their axis where a gate and an expert use the same one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from moestat.base.validate import is_mapping, is_sequence
from moestat.model.members import Channel, Expert, Gate

__all__ = ["qualified", "renamed", "with_names"]

_OTHER_WORDS = frozenset({"name", "source", "options", "free"})
_Member = TypeVar("_Member", Gate, Expert)


def qualified(gate: Gate, expert: Expert) -> tuple[Gate, Expert]:
    """The two members, with blocks ``gate_b`` and ``expert_b`` where both have a block ``b``."""
    clash = gate.bounds.keys() & expert.bounds.keys()
    if not clash:
        return gate, expert
    return (
        renamed(gate, {name: f"gate_{name}" for name in clash}),
        renamed(expert, {name: f"expert_{name}" for name in clash}),
    )


def renamed(member: _Member, names: Mapping[str, str]) -> _Member:
    """A gate or expert with other names of blocks, which its functions read."""
    make: Callable[..., tuple[Channel, ...]] = member.channels
    plain = {names.get(name, name): name for name in member.bounds}

    def reference(blocks: Mapping[str, object], *others: object) -> Any:
        return member.reference({plain[name]: block for name, block in blocks.items()}, *others)

    def channels(*sizes: object) -> tuple[Channel, ...]:
        return tuple(with_names(channel, names) for channel in make(*sizes))

    def typical(*sizes: object) -> Any:
        return with_names(member.typical(*sizes), names)

    qualified = with_names(member, names)
    return replace(qualified, channels=channels, reference=reference, typical=typical)


def with_names(value: object, names: Mapping[str, str]) -> Any:
    """`value` with other names of blocks, wherever it holds one."""
    if isinstance(value, str):
        return names.get(value, value)
    if is_sequence(value):
        return tuple(with_names(part, names) for part in value)
    if is_mapping(value):
        return {with_names(key, names): part for key, part in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        values = {f.name: getattr(value, f.name) for f in fields(value)}
        return replace(
            value,
            **{
                name: with_names(part, names)
                for name, part in values.items()
                if name not in _OTHER_WORDS
            },
        )
    return value
