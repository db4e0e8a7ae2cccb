"""What an engineer and a contributor type in their first hour, and what they get."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_readme import run

ROOT = Path(__file__).parents[1]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()

# As typed, in turn, with a part of what is printed or of the message.
ENGINEER = [
    ("import torch\nfrom moestat.networks.smoe import *", ""),
    (
        "SMoE(d_model=64, n_experts=8, hidden=128, num_experts_per_tok=2)",
        "num_experts_per_tok: write top_k",
    ),
    ("SMoE(hidden_size=64, num_local_experts=8)", "hidden_size: write d_model"),
    ("SMoE(n_experts=8)", "d_model is missing"),
    (
        "layer = SMoE(d_model=64, n_experts=8, hidden=128, top_k=2, balance=0.01, gated=True)\n"
        "print(tuple(layer(torch.randn(2, 5, 64)).shape))",
        "(2, 5, 64)",
    ),
    ("print(layer.last)", "Pass(10 rows, 8 experts, top_k=2, load"),
    ("print(auxiliary_loss(layer).item() > 0)", "True"),
    ("print(SMoE(d_model=64, n_experts=8, router='bias-balanced').router)", "BiasBalancedRouter"),
    ("print(SMoE(d_model=64, n_experts=8, router='expert-choice').router)", "ExpertChoiceRouter"),
    ("SMoE(d_model=64, n_experts=8, router='expert choice')", "did you mean 'expert-choice'"),
    ("print(SMoE(d_model=64, n_experts=8, norm_topk_prob=False).norm_topk_prob)", "False"),
    ("upcycle(torch.nn.Linear(4, 4), n_experts=4)", "gate_proj, up_proj, down_proj"),
]


def test_what_an_engineer_types():
    pytest.importorskip("torch")
    names: dict = {}
    for code, expected in ENGINEER:
        try:
            told = run(names, code)
        except ValueError as error:
            told = str(error)
        assert expected in told, f"{code}\n{told}"


def commands(text: str) -> list[str]:
    return [
        line
        for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
        for line in block.splitlines()
    ]


def test_the_loop_of_a_contributor_takes_every_cell_of_a_member():
    """The second command of the page, with the name of a member."""
    typed = commands(CONTRIBUTING)[1]
    assert typed.startswith(".venv/bin/python -m pytest tests/test_contracts.py")
    _, *words = shlex.split(typed.replace("NAME", "poisson"))
    done = subprocess.run(
        [sys.executable, *words, "--collect-only", "-q"], cwd=ROOT, capture_output=True, text=True
    )
    found = [line for line in done.stdout.splitlines() if "::" in line]
    assert len(found) >= 20, done.stdout + done.stderr
    assert all("poisson" in line for line in found)


def test_ci_runs_what_the_readme_and_the_page_say():
    script = (ROOT / ".ci" / "run").read_text()
    second = commands((ROOT / "README.md").read_text())[1]
    for part in (*second.split("&&"), "-m thorough"):
        assert part.strip() in script
