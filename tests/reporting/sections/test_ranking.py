"""The best map: it helps, and no simpler one does as well."""

import pytest

from calibrant.reporting.contents import Value
from calibrant.reporting.sections.ranking import Candidate, ranked


def candidate(name, parameters, gain, reach):
    return Candidate(name, parameters, Value(gain, gain - reach, gain + reach), None)


def order(*candidates, error=0.01):
    return [(one.name, effect) for one, effect in ranked(candidates, lambda a, b: error)]


def test_the_largest_gain_that_is_clear_is_best():
    found = order(candidate("a", 1, 0.02, 0.01), candidate("b", 3, 0.06, 0.02), candidate("c", 2, -0.1, 0.05))
    assert found == [("b", "best"), ("a", "helps"), ("c", "makes it worse")]


@pytest.mark.parametrize(("error", "best"), [(0.01, "b"), (0.05, "a")])
def test_within_one_standard_error_the_fewest_parameters_win(error, best):
    assert order(candidate("a", 1, 0.02, 0.01), candidate("b", 3, 0.06, 0.02), error=error)[0] == (best, "best")


def test_nothing_is_best_where_no_interval_excludes_zero():
    found = order(candidate("a", 1, 0.01, 0.02), candidate("b", 3, 0.02, 0.04), candidate("c", 9, -0.03, 0.01))
    assert found == [("b", "may not help"), ("a", "may not help"), ("c", "makes it worse")]


def test_a_map_that_may_not_help_is_never_best():
    assert order(candidate("a", 1, 0.055, 0.06), candidate("b", 3, 0.06, 0.02), error=0.1)[0] == ("b", "best")
