"""Words that readers stumble over, and what to write instead.

The list holds words and turns that had to be read twice by people whose first language is not
English, each with its replacement.  It is applied to the prose of the README, of the pages under
docs and of the notebooks, to the docstrings of everything public, and to messages: every text of
several words in the sources that is not a docstring, as warnings, errors and the command's help
are.  Code, formulas and names are left out.

``python -m tests.test_words`` prints what is found, by file.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

WORDS = {
    r"\blaws?\b": "distribution",
    r"\bchances?\b": "probability",
    r"\b(?:has|have|is|are) no errors?\b": "no standard error",
    r"(?<!standard )\berrors? (?:is|are|then) too small": "standard errors are too small",
    r"\berrors of their own": "standard errors",
    r"\bthe real one\b": "say which one",
    r"\bis (?:not )?said[;.]|\bis not shown[;.]": "the summary reports, or does not prove",
    r"\bspeaks? (?:of|about|for)\b": "is about, or is evidence for",
    r"\bspoken of\b": "mentioned",
    r"\bwithout end\b": "diverges",
    r"\b(?:runs?|ran) away\b": "diverges",
    r"\bhangs? on\b": "depends on",
    r"\bwhat one learns\b": "what you learn",
    r"\bto be had\b": "available",
    r"\bmakes? of\b": "concludes from",
    r"\bcome to the best\b": "reached the best",
    r"\bby themselves alone\b": "alone",
    r"\bdear\b": "expensive",
    r"\b(?:same|one's|highest|best) heights?\b": "log-likelihood value",
    r"\bask(?:s)? for no more\b": "do not need more",
    r"\b(?:hold|holds) less than\b": "cover less than",
    r"\bnext to no\b": "almost no",
    r"\bnothing (?:but|else than)\b": "only",
    r"\bput (?:it )?otherwise\b": "in other words",
    r"\bwhoever\b": "anyone who",
    r"\bthe more or the less\b": "more or less",
    r"\btells? apart\b": "distinguish",
    r"\btold apart\b": "distinguished",
    r"\bheretofore\b|\bthereof\b|\bthereby\b": "plain words",
    r"\blies? (?:by|beside) each other\b": "are adjacent",
    r"\bother way (?:a)?round\b": "reverse",
    r"\bfurther down\b": "below",
}
"""Patterns, case-insensitive, and what to write instead."""

ALLOWED = {
    # Names and fixed terms of statistics and of the interface.
    r"\blimit laws?\b": "the title of a page, and of the limit distribution in its literature",
    r"`[^`]*`": "code",
    r"PatchLaw": "a class",
    r"\blaw =|\bkey `law`|`law`": "a key of specs",
    r"law of large numbers": "a theorem",
    r"\bpower laws?\b": "a usual term",
    r"'law'|^law :|\blaw : ": "a key, or a parameter",
    r"\bby chance\b": "a usual phrase",
    r"\bHeight\b|\bheight (?:and|of) (?:persons?|people)": "a variable of data",
}
"""What is not looked at, with the reason."""

PAGES = [
    ROOT / "README.md",
    *(
        path
        for path in sorted((ROOT / "docs").rglob("*.md"))
        if not {"_build", "generated", "theory"} & set(path.relative_to(ROOT).parts)
        and path.name not in ("rbar.md", "spec.md", "changelog.md")
    ),
]
BOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def prose_of(text: str) -> str:
    """A page without its code, formulas and addresses of links."""
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    text = re.sub(r"\$\$.*?\$\$|\$[^$\n]+\$", "", text, flags=re.DOTALL)
    return re.sub(r"\]\([^)]*\)", "]", text)


def found_in(text: str) -> list[str]:
    """Banned words of a text, each with what to write instead."""
    for pattern in ALLOWED:
        text = re.sub(pattern, " ", text)
    return [
        f"{' '.join(text[max(0, m.start() - 40) : m.end() + 30].split())!r}: {instead}"
        for pattern, instead in WORDS.items()
        for m in re.finditer(pattern, text, flags=re.IGNORECASE)
    ]


def messages_of(path: Path) -> Iterator[str]:
    """Texts of three words or more in a module that are no docstrings, f-strings with gaps."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(id(node.value))
        if isinstance(node, ast.JoinedStr):
            skipped |= {id(part) for part in node.values}
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values
            )
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and id(node) not in skipped and len(text.split()) >= 3:
            yield text


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_pages_have_plain_words(path):
    assert found_in(prose_of(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_notebooks_have_plain_words(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    prose = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    assert found_in(prose_of(prose)) == []


def test_docstrings_of_public_things_have_plain_words(monkeypatch):
    pytest.importorskip("nbformat")
    monkeypatch.syspath_prepend(ROOT / "docs")
    assert {name: found for name, found in docstrings() if found} == {}


def docstrings() -> Iterator[tuple[str, list[str]]]:
    """Public things and their methods, with what is found in the docstring of each."""
    from pages import topics

    for things in topics().values():
        for name, thing in things.items():
            texts = {name: inspect.getdoc(thing)}
            if inspect.isclass(thing):
                texts |= {
                    f"{name}.{each}": inspect.getdoc(member)
                    for each, member in inspect.getmembers(thing)
                    if not each.startswith("_")
                    and str(getattr(member, "__module__", "")).startswith("moestat")
                }
            for each, text in texts.items():
                yield each, found_in(re.sub(r"``[^`]*``|>>>.*|\.\.\. .*", " ", text or ""))


def test_messages_have_plain_words():
    found = {
        path.relative_to(ROOT).as_posix(): sorted(
            {w for m in messages_of(path) for w in found_in(m)}
        )
        for path in sorted((ROOT / "moestat").rglob("*.py"))
    }
    assert {path: words for path, words in found.items() if words} == {}


def test_the_list_finds_what_it_is_for():
    before = (
        "These parameters have no error. The law is normal, and the chance small; "
        "beta1[1,x] grows without end."
    )
    assert len(found_in(before)) >= 4
    assert found_in("The limit law has a page; `law` is a key.") == []


def main() -> None:
    """Print what is found."""
    import sys

    sys.path.insert(0, str(ROOT / "docs"))
    for path in PAGES:
        for each in found_in(prose_of(path.read_text(encoding="utf-8"))):
            print(path.relative_to(ROOT), each)
    for path in BOOKS:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        prose = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
        for each in found_in(prose_of(prose)):
            print(path.relative_to(ROOT), each)
    for name, found in docstrings():
        for each in found:
            print(name, each)
    for path in sorted((ROOT / "moestat").rglob("*.py")):
        for each in sorted({w for m in messages_of(path) for w in found_in(m)}):
            print(path.relative_to(ROOT), each)


if __name__ == "__main__":
    main()
