"""The page on the architecture follows a fit through the code as it runs."""

from __future__ import annotations

import re

from tests.walk import QUESTIONS, ROOT, walk

STEP = re.compile(r"^\d+\. `(\S+)`, `(\S+)`: ", re.MULTILINE)


def test_a_fit_takes_the_steps_of_the_page_in_order():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    steps = [(f"moestat/{path}", function) for path, function in STEP.findall(page)]
    assert len(steps) > 10
    question = QUESTIONS["fit"]()
    question()
    called, _, _ = walk(question)
    assert [call for call in called if call in steps] == steps
