"""Specs out of the schema: the long runs are `python -m tests.chaos.specs`."""

from hypothesis import HealthCheck, given, settings

from moestat.sweep import SweepError, parse_spec
from tests.chaos.schema import specs

_LONGEST = 1000


def _answer(text):
    """The complaint about a spec; empty for one that is read, and read the same again."""
    try:
        spec = parse_spec(text)
    except SweepError as error:
        return str(error)
    return "" if parse_spec(spec.text).digest == spec.digest else "another digest"


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(specs())
def test_a_spec_of_the_right_shape_is_read_or_refused_in_one_line(text):
    answer = _answer(text)
    assert len(answer.splitlines()) <= 1
    assert len(answer) < _LONGEST
    assert answer != "another digest"
