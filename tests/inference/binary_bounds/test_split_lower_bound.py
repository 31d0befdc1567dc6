"""The lower bound that assumes only independent rows."""

import pytest

import calibrant as cal
from calibrant.simulate import PowerCurve, UniformScores, World
from tests.inference.worlds import BENT


def test_split_lower_bound_is_below_the_error():
    found = cal.interval(
        cal.calibration_error,
        World(UniformScores(), PowerCurve(3)).sample(3000),
        method=cal.inference.SplitLowerBound(),
    )
    assert found.interval.side == "lower"
    assert 0.1 < found.interval.low < 0.25


def test_a_table_has_no_rows_to_split():
    with pytest.raises(cal.InvalidPredictions, match="splits the rows"):
        cal.inference.SplitLowerBound().interval(cal.BinTable.of(BENT.sample(100), cal.table.Distinct()))
