"""What experts are called: numbers from 1, or names.  Positions in arrays count from 0.

Names of parameters, tables, pictures and messages take the words for an expert from here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moestat.base.validate import is_mapping, is_sequence, listed, short
from moestat.base.warnings import warn_caller

__all__ = [
    "ExpertNames",
    "in_current_names",
    "numbers_from_0",
    "from_1",
    "replaced",
    "stored_name",
    "with_names",
]

_NUMBERED = re.compile(r"^([^[]*)\[(\d+)(?=[],])")
"""The name of a parameter up to the number of its expert, such as ``a[2,x]``."""

_NOT_IN_NAMES = re.compile(r"[][,;=\n]")
"""Signs that separate names in equations."""


@dataclass(frozen=True)
class ExpertNames:
    """The words for k experts, each by its position from 0."""

    count: int
    own: tuple[str, ...] | None = None  # names in place of numbers, one for each expert

    @property
    def keys(self) -> list[Any]:
        """What rows and columns of tables are labelled by: numbers from 1, or names."""
        return list(range(1, self.count + 1)) if self.own is None else list(self.own)

    @property
    def labels(self) -> list[str]:
        """What stands in names of parameters."""
        return list(map(str, self.keys))

    def called(self, *positions: int) -> str:
        """The experts at these positions, such as "experts 1 and 2", or their names."""
        words = [self.labels[i] for i in positions]
        together = " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
        if any(not word.isdigit() for word in words):
            return together
        return f"expert{'s' * (len(words) > 1)} {together}"

    def heading(self, position: int) -> str:
        """The expert at a position at the start of a line; names are written as they are."""
        words = self.called(position)
        return words if self.own and self.own[position] == words else words.capitalize()

    @property
    def each(self) -> list[str]:
        """Each expert by itself, such as "expert 1", or its name."""
        return [self.called(i) for i in range(self.count)]

    def in_words(self, text: str) -> str:
        """A sentence with the names in place of phrases such as "expert 1"."""
        if self.own is None:
            return text

        def words(match: re.Match[str]) -> str:
            numbers = [int(number) for number in re.findall(r"\d+", match[0])]
            known = all(1 <= number <= self.count for number in numbers)
            return self.called(*(number - 1 for number in numbers)) if known else match[0]

        return re.sub(r"\bexperts? \d+(?:(?:, | and )\d+)*", words, text)


def with_names(now: ExpertNames, names: object) -> ExpertNames:
    """The experts with other names, given by number or by present name, or for all in order."""
    example = '{1: "chronic", 2: "acute"}'
    if is_sequence(names):
        given = list(names)  # type: ignore[call-overload]
        if len(given) != now.count:
            raise ValueError(
                f"names must have a name for each of {now.count} experts, such as"
                f" {example}; got {short(names)}"
            )
        names = dict(zip(now.keys, given, strict=True))
    if not is_mapping(names):
        raise ValueError(
            f"names must be a table of experts and their names, such as {example};"
            f" got {short(names)}"
        )
    labels = now.labels
    for key, name in names.items():  # type: ignore[attr-defined]
        at = _position(now, key)
        if not isinstance(name, str) or not name.strip() or _NOT_IN_NAMES.search(name):
            raise ValueError(
                f"names: the name of expert {key} must be a word or words without brackets, commas,"
                f" semicolons and equality signs, got {short(name)}"
            )
        if name.strip().isdigit() and name.strip() != str(at + 1):
            raise ValueError(f"names: {name!r} is the number of an expert, and no name")
        labels[at] = name.strip()
    if len(set(labels)) < now.count:
        twice = next(name for name in labels if labels.count(name) > 1)
        raise ValueError(f"names: two experts would be called {twice!r}")
    numbers = labels == ExpertNames(now.count).labels
    return ExpertNames(now.count, None if numbers else tuple(labels))


def _position(now: ExpertNames, key: object) -> int:
    if isinstance(key, str) and key in now.labels:
        return now.labels.index(key)
    number = int(key) if isinstance(key, str) and key.isdigit() else key
    if isinstance(number, bool) or not hasattr(number, "__index__"):
        number = 0
    position = int(number) - 1  # type: ignore[call-overload]
    if not 0 <= position < now.count:
        names = "" if now.own is None else f", or {', '.join(now.own)}"
        raise ValueError(
            f"names: experts are numbered from 1 to {now.count}{names}; got {short(key)}"
        )
    return position


def in_current_names(text: str, names: Sequence[str], numbered: Sequence[str]) -> str:
    """Text with the present names of parameters in place of numbered ones, and of older ones.

    `names` and `numbered` are the present names and those with numbers, position by position.
    Until version 0.2 names counted experts from 0.  Text with a name of an expert 0 is read in that
    way throughout, with a warning.
    """
    if not isinstance(text, str):
        return text
    matches = [_NUMBERED.match(name) for name in numbered]
    # The numbers of a block that all experts share, if it has any, are those of inputs.
    shared = {match[1] for match in matches if match and match[2] == "0"}
    old = {
        f"{match[1]}[{int(match[2]) - 1}{match.string[match.end() :]}": position
        for position, match in enumerate(matches)
        if match and match[1] not in shared
    }
    zeros = {name for name in old if (match := _NUMBERED.match(name)) and match[2] == "0"}
    same = {name: name for name in names}  # an input may be called as another parameter is
    if zeros.intersection(_found([*zeros, *names, *numbered], text)):
        current = same | {name: names[position] for name, position in old.items()}
        new = listed([f"{current[name]!r} for {name!r}" for name in _found(old, text)])
        warn_caller(
            f"names of parameters count experts from 1: write {new}. Names that count from"
            " 0 will be refused in the next version",
            FutureWarning,
        )
        return replaced(text, current)
    if list(names) != list(numbered):
        return replaced(text, dict(zip(numbered, names, strict=True)) | same)
    return text


def from_1(name: str) -> str:
    """The name of a parameter in a stored record that counts experts from 0."""
    return _NUMBERED.sub(lambda match: f"{match[1]}[{int(match[2]) + 1}", name)


def stored_name(name: str) -> str:
    """The name of a parameter in rows of stores, which count experts from 0 in every version."""
    return _NUMBERED.sub(lambda match: f"{match[1]}[{int(match[2]) - 1}", name)


def _tight(name: str) -> str:
    return re.sub(r"\s*,\s*", ",", name)


def _found(names: Iterable[str], text: str) -> list[str]:
    """The names that occur in a text, in their order there."""
    known = {_tight(name): name for name in names}
    return list(dict.fromkeys(known[_tight(one)] for one in _pattern(known).findall(text)))


def _pattern(names: Iterable[str]) -> re.Pattern[str]:
    """Any of these names as a whole, with blanks around commas."""
    longest = sorted(names, key=len, reverse=True)
    words = "|".join(re.escape(name).replace(",", r"\s*,\s*") for name in longest)
    return re.compile(rf"(?<![\w.])(?:{words})(?![\w\[])")


def replaced(text: str, names: Mapping[str, str]) -> str:
    """Text with other names of parameters."""
    tight = {_tight(old): new for old, new in names.items()}
    return _pattern(names).sub(lambda match: tight[_tight(match[0])], text)


def numbers_from_0(what: str, numbers: Iterable[object]) -> bool:
    """Whether these numbers of experts count from 0, as until version 0.2; then a warning."""
    if not any(isinstance(number, int) and number == 0 for number in numbers):
        return False
    warn_caller(
        f"{what}: experts are numbered from 1: write 1 for the first expert, which was 0. Numbers"
        " that count from 0 will be refused in the next version",
        FutureWarning,
    )
    return True
