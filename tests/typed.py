"""What four kinds of people type in their first hour, as typed, and what they get.

``python -m tests.typed BEFORE`` runs the commands on a revision, in a checkout of its own, and on
the present code, and writes ``benchmarks/results/first_commands.md``.
``tests/test_first_commands.py`` compares each answer of the present code with what is expected.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import NamedTuple

__all__ = ["RESULT", "ROLES", "Typed", "answer", "row_of"]

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "benchmarks" / "results" / "first_commands.md"


class Typed(NamedTuple):
    """One line that people type."""

    code: str
    expected: str = ""  # a part of what is printed, of a warning, or of the message
    topic: str = ""  # what the line asks for; "" where it only prepares the others


STATISTICIAN = [
    Typed("import numpy as np, pandas as pd, moestat"),
    Typed(
        "r = np.random.default_rng(0)\n"
        "d = pd.DataFrame({'x': r.normal(size=80), 'id': np.arange(80) // 4,"
        " 'site': np.resize(['a', 'b', 'c'], 80), 'days': r.integers(1, 9, 80)})\n"
        "d['y'] = d.x + r.normal(size=80); d['n'] = r.poisson(d.days * np.exp(0.3 * d.x))\n"
        "d['yes'] = d.x > 0.2 * r.normal(size=80); d['word'] = np.where(d.yes, 'ill', 'well')\n"
        "d['few'] = np.arange(80) % 3; d['share'] = 1 / 80\n"
        "d['text'] = d.x.astype(object); d.loc[7, 'text'] = 'n/a'"
    ),
    Typed("moestat.fit_formula('yes ~ x', d, n_experts=1)", "binomial", "y is True or False"),
    Typed("moestat.fit_formula('word ~ x', d, n_experts=1)", "multinomial", "y is two words"),
    Typed("moestat.fit_formula('few ~ x', d, n_experts=1)", "poisson", "y is 0, 1, 2"),
    *(
        Typed(
            f"print(moestat.fit_formula('{y} ~ x', d, '{name}', n_experts=1)"
            ".family.likelihood.name)",
            meant,
            "name of a likelihood",
        )
        for name, y, meant in (
            ("normal", "y", "gaussian"),
            ("bernoulli", "yes", "binomial"),
            ("linear", "y", "did you mean 'gaussian'"),
            ("zip", "n", "zero-inflated-poisson"),
            ("logistic", "yes", "multinomial"),
            ("negbin", "n", "negative-binomial"),
            ("lognormal", "days", "log-normal"),
            ("student", "y", "student-t"),
        )
    ),
    Typed(
        "m = moestat.fit_formula('y ~ x + site', d, n_experts=1, cov_type='HC0', rng=0)\n"
        "print(m.cov_type)",
        "HC0",
        "robust errors at the fit",
    ),
    Typed(
        "print(moestat.fit_formula('y ~ x', d, n_experts=1, cov_type='cluster',"
        " groups='id').cov_type)",
        "cluster",
        "robust errors by clusters at the fit",
    ),
    Typed(
        "print(moestat.fit_formula('y ~ x', d, n_experts=1, cov_type='cluster',"
        " cov_kwds={'groups': 'id'}).cov_type)",
        "cluster",
        "robust errors by clusters at the fit",
    ),
    Typed(
        "m = moestat.fit_formula('y ~ x + site', d, n_experts=1, rng=0)\n"
        "print(m.get_robustcov_results('cluster', 'id').cov_type)",
        "cluster",
        "clusters by the name of a column",
    ),
    Typed(
        "p = moestat.fit_formula('n ~ x', d, 'poisson', n_experts=1, exposure='days', rng=0)\n"
        "print(p.tidy(exponentiate=True).scale[1])",
        "rate ratio",
        "rate ratios; exposure=",
    ),
    Typed("print('Offset' in str(p.summary()))", "True", "the offset in the summary"),
    Typed(
        "print(moestat.fit('poisson', d[['x']], d.n, n_experts=1, offset=np.log(d.days)).nobs)",
        "80.0",
        "offset= takes an array",
    ),
    Typed(
        "moestat.fit_formula('n ~ x', d, 'poisson', n_experts=1, offset='days', rng=0)",
        "looks like an exposure without its logarithm",
        "an offset without its logarithm",
    ),
    Typed(
        "print(p.predict(d[['x']]))",
        "no column 'days', which the fit reads in 'log(days)'",
        "new rows without the exposure",
    ),
    Typed("print(p.summary(exponentiate=True))", "rate ratios", "rate ratios in the summary"),
    Typed("print(moestat.compare([p, p], exponentiate=True))", "rate ratios", "rate ratios beside"),
    Typed("p.summary(detail=True)", "did you mean 'details'", "an argument of a method"),
    Typed("p.comparisons({'x': 0})", "missing a required argument: 'second'", "one setting only"),
    Typed("print(m.wald_test_terms())", "site", "wald_test_terms()"),
    Typed("print(m.wald_test('site').df)", "2", "a term with several levels in wald_test"),
    Typed(
        "print(m.get_margeff(newdata=d[:9], at={'x': [0, 1]}, by='site').tidy().columns.tolist())",
        "conf_low",
        "marginal effects: newdata, at, by",
    ),
    Typed(
        "print(m.comparisons({'x': 0}, {'x': 1}).tidy().columns.tolist())",
        "conf_low",
        "comparisons of two settings",
    ),
    Typed("print(m.tidy().columns.tolist())", "std_error", "names of columns"),
    Typed("print([*m.tidy().sort_values('pvalue').term][0])", "x", "an old name of a column"),
    Typed(
        "t = moestat.fit_formula('y ~ x', d, rng=0)\nprint([*t.params.index])\n"
        "print([*map(str, t.tidy().expert.unique())])",
        "['1', '2']",
        "numbers of experts",
    ),
    Typed("print(t.params['a[0,x]'] == t.params['a[1,x]'])", "True", "an old name of an expert"),
    Typed(
        "print([*t.named({1: 'chronic', 2: 'acute'}).params.index][0])",
        "chronic",
        "names of experts",
    ),
    Typed("print(t.plot_gate().get_xlabel())", "x", "plot_gate()"),
    Typed("print(len(t.plot_effects()[0].collections) > 0)", "True", "bands in plot_effects"),
    Typed(
        "moestat.fit('gaussian', d.y, d[['x', 'days', 'id']])",
        "swapped",
        'fit("gaussian", y, X)',
    ),
    Typed("moestat.fit_formula(d, 'y ~ x')", "swapped", 'fit_formula(df, "y ~ x")'),
    Typed("moestat.fit_formula('y ~ text', d)", "the text 'n/a' in row 7", "a text cell"),
    Typed(
        "moestat.fit_formula('Surv(days, word) ~ x', d, 'weibull')",
        "event",
        "words as events in Surv",
    ),
    Typed(
        "moestat.fit_formula('y ~ x', d, weights='share')",
        "sums to 1 over 80 rows",
        "weights that sum to 1",
    ),
    Typed(
        "import inspect\nprint([*inspect.signature(moestat.fit).parameters])",
        "'n_experts', 'gate', 'expert'",
        "the signature of fit",
    ),
    Typed(
        "moestat.select('gaussian', 'y ~ x', k=(1, 2), data=d, rng=0, verbose=True)",
        "2 of 2 fits",
        "the progress of select",
    ),
    Typed("print('nertia' in str(m.summary()))", "False", "the summary of a reader"),
    Typed("print(m.summary(details=True))", "Solver", "the summary with details"),
]

ENGINEER = [
    Typed("import torch\nfrom moestat.networks.smoe import *"),
    Typed(
        "SMoE(d_model=64, n_experts=8, hidden=128, num_experts_per_tok=2)",
        "num_experts_per_tok: write top_k",
        "names of Hugging Face",
    ),
    Typed(
        "SMoE(hidden_size=64, num_local_experts=8)",
        "hidden_size: write d_model",
        "names of Hugging Face",
    ),
    Typed("SMoE(n_experts=8)", "d_model is missing", "an argument is missing"),
    Typed(
        "layer = SMoE(d_model=64, n_experts=8, hidden=128, top_k=2, balance=0.01, gated=True)\n"
        "print(tuple(layer(torch.randn(2, 5, 64)).shape))",
        "(2, 5, 64)",
        "SMoE by names",
    ),
    Typed("print(layer.last)", "Pass(10 rows, 8 experts, top_k=2, load", "the last pass"),
    Typed("print(auxiliary_loss(layer).item() > 0)", "True", "the loss of balance"),
    Typed(
        "print(SMoE(d_model=64, n_experts=8, router='bias-balanced').router)",
        "BiasBalancedRouter",
        "balancing by a bias",
    ),
    Typed(
        "print(SMoE(d_model=64, n_experts=8, router='expert-choice').router)",
        "ExpertChoiceRouter",
        "expert-choice routing",
    ),
    Typed(
        "SMoE(d_model=64, n_experts=8, router='expert choice')",
        "did you mean 'expert-choice'",
        "expert-choice routing",
    ),
    Typed(
        "print(SMoE(d_model=64, n_experts=8, norm_topk_prob=False).norm_topk_prob)",
        "False",
        "norm_topk_prob",
    ),
    Typed(
        "upcycle(torch.nn.Linear(4, 4), n_experts=4)",
        "gate_proj, up_proj, down_proj",
        "upcycle of any module",
    ),
    Typed(
        "block = lambda: torch.nn.ModuleDict({'mlp': torch.nn.ModuleDict({\n"
        "    'gate_proj': torch.nn.Linear(8, 16), 'up_proj': torch.nn.Linear(8, 16),\n"
        "    'down_proj': torch.nn.Linear(16, 8)})})\n"
        "model = torch.nn.ModuleList([block(), block()])\n"
        "upcycle(model, n_experts=4, every=2)\n"
        "print([type(each['mlp']).__name__ for each in model])",
        "['ModuleDict', 'SMoE']",
        "upcycle of a whole model",
    ),
]

CONTRIBUTOR = [
    Typed("from moestat.model.quantiles import OfCounts", "", "a law that SciPy does not have"),
    Typed(
        "import pathlib, re\ntext = pathlib.Path('CONTRIBUTING.md').read_text()\n"
        "print(re.findall(r'```sh\\n(.*?)```', text, re.S)[1])",
        "-k NAME",
        "the loop of one member",
    ),
    Typed(
        "print('A distribution that SciPy does not have' in"
        " pathlib.Path('docs/extending.md').read_text())",
        "True",
        "an example of such a law",
    ),
    Typed(
        "print('-m thorough' in pathlib.Path('.ci/run').read_text())",
        "True",
        "the second command and the rest",
    ),
]

READER = [
    Typed(
        "import pathlib, re\nreadme = pathlib.Path('README.md').read_text()\n"
        "print(len(readme.split()) <= 1100)",
        "True",
        "length of the README",
    ),
    Typed(
        "print(readme[:readme.index('```')].count('\\n') < 12)",
        "True",
        "code within the first screen",
    ),
    Typed("print('PyTorch' in readme)", "True", "the README names the layers"),
    Typed(
        "print('pip install' in pathlib.Path('docs/index.md').read_text())",
        "True",
        "the install command on the home page",
    ),
]

ROLES = {
    "statistician": STATISTICIAN,
    "engineer": ENGINEER,
    "contributor": CONTRIBUTOR,
    "reader": READER,
}


def answer(names: dict, code: str) -> str:
    """What is printed, warned and raised when a line is typed."""
    out = io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(out),
        warnings.catch_warnings(record=True) as raised,
    ):
        warnings.simplefilter("always")
        try:
            exec(compile(code, "typed", "exec"), names)
        except Exception as error:
            out.write(f"{type(error).__name__}: {error}")
    told = [out.getvalue(), *(f"{each.category.__name__}: {each.message}" for each in raised)]
    return "\n".join(filter(None, told))


def answers() -> list[list[str]]:
    """What each role gets for each line, in turn."""
    found = []
    for lines in ROLES.values():
        names: dict = {}
        found.append([answer(names, line.code) for line in lines])
    return found


def answers_at(tree: Path) -> list[list[str]]:
    """The answers of the code of a checkout, in a process of its own."""
    code = (
        "import sys, json, importlib.util as u; sys.path.insert(0, '')\n"
        f"s = u.spec_from_file_location('typed', {__file__!r}); t = u.module_from_spec(s)\n"
        "sys.modules['typed'] = t; s.loader.exec_module(t); print(json.dumps(t.answers()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tree, check=True, stdout=subprocess.PIPE, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def of_revision(revision: str) -> list[list[str]]:
    """The answers of another revision."""
    git = ["git", "-C", str(ROOT), "worktree"]
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        subprocess.run([*git, "add", "-q", "--detach", str(tree), revision], check=True)
        try:
            return answers_at(tree)
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


_LONGEST = 240
"""Characters of an answer in the table."""


def _cell(text: str) -> str:
    text = " ".join(re.sub(r"<[^>]* at 0x\w+>", "<...>", text).split()).replace("|", "\\|")
    return text[:_LONGEST] + " ..." * (len(text) > _LONGEST) or "nothing"


def row_of(line: Typed) -> str:
    """The first two cells of a row of the table."""
    typed = "; ".join(line.code.splitlines()).replace("|", "\\|")
    return f"| {line.topic} | `{typed}` |"


def main() -> None:
    """Write the table."""
    (before,) = sys.argv[1:]
    rows = [
        "# What four kinds of people type in their first hour",
        "",
        f"`python -m tests.typed {before}` wrote this page: each line of `tests/typed.py`, in turn"
        f" for each role, at {before} and now. Lines that only prepare others are left out; long"
        " answers are cut. `tests/test_first_commands.py` runs all of them.",
    ]
    both = zip(ROLES.items(), of_revision(before), answers_at(ROOT), strict=True)
    for (role, lines), old, new in both:
        rows += ["", f"## The {role}", "", "| asked | typed | before | now |", "|---|---|---|---|"]
        for line, first, second in zip(lines, old, new, strict=True):
            if line.topic:
                rows.append(f"{row_of(line)} {_cell(first)} | {_cell(second)} |")
    RESULT.write_text("\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
