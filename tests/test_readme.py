"""The README's Python runs and prints what the README says; its spec is a valid one.

``python -m tests.test_readme`` writes the printed outputs anew.
"""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

import moestat
from moestat.sweep.spec.read import parse_spec

PATH = Path(__file__).parent.parent / "README.md"
README = PATH.read_text()
EXAMPLE = re.compile(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", flags=re.DOTALL)


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip("\n").splitlines()]


def run(names: dict, source: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(source, "README.md", "exec"), names)
    return out.getvalue()


def test_examples_print_what_is_written():
    names: dict = {}
    written = EXAMPLE.findall(README)
    assert len(written) >= 3
    for source, output in written:
        printed = run(names, source)
        if output:
            # Rounding of the last digit depends on the processor.
            for here, there in zip(lines(printed), lines(output), strict=True):
                if "Gain left" not in here:
                    assert here == there


def test_a_newcomer_reads_at_most_150_lines():
    assert len(README.splitlines()) <= 150


def test_spec_example_is_valid():
    (block,) = re.findall(r"```toml\n(.*?)```", README, flags=re.DOTALL)
    spec = parse_spec(block)
    assert [curve.name for curve in spec.curves] == ["k = 3"]


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (PATH.parent / target).exists(), target


def test_every_public_name_resolves_and_is_documented():
    for name in moestat.__all__:
        if name == "MoEClassifier":
            pytest.importorskip("sklearn")
        assert getattr(moestat, name).__doc__
    with pytest.raises(AttributeError, match="no attribute 'no_such'"):
        moestat.no_such  # noqa: B018


def main() -> None:
    """Write the printed outputs anew."""
    names: dict = {}

    def renewed(match: re.Match[str]) -> str:
        printed = "\n".join(lines(run(names, match[1])))
        head = f"```python\n{match[1]}```"
        return head if match[2] is None else f"{head}\n\n```text\n{printed}\n```"

    PATH.write_text(EXAMPLE.sub(renewed, README))


if __name__ == "__main__":
    main()
