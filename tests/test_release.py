"""Version and date of a release are the same wherever they stand; the checklist's links lead on."""

from __future__ import annotations

import json
import re
from pathlib import Path

import moestat

ROOT = Path(__file__).parents[1]


def test_version_and_date_agree():
    version = moestat.__version__
    cite = (ROOT / "CITATION.cff").read_text()
    assert re.search(rf"^version: {re.escape(version)}$", cite, flags=re.MULTILINE)
    date = re.search(r"^date-released: (\S+)$", cite, flags=re.MULTILINE)
    assert f"## [{version}] - {date[1]}" in (ROOT / "CHANGELOG.md").read_text()
    recipe = (ROOT / "packaging" / "conda" / "recipe.yaml").read_text()
    assert f'version: "{version}"' in recipe


def test_the_recipe_needs_what_the_package_needs():
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    recipe = (ROOT / "packaging" / "conda" / "recipe.yaml").read_text()
    for each in project["dependencies"]:
        name, _, least = each.partition(">=")
        conda = "matplotlib-base" if name == "matplotlib" else name
        assert f"- {conda} >={least}\n" in recipe, each
    for name, target in project["scripts"].items():
        assert f"- {name} = {target}\n" in recipe


def test_links_of_the_checklist_lead_somewhere():
    text = (ROOT / "paper" / "joss_checklist.md").read_text()
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", text):
        assert (ROOT / "paper" / target).exists(), target


def test_metadata_of_the_archive_is_json():
    assert json.loads((ROOT / ".zenodo.json").read_text())["upload_type"] == "software"
