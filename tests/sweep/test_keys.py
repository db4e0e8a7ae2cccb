"""The schema and the page of reference say what the reader of specs does."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from moestat.sweep import SweepError, parse_spec
from moestat.sweep.report.keys import KEYS, json_schema, reference_page
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
    known = {key.name for key in KEYS if key.table == table}
    blocks = {"beta0", "beta1", "a", "b", "noise"} if table == "truth" else set()
    assert allowed - blocks == known - blocks


def test_required_keys_and_smallest_numbers_are_those_of_the_reader(text):
    for key in KEYS:
        given = re.search(rf"^{key.name} = .*$", text, re.MULTILINE)
        if key.required and given and key.name not in ("truth", "name"):
            with pytest.raises(SweepError, match=f"{key.name}: "):
                parse_spec(text.replace(given[0], "", 1))
        if key.minimum is not None and given:
            with pytest.raises(SweepError, match=f"{key.name}: must be"):
                parse_spec(text.replace(given[0], f"{key.name} = {key.minimum - 1}", 1))


def test_shipped_experiments_use_no_other_keys():
    top = json_schema()["properties"]
    for path in shipped().values():
        values = tomllib.loads(path.read_text())
        if values.get("kind", "fit") == "fit":
            assert set(values) <= set(top)
            for curve in values["curve"]:
                assert set(curve) <= set(top["curve"]["items"]["properties"])
