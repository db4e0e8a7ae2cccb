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

Not every model can be fitted with every option. Each row of the first table below is a model. Its
name begins with the distribution of the response. The name of the gate or of the type of expert
follows only if it is not the default (`softmax`, `linear`). `censored` means censored responses,
`trials` means numbers of successes with numbers of trials, `+` joins the distributions of two
responses, and `/` joins the distributions of the first and the second expert.

Each of the other columns is an option, or several options that are used together, such as
"weights, groups". "yes" means that `moestat.fit_formula` accepts the model with these options. A
number such as [2] means that it refuses them, for the reason with this number at the end of the
page. A dot means that a function of this response makes no sense. The table does not show whether
other sets of options are accepted: two options that are accepted one at a time may be refused
together.

| option | argument of `moestat.fit_formula` |
|---|---|
| plain | none |
| weights | `weights="w"`, a column of the data (`sample_weight=` of `moestat.fit`) |
| groups | `groups="id"`: all rows with the same `id` have the same expert |
| offset | `offset="off"`, a known part of the linear predictor |
| equal | `equal=["a"]`, slopes that are equal in all experts |
| fixed | `fixed={"a": {(1, "z"): 0.25}}`, a coefficient of the first expert with a given value |
| prior | `prior=moestat.Prior()`, a weakly informative prior |
| missing | `missing="drop"`: rows with missing values are left out |
| transformed | a function of the response in the formula, such as `log(y) ~ x` |
| compress | `compress="auto"`: equal rows are stored as one row with a weight |
| factor | a factor among the inputs, as `level` in `y ~ x + level` |
| random | `random="1"`, a random intercept for each group |
| slopes | `random="1 + x"`, a random intercept and a random slope for each group |
| nested | `(1 &#124; id/part)`, a random intercept for each group and for each of its parts |

The second table lists the methods of a result that a model does not have.
"""

FOOT = "The test suite tries all of this; `python -m tests.laws.page` writes the page."


def main() -> None:
    """Write the page."""
    notes: dict[str, int] = {}

    def mark(sentence: str) -> str:
        """The number of a sentence, a new one where it is new."""
        return f"[{notes.setdefault(_tidy(sentence), len(notes) + 1)}]"

    members = list(dict.fromkeys(case.member for case in CASES))
    lines = [HEAD, "## Fits", ""]
    lines += ["| model | " + " | ".join(OPTIONS) + " |", "|" + "---|" * (len(OPTIONS) + 1)]
    for member in members:
        cells = []
        for option in OPTIONS:
            case = next((c for c in CASES if c.member == member and c.option == option), None)
            cells.append("." if case is None else _fit(case, mark))
        lines.append(f"| {member} | " + " | ".join(cells) + " |")
    lines += ["", "## Methods that a result does not have", "", "For fits without options.", ""]
    lines += ["| model | not available |", "|---|---|"]
    for member in members:
        case = next(c for c in CASES if c.member == member and c.option == "plain")
        found = [
            f"{cell.question} {mark(cell.words)}"
            for name in ("own rows asked as new", "an answer or one sentence")
            for cell in judge(name, case)
            if cell.verdict == REFUSED and name in LAWS
        ]
        lines.append(f"| {member} | {', '.join(dict.fromkeys(found)) or 'none'} |")
    lines += ["", "## Reasons", ""]
    lines += [f"{number}. {sentence}" for sentence, number in notes.items()]
    lines += ["", FOOT]
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
    plain = re.sub(r"the [\w+, -]+ (likelihood|response)\b", r"this \1", plain)
    return re.sub(r"^[\w-]+: random", "random", plain)


if __name__ == "__main__":
    main()
