"""Changed arguments of library calls; the long run is `python -m tests.chaos.calls`."""

from tests.chaos.calls import FATES, fates


def test_a_changed_argument_is_a_clear_error_or_means_what_it_says():
    found = fates(150, seed=11)
    assert set(found) == set(FATES), found
