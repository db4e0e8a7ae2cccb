"""Ranks and PDEs of one gate and expert: ``python -m moestat.theory.identifiability GATE EXPERT``.

A name may carry options: ``activation:activation=relu,weighted=false``, ``ffn:hidden=1``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from moestat.theory.identifiability.conditions import CONDITIONS, check_condition
from moestat.theory.identifiability.dependencies import find_dependencies


def table(text: str) -> str | dict[str, object]:
    """``name:key=value,...`` as a name or a table of a gate or expert."""
    name, _, options_text = text.partition(":")
    if not options_text:
        return name
    options: dict[str, object] = {"name": name}
    for part in options_text.split(","):
        key, equals, value = part.partition("=")
        if not equals:
            raise ValueError(f"option {part!r} of {name!r} must be written key=value")
        words = {"true": True, "false": False}
        options[key] = words.get(value, int(value) if value.isdigit() else value)
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the PDEs of a pair, and with ``--conditions`` what the papers' conditions say."""
    parser = argparse.ArgumentParser(
        prog="python -m moestat.theory.identifiability", description=main.__doc__
    )
    parser.add_argument("gate", help="name of a gate, such as sigmoid-inner")
    parser.add_argument("expert", help="name of an expert, such as linear or ffn:hidden=1")
    parser.add_argument("--likelihood", default="least-squares", help="default: least-squares")
    parser.add_argument("--features", type=int, default=1, metavar="D", help="number of inputs")
    parser.add_argument("--classes", type=int, default=None, metavar="K")
    parser.add_argument(
        "--at", action="append", default=[], metavar="BLOCK", help="take derivatives at BLOCK = 0"
    )
    parser.add_argument(
        "--conditions", action="store_true", help="check the papers' conditions on the expert too"
    )
    given = parser.parse_args(arguments)
    try:
        dependencies = find_dependencies(
            table(given.gate),
            table(given.expert),
            given.likelihood,
            n_features=given.features,
            n_classes=given.classes,
            at=dict.fromkeys(given.at, 0),
        )
        print(dependencies.summary())
        for name in CONDITIONS if given.conditions else ():
            print()
            print(check_condition(name, table(given.expert), n_features=given.features).summary())
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
