"""Every citation is of a listed work, and every source of a member or a claim cites one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from experiments.references import REFERENCES, cited_in, page
from moestat.metrics.losses import LOSSES
from moestat.model.experts import EXPERTS
from moestat.model.gates import GATES
from moestat.model.likelihoods import LIKELIHOODS

ROOT = Path(__file__).parents[2]
TEXTS = sorted(
    path
    for folder, endings in {
        "moestat": (".py",),
        "experiments": (".py", ".toml"),
        "docs": (".md",),
        "tests": (".py",),
    }.items()
    for path in (ROOT / folder).rglob("*")
    if path.suffix in endings and not {"_build", "generated"} & set(path.parts)
)


def test_the_walk_sees_the_project():
    assert len(TEXTS) > 200


def test_every_citation_is_of_a_listed_work():
    unknown = {}
    for path in TEXTS:
        labels = cited_in(path.read_text())
        if labels - set(REFERENCES):
            unknown[str(path.relative_to(ROOT))] = sorted(labels - set(REFERENCES))
    assert unknown == {}


def test_every_listed_work_is_cited():
    lists = {
        ROOT / "experiments" / "references.py",
        ROOT / "docs" / "references.md",
        Path(__file__),
    }
    cited = set().union(*(cited_in(path.read_text()) for path in TEXTS if path not in lists))
    assert sorted(set(REFERENCES) - cited) == []


def test_papers_are_not_cited_by_file_numbers():
    number = re.compile(r"\b(mlmoe|attention|compete|compete-v1|expert-count)\s+\(00\d\)")
    assert [str(p.relative_to(ROOT)) for p in TEXTS if number.search(p.read_text())] == []


@pytest.mark.parametrize("registry", [GATES, EXPERTS, LIKELIHOODS, LOSSES], ids=lambda r: r.kind)
def test_sources_of_members_cite_a_listed_work(registry):
    for name, member in registry.items():
        labels = cited_in(member.source)
        assert labels, f"{registry.kind} {name!r} cites no work: {member.source!r}"
        assert labels <= set(REFERENCES)


def test_the_page_lists_what_the_module_does():
    assert (ROOT / "docs" / "references.md").read_text() == page()
