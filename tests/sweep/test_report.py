"""Reports: the layout of a small synthetic sweep to the letter, and the rule of the sentences."""

import dataclasses
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from moestat.rates.rate import fit_rate
from moestat.sweep import create_store, open_cells, open_store, parse_spec, run_cells, summarise
from moestat.sweep.cli import app
from moestat.sweep.kinds.fit.figure import draw
from moestat.sweep.kinds.fit.report import latex_table, markdown_report
from moestat.sweep.kinds.fit.verdicts import judge
from moestat.sweep.kinds.fit.words import verdict
from moestat.sweep.report.writing import write_report
from tests.sweep.cells import always_fails, exact_rate
from tests.sweep.specs import EM_STEPS, classes, curve, sweep

GOLDEN = Path(__file__).parent

SPEC = sweep(
    "A synthetic sweep",
    classes("t_1"),
    curve(
        "stuck | k = 3",
        3,
        "published = -0.49",
        "theory = -0.5",
        'note = "The published slope is of another loss."',
        EM_STEPS,
        truth="t_1",
        panel="d",
    ),
    curve(
        "steady",
        2,
        'also = [{ name = "softmax-D2r", r = 4 }]',
        "published = -0.3",
        "theory = -0.5",
        truth="t_1",
        panel="a",
    ),
    curve("lost", 2, truth="t_1", panel="a"),
    replicates=4,
    n="[100, 1000, 10000]",
)


def synthetic(text, cell):
    """One curve with a clean rate, one whose loss does not fall, one that fails."""
    if cell.curve == "lost":
        return always_fails(text, cell)
    record = exact_rate(text, cell)
    if cell.curve == "steady":
        first, second = record.losses["cells"]
        cells = [first, {**second, "mass_error": 0.0}]
        return dataclasses.replace(record, losses={**record.losses, "cells": cells})
    active = ["beta1[0,0]", "a[1,0,0]"] if cell.replicate else ["beta1[0,0]"]
    return dataclasses.replace(
        record,
        loss=50.0 + 10.0 * ((cell.replicate + len(str(cell.n))) % 4),
        certified=False,
        losses={**record.losses, "empty_cells": 0},
        certificate={**record.certificate, "active": active},
    )


def regression(text, cell):
    """Records as regression functions have them."""
    record = exact_rate(text, cell)
    error = 0.7 * cell.n**-0.5 * (1.1 if cell.replicate else 1.0)
    agreement = 0.5 if cell.replicate == 0 else 1.0
    return dataclasses.replace(
        record,
        losses={**record.losses, "regression_error": error, "coverage": 3.0 * cell.n**-0.25},
        certificate={**record.certificate, "n_starts": 2, "agreement": agreement},
    )


@pytest.fixture
def fill(tmp_path):
    def make(cell_function=synthetic, limit=None, text=SPEC):
        path, spec = tmp_path / "small sweep.sqlite", parse_spec(text)
        with create_store(path, spec) as store:
            cells = open_cells(spec, store)[:limit]
            list(run_cells(spec, store, cells, executor="serial", cell_function=cell_function))
        return path

    return make


@pytest.fixture
def summaries(fill):
    with open_store(fill()) as store:
        return {summary.curve.name: summary for summary in summarise(store)}


@pytest.mark.parametrize("suffix", [".md", ".tex"])
def test_layout(fill, tmp_path, suffix):
    with open_store(fill()) as store:
        write_report(store, tmp_path / "out")
    written = (tmp_path / "out" / f"small sweep{suffix}").read_text()
    assert written == (GOLDEN / f"golden_report{suffix}").read_text()


def test_command_writes_beside_the_store_by_default(fill, tmp_path):
    result = CliRunner().invoke(app, ["report", str(fill())])
    assert result.exit_code == 0
    names = [f"small sweep{suffix}" for suffix in (".md", ".tex", ".png", ".pdf")]
    assert result.stdout == "report: " + ", ".join(str(tmp_path / name) for name in names) + "\n"
    assert (tmp_path / names[2]).read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / names[3]).read_bytes().startswith(b"%PDF")


def test_command_makes_the_directory(fill, tmp_path):
    out = tmp_path / "deep" / "er"
    assert CliRunner().invoke(app, ["report", str(fill()), "--out", str(out)]).exit_code == 0
    assert len(list(out.iterdir())) == 4


def test_a_report_that_cannot_be_written_is_one_line(fill, tmp_path):
    (tmp_path / "taken").write_text("a file")
    result = CliRunner().invoke(app, ["report", str(fill()), "--out", str(tmp_path / "taken")])
    assert result.exit_code == 2
    assert result.stderr.startswith("error: cannot write the report into")
    assert result.stderr.count("\n") == 1


def test_a_sweep_without_estimates_has_a_report_without_figure(fill, tmp_path):
    with open_store(fill(always_fails, limit=5)) as store:
        paths = write_report(store)
    assert [path.suffix for path in paths] == [".md", ".tex"]
    page = paths[0].read_text()
    assert "5 of 36 cells have results: the sweep is not complete." in page
    assert "![" not in page
    assert "**There is no rate: estimates at 0 of the 2 or more sample sizes it takes; " in page


def rate_of(slope, scatter=0.01, bend=0.0, theory=None):
    """A rate over three decades whose residuals have mean zero at each size."""
    n = np.repeat([1e2, 1e3, 1e4, 1e5], 5)
    noise = scatter * np.tile([-2.0, -1.0, 0.0, 1.0, 2.0], 4)
    x = np.log(n / 3e3)
    return fit_rate(n, np.exp(slope * x + bend * x**2 + noise), theory=theory)


def test_verdict_of_a_falling_loss(summaries):
    steady = summaries["steady"]
    summary = dataclasses.replace(
        steady, rate=rate_of(-0.5, theory=-0.5), certified=12, on_bound=0, with_empty_cells=0
    )
    text = verdict(summary)
    assert text.startswith("The loss falls: slope -0.50 [-0.50, -0.50]; the published slope -0.3")
    assert "the published slope -0.3 is outside this interval" in text
    said = "the bound has -0.50, with its logarithm -0.43: not slower than the bound, and of this"
    assert said in text
    assert "; in 25% of the fits all starts end at the best one." in text
    assert text.count(";") == 3
    assert "Hellinger" not in text


@pytest.mark.parametrize(
    ("slope", "scatter", "words"),
    [
        (0.0, 0.1, "does not measurably fall"),
        (0.4, 0.01, "grows"),
        (-0.001, 0.5, "does not measurably fall"),
    ],
)
def test_verdict_of_a_loss_that_does_not_fall(summaries, slope, scatter, words):
    steady = dataclasses.replace(summaries["steady"], rate=rate_of(slope, scatter))
    falling = dataclasses.replace(steady, hellinger=rate_of(-0.5))
    flat = dataclasses.replace(steady, hellinger=rate_of(0.0, 0.1))
    assert verdict(falling).startswith(f"The loss {words}: slope ")
    assert "the Hellinger distance falls: slope -0.50 [-0.50, -0.50]" in verdict(falling)
    assert "Hellinger" not in verdict(flat)
    assert "Hellinger" not in verdict(dataclasses.replace(steady, hellinger=None))


def judged(summary, rate, *others):
    """The summary with another rate, judged together with further ones."""
    return dataclasses.replace(summary, rate=rate, verdict=judge([rate, *others])[0])


def test_verdict_of_a_bent_curve(summaries):
    bent = judged(summaries["steady"], rate_of(-0.5, bend=0.05))
    assert "the slope is still changing over these sizes (adjusted p < 0.0001)" in verdict(bent)
    assert "changing" not in verdict(judged(bent, rate_of(-0.5)))


def test_verdict_on_a_prediction_counts_the_curves(summaries):
    rate = rate_of(-0.5, scatter=0.1, theory=-0.464)
    assert 0.005 < rate.theory_p_value < 0.05
    alone = verdict(judged(summaries["steady"], rate))
    assert "; all curves considered it is faster (adjusted p = 0.0" in alone
    among = verdict(judged(summaries["steady"], rate, *[rate_of(-0.5, theory=-0.5)] * 20))
    assert "all curves considered" not in among


def test_verdict_without_an_interval(summaries):
    rate = fit_rate([100, 1000], [1.0, 0.1])
    text = verdict(dataclasses.replace(summaries["steady"], rate=rate))
    assert text.startswith("The fitted slope is -1.00, from too few fits for an interval; ")
    assert "published" not in text


@pytest.mark.parametrize(
    ("count", "share"), [(1, "<1%"), (30, "10%"), (299, ">99%"), (300, "100%")]
)
def test_verdict_counts(summaries, count, share):
    steady = dataclasses.replace(
        summaries["steady"], done=300, on_bound=count, certified=300 - count
    )
    text = verdict(steady)
    assert f"; {share} of the fits lie on a bound" in text
    assert f"; {share} of the fits are uncertified and left out" in text
    replay = dataclasses.replace(summaries["stuck | k = 3"], done=300, certified=300 - count)
    assert f"; {share} of the fits are uncertified and kept in the rate" in verdict(replay)


def test_latex_of_a_name_with_special_characters(summaries):
    curve = dataclasses.replace(summaries["steady"].curve, name="50% & k_1 ~ {x}", panel="")
    text = latex_table([dataclasses.replace(summaries["steady"], curve=curve)])
    assert "50\\% \\& k\\_1 \\textasciitilde{} \\{x\\} & $-$0.3 & $-$0.50 [$-$0." in text
    assert "Panel" not in text
    assert "dagger" not in text


def test_latex_rows_of_every_panel_stand_under_the_same_heads(summaries):
    """A panel whose curves have nothing to say in a column leaves the column there."""
    steady, stuck = summaries["steady"], summaries["stuck | k = 3"]
    evidence = dataclasses.replace(steady.evidence, missed=0.25, with_several=4, agreeing=3)
    both = [
        dataclasses.replace(stuck, atoms={2: steady.atoms[1]}),
        dataclasses.replace(steady, errors=np.ones(3), evidence=evidence),
    ]
    lines = latex_table(both).split("\n")
    head, *rows = (line.removesuffix(" \\\\").split(" & ") for line in lines if " & " in line)
    assert len(set(head)) == len(head)
    assert head[-5:] == [
        "regression error",
        "starts agree",
        "half agree",
        "miss the maximum",
        "without doubt",
    ]
    by_curve = {row[0]: dict(zip(head, row, strict=True)) for row in rows}
    assert by_curve["steady"]["half agree"] == "75\\%"
    (other,) = by_curve.keys() - {"steady"}
    assert by_curve[other]["cells of 1"] == "--"
    assert by_curve[other]["cells of 2"] == by_curve["steady"]["cells of 1"]


def test_regression_errors_have_columns_and_axes_of_their_own(fill, tmp_path):
    with open_store(fill(regression)) as store:
        summaries = summarise(store)
        page = markdown_report(store, summaries)
        figure = draw("a title", summaries)
        replicates = store.spec.replicates
    head, _, row = next(part for part in page.split("\n\n") if part.startswith("| curve")).split(
        "\n"
    )[:3]
    cells = dict(zip(head.split(" | "), row.split(" | "), strict=True))
    assert cells["regression error"].startswith("-0.50 [")
    # Of the replicates all but the first have starts that agree.
    assert cells["starts agree |"] == f"{100 * (replicates - 1) / replicates:.0f}% |"
    assert "the regression error has slope -0.50" in page
    assert "| slope of the coverage (true atoms to the nearest fitted) | -0.25" in page
    assert "& regression error & starts agree" in latex_table(summaries)
    labels = [axes.get_ylabel() for axes in figure.axes]
    assert all("_{1}$ (softmax-D1)" in label for label in labels[::2])
    assert set(labels[1::2]) == {r"regression error $L_2(\mu)$"}
    errors = figure.axes[1].get_lines()[0].get_ydata()
    assert np.all((errors > 0) & (errors < 1))


def test_densities_have_no_such_columns(fill):
    with open_store(fill()) as store:
        summaries = summarise(store)
    assert "regression error" not in latex_table(summaries)
    assert len(draw("a title", summaries).axes) == len({s.curve.panel for s in summaries})


class Page(HTMLParser):
    """Tags with their attributes, checked to be closed, and the text between them."""

    VOID = ("meta", "br")

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.text = [], [], ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.fixture
def html(fill, tmp_path):
    path = fill(text=SPEC.replace('"A synthetic sweep"', '"<script>alert(1)</script> & *so* on"'))
    assert CliRunner().invoke(app, ["report", str(path), "--html"]).exit_code == 0
    return (tmp_path / "small sweep.html").read_text()


def test_html_is_whole_and_needs_nothing_else(html):
    page = Page(html)
    assert not re.search(r"""(?:src|href)=["'](?!#)""", html.replace("xlink:href", "href"))
    assert "url(http" not in html
    assert [name for name, _ in page.tags].count("svg") == 1


def test_html_shows_names_as_they_are_and_runs_none_of_them(html):
    page = Page(html)
    assert "<script>alert(1)</script> & " in page.text
    assert [name for name, _ in page.tags].count("script") == 1
    assert "stuck | k = 3" in page.text


def test_html_has_what_the_page_has(fill, html):
    page = Page(html)
    with open_store(fill()) as store:
        summaries = summarise(store)
        for summary in summaries:
            assert verdict(summary) in page.text
    assert "rates 'small sweep.sqlite' --json" in page.text
    assert 'name = "steady"' in page.text  # the spec
    folded = [name for name, _ in page.tags].count("details")
    assert folded == 1 + 2 + 2  # the spec; evidence and cells of the two curves with fits


def test_errors_that_say_nothing_new_are_not_tabulated(fill, tmp_path):
    """A slope that a translation absorbs, and masses that add up to one."""

    def cell(text, cell):
        record = exact_rate(text, cell)
        if cell.curve != "stuck | k = 3":
            return record
        first, second = record.losses["cells"]
        one = {**first, "size": 1, "errors": {**first["errors"], "beta1": 1e-16}}
        two = {**second, "size": 2, "mass_error": first["mass_error"]}
        two["errors"] = {**second["errors"], "beta1": 0.0}
        return dataclasses.replace(record, losses={**record.losses, "cells": [one, two]})

    with open_store(fill(cell)) as store:
        page = markdown_report(store, summarise(store))
    (mass,) = [line for line in page.splitlines() if re.match(r"\| mass .*the same", line)]
    assert mass.count("[") == 1
    assert "(beta1, not in the table)" in page


def test_verdict_names_the_agreement_of_starts(summaries):
    steady = summaries["steady"]
    all_agree = dataclasses.replace(steady.evidence, unanimous=12, with_several=12)
    none_agree = dataclasses.replace(steady.evidence, unanimous=3, with_several=12)
    assert "starts" not in verdict(dataclasses.replace(steady, evidence=all_agree))
    text = verdict(dataclasses.replace(steady, evidence=none_agree))
    assert "in 25% of the fits all starts end at the best one" in text
