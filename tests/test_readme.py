"""The README's Python runs and prints what the README says; its spec is a valid one.

``python -m tests.test_readme`` writes the printed outputs anew.
"""

from __future__ import annotations

import contextlib
import io
import re
import tomllib
from pathlib import Path

import pytest

import moestat
from moestat.sweep.spec.read import parse_spec

PATH = Path(__file__).parent.parent / "README.md"
README = PATH.read_text()
EXAMPLE = re.compile(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", flags=re.DOTALL)


NUMBER = re.compile(r"[-+\N{MINUS SIGN}]?\b(\d[\d.,]*(e[-+]?\d+)?|nan|inf)\b")


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip("\n").splitlines()]


def pattern(text: str) -> list[str]:
    """Lines with a sign in place of each number: its digits depend on the processor."""
    return [" ".join(NUMBER.sub("#", line).split()) for line in text.splitlines()]


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
                assert here == there


def test_ci_runs_what_the_readme_says_before_it_installs_more():
    ci = (PATH.parent / ".ci" / "run").read_text()
    first = re.findall(r"```sh\n(.*?)\n```", README, flags=re.DOTALL)[0]
    steps = [first, "README.md docs/start.md", '-e ".[docs]"', "sphinx -W", '-e ".[dev]"']
    assert sorted(steps, key=ci.index) == steps


def test_metadata_of_the_package_is_complete():
    project = tomllib.loads((PATH.parent / "pyproject.toml").read_text())["project"]
    assert {"Homepage", "Documentation", "Source", "Issues", "Changelog"} <= set(project["urls"])
    named = {re.split(r"[\[<>=,; ]", each)[0] for each in project["dependencies"]}
    source = "\n".join(path.read_text() for path in (PATH.parent / "moestat").rglob("*.py"))
    modules = {name: name for name in named} | {"markdown-it-py": "markdown_it"}
    imported = {
        name
        for name in named
        if re.search(rf"(import|from|import_module\(.) ?{modules[name]}\b", source)
    }
    assert named == imported
    assert "pandas" in named
    for name in ("CHANGELOG.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "CITATION.cff"):
        assert (PATH.parent / name).exists()
    assert re.search(r"date-released: \d{4}-\d\d-\d\d", (PATH.parent / "CITATION.cff").read_text())


def test_a_newcomer_reads_at_most_150_lines_and_1000_words():
    assert len(README.splitlines()) <= 150
    assert len(README.split()) <= 1000


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_four_lines_make_a_layer(page):
    """In a block of another kind, ``py``, because the first installation has no PyTorch."""
    torch = pytest.importorskip("torch")
    (block,) = re.findall(r"```py\n(.*?)```", (PATH.parent / page).read_text(), flags=re.DOTALL)
    assert len([line for line in block.splitlines() if line]) == 4
    names: dict = {}
    assert run(names, block) == ""
    assert names["output"].shape == (32, 64)
    assert torch.isfinite(names["output"]).all()


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
    with pytest.raises(AttributeError, match="no_such"):
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
