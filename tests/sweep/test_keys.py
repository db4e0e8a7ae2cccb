"""The schema and the page of reference say what the reader of specs does."""

import json
import re
import tomllib
from pathlib import Path

import jsonschema
import pytest

from moestat.sweep import SweepError, parse_spec
from moestat.sweep.kinds.fit.keys import KEYS
from moestat.sweep.kinds.kind import KINDS, kind_of
from moestat.sweep.report.keys import json_schema, reference_page
from moestat.sweep.spec.experiments import shipped

DOCS = Path(__file__).parents[2] / "docs"


def test_the_pages_are_current():
    assert (DOCS / "spec.md").read_text() == reference_page()
    assert json.loads((DOCS / "spec.schema.json").read_text()) == json_schema()


@pytest.mark.parametrize(
    ("table", "old"), [("", "seed = 7"), ("truth", "[truth.t]"), ("curve", "[[curve]]")]
)
def test_the_keys_are_those_that_the_reader_takes(text, table, old):
    with pytest.raises(SweepError, match="unknown key") as raised:
        parse_spec(text.replace(old, f"{old}\nqqqq = 1", 1))
    allowed = set(re.search(r"allowed: (.*)", str(raised.value))[1].split(", "))
    known = {key.name for key in KEYS.tables[table]} | ({"kind"} if table == "" else set())
    blocks = {"beta0", "beta1", "a", "b", "noise"} if table == "truth" else set()
    assert allowed - blocks == known - blocks


def test_required_keys_and_smallest_numbers_are_those_of_the_reader(text):
    for key in (key for keys in KEYS.tables.values() for key in keys):
        given = re.search(rf"^{key.name} = .*$", text, re.MULTILINE)
        if key.required and given and key.name not in ("truth", "name"):
            with pytest.raises(SweepError, match=f"{key.name}: "):
                parse_spec(text.replace(given[0], "", 1))
        if key.minimum is not None and given:
            with pytest.raises(SweepError, match=f"{key.name}: must be"):
                parse_spec(text.replace(given[0], f"{key.name} = {key.minimum - 1}", 1))


def test_shipped_experiments_are_valid_by_the_schema_of_their_kind():
    validators = {
        branch["title"]: jsonschema.Draft202012Validator(branch)
        for branch in json_schema()["anyOf"]
    }
    assert tuple(validators) == tuple(KINDS)
    seen = set()
    for path in shipped().values():
        values = tomllib.loads(path.read_text())
        kind = values.get("kind", "fit")
        seen.add(kind)
        assert not list(validators[kind].iter_errors(values)), path
        broken = {**values, "seeds": 1}
        assert list(validators[kind].iter_errors(broken))
    assert seen == set(KINDS)


@pytest.mark.parametrize("kind", [*KINDS][1:])
def test_the_fields_of_runs_are_those_that_the_reader_takes(kind):
    keys = kind_of(kind).keys.tables
    with pytest.raises(SweepError, match=r"^x: must be one of (.*), got") as raised:
        parse_spec(f'kind = "{kind}"\ntitle = "t"\nseed = 1\nreplicates = 1\nx = "q"')
    fields = re.search(r"one of (.*), got", str(raised.value))[1].split(", ")
    names = [key.name for key in keys["values"]]
    assert fields == [*map(repr, names)]
    assert set(names) <= {key.name for key in keys[""]} & {key.name for key in keys["curve"]}
