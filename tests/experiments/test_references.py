"""Every citation is of a listed work, and every source of a member or a claim cites one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from moestat.metrics.losses import LOSSES
from moestat.model.experts import EXPERTS
from moestat.model.gates import GATES
from moestat.model.likelihoods import LIKELIHOODS

ROOT = Path(__file__).parents[2]
BIBLIOGRAPHY = (ROOT / "docs" / "references.bib").read_text(encoding="utf-8")
REFERENCES = set(re.findall(r"^  shorthand = \{(.+)\},$", BIBLIOGRAPHY, re.MULTILINE))
_NAME = r"(?:van de |van den |Rinnooy |Le )?[A-Z][a-z]?[A-Za-z]*[a-z](?:-[A-Z][a-z]+)?"
_LABEL = re.compile(
    rf"(?<![\w.])(({_NAME}(?: et al\.|(?:, {_NAME})*,? and {_NAME})?) \(?((?:19|20)\d\d|n\.d\.)\)?)"
)
_BREAK = re.compile(r"\s*\n[ \t]*(?:#:?|//)?[ \t]*")


def cited_in(text: str) -> set[str]:
    """Labels ``Authors (year)`` that a text cites, in or without brackets around the year."""
    several = _LABEL.findall(_BREAK.sub(" ", text))
    return {
        f"{who} ({year})"
        for whole, who, year in several
        if " and " in who or who.endswith(" et al.") or whole.endswith(f"({year})")
    }


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
        if labels - REFERENCES:
            unknown[str(path.relative_to(ROOT))] = sorted(labels - REFERENCES)
    assert unknown == {}


def test_every_listed_work_is_cited():
    texts = (path.read_text() for path in TEXTS if path != Path(__file__))
    assert sorted(REFERENCES - set().union(*map(cited_in, texts))) == []


def test_every_work_has_one_key_and_what_a_reader_needs():
    entries = re.split(r"^@", BIBLIOGRAPHY, flags=re.MULTILINE)[1:]
    keys = [entry.partition("{")[2].partition(",")[0] for entry in entries]
    assert len(set(keys)) == len(keys) == len(REFERENCES)
    for entry in entries:
        assert all(f"  {field} = {{" in entry for field in ("author", "title", "year"))


def test_citations_are_read_with_and_without_brackets():
    text = "Source: Pham et al. (2026), eq. (1); see (Golub and Welsch 1969), van de Geer (2000)."
    cited = {"Golub and Welsch (1969)", "Pham et al. (2026)", "van de Geer (2000)"}
    assert cited_in(text) == cited <= REFERENCES


def test_papers_are_not_cited_by_file_numbers():
    number = re.compile(r"\b(mlmoe|attention|compete|compete-v1|expert-count)\s+\(00\d\)")
    assert [str(p.relative_to(ROOT)) for p in TEXTS if number.search(p.read_text())] == []


@pytest.mark.parametrize("registry", [GATES, EXPERTS, LIKELIHOODS, LOSSES], ids=lambda r: r.kind)
def test_sources_of_members_cite_a_listed_work(registry):
    for name, member in registry.items():
        labels = cited_in(member.source)
        assert labels, f"{registry.kind} {name!r} cites no work: {member.source!r}"
        assert labels <= REFERENCES
