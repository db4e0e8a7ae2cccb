"""One roof: names that mean one thing each, and the cells of older stores."""

from __future__ import annotations

import subprocess
import sys

import pytest

from moestat import networks
from moestat.networks import smoe
from moestat.sweep.spec.experiments import shipped
from moestat.sweep.spec.identity import digest
from moestat.sweep.spec.plan import plan_cells
from moestat.sweep.spec.read import parse_spec

CELLS = {
    "attention_language": "be40fc929abd",
    "compete_clusters": "21a7c2850f0f",
    "compete_gaussian": "527de3bec87e",
    "compete_schedules": "34e60f1305a5",
    "expert_count_figure1": "15ffee80733f",
}


@pytest.mark.parametrize(("name", "expected"), CELLS.items(), ids=CELLS)
def test_cells_of_older_stores_keep_their_identities(name, expected):
    cells = plan_cells(parse_spec(shipped()[name].read_text()))
    told = [[cell.key, cell.identity, cell.data_seed, cell.fit_seed] for cell in cells]
    assert digest(told)[:12] == expected


def test_no_public_name_means_two_things():
    assert set(networks.__all__) & set(smoe.__all__) == set()
    from moestat.networks.smoe import training

    assert set(networks.__all__) & set(training.__all__) == set()


def test_names_are_loaded_on_first_use():
    code = (
        "import sys, moestat.networks, moestat.networks.smoe.training.settings\n"
        "import moestat.networks.smoe.training.tasks\n"
        "print(*({'torch', 'numba'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == []
