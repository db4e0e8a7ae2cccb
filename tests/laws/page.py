"""The guide's page of what can be combined, made of the cases of the laws.

    python -m tests.laws.page

It writes ``docs/guide/combinations.md``: for each member and set of options whether a fit is made
or the sentence that refuses it, and for each member the questions that are refused, with theirs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from tests.laws.cases import CASES, OPTIONS, Case, RefusedError
from tests.laws.laws import LAWS, REFUSED, judge

PAGE = Path(__file__).parents[2] / "docs/guide/combinations.md"

HEAD = """# What can be combined

A model has a likelihood, a gate and an expert; a fit has options, such as weights or groups; and a
result answers questions. This page says which of these go together. It is made by
`python -m tests.laws.page` from the cases of the test suite `tests/laws`, where every answer is
checked against rules: a weight of 2 is two rows, rows of the fit asked as new rows have the same
answers, another unit of the data has the same fit, and so on. What cannot be had is refused in one
sentence, which stands below the tables.
"""


def main() -> None:
    """Write the page."""
    notes: dict[str, int] = {}

    def mark(sentence: str) -> str:
        """The number of a sentence, a new one where it is new."""
        return f"[{notes.setdefault(_tidy(sentence), len(notes) + 1)}]"

    members = list(dict.fromkeys(case.member for case in CASES))
    lines = [HEAD, "## Fits", "", "A number is that of the sentence by which a fit is refused;"]
    lines += ["a dot marks what has no meaning.", ""]
    lines += ["| member | " + " | ".join(OPTIONS) + " |", "|" + "---|" * (len(OPTIONS) + 1)]
    for member in members:
        cells = []
        for option in OPTIONS:
            case = next((c for c in CASES if c.member == member and c.option == option), None)
            cells.append("." if case is None else _fit(case, mark))
        lines.append(f"| {member} | " + " | ".join(cells) + " |")
    lines += ["", "## Questions", "", "Questions that are refused of a fit without options.", ""]
    lines += ["| member | refused |", "|---|---|"]
    for member in members:
        case = next(c for c in CASES if c.member == member and c.option == "plain")
        found = [
            f"{cell.question} {mark(cell.words)}"
            for name in ("own rows asked as new", "an answer or one sentence")
            for cell in judge(name, case)
            if cell.verdict == REFUSED and name in LAWS
        ]
        lines.append(f"| {member} | {', '.join(dict.fromkeys(found)) or 'none'} |")
    lines += ["", "## Sentences", ""]
    lines += [f"{number}. {sentence}" for sentence, number in notes.items()]
    PAGE.write_text("\n".join(lines) + "\n")


def _fit(case: Case, mark: Callable[[str], str]) -> str:
    """Whether a fit is made, or the number of the sentence that refuses it."""
    try:
        _ = case.result
    except RefusedError as refusal:
        return mark(str(refusal))
    return "yes"


def _tidy(sentence: str) -> str:
    """A sentence on one line, without what it was given, that a page shows as it is."""
    plain = " ".join(sentence.replace("|", "\\|").replace("<", "&lt;").split())
    plain = re.sub(r"(, got|; got) .*$", "", plain)
    plain = re.sub(r"family\(.*\) (is|keeps)", r"the family \1", plain)
    plain = re.sub(r"(gate|solver|expert) '[\w-]+' (is|reads)", r"the \1 \2", plain)
    plain = re.sub(r"the [\w+ -]+ (likelihood|response)\b", r"this \1", plain)
    return re.sub(r"^[\w-]+: random", "random", plain)


if __name__ == "__main__":
    main()
