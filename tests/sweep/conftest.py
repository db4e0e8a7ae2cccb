import pytest

from moestat.sweep import parse_spec
from tests.sweep.specs import DESIGN, EM_STEPS, STARTS, classes, curve, sweep

SPEC = sweep(
    "A small sweep",
    DESIGN,
    classes(),
    curve("newton", 2, "theory = -0.5", 'panel = "a"', STARTS),
    curve("em", 2, 'panel = "a"', EM_STEPS),
)


@pytest.fixture
def text():
    return SPEC


@pytest.fixture
def spec(text):
    return parse_spec(text)


@pytest.fixture
def spec_file(tmp_path, text):
    path = tmp_path / "small.toml"
    path.write_text(text)
    return path
